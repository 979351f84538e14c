"""Token shards side by side: parquet files in, files of uint16 or uint32 out, from the same corpus.

python benchmarks/shards.py FOLDER --rank-file cl100k_base.tiktoken --pattern gpt4

`pyarrow` only reads the text column, and is how fast it could go. `tiktoken` is a script in the
manner of llm.c: a pool of processes encodes documents, the parent puts them into arrays and writes.
`gigatoken` encodes whole columns on all threads into flat arrays, which are written as they are.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import bytepair
import runs

EOT = "<|endoftext|>"
SHARD = 100_000_000


def columns(args: argparse.Namespace) -> Iterator[Any]:
    for file in sorted(Path(args.source).glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(1024, columns=["text"]):
            yield batch.column(0)


def with_pyarrow(args: argparse.Namespace, out: Path) -> Callable[[], int]:
    return lambda: sum(len(column) for column in columns(args))


def with_bytepair(args: argparse.Namespace, out: Path) -> Callable[[], int]:
    known = runs.ranks(args.rank_file)
    tok = bytepair.Tokenizer.from_ranks(
        known, pattern=args.pattern, special_tokens={EOT: len(known)}
    )
    return lambda: bytepair.shards.write(
        sorted(Path(args.source).glob("*.parquet")), tok, out,
        tokens_per_shard=SHARD, bos=True, threads=args.threads,
    ).documents  # fmt: skip


_encoding: Any = None


def _begin(known: dict[bytes, int], pattern: str) -> None:
    global _encoding
    import tiktoken

    special = {EOT: len(known)}
    _encoding = tiktoken.Encoding(
        "x", pat_str=bytepair.PATTERNS[pattern], mergeable_ranks=known, special_tokens=special
    )


def _encode(text: str) -> np.ndarray[Any, Any]:
    ids = [_encoding._special_tokens[EOT], *_encoding.encode_ordinary(text)]
    return np.array(ids, np.uint32)


def with_tiktoken(args: argparse.Namespace, out: Path) -> Callable[[], int]:
    known = runs.ranks(args.rank_file)
    dtype = np.uint16 if len(known) < 1 << 16 else np.uint32

    def run() -> int:
        documents = 0
        texts = (text for column in columns(args) for text in column.to_pylist())
        with (
            multiprocessing.Pool(args.threads, _begin, (known, args.pattern)) as pool,
            (out / "shard_000000.bin").open("wb") as file,
        ):
            for ids in pool.imap(_encode, texts, chunksize=16):
                file.write(ids.astype(dtype).tobytes())
                documents += 1
        return documents

    return run


def with_gigatoken(args: argparse.Namespace, out: Path) -> Callable[[], int]:
    """Columns to flat arrays on all threads; its patterns have names of its own."""
    import awkward
    import gigatoken

    eot = len(runs.ranks(args.rank_file))
    dtype = np.uint16 if eot < 1 << 16 else np.uint32
    name = {"gpt4": "gpt4", "gpt4o": "o200k", "gpt2": "gpt2", "qwen2": "qwen2"}[args.pattern]
    tok = gigatoken.Tokenizer.from_tiktoken(args.rank_file, name)

    def run() -> int:
        documents = 0
        with (out / "shard_000000.bin").open("wb") as file:
            for column in columns(args):
                lists = tok.encode_batch(column.to_pylist(), parallel=args.threads > 1)
                sizes = np.asarray(awkward.num(lists))
                starts = np.cumsum(sizes) - sizes
                ids = np.insert(np.asarray(awkward.flatten(lists)), starts, eot)
                file.write(ids.astype(dtype).tobytes())
                documents += len(column)
        return documents

    return run


PEERS: dict[str, Callable[[argparse.Namespace, Path], Callable[[], int]]] = {
    "pyarrow": with_pyarrow,
    "bytepair": with_bytepair,
    "tiktoken": with_tiktoken,
    "gigatoken": with_gigatoken,
}


def work(args: argparse.Namespace) -> None:
    out = Path(tempfile.mkdtemp())
    try:
        run = PEERS[args.worker](args, out)
        started = time.perf_counter()
        documents = run()
        seconds = time.perf_counter() - started
        crc = 0
        for path in sorted(out.glob("*.bin")):
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    crc = zlib.crc32(block, crc)
    finally:
        shutil.rmtree(out)
    size = sum(column.nbytes for column in columns(args)) / 1e6
    runs.say({"rate": size / seconds, "documents": documents, "digest": f"{crc:08x}"})


def main() -> None:
    parser = runs.parser(__doc__, PEERS)
    parser.add_argument("source")
    runs.add_vocabulary(parser)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.worker:
        work(args)
        return
    results = runs.measure([str(Path(__file__).resolve()), *sys.argv[1:]], args.peers, args.rounds)
    written = {rows[0]["digest"] for name, rows in results.items() if name != "pyarrow"}
    if len(written) > 1:
        sys.exit("the shards are not equal; nothing else matters")
    print("| who | MB/s of text | peak MB |\n| --- | --- | --- |")
    for name, rows in results.items():
        print(f"| {name} | {runs.median(rows, 'rate'):.1f} | {runs.median(rows, 'peak_mb'):.0f} |")
    runs.record(args.record, results, list(PEERS))


if __name__ == "__main__":
    main()
