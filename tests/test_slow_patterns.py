"""Patterns that take too long, and signals and threads in the middle of a call."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bytepair
from bytepair.errors import SplitError
from messages import told

RANKS = {bytes([byte]): byte for byte in range(256)}
#: The time of one search grows with the length of the text times that of the repetition.
SLOW = r"(?:(?:a{1,20}){1,20}){1,20}b|a"

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@pytest.fixture(scope="module")
def slow() -> bytepair.Tokenizer:
    return bytepair.Tokenizer.from_ranks(RANKS, pattern=SLOW)


@pytest.mark.parametrize("call", ["encode", "encode_offsets", "pretokenize"])
@pytest.mark.slow
def test_a_slow_pattern_is_an_error(slow: bytepair.Tokenizer, call: str) -> None:
    calls: dict[str, Callable[[str], object]] = {
        "encode": slow.encode,
        "encode_offsets": slow.encode_offsets,
        "pretokenize": lambda text: bytepair.pretokenize(text, slow),
    }
    with told(SplitError):
        calls[call]("a" * 1000)


@pytest.mark.slow
def test_a_slow_pattern_fails_in_batches_and_counts(slow: bytepair.Tokenizer) -> None:
    with told(SplitError):
        slow.encode_batch(["a" * 1000])
    with told(SplitError):
        bytepair.count(["a" * 1000], pattern=SLOW)


@pytest.mark.slow
def test_time_is_limited_for_all_pieces_of_all_steps_together() -> None:
    steps = bytepair.Tokenizer.from_ranks(RANKS, pattern=(r"\s+", SLOW))
    assert len(steps.encode("a" * 140)) == 140
    with told(SplitError):
        steps.encode(f"{'a' * 140} " * 400)


@pytest.mark.slow
def test_other_threads_run_during_a_slow_search(slow: bytepair.Tokenizer) -> None:
    rounds, done = 0, threading.Event()

    def work() -> None:
        with pytest.raises(SplitError):
            slow.encode("a" * 1000)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.01):
        rounds += 1
    thread.join()
    assert rounds > 20


def encode_and_send(slow: bytepair.Tokenizer, number: signal.Signals) -> None:
    """Encode a text that takes long, and send a signal to this process meanwhile."""
    timer = threading.Timer(0.3, os.kill, (os.getpid(), number))
    timer.start()
    try:
        slow.encode("a" * 1000)
    finally:
        timer.join()  # a signal that came later would end another test


@posix
def test_ctrl_c_ends_a_slow_search(slow: bytepair.Tokenizer) -> None:
    with pytest.raises(KeyboardInterrupt):
        encode_and_send(slow, signal.SIGINT)


@posix
def test_the_exception_of_a_signal_handler_is_kept(slow: bytepair.Tokenizer) -> None:
    def stop(*_: object) -> None:
        raise TimeoutError("enough")

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(TimeoutError, match="enough"):
            encode_and_send(slow, signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy
import bytepair

# Only the regex engine splits by this pattern. What is measured would take a minute.
pattern = r"(\\w)\\1+|(?<=a)b+|\\s+(?!\\S)|\\w|."
tok = bytepair.Tokenizer.from_ranks({bytes([byte]): byte for byte in range(256)}, pattern=pattern)
text = "ab cdd eff\\n" * 300_000
with open(sys.argv[2], "w") as file:
    file.write("|".join([text] * 20))
calls = {
    "encode": lambda: tok.encode(text * 20),
    "encode_offsets": lambda: tok.encode_offsets(text * 20),
    "encode_batch": lambda: tok.encode_batch([text] * 20, threads=2),
    "encode_batch on one thread": lambda: tok.encode_batch([text] * 20, threads=1),
    "encode_batch_to_numpy": lambda: tok.encode_batch_to_numpy([text] * 20, threads=2),
    "a long text in parts": lambda: tok.encode_batch_to_numpy([text * 20]).ids,
    "encode_file": lambda: tok.encode_file(sys.argv[2], separator="|", threads=2),
    "encode_stream": lambda: list(tok.encode_stream(iter([text] * 20))),
    "session": lambda: bytepair.tokenizer.Session(tok).append(text * 20),
    "count_batch": lambda: bytepair.tokenizer.count_batch(tok, [text] * 20, threads=2),
    "count": lambda: bytepair.count([text] * 20, pattern=pattern, threads=2),
    "train": lambda: bytepair.train(sys.argv[2], 300, pattern=pattern, threads=2),
    "count with a checkpoint": lambda: bytepair.count(
        sys.argv[2], pattern=pattern, reading=bytepair.Reading(checkpoint=sys.argv[2] + ".counts")
    ),
    "pretokenize": lambda: bytepair.pretokenize(text * 20, pattern),
}

def send():
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(0.3, send).start()
try:
    calls[sys.argv[1]]()
except KeyboardInterrupt:
    print(time.monotonic() - sent)
"""


@posix
@pytest.mark.parametrize("call", re.findall(r'^    "(.+)": lambda', INTERRUPTED, re.MULTILINE))
def test_ctrl_c_is_noticed_soon_on_every_path(call: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, call, str(tmp_path / "text.txt")]
    limit = 2 if "checkpoint" in call else 0.2  # to count all takes 7 s; a checkpoint is written
    after = []
    for _ in range(10):  # other work of the machine may delay some of them
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
        after.append(float(run.stdout))
        if after[-1] < limit:
            return
    pytest.fail(f"noticed after {after} s")


FIRST_ARRAY = """
import os, signal, sys, threading
import bytepair
tok = bytepair.load(sys.argv[1])
assert "numpy" not in sys.modules
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    tok.encode_batch_to_numpy(["hello " * 20_000]).ids
    threading.Event().wait(10)
except KeyboardInterrupt:
    print("interrupted")
"""


@posix
@pytest.mark.parametrize("after", [0.01, 0.03, 0.06])
def test_ctrl_c_during_the_first_call_that_returns_an_array(
    trained: bytepair.Tokenizer, tmp_path: Path, after: float
) -> None:
    trained.save(tmp_path)
    command = [sys.executable, "-c", FIRST_ARRAY, str(tmp_path), str(after)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert "PanicException" not in done.stderr
    assert "panicked" not in done.stderr


def changing(array: np.ndarray, values: list[int], until: threading.Event) -> threading.Thread:
    """A thread that writes the values to an array, in turn."""

    def work() -> None:
        while not until.is_set():
            for value in values:
                array[:] = value

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_another_thread_writes_to_the_ids_that_are_decoded(trained: bytepair.Tokenizer) -> None:
    longest = max(range(trained.vocab_size), key=lambda id: len(trained.token_bytes(id)))
    ids, until = np.zeros(100_000, np.uint32), threading.Event()
    thread = changing(ids, [0, longest, 97], until)
    end = time.monotonic() + 3
    try:
        while time.monotonic() < end:
            for call in (trained.decode_bytes, trained.decode):
                with suppress(RuntimeError):  # an array changed while it was read
                    call(ids)
    finally:
        until.set()
        thread.join()


def test_another_thread_writes_to_the_text_that_is_encoded(trained: bytepair.Tokenizer) -> None:
    data, until = np.full(200_000, ord("a"), np.uint8), threading.Event()
    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    column = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)])
    thread = changing(data, [ord("a"), 0xC3, ord("b")], until)
    end = time.monotonic() + 3
    try:
        while time.monotonic() < end:
            with suppress(bytepair.errors.CorpusError):  # half a character
                bytepair.compat.encode_arrow(trained, column)
    finally:
        until.set()
        thread.join()


@posix
def test_a_file_that_is_read_may_be_truncated(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    file = trained.save(tmp_path / "t")
    text = tmp_path / "text.txt"
    text.write_text("hello world\n" * 10_000)
    again = bytepair.load(tmp_path / "t", memory_map=False)
    os.truncate(file, 100)
    assert again.encode("hello") == trained.encode("hello")
    mapped, _ = trained.encode_file(text)
    read, _ = trained.encode_file(text, memory_map=False)
    assert np.array_equal(mapped, read)


@posix
def test_a_pipe_is_opened_once(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    thread = threading.Thread(target=pipe.write_text, args=("hello world",))
    thread.start()
    ids, _ = trained.encode_file(pipe)
    thread.join()
    assert ids.tolist() == trained.encode("hello world")
