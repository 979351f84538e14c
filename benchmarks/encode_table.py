"""The whole table of encoding: each row, each vocabulary, against the best of the other libraries.

`python benchmarks/encode.py --all DATA`, where DATA has the folders `english`, `multilingual`,
`code` and `large` of parquet files, and `vocabularies` with rank files. A row asks how many times
the best of the others is to be reached; libraries that find other ids do not count.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import runs
from bytepair.corpus import read
from bytepair.corpus.column import strings
from peers import SEPARATOR, Vocabulary

#: The rank files, and the pattern of each.
VOCABULARIES = {"cl100k_base": "gpt4", "o200k_base": "gpt4o", "gpt2": "gpt2", "qwen3": "qwen2"}
FAST = ["bytepair", "gigatoken", "fastokens", "snaptokens", "quicktok", "toktok"]
Results = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Asked:
    """A figure, and how it is to stand to the best of the others.

    Attributes:
        key: its name.
        ratio: ours divided by the best of the others.
        more: whether it is good to be above.
    """

    key: str
    ratio: float
    more: bool = True


@dataclass(frozen=True)
class Row:
    """What is measured, on which text, by how many threads."""

    name: str
    output: str
    source: str
    megabytes: float
    asked: tuple[Asked, ...]
    threads: int = 1
    text: str = "a"
    peers: tuple[str, ...] = tuple(FAST)


def passes(first: float, again: float) -> tuple[Asked, ...]:
    return Asked("first", first), Asked("again", again)


SLOW = ("tiktoken", "tokenizers", "tokie")
TIMES = (Asked("first", 0.3, False), Asked("fresh", 0.6, False), Asked("again", 0.8, False))
DECODED = (Asked("list", 1.5), Asked("array", 2))
HARD = (Asked("ms", 1, False),)
RESIDENT = (Asked("resident_mb", 0.25, False),)
ROWS = [
    Row("English, 10 MB", "arrays", "english", 10, passes(3, 1.2)),
    Row("English, 100 MB", "arrays", "large", 100, passes(2.5, 1.2)),
    Row("many languages, 20 MB", "arrays", "multilingual", 20, passes(2.5, 1.5)),
    Row("code, 20 MB", "arrays", "code", 20, passes(2, 1.2)),
    Row("lists, English, 10 MB", "lists", "english", 10, passes(2, 1.3), peers=(*FAST, *SLOW)),
    Row("a file, 300 MB, two threads", "file", "large", 300, (Asked("first", 2.5),), 2),
    Row("a message", "message", "english", 20, TIMES, peers=(*FAST, *SLOW)),
    Row("a conversation that grows", "growing", "english", 1, (Asked("turn", 1, False),)),
    Row("decoding, English, 10 MB", "decode", "english", 10, DECODED, peers=(*FAST, *SLOW)),
    *(
        Row(f"1 MB of {text}", "hard", "", 1, HARD, text=text)
        for text in ("a", "letters", "spaces", "chinese", "base64")
    ),
    Row("memory after 1 GB", "memory", "large", 1000, RESIDENT, peers=("bytepair", "gigatoken")),
]  # fmt: skip


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure and print all rows that are wanted; all figures, by row and vocabulary."""
    rows = [row for row in ROWS if not args.rows or any(part in row.name for part in args.rows)]
    found: dict[str, Any] = {}
    print("| vocabulary | row | figure | bytepair | best of the others | ratio | asked | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, pattern in VOCABULARIES.items():
        rank_file = args.all / "vocabularies" / f"{name}.tiktoken"
        if not rank_file.exists() or name not in (args.vocabularies or VOCABULARIES):
            continue
        with tempfile.TemporaryDirectory() as folder:
            vocabulary = Vocabulary(Path(folder), str(rank_file), pattern)
            vocabulary.write()
            peers = list(args.peers)
            for row in rows:
                results = measure_row(row, vocabulary, peers, args.rounds, args.all)
                # Who cannot read a vocabulary is not asked again; a hard text is too hard for some.
                if row.output != "hard":
                    peers = [peer for peer in peers if peer in results or peer not in row.peers]
                found[f"{name}: {row.name}"] = results
                show(name, row, results)
    if any("English, 100 MB" in row.name for row in rows):
        both_threads(args, found)
    return found


def measure_row(
    row: Row, vocabulary: Vocabulary, peers: list[str], rounds: int, data: Path
) -> Results:
    script = str(Path(__file__).with_name("encode.py").resolve())
    source = str(data / row.source) if row.source else ""
    options = {
        "--rank-file": vocabulary.rank_file,
        "--pattern": vocabulary.pattern,
        "--files": vocabulary.folder,
        "--output": row.output,
        "--threads": row.threads,
        "--text": row.text,
        "--megabytes": row.megabytes,
    }
    command = [script, source, *(str(part) for pair in options.items() for part in pair)]
    if row.output in ("file", "memory"):
        write_file(Path(source), vocabulary.folder / "documents.txt")
    return runs.measure(command, [peer for peer in row.peers if peer in peers], rounds)


def write_file(source: Path, path: Path) -> None:
    """All documents of a folder as one file."""
    between = ""
    with path.open("w") as out:
        for batch in read.read_batches(source):
            for text in strings(batch):
                out.write(between + text)
                between = SEPARATOR


def show(vocabulary: str, row: Row, results: Results) -> None:
    """A line for each figure that is asked for."""
    ours = results["bytepair"]
    for asked in row.asked:
        best = {
            peer: runs.median(found, asked.key)
            for peer, found in results.items()
            if peer != "bytepair" and found and asked.key in found[0]
            and found[0]["digest"] == ours[0]["digest"]
        }  # fmt: skip
        figure = runs.median(ours, asked.key)
        if not best:
            print(f"| {vocabulary} | {row.name} | {asked.key} | {figure:.3g} | none | | | |")
            continue
        peer = (max if asked.more else min)(best, key=lambda name: best[name])
        ratio = figure / best[peer]
        reached = ratio >= asked.ratio if asked.more else ratio <= asked.ratio
        print(
            f"| {vocabulary} | {row.name} | {asked.key} | {figure:.3g} | {peer} {best[peer]:.3g} "
            f"| {ratio:.2f} | {asked.ratio:g} | {'reached' if reached else 'missed'} |"
        )
        sys.stdout.flush()


def both_threads(args: argparse.Namespace, found: dict[str, Any]) -> None:
    """Two threads against one, ours, where the text was met before."""
    name, pattern = next(iter(VOCABULARIES.items()))
    rank_file = args.all / "vocabularies" / f"{name}.tiktoken"
    rates = []
    for threads in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            vocabulary = Vocabulary(Path(folder), str(rank_file), pattern)
            vocabulary.write()
            row = Row("two", "arrays", "large", 100, (), threads, peers=("bytepair",))
            results = measure_row(row, vocabulary, ["bytepair"], args.rounds, args.all)
        found[f"{name}: English, 100 MB, threads {threads}"] = results
        rates.append(runs.median(results["bytepair"], "first"))
    ratio, asked = rates[1] / rates[0], 1.85
    reached = "reached" if ratio >= asked else "missed"
    print(
        f"| {name} | two threads against one | first | {rates[1]:.3g} | one thread {rates[0]:.3g} "
        f"| {ratio:.2f} | {asked} | {reached} |"
    )
