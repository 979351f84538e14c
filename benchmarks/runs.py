"""Measured processes: run workers many times, in turn, and record what they print.

A worker is a script of this folder called with `--worker NAME`; it prints one JSON object. The
runner adds the wall time of the whole process.
"""

from __future__ import annotations

import base64
import datetime
import importlib.metadata
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: The environment variable with the time at which a worker was started.
_STARTED = "BYTEPAIR_BENCHMARK_STARTED"


def parser(about: str | None, peers: Iterable[str] = (), rounds: int = 3) -> ArgumentParser:
    """The options that all comparisons have; with `--peers` if the caller names any."""
    made = ArgumentParser(description=about)
    made.add_argument("--rounds", type=int, default=rounds)
    made.add_argument("--record", type=Path, help="a file for all figures, as JSON")
    made.add_argument("--worker", help="measure this one, here and now")
    if names := list(peers):
        made.add_argument("--peers", nargs="*", default=names)
    return made


def add_vocabulary(options: ArgumentParser) -> None:
    """Add the options of `ranks`."""
    options.add_argument("--rank-file", default="", help="none: train on the sample text")
    options.add_argument("--pattern", default="gpt4")


def ranks(rank_file: str) -> dict[bytes, int]:
    """The vocabulary that is compared: a rank file, or none for one of the sample text."""
    import bytepair

    if not rank_file:
        return bytepair.train(bytepair.sample.paths(), 8192, special_tokens=[]).mergeable_ranks()
    lines = Path(rank_file).read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}


def bind(threads: int) -> None:
    """Keep this process, and what it starts, to as many processors and threads.

    The variables alone do not suffice: some libraries start more threads than they are told to.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(min(threads, os.cpu_count() or 1)))
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if threads == 1 else "true"
    # numpy's own threads spin for a tenth of a second when they start.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"


def say(row: dict[str, Any]) -> None:
    """Print what a worker has measured, and the most memory that its process had."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1e3  # type: ignore[index]
    else:  # this may count the parent process, too
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({**row, "peak_mb": peak}))


def measure(worker: list[str], names: list[str], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Run each name's worker `rounds` times, in turn; a worker that fails is left out."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in list(results):
            started = time.perf_counter()
            command = [sys.executable, *worker, "--worker", name]
            env = {**os.environ, _STARTED: repr(started)}
            ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
            if ran.returncode:
                said = ran.stderr.strip().splitlines()
                print(f"{name} left out: {said[-1] if said else ran.returncode}", file=sys.stderr)
                del results[name]
                continue
            row = json.loads(ran.stdout)
            row["seconds"] = time.perf_counter() - started
            results[name].append(row)
    return results


def process_start() -> float:
    """When this worker's process was started, by `time.perf_counter`; now, outside a worker."""
    return float(os.environ.get(_STARTED, time.perf_counter()))


def median(rows: list[dict[str, Any]], key: str) -> float:
    """The median of one figure over the rounds."""
    return float(statistics.median(row[key] for row in rows))


def record(path: Path | None, results: dict[str, Any], packages: list[str]) -> None:
    """Write results with the machine, the date, the versions and the command."""
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    about = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": f"{_processor()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "command": " ".join(["python", *map(_short, sys.argv)]),
        "versions": versions,
    }
    if path is not None:
        path.write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")
    print("\n" + ", ".join(f"{key}: {value}" for key, value in about.items()))


def _short(argument: str) -> str:
    """An absolute path is only a name: the folders of one machine mean nothing on others."""
    path = Path(argument)
    return path.name if path.is_absolute() else argument


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
