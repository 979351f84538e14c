"""Read the next item of a stream in a background thread while the caller processes the current one.

If the thread fails, the caller gets its exception. If the caller stops (Ctrl-C, an error), the
thread ends at the next block of its file.
"""

from __future__ import annotations

import atexit
import mmap
import threading
import weakref
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: The interval, in seconds, at which a waiting thread checks that the other one is alive.
WAIT_SECONDS: Final = 0.05
#: How long the caller waits for the thread to end, in seconds; a system call may block it longer.
CLOSE_SECONDS: Final = 0.5

#: The memory of a thread in bytes: its stack and its data.
THREAD_BYTES: Final = 10 << 20


class Stopped(BaseException):
    """The consumer of this reader thread is gone."""


def ahead(
    stream: Iterator[T], large: Callable[[T], bool] = lambda _: False
) -> Generator[T, None, None]:
    """Read the next item in a thread while the caller works on the last one.

    After a large item, the next one is read only on request, so that memory does not hold both. If
    there is no memory for a thread, the caller reads.
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

    The C library may reuse the stack of an earlier thread; it aborts the process if there is no
    memory left for the thread's data.
    """
    try:
        mmap.mmap(-1, THREAD_BYTES).close()
    except OSError:
        return False
    return True


def check_stopped() -> None:
    """End a reader thread without a consumer; call it wherever reading one item may be slow."""
    if getattr(threading.current_thread(), "is_stopped", False):
        raise Stopped


class _Reader(threading.Thread):
    """A thread that reads one item of a stream per request."""

    def __init__(self, stream: Iterator[Any]) -> None:
        super().__init__(name="bytepair-corpus", daemon=True)
        _live.add(self)
        self.is_stopped = False
        self._stream, self._item = stream, None
        self._error: BaseException | None = None
        self._requests, self._ready = threading.Semaphore(0), threading.Semaphore(0)

    def run(self) -> None:
        """Read until the stream ends or the caller stops."""
        try:
            while self._requests.acquire() and not self.is_stopped:
                self._item = next(self._stream, None)
                self._ready.release()
        except BaseException as error:  # which the caller raises
            self._error = error
            self._ready.release()

    def ask(self) -> None:
        """Request the next item."""
        self._requests.release()

    def answer(self) -> Any:
        """Wait for the requested item; None at the end of the stream."""
        while not self._ready.acquire(timeout=WAIT_SECONDS):
            check_stopped()  # the caller may itself be a reader thread
            if not self.is_alive():
                raise MemoryError("the thread that reads the corpus has ended")
        # The traceback of an error keeps the objects of the thread alive.
        error, self._error = self._error, None
        if error is not None:
            raise error
        item, self._item = self._item, None
        return item

    def stop(self) -> None:
        """Make the thread end."""
        if self.is_stopped:  # at exit, when the functions below may be gone
            return
        self.is_stopped = True
        self._requests.release()
        if threading.current_thread() is not self:  # the garbage collector may run in this thread
            self.join(CLOSE_SECONDS)


#: The threads that may be reading.
_live: weakref.WeakSet[_Reader] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """End all threads before the interpreter takes apart the modules that they use."""
    for reader in list(_live):
        reader.stop()
