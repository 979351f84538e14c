"""Instructions, cache misses and branch mispredictions of bytepair's calls, counted by cachegrind.

    python benchmarks/counters.py DATA [--builds OLD/python NEW/python] [--rows NAME ...]

Input: a folder of texts as `texts.py` makes it, and folders with a build of `bytepair` (without
any: the one that is installed). Output: a table with a line for each row and build, every figure
divided by the number of pretokens.

Each row is a list of calls of which the last one is counted: it runs under `valgrind
--tool=cachegrind` once with all calls and once without the last one, and the difference is the
row's. Cachegrind simulates two levels of cache (32 kB and 2 MB here) and a branch predictor, so the
counts do not depend on the machine's load. It has no AVX-512: what is counted is the AVX2 code.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bytepair
import rows

CACHES = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=2097152,16,64"]
#: How much text each call encodes, in megabytes.
SIZE = 4.0
MESSAGES = 4000
EVENTS = {
    "instructions": ("Ir",),
    "branches": ("Bc", "Bi"),
    "mispredicted": ("Bcm", "Bim"),
    "first level missed": ("D1mr", "D1mw"),
    "second level missed": ("DLmr", "DLmw"),
}
Calls = list[Callable[[], object]]
Halves = tuple[list[str], list[str]]
Kind = Callable[[Any, Halves], tuple[Calls, list[str]]]


def halves(data: Path, name: str) -> Halves:
    """Two lists of documents, each of `SIZE` megabytes."""
    texts = list(rows.texts(data / name, 2 * SIZE))
    size, middle = 0.0, 0
    while size < SIZE * 1e6:
        size += len(texts[middle].encode())
        middle += 1
    return texts[:middle], texts[middle:]


def arrays(tok: Any, texts: list[str]) -> Callable[[], object]:
    return lambda: tok.encode_batch_to_numpy(texts, threads=1)


def first(tok: Any, texts: Halves) -> tuple[Calls, list[str]]:
    return [arrays(tok, texts[1])], texts[1]


def steady(tok: Any, texts: Halves) -> tuple[Calls, list[str]]:
    return [arrays(tok, texts[0]), arrays(tok, texts[1])], texts[1]


def second(tok: Any, texts: Halves) -> tuple[Calls, list[str]]:
    return [arrays(tok, texts[1])] * 2, texts[1]


def messages(tok: Any, texts: Halves) -> tuple[Calls, list[str]]:
    """New texts of 100 characters, a call each, to lists."""
    long = [text[:2000] for text in texts[1]]
    short = [text[at : at + 100] for text in long for at in range(0, len(text), 100)][:MESSAGES]
    return [lambda: [tok.encode(text) for text in short]], short


def decode(tok: Any, texts: Halves) -> tuple[Calls, list[str]]:
    """Lists of ids to text."""
    ids = tok.encode_batch(texts[1])
    return [lambda: [tok.decode(one) for one in ids]], texts[1]


#: What is called, on which text, with which vocabulary.
ROWS: dict[str, tuple[Kind, str, str]] = {
    "English, first": (first, "english", "cl100k_base"),
    "English, first, o200k": (first, "english", "o200k_base"),
    "English, steady": (steady, "english", "cl100k_base"),
    "English, steady, o200k": (steady, "english", "o200k_base"),
    "English, second time": (second, "english", "cl100k_base"),
    "many languages, first": (first, "multilingual", "cl100k_base"),
    "many languages, steady": (steady, "multilingual", "cl100k_base"),
    "code, steady": (steady, "code", "cl100k_base"),
    "code, second time": (second, "code", "cl100k_base"),
    "new texts of 100 bytes": (messages, "english", "cl100k_base"),
    "decode English, lists": (decode, "english", "cl100k_base"),
    "decode many languages, lists": (decode, "multilingual", "cl100k_base"),
}


def work(args: argparse.Namespace) -> None:
    """Make the calls of a row, or all but the last; or print the pretokens of the last."""
    kind, text, vocabulary = ROWS[args.worker]
    pattern = rows.PATTERNS[vocabulary]
    ranks = bytepair.load(args.data / "vocabularies" / f"{vocabulary}.tiktoken", pattern=pattern)
    with tempfile.TemporaryDirectory() as folder:
        tok = bytepair.load(ranks.save(folder))  # with the tables that are in the file
    calls, counted = kind(tok, halves(args.data, text))
    if args.phase == "pretokens":
        print(bytepair.count(counted, pattern=pattern).total)
        return
    for call in calls if args.phase == "all" else calls[:-1]:
        call()


def events(command: list[str], build: Path | None) -> dict[str, int]:
    """What cachegrind counted in a process."""
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "events"
        run([*valgrind, *CACHES, f"--cachegrind-out-file={out}", sys.executable, *command], build)
        lines = dict(line.split(":", 1) for line in out.read_text().splitlines() if ": " in line)
    return dict(zip(lines["events"].split(), map(int, lines["summary"].split()), strict=True))


def run(command: list[str], build: Path | None) -> str:
    """What a process prints that imports this build."""
    told = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    if build is not None:
        told["PYTHONPATH"] = str(build.resolve())
    return subprocess.run(command, check=True, capture_output=True, text=True, env=told).stdout


def measure(args: argparse.Namespace, name: str, build: Path | None) -> list[float]:
    """The events of a row, for each pretoken, in the order of `EVENTS`."""
    command = [str(Path(__file__).resolve()), str(args.data), "--worker", name, "--phase"]
    pretokens = int(run([sys.executable, *command, "pretokens"], build))
    whole, before = (events([*command, phase], build) for phase in ("all", "before"))
    return [sum(whole[key] - before[key] for key in keys) / pretokens for keys in EVENTS.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--builds", type=Path, nargs="*", default=[None])
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--worker", choices=ROWS, help="make the calls of this row, here and now")
    parser.add_argument("--phase", choices=("all", "before", "pretokens"), default="all")
    args = parser.parse_args()
    if args.worker:
        work(args)
        return
    print(f"| a pretoken of | build | {' | '.join(EVENTS)} |")
    print(f"| --- | --- {'| ---: ' * len(EVENTS)}|")
    for name in args.rows:
        for build in args.builds:
            figures = " | ".join(f"{figure:.2f}" for figure in measure(args, name, build))
            print(f"| {name} | {build or 'installed'} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
