"""The memory of sharding, where the texts of a parquet file make it hard.

python benchmarks/shard_memory.py english.txt

For each case, writes a file with one row group: small rows, and among them the texts of the case.
Then shards it in a process of its own, on two threads, with a vocabulary of 65,536 ids.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import bytepair
import runs

MILLION = 1_000_000
SMALL = 2000

#: By case: the length of the texts among the small rows in characters, their number, and options.
CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "small rows alone": (0, 0, {}),
    "six texts of 100 MB": (100 * MILLION, 6, {}),
    "300 times a text of 5 MB": (5 * MILLION, 300, {}),
    "a text of 1 GB, left out": (1000 * MILLION, 1, {}),
    "a text of 1 GB, read": (1000 * MILLION, 1, {"max_document_bytes": 1100 * MILLION}),
}


def make(case: str, text: str, path: Path) -> None:
    """Write the file of a case."""
    size, times, _ = CASES[case]
    rows = [text[at : at + SMALL] for at in range(0, 10_000 * SMALL, SMALL)]
    repeated = times > 10
    while len(text) < size + MILLION * times:
        text += text
    long = [text[at * MILLION :][:size] for at in ([0] * times if repeated else range(times))]
    table = pa.table({"text": pa.chunked_array([[row] for row in [*rows, *long, *rows]])})
    pq.write_table(table, path, row_group_size=len(table), compression="zstd")


def work(args: argparse.Namespace) -> None:
    tok = bytepair.load(args.folder)
    with tempfile.TemporaryDirectory() as out:
        made = bytepair.shards.write(
            args.folder / f"{args.worker}.parquet", tok, out, threads=2, errors="skip",
            progress=False, **CASES[args.worker][2],
        )  # fmt: skip
    runs.say({"documents": made.documents, "text_mb": made.text_bytes / 1e6})


def main() -> None:
    parser = runs.parser(__doc__, CASES, rounds=1)
    parser.add_argument("source", type=Path, help="a text file of 20 MB or more")
    parser.add_argument("--folder", type=Path, help="made if not given")
    args = parser.parse_args()
    if args.worker:
        work(args)
        return
    text = args.source.read_text(encoding="utf-8", errors="ignore")[: 100 * MILLION]
    with tempfile.TemporaryDirectory() as folder:
        bytepair.train([text], 65536, special_tokens=[]).save(folder)
        for case in args.peers:  # in a process, whose memory would otherwise count below
            arguments = (case, text, Path(folder) / f"{case}.parquet")
            maker = multiprocessing.Process(target=make, args=arguments)
            maker.start()
            maker.join()
        command = [str(Path(__file__).resolve()), *sys.argv[1:], "--folder", folder]
        results = runs.measure(command, args.peers, args.rounds)
    print("| row group | MB of text | documents | peak MB |\n| --- | --- | --- | --- |")
    for name, rows in results.items():
        size, documents, peak = (
            runs.median(rows, key) for key in ("text_mb", "documents", "peak_mb")
        )
        print(f"| {name} | {size:,.0f} | {documents:,.0f} | {peak:,.0f} |")
    runs.record(args.record, results, ["bytepair", "pyarrow"])


if __name__ == "__main__":
    main()
