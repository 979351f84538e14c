"""Training on one text file that is larger than memory: time, memory and what is spilled, by size.

    python benchmarks/large.py DATA FILE --gigabytes 1 4 12 40

Input: the folder of texts of `texts.py`, and the name of a file, which is written and removed. The
file repeats the English texts. In each copy some letters are exchanged, drawn by the number of the
copy, so that words stay new however large the file is. It grows from size to size; for each, new
processes count it and train on it. Output: a row of a table for each size. It takes as much of the
disk as the largest size.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import string
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import bytepair
import runs
from bytepair.corpus import read
from bytepair.corpus.column import strings
from peers import SEPARATOR

#: Letters that are exchanged in a copy.
LETTERS = 6
#: How much of the English texts a copy has, in bytes.
COPY = 250_000_000


def exchange(copy: int) -> bytes:
    """The table of `bytes.translate` of a copy: some letters take each other's places."""
    one = random.Random(copy).sample(string.ascii_lowercase, LETTERS if copy else 0)
    other = one[1:] + one[:1]
    return bytes.maketrans("".join(one).encode(), "".join(other).encode())


def grow(file: Path, text: bytes, size: int) -> None:
    """Append copies until the file has this many bytes."""
    with file.open("ab") as out:
        while (done := out.tell()) < size:
            copy = done // len(text)
            out.write(text.translate(exchange(copy))[: size - done])


def spilled(folder: str, most: list[int], done: threading.Event) -> None:
    """Watch how much is in the folder of temporary files."""
    while not done.wait(0.1):
        files = (Path(at, name) for at, _, names in os.walk(folder) for name in names)
        most[0] = max(most[0], sum(file.stat().st_size for file in files if file.exists()))


def work(file: str, vocab_size: int) -> dict[str, Any]:
    """Count the file and train on the counts: seconds, and the number of distinct pretokens."""
    started = time.perf_counter()
    counts = bytepair.count(Path(file), pattern="gpt2")
    counted = time.perf_counter()
    bytepair.train(counts, vocab_size, special_tokens=[])
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "count": counted - started,
        "train": time.perf_counter() - counted,
        "processor": usage.ru_utime + usage.ru_stime,
        "distinct": len(counts),
    }


def measure(file: Path, vocab_size: int) -> dict[str, Any]:
    """The figures of a new process, with its wall time and the most that it spilled."""
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        most, done = [0], threading.Event()
        watcher = threading.Thread(target=spilled, args=(folder, most, done))
        watcher.start()
        started = time.perf_counter()
        command = [sys.executable, __file__, str(file), "--worker", str(vocab_size)]
        ran = subprocess.run(command, env={**os.environ, "TMPDIR": folder}, capture_output=True)
        wall = time.perf_counter() - started
        done.set()
        watcher.join()
    if ran.returncode:
        sys.exit(ran.stderr.decode())
    return {**json.loads(ran.stdout), "wall": wall, "spilled_mb": most[0] / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder of texts")
    parser.add_argument("file", type=Path, nargs="?", help="the file that is written and removed")
    parser.add_argument("--gigabytes", type=float, nargs="*", default=[1, 4])
    parser.add_argument("--vocab-size", type=int, default=65_536)
    parser.add_argument("--worker", type=int, help="measure here and now, with so many ids")
    args = parser.parse_args()
    if args.worker:
        runs.say(work(str(args.data), args.worker))
        return
    text = bytearray()
    for batch in read.read_batches(args.data / "large"):
        text += SEPARATOR.join([*strings(batch), ""]).encode()
        if len(text) >= COPY:
            break
    print("| GB | wall s | processor s | count s | train s | peak MB | spilled MB | distinct |")
    print("| --- " * 8 + "|", flush=True)
    try:
        for size in args.gigabytes:
            grow(args.file, bytes(text), int(size * 1e9))
            row = measure(args.file, args.vocab_size)
            figures = (f"{row[key]:.1f}" for key in ("wall", "processor", "count", "train"))
            sizes = (f"{row[key]:,.0f}" for key in ("peak_mb", "spilled_mb", "distinct"))
            print(f"| {size:g} | {' | '.join(figures)} | {' | '.join(sizes)} |", flush=True)
    finally:
        args.file.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
