"""Little memory: an operation succeeds or raises MemoryError; it never aborts, panics or hangs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import bytepair

pytest.importorskip("resource")
from memory_worker import OPERATIONS

WORKER = Path(__file__).with_name("memory_worker.py")

if not sys.platform.startswith("linux"):
    pytest.skip("address space is limited on Linux", allow_module_level=True)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_lack_of_memory_is_a_memory_error(operation: str) -> None:
    done = subprocess.run(
        [sys.executable, WORKER, operation], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    outcomes = [line.split(" ", 1)[1] for line in done.stdout.splitlines()]
    assert set(outcomes) <= {"done", "MemoryError"}, f"{done.stdout}\n{done.stderr}"
    assert outcomes[-1] == "done", "there is enough memory"


SIZES = """
import resource, bytepair
tok = bytepair.train(["hello hello"], 269)
text = "hello " * 5_000_000
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 16_000_000, resource.RLIM_INFINITY))
try:
    tok.encode(text)
except MemoryError as error:
    print(error)
"""


def test_a_memory_error_says_the_size() -> None:
    output = subprocess.run(
        [sys.executable, "-c", SIZES], capture_output=True, text=True, check=True
    ).stdout
    assert re.match(r"out of memory: \d{7,} bytes could not be allocated", output), output


@pytest.mark.parametrize("threads", [1025, 10**9, 2**62])
def test_threads_beyond_reason_are_fewer(threads: int) -> None:
    texts = [f"hello {number} " * 9000 for number in range(9)]
    tok = bytepair.train(texts, 265, threads=threads)
    assert tok == bytepair.train(texts, 265, threads=2)
    assert tok.encode_batch(texts, threads=threads) == [tok.encode(text) for text in texts]
