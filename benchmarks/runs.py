"""Measured processes: run a worker many times in turn with others, and record what it printed.

A worker is this package's own script called with `--worker NAME`; it prints one JSON object. The
runner adds wall time and peak memory of the whole process.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def measure(worker: list[str], names: list[str], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Run each name's worker `rounds` times, in turn; a worker that fails is left out."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in list(results):
            started = time.perf_counter()
            command = [sys.executable, *worker, "--worker", name]
            # A file, not a second pipe: a worker that says much would wait for its reader for ever.
            with tempfile.TemporaryFile() as errors:
                with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
                    assert process.stdout is not None
                    out = process.stdout.read()
                    _, status, usage = os.wait4(process.pid, 0)
                    process.returncode = os.waitstatus_to_exitcode(status)
                errors.seek(0)
                said = errors.read().decode(errors="replace").strip().splitlines()
            if process.returncode:
                print(f"{name} left out: {said[-1] if said else status}", file=sys.stderr)
                del results[name]
                continue
            row = json.loads(out)
            row["seconds"] = time.perf_counter() - started
            row["peak_mb"] = usage.ru_maxrss / 1e3
            results[name].append(row)
    return results


def median(rows: list[dict[str, Any]], key: str) -> float:
    """The median of one figure over the rounds."""
    return statistics.median(row[key] for row in rows)


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
        "command": " ".join(["python", *sys.argv]),
        "versions": versions,
    }
    if path is not None:
        path.write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")
    print("\n" + ", ".join(f"{key}: {value}" for key, value in about.items()))


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
