"""Instructions, cache misses and branch mispredictions of encoders, counted by cachegrind.

    python benchmarks/counters.py DATA [--rows NAME ...] [--peers gigatoken fastokens]
    python benchmarks/counters.py DATA [--rows NAME ...] --builds OLD/python NEW/python

Input: a folder of texts as `texts.py` makes it, and other libraries beside `bytepair`, or folders
with builds of `bytepair` (without any: the one that is installed). Output: a table with a line for
each row and library or build, every figure divided by the number of pretokens.

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

import bytepair
import rows
from peers import PEERS, Calls, Vocabulary

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
Made = list[Callable[[], object]]
Halves = tuple[list[str], list[str]]
Kind = Callable[[Calls, Halves], tuple[Made, list[str]]]


def halves(data: Path, name: str) -> Halves:
    """Two lists of documents, each of `SIZE` megabytes."""
    texts = list(rows.texts(data / name, 2 * SIZE))
    size, middle = 0.0, 0
    while size < SIZE * 1e6:
        size += len(texts[middle].encode())
        middle += 1
    return texts[:middle], texts[middle:]


def arrays(calls: Calls, texts: list[str]) -> Callable[[], object]:
    encode = calls.arrays or calls.lists
    return lambda: encode(texts)


def first(calls: Calls, texts: Halves) -> tuple[Made, list[str]]:
    return [arrays(calls, texts[1])], texts[1]


def steady(calls: Calls, texts: Halves) -> tuple[Made, list[str]]:
    return [arrays(calls, texts[0]), arrays(calls, texts[1])], texts[1]


def second(calls: Calls, texts: Halves) -> tuple[Made, list[str]]:
    return [arrays(calls, texts[1])] * 2, texts[1]


def messages(calls: Calls, texts: Halves) -> tuple[Made, list[str]]:
    """New texts of 100 characters, a call each, to lists; one call before that for what is lazy."""
    long = [text[:2000] for text in texts[1]]
    short = [text[at : at + 100] for text in long for at in range(0, len(text), 100)][:MESSAGES]
    return [lambda: calls.one("."), lambda: [calls.one(text) for text in short]], short


def decode(calls: Calls, texts: Halves) -> tuple[Made, list[str]]:
    """Lists of ids to text."""
    ids, one = [[*ids] for ids in calls.lists(texts[1])], calls.decode
    assert one is not None, "this library does not decode"
    return [lambda: [one(some) for some in ids]], texts[1]


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
    calls, counted = kind(PEERS[args.peers[0]](known(args, vocabulary)), halves(args.data, text))
    if args.phase == "pretokens":
        print(bytepair.count(counted, pattern=rows.PATTERNS[vocabulary]).total)
        return
    for call in calls if args.phase == "all" else calls[:-1]:
        call()


def known(args: argparse.Namespace, name: str) -> Vocabulary:
    """A vocabulary in the files that the libraries read."""
    rank_file = args.data / "vocabularies" / f"{name}.tiktoken"
    return Vocabulary(args.files / name, str(rank_file), rows.PATTERNS[name])


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


def measure(args: argparse.Namespace, name: str, peer: str, build: Path | None) -> list[float]:
    """The events of a row, for each pretoken, in the order of `EVENTS`."""
    command = [str(Path(__file__).resolve()), str(args.data), "--worker", name]
    command += ["--files", str(args.files), "--peers", peer, "--phase"]
    pretokens = int(run([sys.executable, *command, "pretokens"], build))
    whole, before = (events([*command, phase], build) for phase in ("all", "before"))
    return [sum(whole[key] - before[key] for key in keys) / pretokens for keys in EVENTS.values()]


def table(args: argparse.Namespace) -> None:
    """Print a line for each row and library, or build."""
    print(f"| a pretoken of | of | {' | '.join(EVENTS)} |")
    print(f"| --- | --- {'| ---: ' * len(EVENTS)}|")
    measured = [("bytepair", build) for build in args.builds or [None]]
    for name in args.rows:
        for peer, build in [*measured, *((peer, None) for peer in args.peers)]:
            figures = " | ".join(f"{it:.2f}" for it in measure(args, name, peer, build))
            print(f"| {name} | {build or peer} | {figures} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--builds", type=Path, nargs="*", default=[])
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=[])
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--worker", choices=ROWS, help="make the calls of this row, here and now")
    parser.add_argument("--files", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--phase", choices=("all", "before", "pretokens"), default="all")
    args = parser.parse_args()
    if args.worker:
        work(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        args.files = Path(folder)
        for vocabulary in {ROWS[name][2] for name in args.rows}:
            (args.files / vocabulary).mkdir()
            known(args, vocabulary).write()
        table(args)


if __name__ == "__main__":
    main()
