"""A command that fails or is killed at any call that writes leaves what was there, or what it makes.

`faults.c` is preloaded into `fault_worker.py` and counts the calls that open for writing, write,
sync, rename, link, remove and make folders below the working folder, of Python and of the core.
Each command of `test_every_write` fails at its first call, its second and so on: once (a bad
block), from there on (a full disk), and by being killed, in the middle of a write if it is one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from test_every_write import COMMANDS, contents, folder  # noqa: F401

ONCE, FULL, KILL = range(3)
TESTS: Final = Path(__file__).parent


class Worker:
    """The process that runs commands."""

    def __init__(self, work: Path, library: Path) -> None:
        environment = {"LD_PRELOAD": str(library), "FAULT_FOLDER": str(work)}
        self.process = subprocess.Popen(
            [sys.executable, str(TESTS / "fault_worker.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | environment,
        )  # fmt: skip

    def run(self, words: list[str], work: Path, at: int = 0, kind: int = ONCE):
        self.process.stdin.write(json.dumps([str(work), words, at, kind]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())
