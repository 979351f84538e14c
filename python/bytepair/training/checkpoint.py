"""Saves what has been counted so far to a checkpoint, and reads it back.

A checkpoint is a file of counts with a `CountState` in its metadata.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair.corpus.column import TextBatch
from bytepair.corpus.files import differing
from bytepair.corpus.read import batch_size
from bytepair.errors import CountsError, InUseError, warn
from bytepair.files import outputs
from bytepair.files.safe import check_regular
from bytepair.training.counts import (
    START,
    STATE,
    Counts,
    CountState,
    damaged,
    metadata_of,
    read_counts,
)

#: The interval between checkpoints, in seconds.
SAVE_SECONDS: Final = 300.0


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; counting continues without it."""


class Checkpoint:
    """What a count has done before; without a file, it is nothing, and nothing is saved."""

    def __init__(
        self, path: Path | None, pattern: str | tuple[str, ...], job: dict[str, Any]
    ) -> None:
        self.path, self.state = path, CountState(job)
        self._counts: Counts | None = None
        # The size of the text in the file; less than that of the state after a failed write.
        self._bytes_on_disk = 0
        if path is not None and path.exists():
            self._load(path, pattern)
        self._saved_at = time.monotonic()

    def _load(self, path: Path, pattern: str | tuple[str, ...]) -> None:
        self._counts = read_counts(path, pattern=pattern)
        text = metadata_of(path).get(STATE)
        if text is None:
            raise CountsError(
                f"{path} contains counts but is not a checkpoint", hint="pass another file"
            )
        state = CountState.read(text, path)
        if state.pretokens != self._counts.total:
            raise damaged(path)
        job, self.state, self._bytes_on_disk = self.state.job, state, state.bytes
        if wrong := differing(state.job, job, path.parent):
            raise CountsError(
                f"the checkpoint {path} belongs to a different count: {', '.join(wrong)} differ",
                hint="pass another file, or remove it to start again",
            )
        state.job = job

    @property
    def is_due(self) -> bool:
        """Whether the interval has passed."""
        return self.path is not None and time.monotonic() - self._saved_at > SAVE_SECONDS

    @property
    def is_of_stream(self) -> bool:
        """Whether it has documents of a stream, and not a place in files."""
        return self.state.texts > 0 and self.state.reached == START

    def uncounted(self, stream: Iterator[TextBatch]) -> Iterator[TextBatch]:
        """The documents of a stream after those that were counted before."""
        skip, size = self.state.texts, self.state.bytes
        for batch in stream:
            if not skip and not size:
                yield batch
                continue
            head, rest = batch[:skip], batch[skip:]
            skip -= len(head)
            size -= batch_size(head)
            if not skip and size:
                break
            if len(rest):
                yield rest
        if skip or size:
            raise CountsError(
                f"the checkpoint {self.path} was written for different text than the source",
                hint="remove it to start again",
            )

    def total(self, counter: _core.Counter) -> Counts:
        """All counts: those of before and of a counter, which is consumed."""
        new = Counts(counter.finish())
        return new if self._counts is None else self._counts + new

    def save(self, counter: _core.Counter, *, complete: bool = False) -> Counts:
        """Add the counts of a counter, which is consumed; return all counts."""
        with interrupts_held() as pressed:
            counts = self._add(counter, complete=complete)
        if pressed:
            raise KeyboardInterrupt
        return counts

    def save_rest(self, counter: _core.Counter | None, error: BaseException) -> None:
        """Save after an error, and add a note about resuming to the error."""
        if self.path is None:
            return
        with interrupts_held():
            # A counter with an incomplete batch is not saved: the last checkpoint remains.
            if counter is not None and counter.is_whole and (counter.texts or counter.text_bytes):
                self._add(counter)
        if self._bytes_on_disk:
            error.add_note(
                f"(the counts of {self._bytes_on_disk:,} bytes of text are saved in {self.path}; "
                "run the same count again to resume)"
            )

    def _add(self, counter: _core.Counter, *, complete: bool = False) -> Counts:
        texts, size = counter.texts, counter.text_bytes
        counts = self._counts = self.total(counter)
        state = self.state
        state.texts, state.bytes = state.texts + texts, state.bytes + size
        state.pretokens, state.complete = counts.total, complete
        self._saved_at = time.monotonic()
        if self.path is None:
            return counts
        try:
            counts.save(self.path, metadata={STATE: state.to_json()})
            self._bytes_on_disk = state.bytes
        except OSError as error:  # the counts are in memory, so the work goes on
            reason = f"the checkpoint could not be saved: {error}; counting continues without it"
            warn(CheckpointWarning(reason))
        return counts


def locked(path: Path) -> AbstractContextManager[None]:
    """Lock a checkpoint for one count; the lock ends with the process, even if it is killed."""
    lock = path.with_name(f".{path.name}.lock")
    check_regular(lock)
    message = f"another count is using the checkpoint {path}"
    return outputs.locked(lock, InUseError(message, hint="wait for it, or pass another file"))


@contextmanager
def interrupts_held() -> Iterator[list[object]]:
    """Delay Ctrl-C, and signals that act as it, until the end of the block."""
    pressed: list[object] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed  # no signal is raised here
        return
    numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    before = {
        number: signal.signal(number, lambda *arguments: pressed.append(arguments))
        for number in numbers
        if number is not None and signal.getsignal(number) is signal.default_int_handler
    }
    try:
        yield pressed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
