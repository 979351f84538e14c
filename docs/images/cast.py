"""Record commands in a terminal, as an animated SVG beside this file.

    python docs/images/cast.py 'corpus/*.parquet'    # writes train.svg; Linux or macOS

Parquet or text files in, `train.svg` out: `bytepair train` and `bytepair encode` run in a pseudo
terminal, and what they write is shown when they write it. Only the typing of the commands is
simulated. The SVG is animated by CSS, so it has no script; a reader that does not animate, or whose
owner asked for less motion, shows the last screen. The terminal is dark on any page.
"""

from __future__ import annotations

import fcntl
import glob
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

COLUMNS, ROWS = 84, 21
#: Of a character, in units of the picture.
WIDTH, HEIGHT = 8.4, 18
#: Seconds: between two typed words, after a command, after the last one.
TYPING, PAUSE, END = 0.3, 1.0, 5.0
#: No two screens are closer together than this, in seconds.
STEP = 0.2
PAPER, INK = "#1e1f26", "#e6e6e6"
#: Of red, green and blue in the 6 x 6 x 6 cube of colours.
LEVELS = (0, 95, 135, 175, 215, 255)
_CODE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])")


@dataclass(frozen=True)
class Cell:
    """A character with its colours; a wide one is followed by an empty cell."""

    text: str = " "
    ink: str = INK
    paper: str = ""

    @property
    def kind(self) -> tuple[str, str, bool]:
        """What cells have in common that are drawn together."""
        return self.ink, self.paper, self.text == "█"


class Screen:
    """What a terminal shows: only the control codes that our commands write are understood."""

    def __init__(self) -> None:
        self.lines: list[list[Cell]] = [[]]
        self.x, self.y = 0, 0
        self.style = Cell()

    def write(self, text: str) -> None:
        """Show text, following its control codes."""
        place = 0
        while place < len(text):
            if code := _CODE.match(text, place):
                self._control(code[1], code[2])
                place = code.end()
                continue
            self._character(text[place])
            place += 1

    def _character(self, char: str) -> None:
        if char == "\r":
            self.x = 0
        elif char == "\n":
            self.y += 1
            self._line()
        elif unicodedata.combining(char) or unicodedata.category(char) == "Mc":
            last = self._line()[self.x - 1]
            self.lines[self.y][self.x - 1] = replace(last, text=last.text + char)
        else:
            wide = unicodedata.east_asian_width(char) in "WF"
            if self.x + wide >= COLUMNS:
                self.x, self.y = 0, self.y + 1
            line = self._line()
            line.extend([Cell()] * (self.x + 1 + wide - len(line)))
            line[self.x] = replace(self.style, text=char)
            if wide:
                line[self.x + 1] = replace(self.style, text="")
            self.x += 1 + wide

    def _line(self) -> list[Cell]:
        while len(self.lines) <= self.y:
            self.lines.append([])
        return self.lines[self.y]

    def _control(self, values: str, kind: str) -> None:
        if kind == "A":
            self.y = max(0, self.y - int(values or 1))
        elif kind == "K":
            self._line().clear()
        elif kind == "m":
            self._color(values)

    def _color(self, values: str) -> None:
        if values in ("", "0"):
            self.style = Cell()
        for layer, number in re.findall(r"([34]8);5;(\d+)", values):
            color = _palette(int(number))
            self.style = replace(self.style, **{"ink" if layer == "38" else "paper": color})

    def shown(self) -> tuple[tuple[Cell, ...], ...]:
        """The last lines, as many as the terminal has."""
        return tuple(tuple(line) for line in self.lines[-ROWS:])


def _palette(number: int) -> str:
    """One of the 256 colours, from the cube on: 16 to 231, and the greys behind it."""
    if number >= 232:
        return "#" + 3 * f"{8 + 10 * (number - 232):02x}"
    red, rest = divmod(number - 16, 36)
    return "#" + "".join(f"{LEVELS[part]:02x}" for part in (red, *divmod(rest, 6)))


Frames = list[tuple[float, tuple[tuple[Cell, ...], ...]]]


def record(commands: list[list[str]], folder: Path) -> Frames:
    """Run commands one after another in a terminal.

    Returns:
        The screens, each with the time in seconds at which it begins.
    """
    screen, now, frames = Screen(), 0.0, []
    for number, command in enumerate(commands):
        screen.write("\r\n$ " if number else "$ ")
        for word in command:
            now += TYPING
            screen.write(f"{word} ")
            frames.append((now, screen.shown()))
        screen.write("\r\n")
        now += 0.4
        for seconds, text in run(command, folder):
            screen.write(text)
            frames.append((now + seconds, screen.shown()))
        now = frames[-1][0] + PAUSE
    return [*frames, (now + END, screen.shown())]


def run(command: list[str], folder: Path) -> list[tuple[float, str]]:
    """Run a command in a terminal of its own; what it wrote, and when, in seconds."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    line = " ".join(command).replace("bytepair ", f"{sys.executable} -m bytepair ")
    process = subprocess.Popen(
        line, shell=True, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs,
        env=os.environ | {"TERM": "xterm-256color", "COLORTERM": "", "COLUMNS": str(COLUMNS)},
    )  # fmt: skip
    os.close(theirs)
    started, found, rest = time.monotonic(), [], b""
    while True:
        try:
            data = rest + os.read(ours, 1 << 16)
        except OSError:  # the last writer is gone
            break
        if len(data) == len(rest):
            break
        text = data.decode("utf-8", "ignore")
        rest = data[len(text.encode()) :]
        found.append((time.monotonic() - started, text))
    os.close(ours)
    if process.wait():
        raise SystemExit(f"{line} failed: {''.join(text for _, text in found)}")
    return found


def thinned(frames: Frames) -> Frames:
    """The frames at least STEP apart; of those that are closer, the last counts."""
    kept: Frames = []
    for begin, screen in frames:
        if kept and begin - kept[-1][0] < STEP:
            kept[-1] = (kept[-1][0], screen)
        else:
            kept.append((begin, screen))
    return kept


def spans(frames: Frames) -> list[tuple[int, str, float, float | None]]:
    """Each line of the picture that is the same for a while.

    Returns:
        Row, drawing, and when it is there: from, and until, which is None for the last.
    """
    found, open_ = [], {}
    height = max(len(screen) for _, screen in frames)
    for begin, screen in frames:
        for row in range(height):
            drawn = draw(screen[row]) if row < len(screen) else ""
            if row in open_ and open_[row][0] == drawn:
                continue
            if row in open_ and open_[row][0]:
                found.append((row, *open_[row], begin))
            open_[row] = (drawn, begin)
    return found + [(row, drawn, begin, None) for row, (drawn, begin) in open_.items() if drawn]


def draw(line: tuple[Cell, ...]) -> str:
    """A line as SVG: runs of characters of one colour, at their columns."""
    parts, x = [], 0
    while x < len(line):
        end = x + 1
        while end < len(line) and line[end].kind == line[x].kind:
            end += 1
        left, width = x * WIDTH, (end - x) * WIDTH
        text = "".join(cell.text for cell in line[x:end])
        if line[x].paper:
            parts.append(
                f'<rect x="{left:.4g}" y="-13" width="{width:.4g}" height="{HEIGHT}" '
                f'fill="{line[x].paper}"/>'
            )
        if text.strip() and not text.strip("█"):  # fonts leave gaps between blocks
            parts.append(f'<rect x="{left:.4g}" y="-12" width="{width:.4g}" height="14"/>')
        elif text.strip():
            ink = f' fill="{line[x].ink}"' if line[x].ink != INK else ""
            text = text.rstrip()
            cells = end - x - (len("".join(c.text for c in line[x:end])) - len(text))
            parts.append(
                f'<text x="{left:.4g}" textLength="{cells * WIDTH:.4g}"{ink}>{escape(text)}</text>'
            )
        x = end
    return "".join(parts)


def picture(frames: Frames, title: str) -> str:
    """The animated SVG."""
    total = frames[-1][0]
    rows = max(len(screen) for _, screen in frames)
    width, height = round(COLUMNS * WIDTH + 32), rows * HEIGHT + 44
    rules, groups = [], []
    for number, (row, drawn, begin, end) in enumerate(spans(frames)):
        first, last = 100 * begin / total, 100 * (end or 0) / total
        hidden = "visibility:hidden"
        keys = f"0%{{{hidden}}}{first:.2f}%{{visibility:visible}}"
        keys += f"{last:.2f}%,to{{{hidden}}}" if end else "to{visibility:visible}"
        rules.append(f"@keyframes k{number}{{{keys}}}#r{number}{{animation-name:k{number}}}")
        kind = "" if end is None else ' class="o"'
        groups.append(
            f'<g id="r{number}"{kind} transform="translate(0 {row * HEIGHT})">{drawn}</g>'
        )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>{escape(title)}</title>
<style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
white-space:pre}}g g{{animation:{total:.2f}s step-end infinite}}.o{{visibility:hidden}}
@media(prefers-reduced-motion){{g g{{animation:none!important}}}}
{"".join(rules)}</style>
<rect width="{width}" height="{height}" rx="8" fill="{PAPER}" stroke="#808080"/>
<g transform="translate(16 30)" fill="{INK}">
{chr(10).join(groups)}
</g></svg>
"""


def main() -> None:
    """Record, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for number, path in enumerate(sorted(glob.glob(sys.argv[1]))):  # noqa: PTH207
            name = f"{number:03}{''.join(Path(path).suffixes)}"
            (corpus / name).symlink_to(Path(path).resolve())
        kind = "".join(Path(path).suffixes)
        commands = [
            ["bytepair", "train", f"'corpus/*{kind}'", "--vocab-size", "65536", "-o", "mine"],
            ["echo", "'Tokenizers cut text into pieces.'", "|", "bytepair", "encode", "-t", "mine"],
        ]
        frames = thinned(record(commands, Path(folder)))
    made = picture(frames, "bytepair train: a tokenizer from parquet files; bytepair encode")
    Path(__file__).with_name("train.svg").write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
