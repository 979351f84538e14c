"""Compares writers of token shards: each makes files of uint16 or uint32 of the same parquet files.

python benchmarks/shards.py FOLDER --rank-file cl100k_base.tiktoken --pattern gpt4

`pyarrow` only reads the text column, and is how fast it could go. `tiktoken` is a script in the
manner of llm.c: a pool of processes encodes documents, the parent puts them into arrays and writes.
`gigatoken` encodes whole columns on all threads into flat arrays, which are written as they are.

`bytepair` is `bytepair.shards.write`, `command` is `bytepair shard` with a saved tokenizer. The
rate of a whole process counts from its start, and so what is imported and the vocabulary, which the
rate beside it leaves out; that of the command counts to its end. A worker imports what it needs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import runs

EOT = "<|endoftext|>"
SHARD = 100_000_000


def columns(args: argparse.Namespace) -> Iterator[Any]:
    import pyarrow.parquet as pq

    def read() -> Iterator[Any]:
        for file in sorted(Path(args.source).glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches(1024, columns=["text"]):
                yield batch.column(0)

    return read()


def with_pyarrow(args: argparse.Namespace, out: Path) -> Callable[[], int]:
    read = columns(args)
    return lambda: sum(len(column) for column in read)


def tokenizer(args: argparse.Namespace) -> Any:
    import bytepair

    known = runs.ranks(args.rank_file)
    special = {EOT: len(known)}
    return bytepair.Tokenizer.from_ranks(known, pattern=args.pattern, special_tokens=special)


def with_bytepair(args: argparse.Namespace, out: Path) -> Callable[[], int]:
    from bytepair import shards

    tok = tokenizer(args)
    return lambda: shards.write(
        sorted(Path(args.source).glob("*.parquet")), tok, out,
        tokens_per_shard=SHARD, bos=True, threads=args.threads,
    ).documents  # fmt: skip


def with_command(args: argparse.Namespace, out: Path) -> Callable[[], int]:
    from bytepair.shards import manifest

    saved = out / "tokenizer"
    tokenizer(args).save(saved)
    command = [
        sys.executable, "-m", "bytepair", "shard", str(args.source), "--tokenizer", str(saved),
        "--out", str(out / "shards"), "--tokens-per-shard", str(SHARD), "--bos",
        "--threads", str(args.threads),
    ]  # fmt: skip

    def run() -> int:
        subprocess.run(command, check=True, capture_output=True)
        return manifest.Manifest.load(out / "shards").documents

    return run


_encoding: Any = None


def _begin(known: dict[bytes, int], pattern: str) -> None:
    global _encoding
    import tiktoken

    import bytepair

    special = {EOT: len(known)}
    _encoding = tiktoken.Encoding(
        "x", pat_str=bytepair.PATTERNS[pattern], mergeable_ranks=known, special_tokens=special
    )


def _encode(text: str) -> Any:
    import numpy as np

    ids = [_encoding._special_tokens[EOT], *_encoding.encode_ordinary(text)]
    return np.array(ids, np.uint32)


def with_tiktoken(args: argparse.Namespace, out: Path) -> Callable[[], int]:
    import multiprocessing

    import numpy as np

    known = runs.ranks(args.rank_file)
    dtype = np.uint16 if len(known) < 1 << 16 else np.uint32
    texts = (text for column in columns(args) for text in column.to_pylist())

    def run() -> int:
        documents = 0
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
    """Columns to flat arrays on all threads; gigatoken has its own names for patterns."""
    import awkward
    import gigatoken
    import numpy as np

    eot = len(Path(args.rank_file).read_bytes().splitlines())
    dtype = np.uint16 if eot < 1 << 16 else np.uint32
    name = {"gpt4": "gpt4", "gpt4o": "o200k", "gpt2": "gpt2", "qwen2": "qwen2"}[args.pattern]
    tok = gigatoken.Tokenizer.from_tiktoken(args.rank_file, name)
    read = columns(args)

    def run() -> int:
        documents = 0
        with (out / "shard_000000.bin").open("wb") as file:
            for column in read:
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
    "command": with_command,
    "tiktoken": with_tiktoken,
    "gigatoken": with_gigatoken,
}


def work(args: argparse.Namespace) -> None:
    out = Path(tempfile.mkdtemp())
    try:
        run = PEERS[args.worker](args, out)
        started = time.perf_counter()
        documents = run()
        ended = time.perf_counter()
        crc = 0
        for path in sorted(out.rglob("*.bin")):
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    crc = zlib.crc32(block, crc)
    finally:
        shutil.rmtree(out)
    size = sum(column.nbytes for column in columns(args)) / 1e6
    whole = ended - (started if args.worker == "command" else runs.process_start())
    runs.say({
        "rate": size / (ended - started), "whole": size / whole, "documents": documents,
        "digest": f"{crc:08x}",
    })  # fmt: skip


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
    print("| who | MB/s of text | of a whole process | peak MB |\n| --- | --- | --- | --- |")
    for name, rows in results.items():
        rate, whole = (runs.median(rows, key) for key in ("rate", "whole"))
        peak = "" if name == "command" else f"{runs.median(rows, 'peak_mb'):.0f}"
        print(f"| {name} | {rate:.1f} | {whole:.1f} | {peak} |")
    runs.record(args.record, results, list(PEERS))


if __name__ == "__main__":
    main()
