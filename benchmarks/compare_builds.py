"""Two builds of bytepair side by side: the processor time of each row, as a ratio.

python benchmarks/compare_builds.py OLD/python NEW/python --data DATA --rounds 10

OLD/python and NEW/python hold the package `bytepair` with its extension. DATA is a folder of texts
and vocabularies as `texts.py` makes it. Every round is a new process for each build, in turn; a
ratio is the median of the ratios of all rounds, and below 1 where the new build is faster. The ids
of both builds are compared first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PATTERNS = {"cl100k_base": "gpt4", "o200k_base": "gpt4o"}
TEXTS = ("english", "multilingual", "code")
#: How much text a process encodes for the first time, and how much then, in characters.
SIZE = 5_000_000
MESSAGE = 100

#: The figures of what a process does first.
FIRST = ("first", "count", "write")

Figures = dict[str, Any]


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def documents(folder: Path) -> tuple[list[str], list[str]]:
    """Two halves of the texts of a folder, of `SIZE` characters each."""
    import pyarrow.parquet as pq

    halves: tuple[list[str], list[str]] = ([], [])
    left = 2 * SIZE
    for file in sorted(folder.glob("*.parquet")):
        for text in pq.read_table(file, columns=["text"])["text"].to_pylist():
            halves[left <= SIZE].append(text)
            left -= len(text)
            if left <= 0:
                return halves
    return halves


def passes(
    load: Callable[[], Any], call: Callable[[Any, list[str]], object], folder: Path
) -> Figures:
    """Rates of the first text of a process (with loading), of other text, and of the same again."""
    first, steady = documents(folder)
    tok: Any = None

    def begin() -> None:
        nonlocal tok
        tok = load()
        call(tok, first)

    figures = {"first": seconds(begin), "steady": seconds(lambda: call(tok, steady))}
    figures["again"] = min(seconds(lambda: call(tok, steady)) for _ in range(3))
    return figures


def messages(tok: Any, folder: Path) -> Figures:
    whole = "".join(documents(folder)[0])
    starts = range(0, len(whole) - MESSAGE, 7 * MESSAGE)
    texts = [whole[start : start + MESSAGE] for start in starts]
    few = texts[:1000]
    figures = {"new": seconds(lambda: [tok.encode(text) for text in texts])}
    figures["again"] = min(
        seconds(lambda: [tok.encode(text) for text in few * 5]) for _ in range(3)
    )
    return figures


def digest(tok: Any, data: Path) -> Figures:
    ids = hashlib.sha256()
    for name in TEXTS:
        for half in documents(data / name):
            ids.update(tok.encode_batch_to_numpy(half)[0].tobytes())
    return {"digest": ids.hexdigest()}


def worker(args: argparse.Namespace) -> Figures:
    """The figures of one row, in this process; what it does first includes importing bytepair."""
    started = time.process_time()
    import bytepair
    from bytepair import shards

    imported = time.process_time() - started
    figures = figures_of(args, bytepair, shards)
    return {name: value + imported if name in FIRST else value for name, value in figures.items()}


def figures_of(args: argparse.Namespace, bytepair: Any, shards: Any) -> Figures:

    kind, vocabulary, text, threads = args.worker.split(",")
    data, folder, at_most = args.data, args.data / text, int(threads)
    files = sorted(folder.glob("*.parquet"))
    saved = args.saved / vocabulary

    def load() -> Any:
        return bytepair.load(saved)

    if kind == "save":
        rank_file = data / "vocabularies" / f"{vocabulary}.tiktoken"
        tok = bytepair.load(
            rank_file, pattern=PATTERNS[vocabulary], special_tokens={"<|end|>": 300_000}
        )
        tok.save(saved)
        return digest(tok, data)
    if kind == "documents":
        call = lambda tok, texts: [  # noqa: E731
            tok.encode_batch_to_numpy([text], threads=at_most).ids for text in texts
        ]
        return passes(load, call, folder)
    if kind == "arrays":
        return passes(
            load, lambda tok, texts: tok.encode_batch_to_numpy(texts, threads=at_most), folder
        )
    if kind == "lists":
        return passes(load, lambda tok, texts: tok.encode_batch(texts, threads=at_most), folder)
    if kind == "messages":
        return messages(load(), folder)
    if kind == "shards":
        with tempfile.TemporaryDirectory() as out:
            tok = load()
            write = lambda: shards.write(files, tok, Path(out) / "shards", threads=at_most)  # noqa: E731
            return {"write": seconds(write)}
    made: list[Any] = []
    count = lambda: made.append(bytepair.count(files, pattern="nanochat", threads=at_most))  # noqa: E731
    train = lambda: bytepair.train(made[0], 32_768, special_tokens=[], threads=at_most)  # noqa: E731
    return {"count": seconds(count), "train": seconds(train)}


def rows() -> Iterator[str]:
    for vocabulary in PATTERNS:
        for text in TEXTS:
            yield f"documents,{vocabulary},{text},1"
        yield f"messages,{vocabulary},english,1"
        yield f"lists,{vocabulary},english,1"
        yield f"shards,{vocabulary},english,1"
        yield f"arrays,{vocabulary},english,1"
        yield f"arrays,{vocabulary},english,2"
    for text in TEXTS:
        yield f"training,none,{text},1"


def run(args: argparse.Namespace, build: Path, row: str) -> Figures:
    saved = args.saved / hashlib.sha256(bytes(build)).hexdigest()[:8]
    command = [
        sys.executable,
        __file__,
        ".",
        ".",
        "--data",
        args.data,
        "--saved",
        saved,
        "--worker",
        row,
    ]
    path = {**os.environ, "PYTHONPATH": str(build.resolve())}
    ran = subprocess.run(command, check=True, capture_output=True, env=path)
    figures: Figures = json.loads(ran.stdout)
    return figures


def compare(args: argparse.Namespace) -> None:
    builds = [args.old, args.new]
    for vocabulary in PATTERNS:
        if (
            len({run(args, build, f"save,{vocabulary},english,1")["digest"] for build in builds})
            > 1
        ):
            sys.exit(f"the ids of {vocabulary} differ")
    print("| row | figure | old, ms | ratio | from, to |\n| --- | --- | --- | --- | --- |")
    for row in args.rows or rows():
        results: list[list[Figures]] = []
        for number in range(args.rounds):
            order = builds[:: -1 if number % 2 else 1]
            pair = {build: run(args, build, row) for build in order}
            results.append([pair[build] for build in builds])
        for figure in results[0][0]:
            ratios = sorted(new[figure] / old[figure] for old, new in results)
            old = statistics.median(old[figure] for old, _ in results)
            span = f"{ratios[len(ratios) // 4]:.2f}, {ratios[-1 - len(ratios) // 4]:.2f}"
            ratio = statistics.median(ratios)
            print(f"| {row} | {figure} | {old * 1e3:.1f} | {ratio:.3f} | {span} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rows", nargs="*", help="only these")
    parser.add_argument(
        "--saved", type=Path, default=Path(tempfile.gettempdir()) / "compare_builds"
    )
    parser.add_argument("--worker", help="measure this row, here and now")
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(worker(args)))
    else:
        compare(args)


if __name__ == "__main__":
    main()
