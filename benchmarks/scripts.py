"""The first pass over each script: which scripts are slow, and beside whom.

    python benchmarks/scripts.py DATA --rank-file cl100k_base.tiktoken

Input: the folder of texts of `texts.py`. Its documents in many languages are divided by the script
of most of their letters; `encode.py` then measures each script in new processes, in turn. Output: a
table of MB/s, with the ratio of ours to the fastest other library with the same ids.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import runs
from bytepair.corpus import read
from bytepair.corpus.column import strings
from peers import PEERS, Vocabulary

#: How much of each script is encoded, and the least that is worth measuring, in bytes.
MOST, LEAST = 3_500_000, 250_000
#: Letters of a document that decide about its script.
LETTERS = 400
#: Scripts that are written together.
TOGETHER = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "CJK": "Han"}


def script(text: str) -> str:
    """The script of most letters; Japanese if a tenth of them are kana."""
    letters = [character for character in text[: 4 * LETTERS] if character.isalpha()][:LETTERS]
    names = (unicodedata.name(letter, "?").split()[0] for letter in letters)
    counts = collections.Counter(TOGETHER.get(name, name.capitalize()) for name in names)
    if counts["Japanese"] * 10 > len(letters):
        return "Japanese"
    return counts.most_common(1)[0][0] if counts else "none"


def divide(source: Path) -> dict[str, list[str]]:
    """The documents of a folder by script, each script as much as is measured."""
    groups: dict[str, list[str]] = collections.defaultdict(list)
    sizes: collections.Counter[str] = collections.Counter()
    for batch in read.read_batches(source):
        for text in strings(batch):
            name = script(text)
            if sizes[name] < MOST:
                groups[name].append(text)
                sizes[name] += len(text.encode())
    return {name: texts for name, texts in groups.items() if sizes[name] >= LEAST}


def measured(
    groups: dict[str, list[str]], vocabulary: Vocabulary, args: argparse.Namespace
) -> Iterator[str]:
    """A row of the table for each script."""
    encode = str(Path(__file__).with_name("encode.py"))
    for name, texts in groups.items():
        folder = vocabulary.folder / name
        folder.mkdir()
        pq.write_table(pa.table({"text": texts}), folder / "texts.parquet")
        command = [encode, str(folder), "--rank-file", vocabulary.rank_file]
        command += ["--pattern", vocabulary.pattern, "--files", str(vocabulary.folder)]
        command += ["--output", "arrays", "--megabytes", str(MOST / 1e6)]
        results = runs.measure(command, args.peers, args.rounds)
        yield row(name, sum(len(text.encode()) for text in texts) / 1e6, results)


def row(name: str, megabytes: float, results: dict[str, list[dict[str, float]]]) -> str:
    """The median rate of each library, and our lead over the best with the same ids."""
    ours = results["bytepair"]
    rates = {one: runs.median(rows, "first") for one, rows in results.items() if rows}
    same = [
        one for one, rows in results.items()
        if one != "bytepair" and rows and rows[0]["digest"] == ours[0]["digest"]
    ]  # fmt: skip
    best = max(same, key=lambda one: rates[one])
    pairs = zip(ours, results[best], strict=False)
    lead = statistics.median(mine["first"] / theirs["first"] for mine, theirs in pairs)
    figures = " | ".join(f"{rates[one]:.3g}" if one in rates else "" for one in results)
    return f"| {name} | {megabytes:.1f} | {figures} | {lead:.2f} |"


def lines(args: argparse.Namespace, folder: Path) -> Iterable[str]:
    """The table."""
    vocabulary = Vocabulary(folder, args.rank_file, args.pattern)
    vocabulary.write()
    groups = divide(args.data / "multilingual")
    peers = args.peers
    yield "| script | MB | " + " | ".join(peers) + " | lead |"
    yield "| --- " * (len(peers) + 3) + "|"
    yield from measured(dict(sorted(groups.items())), vocabulary, args)


def main() -> None:
    parser = runs.parser(
        __doc__,
        [name for name in PEERS if name in ("bytepair", "fastokens", "gigatoken", "snaptokens")],
    )
    runs.add_vocabulary(parser)
    parser.add_argument("data", type=Path, help="the folder of texts")
    args = parser.parse_args()
    runs.bind(1)
    with tempfile.TemporaryDirectory() as folder:
        for line in lines(args, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
