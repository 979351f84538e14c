"""Draws the pictures of the lessons: ids, words, heaps, threads and files, as SVG.

You need not read this file to follow a lesson.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from IPython.display import SVG

BLUE, GREEN, YELLOW, RED, GREY = "#bcd4fb", "#bfe8cd", "#fbe0a6", "#f6c6d1", "#dddddd"
COLORS = (BLUE, GREEN, YELLOW, RED, "#d9cdf7", "#c9e4ea", "#e3d5b8")
#: Signs for characters that cannot be seen.
MARKS = str.maketrans({" ": "·", "\n": "⏎", "\r": "␍", "\t": "⇥"})


def visible(text: str) -> str:
    """Put marks for spaces, line breaks and tabs."""
    return text.translate(MARKS)


def shown(token: bytes) -> str:
    """Return the text of a token with marks for its spaces; its bytes if it is no whole text."""
    try:
        return visible(token.decode())
    except UnicodeDecodeError:
        return token.hex()


def _svg(size: str, parts: Iterable[str], title: str, style: str) -> SVG:
    """Put drawn parts together to one picture; `size` is its width and height."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img" {style}>'
    return SVG(f"{head}<title>{escape(title)}</title>{''.join(parts)}</svg>")


def _box(x: float, y: float, width: float, lines: Sequence[str], color: str, size: int = 13) -> str:
    """Draw lines of words in a box, whose corner at the top left is at x and y."""
    words = (
        f'<text x="{x + width / 2:g}" y="{y + 16 + 16 * n:g}" font-size="{size}" '
        f'font-family="monospace" text-anchor="middle" fill="#111">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )
    height = 17 * len(lines) + 6
    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height}" rx="4" fill="{color}"/>'
    return box + "".join(words)


def _note(x: float, y: float, text: str, anchor: str = "start") -> str:
    style = 'fill="#808080" font-family="sans-serif" font-size="13"'
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {style}>{escape(text)}</text>'


def _wide(text: str) -> int:
    """Say how wide the box of a text is; a Chinese letter is twice as wide as a Latin one."""
    return 10 + 8 * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def draw_rows(
    rows: Iterable[tuple[str, Iterable[tuple[str, str]]]], title: str, left: int = 100
) -> SVG:
    """Draw rows of boxes; a row is a name, and a list of words and their colours."""
    parts, y = [], -4
    for name, boxes in rows:
        x, y = left, y + 32
        parts.append(_note(4, y + 16, name))
        for words, color in boxes:
            if x > left and x + _wide(words) > 560:
                x, y = left, y + 28
            parts.append(_box(x, y, _wide(words), [words], color))
            x += _wide(words) + 3
    return _svg(f"0 20 564 {y + 12}", parts, title, 'width="564"')


def draw_tokens(
    tokens: Iterable[bytes], title: str = "A text, token by token", colors: Sequence[str] = COLORS
) -> SVG:
    """Draw tokens in boxes, one after the other, in turning colours."""
    boxes = ((shown(token), colors[n % len(colors)]) for n, token in enumerate(tokens))
    return draw_rows([("", boxes)], title, left=0)


def draw_ids(rows: Iterable[Iterable[int]], vocabulary: Sequence[bytes]) -> SVG:
    """Draw lists of ids; each row is a list, and each box shows the token of one id."""

    def boxes(row: Iterable[int]) -> list[tuple[str, str]]:
        return [(shown(vocabulary[id]), COLORS[n % len(COLORS)]) for n, id in enumerate(row)]

    return draw_rows((("", boxes(row)) for row in rows), "Lists of ids", left=0)


def draw_ranks(words: Iterable[Iterable[bytes]], ranks: Mapping[bytes, int]) -> SVG:
    """Draw tokens over their ranks; the tokens of one word have one colour."""
    parts, x = [], 0
    for n, word in enumerate(words):
        for token in word:
            text, rank = shown(token), str(ranks[token])
            width = max(_wide(text), _wide(rank))
            parts.append(_box(x, 0, width, [text], COLORS[n % len(COLORS)]))
            parts.append(_note(x + width / 2, 40, rank, "middle"))
            x += width + 3
        x += 6
    return _svg(f"0 0 {x} 46", parts, "Tokens and their ranks", f'width="{x}"')


def draw_words(words: Iterable[tuple[Sequence[int], int]], tokens: Sequence[bytes]) -> SVG:
    """Draw words as their tokens, and how often each word occurs; merged tokens are coloured."""
    parts, x, y = [], 0, 6
    for ids, times in words:
        texts = [shown(tokens[id]) for id in ids]
        if x and x + sum(_wide(text) + 3 for text in texts) + 60 > 560:
            x, y = 0, y + 32
        for id, text in zip(ids, texts, strict=True):
            color = COLORS[id % len(COLORS)] if id > 255 else GREY
            parts.append(_box(x, y, _wide(text), [text], color))
            x += _wide(text) + 3
        parts.append(_note(x + 2, y + 17, f"× {times}"))
        x += 50
    return _svg(f"0 0 560 {y + 32}", parts, "The words as tokens", 'width="560"')


def draw_tree(entries: Sequence[tuple[Sequence[str], str]], title: str, width: int = 34) -> SVG:
    """Draw the first fifteen entries of a heap as a tree; each has lines of words and a colour."""
    lines, boxes, at = [], [], {}
    for n, (words, color) in enumerate(entries[:15]):
        level = (n + 1).bit_length() - 1
        x, y = 560 * (n + 1.5 - 2**level) / 2**level, 8 + 72 * level
        at[n] = x, y
        if n:
            up, over = at[(n - 1) // 2]
            lines.append(f'<path d="M{up:g} {over + 20}L{x:g} {y}" stroke="#808080"/>')
        boxes.append(_box(x - width / 2, y, width, words, color))
    height = max((y for _, y in at.values()), default=0) + 62
    return _svg(f"0 0 560 {height}", lines + boxes, title, 'width="560"')


def draw_heap(
    heap: Sequence[tuple[int, tuple[int, int]]],
    pairs: Mapping[tuple[int, int], int],
    tokens: Sequence[bytes],
) -> SVG:
    """Draw a heap of counts (negative) and pairs; entries that are out of date are red."""
    entries = []
    for count, (left, right) in heap:
        now = pairs.get((left, right), 0)
        number = str(-count) if now == -count else f"{-count}, now {now}"
        name = f"{shown(tokens[left])}+{shown(tokens[right])}"
        entries.append(([name, number], GREY if now == -count else RED))
    return draw_tree(entries, "The heap as a tree", width=69)


def draw_lanes(
    lanes: Iterable[tuple[str, Iterable[tuple[str, int, int]]]], colors: Mapping[str, str]
) -> SVG:
    """Draw what threads do over time: a lane is a name, and what is done from when to when."""
    parts = []
    for row, (name, spans) in enumerate(lanes):
        y = 34 * row + 20 * (row // 2)
        parts.append(_note(172, y + 17, name, "end"))
        for what, start, end in spans:
            parts.append(_box(180 + 31 * start, y, 31 * (end - start) - 2, [what], colors[what]))
    return _svg("0 0 560 150", parts, "What two threads do, over time", 'width="560"')


def draw_files(
    files: Mapping[str, tuple[int, int, str]], uses: Iterable[tuple[str, str]], title: str
) -> SVG:
    """Draw files at their places, with a note in each, and arrows to the files that they use."""
    parts = [
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#808080"/></marker></defs>'
    ]
    for user, used in uses:
        (x1, y1, _), (x2, y2, _) = files[user], files[used]
        path = f'<path d="M{x1 + 155} {y1 + 20}L{x2} {y2 + 20}" stroke="#808080"'
        parts.append(f'{path} fill="none" marker-end="url(#tip)"/>')
    for name, (x, y, what) in files.items():
        parts.append(_box(x, y, 155, [name, what], YELLOW, size=12))
    return _svg("-4 -4 564 194", parts, title, 'width="564"')
