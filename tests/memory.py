"""Runs a program in a process of its own, which can print its peak memory."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")

# `getrusage` would include the peak memory of the parent process.
PEAK = f"""
import re, sys

def peak_mb():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("{STATUS}").read())[1]) / 1000
"""


def run(program: str, *arguments: str | Path) -> list[str]:
    """The words that a program prints; in it, `peak_mb()` is the most memory it had so far."""
    if not STATUS.exists():
        pytest.skip("needs a system that says how much memory a process had at most")
    words = [sys.executable, "-c", PEAK + inspect.cleandoc(program), *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
