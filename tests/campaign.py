"""The campaign: all fuzzers in turn for some hours, counted for `docs/proof.md`; `make campaign`.

    python tests/campaign.py --hours 2 --data ../shared/data

Each round runs every fuzzer of `tests/fuzz_*.py` once, in a process of its own, with seeds that no
round had before; each vocabulary of the data is compared in bulk. What was counted is kept below
`target/campaign` after each part, so a campaign that was stopped goes on from there. When it ends,
the table of `docs/proof.md` has one line for each of its days. The output of a part that found a
difference, or died, is appended to `finds.txt` in that folder.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
STATE: Final = ROOT / "target" / "campaign"
PAGE: Final = ROOT / "docs" / "proof.md"
#: The table stands between these lines.
BEGIN, END = "<!-- campaign: begin -->\n", "<!-- campaign: end -->\n"
#: How many seeds a part has; none uses up so many.
SEEDS: Final = 1_000_000
#: What the fuzzers count, in their own words, and the column of the table.
COLUMNS: Final = {
    "characters": r"characters",
    "by the peer": r"by the peer",
    "new": r"new\b",
    "checks": r"checks",
    "cases": r"(?:texts|trainings|patterns|sequences|documents|cases|files)\b",
}


class Part(NamedTuple):
    """A fuzzer, for how many seconds of a round, and its arguments."""

    name: str
    seconds: int
    arguments: list[str]


def parts(data: Path, pace: float) -> Iterator[Part]:
    """The parts of a round; `pace` makes all of them longer or shorter."""
    ranks = sorted([*data.glob("vocabularies/*.tiktoken"), *data.glob("tokenizers/*.tiktoken")])
    documents = sorted(data.glob("tokenizers/*.json"))
    names = {"gpt2": "gpt2", "cl100k_base": "gpt4", "o200k_base": "gpt4o", "qwen3": "qwen2"}
    texts = ["--texts", str(data)]
    plan = [Part("bulk", 300, [str(file), *texts]) for file in ranks]
    plan += [Part("bulk", 40, [str(file), *texts]) for file in documents]
    plan += [Part("encode", 10, [str(one), names[one.stem]]) for one in ranks if one.stem in names]
    plan += [Part(name, 15, []) for name in ("training", "patterns", "text_rules", "exports")]
    plan += [Part("streams", 15, list(map(str, documents))), Part("templates", 15, [])]
    plan.append(Part("formats", 3, ["--finds", str(STATE / "finds")]))
    # In another order than that of the folders, so that a short campaign has some of all.
    for part in random.Random(0).sample(plan, len(plan)):
        yield part._replace(seconds=max(1, round(part.seconds * pace)))


class Campaign:
    """What was run on which day, kept in a file."""

    def __init__(self) -> None:
        STATE.mkdir(parents=True, exist_ok=True)
        self.file = STATE / "state.json"
        kept = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.next: int = kept.get("next", 0)
        self.days: dict[str, dict[str, int]] = kept.get("days", {})
        #: The days of this run: the lines of others stay as they are.
        self.ran: set[str] = set()

    def run(self, part: Part) -> None:
        """Run a part with new seeds, and keep what it counted."""
        first, start = self.next * SEEDS, time.monotonic()
        self.next += 1
        script = ROOT / "tests" / f"fuzz_{part.name}.py"
        options = ["--seconds", str(part.seconds), "--seed", str(first)]
        done = subprocess.run(
            [sys.executable, str(script), *part.arguments, *options],
            capture_output=True, text=True, check=False,
            env=os.environ | {"TOKENIZERS_PARALLELISM": "false"},
        )  # fmt: skip
        day = Counter(self.days.setdefault(date.today().isoformat(), {}))
        for column, words in COLUMNS.items():
            found = re.findall(rf"([\d,]+) {words}", done.stdout)
            day[column] += sum(int(number.replace(",", "")) for number in found)
        day["finds"] += done.returncode != 0
        day["seconds"] += round(time.monotonic() - start)
        day["parts"] += 1
        self.days[date.today().isoformat()] = dict(day)
        self.ran.add(date.today().isoformat())
        if done.returncode:
            with (STATE / "finds.txt").open("a", encoding="utf-8") as finds:
                finds.write(f"{part} seed {first}\n{done.stdout}{done.stderr}\n")
        self._keep()

    def _keep(self) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps({"next": self.next, "days": self.days}, indent=1))
        new.replace(self.file)


def line(day: str, counted: dict[str, int]) -> str:
    """The row of a day."""
    numbers = [f"{counted[name]:,}" if name in counted else "" for name in (*COLUMNS, "finds")]
    hours = f"{counted['seconds'] / 3600:.1f}"
    return f"| {day} | {machine()} | {versions()} | {hours} | {' | '.join(numbers)} |\n"


def machine() -> str:
    """The processor, as Linux names it, and how many of them there are."""
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    found = re.search(r"model name\s*: (.*)", text)
    name = found[1].split("@")[0].strip() if found else platform.machine()
    return f"{name}, {os.cpu_count()} processors, {platform.system()}"


def versions() -> str:
    """The commit of bytepair, and the versions of what it is compared with."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    peers = ", ".join(f"{name} {version(name)}" for name in ("tiktoken", "tokenizers", "regex"))
    return f"{commit or version('bytepair')}; {peers}"


def write(days: dict[str, dict[str, int]]) -> None:
    """Put the lines of the days into the page, in place of older ones of the same days."""
    before, table = PAGE.read_text(encoding="utf-8").split(BEGIN)
    table, after = table.split(END)
    kept = [row for row in table.splitlines(keepends=True) if row.split(" ")[1] not in days]
    rows = "".join([*kept, *(line(day, counted) for day, counted in days.items())])
    PAGE.write_text(before + BEGIN + rows + END + after, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=2)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--pace", type=float, default=1, help="makes all parts longer or shorter")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    campaign, until = Campaign(), time.monotonic() + args.hours * 3600
    plan = list(parts(args.data, args.pace))
    try:
        while time.monotonic() < until:
            part = plan[campaign.next % len(plan)]
            campaign.run(part)
            print(
                part.name, *part.arguments[:1], campaign.days[date.today().isoformat()], flush=True
            )
    except KeyboardInterrupt:
        pass
    write({day: campaign.days[day] for day in sorted(campaign.ran)})
    return int(any(counted["finds"] for counted in campaign.days.values()))


if __name__ == "__main__":
    sys.exit(main())
