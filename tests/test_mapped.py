"""A file of the native format is mapped: what happens without memory, and when the file shrinks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import bytepair

TOK = bytepair.train(bytepair.sample.paths(), 1200)

LOAD = """
import resource, sys, bytepair
path, more = sys.argv[1], int(sys.argv[2])
bytepair.load(path)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))
try:
    bytepair.load(path).encode("text")
    print("loaded")
except MemoryError:
    print("MemoryError")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_without_memory_a_good_file_stays_a_good_file(tmp_path: Path) -> None:
    TOK.save(tmp_path / "t")
    outcomes = set()
    for more in (1 << 14, 1 << 17, 1 << 20, 1 << 23, 1 << 26, 1 << 29):
        command = [sys.executable, "-c", LOAD, str(tmp_path / "t"), str(more)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outcomes.add(done.stdout.strip())
    assert outcomes == {"loaded", "MemoryError"}


def test_a_file_that_was_read_may_shrink(tmp_path: Path) -> None:
    TOK.save(tmp_path / "t")
    tok = bytepair.load(tmp_path / "t", memory_map=False)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    with file.open("r+b") as opened:
        opened.truncate(10)
    for text in ("the first text", "é 漢字 " * 1000):
        assert tok.decode(tok.encode(text)) == text
    assert tok.mergeable_ranks() == TOK.mergeable_ranks()


def test_a_mapped_file_may_be_replaced(tmp_path: Path) -> None:
    TOK.save(tmp_path / "t")
    tok = bytepair.load(tmp_path / "t")
    bytepair.train(["other"] * 2, 266).save(tmp_path / "t", overwrite=True)
    assert tok.encode("the first text") == TOK.encode("the first text")
