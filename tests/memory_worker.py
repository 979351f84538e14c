"""A worker process: runs an operation by name in children with little more memory.

It prints a line for each limit: `done`, `MemoryError`, or how the operation ended instead.
`test_memory_limits.py` starts it.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import bytepair
from bytepair import shards

#: How much more a child may take than there is when it begins, in MB.
LIMITS = [0.1, 0.7, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 192]
ENOUGH = 1500

#: A child that takes longer (in seconds) hangs.
PATIENCE = 60

random.seed(0)
LETTERS = "etaoinshrdlucmé中"
WORDS = ["".join(random.choices(LETTERS, k=random.randrange(1, 12))) for _ in range(9000)]


def text(words: int) -> str:
    return " ".join(random.choices(WORDS, k=words))


class Prepared:
    """The inputs of the operations, made on the first run, without a memory limit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getattr__(self, name: str) -> Any:
        value = PARTS[name](self)
        setattr(self, name, value)
        return value

    def fresh(self) -> bytepair.Tokenizer:
        """A tokenizer with empty caches."""
        return bytepair.load(self.native)

    def write(self, name: str, content: str) -> Path:
        (self.folder / name).write_text(content, encoding="utf-8")
        return self.folder / name


def parquet(p: Prepared) -> Path:
    path = p.folder / "texts.parquet"
    pq.write_table(pa.table({"text": p.texts}), path, row_group_size=5000)
    return path


PARTS: dict[str, Callable[[Prepared], Any]] = {
    "tok": lambda _: bytepair.train([text(20_000)], 3000, threads=2),
    "text": lambda _: text(200_000),
    "wide": lambda p: p.text[:500_000] + "😀",
    "texts": lambda _: [text(30) for _ in range(10_000)],
    "letters": lambda _: "".join(random.choices("abcdefgh", k=500_000)),
    "ids": lambda p: p.tok.encode(p.text[:1_000_000]),
    "array": lambda p: np.array(p.ids),
    "lists": lambda p: [p.tok.encode(text) for text in p.texts],
    "counts": lambda p: bytepair.count([p.text], pattern=p.tok.pattern),
    "file": lambda p: p.write("text.txt", p.text),
    "parquet": parquet,
    "native": lambda p: p.tok.save(p.folder / "tok"),
    "json": lambda p: p.tok.export(p.folder / "tokenizer.json", "huggingface"),
    "ranks": lambda p: p.tok.export(p.folder / "tok.tiktoken", "tiktoken", lossy=True),
    "mergeable_ranks": lambda p: p.tok.mergeable_ranks(),
}


def stream(p: Prepared) -> Any:
    pieces = (p.text[at : at + 100_000] for at in range(0, 1_000_000, 100_000))
    return sum(1 for _ in p.tok.encode_stream(pieces))


OPERATIONS: dict[str, Callable[[Prepared], Any]] = {
    "encode": lambda p: p.fresh().encode(p.text),
    "encode_wide": lambda p: p.fresh().encode(p.wide),
    "encode_letters": lambda p: p.fresh().encode(p.letters),
    "encode_again": lambda p: [p.tok.encode(p.text[:200_000]) for _ in range(4)],
    "encode_batch": lambda p: p.fresh().encode_batch(p.texts, threads=2),
    "encode_to_numpy": lambda p: p.fresh().encode_batch_to_numpy([p.text], threads=1).ids,
    "encode_to_numpy_threads": lambda p: p.fresh().encode_batch_to_numpy([p.text], threads=4).ids,
    "encode_batch_to_numpy": lambda p: p.fresh().encode_batch_to_numpy(p.texts, threads=2),
    "encode_offsets": lambda p: p.tok.encode_offsets(p.text[:1_000_000]),
    "encode_file": lambda p: p.fresh().encode_file(p.file, threads=2),
    "encode_stream": stream,
    "count": lambda p: p.fresh().count(p.text),
    "count_batch": lambda p: bytepair.tokenizer.count_batch(p.fresh(), p.texts, threads=2),
    "pretokenize": lambda p: bytepair.pretokenize(p.text, p.tok),
    "truncate_text": lambda p: bytepair.tokenizer.truncate_text(p.tok, p.text, 100_000),
    "decode": lambda p: p.tok.decode(p.ids),
    "decode_array": lambda p: p.tok.decode(p.array),
    "decode_bytes": lambda p: p.tok.decode_bytes(p.ids),
    "decode_batch": lambda p: p.tok.decode_batch(p.lists, threads=2),
    "count_texts": lambda p: bytepair.count(p.texts, pattern="gpt4", threads=2),
    "count_parquet": lambda p: bytepair.count(p.parquet, pattern="gpt4", threads=2),
    "train": lambda p: bytepair.train([p.text], 20_000, threads=2),
    "train_ties": lambda p: bytepair.train(p.counts, 20_000, ties="bytes-max", threads=2),
    "resume": lambda p: bytepair.training.resume(bytepair.train(p.counts, 300), p.counts, 9000),
    "extend": lambda p: bytepair.extend(p.tok, p.counts, 3000),
    "load": lambda p: [bytepair.load(p.native) for _ in range(9)],
    "load_json": lambda p: bytepair.load(p.json),
    "load_ranks": lambda p: bytepair.load(p.ranks, pattern="gpt4"),
    "from_ranks": lambda p: bytepair.Tokenizer.from_ranks(p.mergeable_ranks, pattern="gpt4"),
    "to_bytes": lambda p: p.tok.to_bytes(),
    "save": lambda p: p.tok.save(p.folder / "again"),
    "export": lambda p: p.tok.export(p.folder / f"gpt2{os.getpid()}", "gpt2", lossy=True),
    "merges": lambda p: (p.tok.merges(), p.tok.mergeable_ranks()),
    "shards": lambda p: shards.write([p.parquet], p.tok, p.folder / f"shards{os.getpid()}"),
}


def limit(megabytes: float) -> None:
    """Limit the memory of this process to this much more than it has now."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    sizes = re.search(r"VmSize:\s+(\d+) kB", status)
    assert sizes
    most = int(sizes[1]) * 1024 + int(megabytes * 1e6)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def attempt(operation: Callable[[Prepared], Any], prepared: Prepared, megabytes: float) -> str:
    """Run an operation in a child of this process, and return how it ended."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            signal.alarm(PATIENCE)
            limit(megabytes)
            operation(prepared)
            code = 0
        except MemoryError:
            code = 1
        except BaseException:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            traceback.print_exc(limit=-3)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: "done", 1: "MemoryError"}.get(code, f"code {code}")


def main(name: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        prepared = Prepared(Path(folder))
        operation = OPERATIONS[name]
        # Modules that are imported on first use are imported now.
        operation(prepared)
        for megabytes in [*LIMITS, ENOUGH]:
            yield f"{megabytes} {attempt(operation, prepared, megabytes)}"


if __name__ == "__main__":
    for line in main(sys.argv[1]):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
