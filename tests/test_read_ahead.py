"""The thread that reads ahead ends with the interpreter, without a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, sys, threading

def late():  # what happens to modules when the interpreter ends
    for name in list(vars(threading)):
        setattr(threading, name, None)
    unfinished.clear()

unfinished = []
atexit.register(late)
from bytepair.corpus import read
batches = read.read_batches(sys.argv[1])
next(batches)
unfinished.append(batches)
del batches
"""


@pytest.mark.parametrize("kind", ["txt", "jsonl"])
def test_a_stream_that_nobody_ends_is_ended_at_exit(tmp_path: Path, kind: str) -> None:
    line = "some text\n" if kind == "txt" else '{"text": "some text"}\n'
    for name in "ab":
        (tmp_path / f"{name}.{kind}").write_text(line * 100_000, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
