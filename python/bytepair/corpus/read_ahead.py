"""A stream in, its items out, each read by a thread while the caller works on the one before.

However the thread ends, the caller learns of it; and when the caller goes (Ctrl-C, an error), the
thread ends at the next block of its file.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: How often a waiting thread looks whether the other one is still there, in seconds.
PATIENCE: Final = 0.05
#: How long the caller waits for the thread to end, in seconds; the system may keep it longer.
FAREWELL: Final = 0.5

#: What a thread takes: its stack, and its data.
THREAD_BYTES: Final = 10 << 20


class Stopped(BaseException):
    """Nobody waits for what this thread reads."""


def ahead(
    stream: Iterator[T], large: Callable[[T], bool] = lambda _: False
) -> Generator[T, None, None]:
    """Read the next item in a thread while the caller works on the last one.

    Behind one that is large, the next is read when it is asked for, lest memory holds both. Without
    memory for a thread, the caller reads.

    Raises:
        BaseException: whatever the stream raises.
        MemoryError: if the thread ends without a word, as it may when there is no memory.
    """
    if not _has_memory():
        yield from stream
        return
    reader = _Reader(stream)
    reader.start()
    try:
        reader.ask()
        while (item := reader.answer()) is not None:
            if large(item):
                yield item
                reader.ask()
            else:
                reader.ask()
                yield item
            del item
    finally:
        reader.stop()


def _has_memory() -> bool:
    """Whether there is memory for a thread.

    A stack may be left from an earlier thread; the C library ends the process where the data of the
    thread do not fit beside it.
    """
    try:
        mmap.mmap(-1, THREAD_BYTES).close()
    except OSError:
        return False
    return True


def check_stopped() -> None:
    """End a thread that reads for nobody; to be called wherever reading one item may take long.

    Raises:
        Stopped: if that is so.
    """
    if getattr(threading.current_thread(), "is_stopped", False):
        raise Stopped


class _Reader(threading.Thread):
    """Takes an item from a stream whenever it is asked to."""

    def __init__(self, stream: Iterator[Any]) -> None:
        super().__init__(name="bytepair-corpus", daemon=True)
        self.is_stopped = False
        self._stream, self._item = stream, None
        self._error: BaseException | None = None
        self._asked, self._ready = threading.Semaphore(0), threading.Semaphore(0)

    def run(self) -> None:
        """Read until the stream or the caller ends."""
        try:
            while self._asked.acquire() and not self.is_stopped:
                self._item = next(self._stream, None)
                self._ready.release()
        except BaseException as error:  # which the caller raises
            self._error = error

    def ask(self) -> None:
        """Have the next item read."""
        self._asked.release()

    def answer(self) -> Any:
        """The item that was asked for; None at the end of the stream."""
        while not self._ready.acquire(timeout=PATIENCE):
            check_stopped()  # the caller may itself be such a thread
            if not self.is_alive():
                error, self._error = self._error, None  # it holds all that the thread held
                raise error or MemoryError("the thread that reads the corpus has ended")
        item, self._item = self._item, None
        return item

    def stop(self) -> None:
        """Have the thread end."""
        self.is_stopped = True
        self._asked.release()
        if threading.current_thread() is not self:  # where the collector may find the caller
            self.join(FAREWELL)
