"""One table of all benchmarks, and its chart, from the runs that are recorded.

    python benchmarks/table.py --all DATA            # measure every row, then write table and chart
    python benchmarks/table.py --all DATA --quick    # one round on 2 MB: does all of it run?
    python benchmarks/table.py RUN.json ...          # table and chart from what was recorded

`--all` records `benchmarks/results/DATE.json`, or what `--record` says. The table goes between two
comments in `docs/performance.md`, some of its rows to the same place in `README.md`, two figures to
the first sentence there, the chart to `docs/images/benchmarks.svg`. With `--quick` or `--print` the
table is only printed. Where a row is in several runs, the last one counts.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot

import runs
from bytepair import plot
from rows import ROWS, Row, measure
from runs import Results

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
README = ROOT / "README.md"
CHART = ROOT / "docs" / "images" / "benchmarks.svg"
#: Words and lines in grey, readable on white and on black: a page shows the picture as an image,
#: which does not inherit the text colour of the page.
GREY_WORDS: dict[Any, str] = dict.fromkeys(
    ["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"], "#808080"
) | {"svg.fonttype": "none", "svg.hashsalt": "bytepair"}
#: The rows of the chart and of the first sentence of the README.
TRAINING, ENCODING = "the same from parquet", "encode English, first 10 MB"
MARKS = ("<!-- table: begin -->", "<!-- table: end -->")
#: The rows of the README, and how it says what they measure.
SHORT = {
    TRAINING: "train 32,768 ids on 30 MB of parquet, nanochat's pattern",
    ENCODING: "encode 10 MB of English in a new process, one thread",
    "the same 10 MB a second time": "the same text again",
    "many languages, first 10 MB": "encode 10 MB of many languages in a new process",
    "1 GB from a file, two threads": "encode a file of 1 GB, two threads",
    "texts of 100 bytes never seen, to lists": "encode a text of 100 bytes never seen",
    "decode English, lists": "decode English",
    "transformers, a text of 100 bytes": "`AutoTokenizer` on a text of 100 bytes",
}
#: Below this factor bytepair does not lead.
TIE = 1.3
HEAD = "| what | bytepair | the best other | ratio | |"
DIVIDER = "| --- | ---: | --- | ---: | --- |"


def comparable(row: Row, results: Results) -> Results:
    """The rounds of each library that has this figure and finds the same ids.

    Trainers break ties in two ways, so their merges may differ; they are not left out for it.
    """
    ours = results["bytepair"][0]
    digest = f"digest of {row.key.removesuffix(', new')}" if row.output == "models" else "digest"
    return {
        name: found
        for name, found in results.items()
        if found and row.key in found[0]
        and (row.script == "train.py" or found[0][digest] == ours[digest])
    }  # fmt: skip


@dataclass(frozen=True)
class Lead:
    """A row beside the best of the other libraries, in the round with the median ratio.

    Attributes:
        ours: our figure in this round; the median over the rounds if there is no other library.
        other: the other library, or "".
        theirs: its figure in this round.
        ratios: how many times better ours is in each round, in ascending order.
        round: the number of the round, from 0.
    """

    ours: float
    other: str = ""
    theirs: float = 0
    ratios: Sequence[float] = ()
    round: int = 0

    @property
    def ratio(self) -> float:
        """The median."""
        return statistics.median_low(self.ratios)


def lead(row: Row, results: Results) -> Lead:
    """Libraries take turns within a round, so a machine that is slow for a round slows all."""
    found = comparable(row, results)
    ours = [figures[row.key] for figures in found.pop("bytepair")]
    sign = 1 if row.unit == "MB/s" else -1
    leads = []
    for name, rounds in found.items():
        pairs = list(zip(ours, (figures[row.key] for figures in rounds), strict=False))
        ratios = [(mine / theirs) ** sign for mine, theirs in pairs]
        at = ratios.index(statistics.median_low(ratios))
        mine, theirs = pairs[at]
        leads.append(Lead(mine, name, theirs, sorted(ratios), at))
    return min(leads, key=lambda one: one.ratio, default=Lead(statistics.median(ours)))


def line(row: Row, results: Results, name: str = "", *, spread: bool = False) -> str:
    """A row of the table: ours, the best of the others, how many times better ours is."""
    best = lead(row, results)
    cells = [name or row.name, f"{runs.number(best.ours)} {row.unit}", "none", "", "", ""]
    if best.other:
        ratio = round(best.ratio, 2)
        mark = "" if ratio >= TIE else "tie" if ratio >= 1 else "**slower**"
        least, most = best.ratios[0], best.ratios[-1]
        cells[2:] = f"{best.other} {runs.number(best.theirs)}", f"{ratio:.2f}", mark
        cells[5:] = [f"{least:.2f} to {most:.2f}"]
    return f"| {' | '.join(cells if spread else cells[:5])} |\n"


def figures(row: Row, results: Results) -> dict[str, float]:
    """The figure of each library in the round of `lead`."""
    at = lead(row, results).round
    found = comparable(row, results)
    return {name: rounds[at][row.key] for name, rounds in found.items() if at < len(rounds)}


def table(results: dict[str, Results], about: list[dict[str, Any]]) -> str:
    """The table, and on which machine, when and with which versions it was measured."""
    lines = [line(row, results[row.name], spread=True) for row in ROWS if row.name in results]
    said = [
        f"{one['date'][:10]}: {one['machine']}, Python {one['python']}; "
        + ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        for one in about
    ]
    head = f"{HEAD} all rounds |\n{DIVIDER} --- |\n"
    return head + "".join(lines) + "\n" + "\n".join(dict.fromkeys(said)) + "\n"


def short(results: dict[str, Results]) -> str:
    """The rows of the README."""
    rows = {row.name: row for row in ROWS}
    measured = {name: said for name, said in SHORT.items() if name in results}
    lines = [line(rows[name], results[name], said) for name, said in measured.items()]
    return f"{HEAD}\n{DIVIDER}\n" + "".join(lines)


def opening(page: str, results: dict[str, Results]) -> str:
    """The README with our figures in its first sentence, which is the first place of both units."""
    for row in ROWS:
        if row.name in (TRAINING, ENCODING) and row.name in results:
            ours = runs.number(lead(row, results[row.name]).ours)
            page = re.sub(rf"[\d.,]+ {row.unit}\b", f"{ours} {row.unit}", page, count=1)
    return page


def chart(results: dict[str, Results]) -> str:
    """Training and encoding beside the others, as rates; empty where a row was not measured."""
    if TRAINING not in results or ENCODING not in results:
        return ""
    rows = {row.name: row for row in ROWS}
    seconds = figures(rows[TRAINING], results[TRAINING])
    rates = {name: rows[TRAINING].megabytes / taken for name, taken in seconds.items()}
    encoded = figures(rows[ENCODING], results[ENCODING])
    with matplotlib.rc_context(GREY_WORDS):
        figure, (above, below) = pyplot.subplots(2, figsize=(5.2, 4.4), layout="constrained")
        strong = ["bytepair"]
        plot.bars(
            ordered(rates), title="Train 32,768 ids: MB/s, two threads", strong=strong, ax=above
        )
        plot.bars(
            ordered(encoded), title="Encode English: MB/s, one thread", strong=strong, ax=below
        )
        picture = io.StringIO()
        figure.savefig(picture, format="svg", metadata={"Date": None}, transparent=True)
    return picture.getvalue()


def ordered(rates: dict[str, float]) -> dict[str, float]:
    """The fastest first."""
    return dict(sorted(rates.items(), key=lambda item: -item[1]))


def insert(page: str, made: str) -> str:
    """The page with another table between its two comments."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{made}\n{MARKS[1]}{after}"


def load(paths: list[Path]) -> tuple[dict[str, Results], list[dict[str, Any]]]:
    """The rows of some runs, and what each says of itself."""
    results: dict[str, Results] = {}
    about = []
    for path in paths:
        run = json.loads(path.read_text(encoding="utf-8"))
        results |= run["results"]
        about.append(run["about"])
    return results, about


def measured(args: argparse.Namespace) -> Path:
    """Measure, and record it."""
    rounds = 1 if args.quick else args.rounds
    results = measure(args.all, rounds, args.quick, args.rows)
    folder = Path(tempfile.mkdtemp()) if args.quick else RESULTS
    folder.mkdir(exist_ok=True)
    path: Path = args.record or folder / f"{datetime.now(UTC):%Y-%m-%d}.json"
    runs.record(path, results)
    return path


def main() -> None:
    parser = runs.parser(__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="recorded runs")
    parser.add_argument("--all", type=Path, metavar="DATA", help="measure on this folder of texts")
    parser.add_argument("--rows", nargs="*", help="only rows whose name has one of these")
    parser.add_argument("--quick", action="store_true", help="one round on little text")
    parser.add_argument("--print", action="store_true", help="write neither table nor chart")
    args = parser.parse_args()
    paths = [*args.runs, *([measured(args)] if args.all else [])]
    if not paths:
        parser.error("give recorded runs, or --all and a folder that texts.py has made")
    results, about = load(paths)
    made = table(results, about)
    print(made)
    if not (args.quick or args.print):
        if picture := chart(results):
            CHART.write_text(picture, encoding="utf-8")
            made += "\n![Rates of training and encoding](images/benchmarks.svg)\n"
        for page, text in ((PAGE, made), (README, short(results))):
            page.write_text(insert(page.read_text(encoding="utf-8"), text), encoding="utf-8")
        README.write_text(opening(README.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
