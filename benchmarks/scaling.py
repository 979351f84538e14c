"""What more threads cost and gain: encoding, counting, training and writing shards.

    python benchmarks/scaling.py CORPUS.txt --threads 1 2 8

Each measurement is a new process, and the numbers of threads take turns. The figures are the wall
time and the processor time of the call; what threads wait for each other or do twice shows as wall
time that two threads do not halve, or as processor time that grows with them. From the first two
numbers of threads, `serial` is the share of the work that only one thread does (Amdahl's law):
with it, a machine of 16 or 64 cores is at most so many times as fast as one core. More threads than
cores show what contention costs: locks, shared cache lines, threads that wait while another is
preempted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

JOBS = ["encode", "encode a file", "count", "train", "shards"]
CORES = (16, 64)


def prepared(job: str, path: Path, threads: int, out: Path) -> Callable[[], Any]:
    """The call that is measured."""
    import bytepair

    if job == "count":
        return lambda: bytepair.count(path, threads=threads, progress=False)
    if job == "train":
        counts = bytepair.count(path, threads=os.cpu_count(), progress=False)
        return lambda: bytepair.train(counts, 32_768, threads=threads, progress=False)
    tok = bytepair.train(path, 32_768, progress=False, special_tokens=["<|endoftext|>"])
    if job == "encode a file":
        return lambda: tok.encode_file(path, threads=threads)
    if job == "encode":
        texts = path.read_text(encoding="utf-8").split("\n\n")
        return lambda: tok.encode_batch_to_numpy(texts, threads=threads)
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = out.with_suffix(".parquet")
    texts = path.read_text(encoding="utf-8").split("\n\n")
    pq.write_table(pa.table({"text": texts}), rows, row_group_size=4096, compression="zstd")
    return lambda: bytepair.shards.write(rows, tok, out, threads=threads, progress=False)


def measured(job: str, path: Path, threads: int) -> tuple[float, float]:
    """The wall time and the processor time of one call, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        call = prepared(job, path, threads, Path(folder) / "shards")
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        return time.perf_counter() - wall, time.process_time() - cpu


def in_new_process(job: str, path: Path, threads: int) -> tuple[float, float]:
    command = [sys.executable, __file__, str(path), "--one", job, "--threads", str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    wall, cpu = json.loads(done.stdout.splitlines()[-1])
    return wall, cpu


def serial_share(one: float, many: float, threads: int) -> float:
    """The share of the work that does not get faster with more threads, by Amdahl's law."""
    return max(0.0, (many / one - 1 / threads) / (1 - 1 / threads))


def line(job: str, threads: list[int], times: dict[int, list[tuple[float, float]]]) -> str:
    wall = {n: statistics.median(wall for wall, _ in times[n]) for n in threads}
    cpu = {n: statistics.median(cpu for _, cpu in times[n]) for n in threads}
    first, second = threads[:2]
    share = serial_share(wall[first], wall[second], second // first)
    most = [f"{1 / (share + (1 - share) / cores):.1f}" for cores in CORES]
    cells = [f"{wall[n]:.2f} s, {cpu[n] / cpu[first]:.2f}" for n in threads]
    return " | ".join(["| " + job, *cells, f"{share:.0%}", *most]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--one", choices=JOBS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measured(args.one, args.corpus, args.threads[0])))
        return
    heads = [f"{n} threads: wall, processor time / first" for n in args.threads]
    columns = ["job", *heads, "serial", *(f"most with {cores} cores" for cores in CORES)]
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for job in args.jobs:
        times: dict[int, list[tuple[float, float]]] = {n: [] for n in args.threads}
        for _ in range(args.rounds):
            for n in args.threads:
                times[n].append(in_new_process(job, args.corpus, n))
        print(line(job, args.threads, times), flush=True)


if __name__ == "__main__":
    main()
