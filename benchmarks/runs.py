"""Measured processes: run workers many times, in turn, and record and show what they print.

A worker is a script of this folder called with `--worker NAME`; it prints one JSON object. The
runner adds the wall time of the whole process.
"""

from __future__ import annotations

import base64
import datetime
import importlib.metadata
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

#: For each worker what it printed in each round.
Results = dict[str, list[dict[str, Any]]]
#: The packages whose versions are recorded.
PACKAGES = (
    "bytepair", "fastokens", "gigabpe", "gigatoken", "quicktok-v1", "rs_bpe", "rustbpe",
    "snaptokens", "tiktoken", "tokenizers", "tokie", "toktok-rs", "transformers",
)  # fmt: skip


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
    """Add the options of `ranks`, and the folder that is made of it."""
    options.add_argument("--rank-file", default="", help="none: train on the sample text")
    options.add_argument("--pattern", default="gpt4")
    options.add_argument(
        "--files", type=Path, help="the vocabulary in each form; made if not given"
    )


def ranks(rank_file: str) -> dict[bytes, int]:
    """The vocabulary that is compared: a rank file, or none for one of the sample text."""
    import bytepair

    if not rank_file:
        return bytepair.train(bytepair.sample.paths(), 8192, special_tokens=[]).mergeable_ranks()
    lines = Path(rank_file).read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}


def texts(source: str | Path, megabytes: float = math.inf) -> Iterator[str]:
    """Documents of a file or folder up to this size; of the sample text if the source is empty."""
    import bytepair
    from bytepair.corpus import read
    from bytepair.corpus.column import strings

    size = 0
    for batch in read.read_batches(Path(source) if source else bytepair.sample.paths()):
        for text in strings(batch):
            if size >= megabytes * 1e6:
                return
            yield text
            size += len(text.encode())


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


def peak_mb() -> float:
    """The most memory that this process has had."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1e3  # type: ignore[index]
    import resource  # this may count the parent process, too

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def say(row: dict[str, Any]) -> None:
    """Print what a worker has measured, and the most memory that its process had."""
    print(json.dumps({**row, "peak_mb": peak_mb()}))


def again(*more: str) -> list[str]:
    """This script with the same arguments and more, as `measure` takes it."""
    return [str(Path(sys.argv[0]).resolve()), *sys.argv[1:], *more]


def measure(worker: list[str], names: Iterable[str], rounds: int) -> Results:
    """Run each name's worker `rounds` times, in turn; a worker that fails is left out."""
    results: Results = {name: [] for name in names}
    for _ in range(rounds):
        for name in list(results):
            started = time.perf_counter()
            command = [sys.executable, *worker, "--worker", name]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                said = ran.stderr.strip().splitlines()
                print(f"{name} left out: {said[-1] if said else ran.returncode}", file=sys.stderr)
                del results[name]
                continue
            row = json.loads(ran.stdout.splitlines()[-1])
            row["seconds"] = time.perf_counter() - started
            results[name].append(row)
    return results


def median(rows: list[dict[str, Any]], key: str) -> float:
    """The median of one figure over the rounds."""
    return float(statistics.median(row[key] for row in rows))


def number(value: float) -> str:
    """Three digits, and never an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(results: Results) -> None:
    """Print the median of each figure of each worker, and how many times the first one's it is.

    Where ids differ from those of the first worker, the title of the column says so.
    """
    results = {name: rows for name, rows in results.items() if rows}
    first, *_ = results.values()
    titles = [
        name if same(first[0], rows[0]) else f"{name} (other ids)" for name, rows in results.items()
    ]
    print(f"| | {' | '.join(titles)} |\n| --- {'| ---: ' * len(titles)}|")
    for key in (key for key, value in first[0].items() if isinstance(value, int | float)):
        ours = median(first, key)
        cells = [number(ours)]
        for rows in list(results.values())[1:]:
            theirs = median(rows, key) if key in rows[0] else None
            ratio = f" ({theirs / ours:.2f}×)" if theirs and ours else ""
            cells.append("none" if theirs is None else number(theirs) + ratio)
        print(f"| {key} | {' | '.join(cells)} |")


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether all digests are equal that both have."""
    return all(one[key] == other[key] for key in one if key.startswith("digest") and key in other)


def record(path: Path | None, results: dict[str, Any]) -> None:
    """Write results with the machine, the date, the versions and the command."""
    versions = {}
    for package in PACKAGES:
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
