"""Count the pretokens of a corpus: the part of training that reads text.

The text is streamed in batches. Memory is bounded: counts beyond the limit are spilled to disk.
With a checkpoint, an interrupted count can be resumed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair._internal.checks import check_kind
from bytepair._internal.progress import Bar, Callback, ShareRead
from bytepair.corpus.column import Expansion, ReadBounds, Skip, SkipLog, TextBatch
from bytepair.corpus.files import INPUTS, Files, corpus_file, differing, kind_of, recorded
from bytepair.corpus.read import batch_size, read_batches
from bytepair.corpus.source import Reading, ResolvedSource, Source, resolve
from bytepair.errors import CorpusError, CountsError, InUseError, warn
from bytepair.files import outputs
from bytepair.files.outputs import check_output_file, scratch
from bytepair.files.safe import check_regular
from bytepair.training.counts import (
    START,
    STATE,
    Counts,
    CountState,
    FilePlace,
    damaged,
    metadata_of,
    read_counts,
)

#: The interval between checkpoints, in seconds.
SAVE_SECONDS: Final = 300.0


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; counting continues without it."""


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


#: The default memory limit of the count tables, as a fraction of the machine's memory.
MEMORY_FRACTION: Final = 0.5

#: The maximum number of parquet files that the counting threads have open at once.
OPEN_FILES: Final = 64


def count(
    source: Source,
    *,
    pattern: str | Sequence[str] = "nanochat",
    reading: Reading = Reading(),
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Counts:
    """Count the pretokens of a source; the text is streamed, not held in memory.

    Args:
        source: as in `bytepair.train`.
        pattern: the split pattern: a name in `bytepair.PATTERNS` or a regular expression.
        reading: which text is read, and how it is counted.
        threads: as in `bytepair.train`.
        progress: as in `bytepair.train`.

    Raises:
        PatternError: if the pattern is neither a name nor a valid regular expression.
        CorpusError: if the source cannot be read.
        CountsError: if the checkpoint belongs to a different count, or is damaged.
        InUseError: if another count is using the checkpoint.

    Example:
        >>> import bytepair
        >>> counts = bytepair.count(["one two one"], pattern="gpt2")
        >>> counts
        <bytepair.Counts: 3 distinct pretokens of 3>
        >>> counts.items()
        [(b'one', 1), (b' two', 1), (b' one', 1)]
    """
    how = CountOptions(_core.pattern(pattern), check_kind("reading", reading, Reading), threads)
    if reading.checkpoint is not None:
        check_output_file(Path(reading.checkpoint))
    resolved = resolve(source, split=reading.split)
    with Bar(progress) as bar:
        return count_text(resolved, how, bar)


@dataclass(frozen=True)
class CountOptions:
    """How text is counted: the pattern, which text is read, and the maximum number of threads."""

    pattern: str | tuple[str, ...]
    reading: Reading
    threads: int | None


def count_text(source: ResolvedSource, how: CountOptions, bar: Bar) -> Counts:
    """Count a source, report to an open progress bar, and warn about skipped documents."""
    counts, skips = count_with_skips(source, how, bar)
    skips.warn()
    return counts


def count_with_skips(source: ResolvedSource, how: CountOptions, bar: Bar) -> tuple[Counts, SkipLog]:
    """Count a source; return the counts and the log of skipped documents."""
    path = None if how.reading.checkpoint is None else Path(how.reading.checkpoint)
    with nullcontext() if path is None else locked(path), scratch() as folder:
        work = _Count(source, how, folder, path, bar)
        try:
            work.add_all()
            counts = work.save(complete=True)
        except BaseException as error:
            work.save_rest(error)
            raise
    return counts, work.state.skips


class _Count:
    """A count that runs: its source, and a counter of the text since the last checkpoint.

    What was counted before is in the checkpoint; without a path there is none.
    """

    def __init__(
        self, source: ResolvedSource, how: CountOptions, folder: Path, path: Path | None, bar: Bar
    ) -> None:
        self._source, self._how, self._reading = source, how, how.reading
        self._folder, self._parts, self._bar, self._path = folder, 0, bar, path
        # The values that must be equal to resume.
        job: dict[str, Any] = {
            "column": self._reading.column, "errors": self._reading.errors,
            "limits": [self._reading.max_chars, self._reading.doc_cap], INPUTS: None,
        }  # fmt: skip
        files = source if isinstance(source, Files) else None
        if path is not None and files is not None:
            job |= recorded(files.files, path.parent)
        self.state = CountState(job)
        #: The files that the core reads, and the number of the first.
        self._group: tuple[list[Path], int] = ([], 0)
        self._before: Counts | None = None
        # The size of the text in the file; less than that of the state after a failed write.
        self._bytes_on_disk = 0
        if path is not None and path.exists():
            self._load(path)
        self._saved_at = time.monotonic()
        self._share = ShareRead(None if files is None or bar.is_silent else files.size)
        #: None after a checkpoint, until there is more text.
        self._counter: _core.Counter | None = None
        self._current()

    def _load(self, path: Path) -> None:
        self._before = read_counts(path, pattern=self._how.pattern)
        text = metadata_of(path).get(STATE)
        if text is None:
            problem = f"{path} contains counts but is not a checkpoint"
            raise CountsError(problem, hint="pass another file")
        state = CountState.read(text, path)
        if state.pretokens != self._before.total:
            raise damaged(path)
        if wrong := differing(state.job, self.state.job):
            problem = (
                f"the checkpoint {path} belongs to a different count: {', '.join(wrong)} differ"
            )
            raise CountsError(problem, hint="pass another file, or remove it to start again")
        state.job = self.state.job
        self.state, self._bytes_on_disk = state, state.bytes

    def _current(self) -> _core.Counter:
        """The current counter, which spills to its own folder; a new one after a checkpoint."""
        if self._counter is None:
            folder = self._folder / str(self._parts)
            folder.mkdir()
            self._parts += 1
            limit = self._reading.memory_limit or round(MEMORY_FRACTION * memory())
            self._counter = _core.Counter(
                self._how.pattern, self._how.threads,
                memory_limit=limit or None, spill_folder=folder,
                # A checkpoint must contain complete batches, even if the pattern fails on a text.
                careful=self._path is not None,
            )  # fmt: skip
        return self._counter

    def _is_due(self) -> bool:
        """Whether the interval between checkpoints has passed."""
        return self._path is not None and time.monotonic() - self._saved_at > SAVE_SECONDS

    def save(self, *, complete: bool = False) -> Counts:
        """Return all counts, also those of the counter, which is consumed; save them, if asked."""
        if self._path is None:
            return Counts(self._current().finish())
        with interrupts_held() as pressed:
            try:
                counts = self._write(self._path, complete=complete)
            finally:
                self._counter = None
        if pressed:
            raise KeyboardInterrupt
        return counts

    def save_rest(self, error: BaseException) -> None:
        """Save after an error, and add a note about resuming to the error."""
        if self._path is None:
            return
        with interrupts_held():
            # A counter with an incomplete batch is not saved: the last checkpoint remains.
            counter = self._counter
            if counter is not None and counter.is_whole and (counter.texts or counter.text_bytes):
                self._write(self._path)
        if size := self._bytes_on_disk:
            saved = f"the counts of {size:,} bytes of text are saved in {self._path}"
            error.add_note(f"({saved}; run the same count again to resume)")

    def _write(self, path: Path, *, complete: bool = False) -> Counts:
        self._note()
        counter, state = self._current(), self.state
        texts, size = counter.texts, counter.text_bytes
        counts = Counts(counter.finish())
        if self._before is not None:
            counts = self._before + counts
        self._before = counts
        state.texts, state.bytes = state.texts + texts, state.bytes + size
        state.pretokens, state.complete = counts.total, complete
        self._saved_at = time.monotonic()
        try:
            counts.save(path, metadata={STATE: state.to_json()})
            self._bytes_on_disk = state.bytes
        except OSError as error:  # the counts are in memory, so the work goes on
            reason = f"the checkpoint could not be saved: {error}; counting continues without it"
            warn(CheckpointWarning(reason))
        return counts

    def _show(self, size: int) -> None:
        size += self.state.bytes
        self._bar.update("count", size, self._share.total(size))

    def add_all(self) -> None:
        """Count the source; if possible, the counting threads read the files themselves."""
        files = self._source.paths if isinstance(self._source, Files) else None
        is_of_stream = self.state.texts > 0 and self.state.reached == START
        if files is None or not self._core_reads(files) or is_of_stream:
            self._add_stream(self._source)
            return
        first = 0
        for some in _groups(files):
            if not self._add_group(some, first):
                self._add_stream(resolve(some, split="all", logs=False))
            first += len(some)

    def _core_reads(self, files: list[Path]) -> bool:
        """Whether the core can read all files itself.

        If all of the text is counted at once, the core tries, and only what it cannot read is
        streamed.
        """
        if any(kind_of(file) in ("arrow", "json") for file in files):
            return False
        if self._reading.is_whole and self._path is None:
            return True
        tables = [file for file in files if _is_parquet(file)]
        column = self._reading.column
        return all(_core.parquet_rows(file, column) is not None for file in tables)

    def _add_stream(self, source: ResolvedSource) -> None:
        if self._path is not None:
            self.state.skips = SkipLog()  # the documents of the checkpoint are read again
        batches = read_batches(
            source, self._reading, share=self._share, on_skip=self.state.skips.add
        )
        for batch in self._uncounted(batches):
            try:
                if isinstance(batch, list):
                    self._current().add(batch)
                else:
                    self._current().add_utf8(batch.data, batch.offsets)
            except CorpusError as error:
                raise (error if isinstance(batch, list) else error.at(batch.place)) from None
            self._show(self._current().text_bytes)
            if self._is_due():
                self.save()

    def _uncounted(self, stream: Iterator[TextBatch]) -> Iterator[TextBatch]:
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
            problem = f"the checkpoint {self._path} was written for different text than the source"
            raise CountsError(problem, hint="remove it to start again")

    def _add_group(self, files: list[Path], first: int) -> bool:
        share, state = self._share, self.state
        share.enter(max(sum(file.stat().st_size for file in files), 1))
        end = first + len(files)
        is_read = True
        while state.reached.file < end:
            with contextlib.suppress(_SaveDueError):
                is_read = self._add_core(files, first)
                state.reached = FilePlace(end, chars=state.reached.chars)
            if self._is_due():
                self.save()
        if is_read:
            share.within(1.0)
            self._show(self._current().text_bytes)
        else:
            share.leave()
        return is_read

    def _note(self) -> None:
        """Note, once for each call of the core, the place that it has reached, and what it skipped.

        Texts that are counted and not noted would be counted again, so no interrupt comes between,
        and what an interrupt has prevented is noted before a checkpoint is written.
        """
        with interrupts_held() as pressed:
            if (noted := self._current().take_reached()) is not None:
                (file, *within), documents, first_skips = noted
                files, first = self._group
                self.state.reached = FilePlace(first + file, *within)
                named = (Skip(str(files[file]), row, 1, *why) for file, row, _, *why in first_skips)
                self.state.skips.add(*named, documents=documents)
        if pressed:
            raise KeyboardInterrupt

    def _add_core(self, files: list[Path], first: int) -> bool:
        """Count files in the core from the current place until a checkpoint is due."""
        self._group = files, first
        counter, reading, reached = self._current(), self._reading, self.state.reached
        start = reached._replace(file=max(reached.file - first, 0))
        is_parquet, sizes = _is_parquet(files[0]), [file.stat().st_size for file in files]
        expansions = [Expansion(str(f), size) for f, size in zip(files, sizes, strict=True)]
        units = sizes  # of which a share is read: bytes, or rows of tables
        if is_parquet:
            is_needed = self._path is not None or not self._bar.is_silent
            units = [_core.parquet_rows(f, reading.column) or 0 for f in files] if is_needed else []
        before = sum(units[: start.file]) + is_parquet * (start.row - counter.texts)

        def report(
            texts: int, size: int, chars: int, packed: int, unpacked: list[tuple[int, int]]
        ) -> None:
            for number, total in unpacked:
                expansions[number].reach(total)
            share = (before + (texts if is_parquet else packed)) / max(sum(units), 1)
            self._report_within(share, chars, size)

        bounds = ReadBounds(reading.max_document_bytes)
        try:
            return counter.add_files([*map(corpus_file, files)], reading, bounds, report, start)
        except OSError as error:
            if not is_parquet:
                raise
            raise CorpusError(str(error)) from error
        finally:
            self._note()

    def _report_within(self, share: float, chars: int, size: int) -> None:
        """Report the progress of the core in a group of files; leave it if a checkpoint is due."""
        self._share.within(share)
        if (most := self._reading.max_chars) is not None:
            self._share.limit(chars / most)
        self._show(size)
        if size and share < 1 and self._is_due():
            raise _SaveDueError


class _SaveDueError(Exception):
    """Raised to leave the core when a checkpoint is due."""


def _groups(files: list[Path]) -> Iterator[list[Path]]:
    for is_parquet, some in itertools.groupby(files, _is_parquet):
        group = list(some)
        most = OPEN_FILES if is_parquet else len(group)
        yield from (group[at : at + most] for at in range(0, len(group), most))


def _is_parquet(file: Path) -> bool:
    return kind_of(file) == "parquet"


#: The files with the memory limit of a container on Linux: control groups versions 2 and 1.
_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)  # fmt: skip


def memory() -> int:
    """The memory of the machine in bytes, or the limit of its container if that is lower.

    Returns 0 if the system does not report it.
    """
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        with contextlib.suppress(ImportError, AttributeError, OSError):
            return _memory_of_windows()
        return 0
    for limit in _LIMITS:
        with contextlib.suppress(OSError, ValueError):  # "max" is not a number
            total = min(total, int(limit.read_text(encoding="ascii")))
    return max(total, 0)


def _memory_of_windows() -> int:
    import ctypes

    numbers = [("length", ctypes.c_uint32), ("load", ctypes.c_uint32), ("total", ctypes.c_uint64)]
    more = [(f"unused_{index}", ctypes.c_uint64) for index in range(6)]
    status_type = type("MemoryStatus", (ctypes.Structure,), {"_fields_": numbers + more})
    status: Any = status_type(ctypes.sizeof(status_type))
    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    return status.total if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else 0
