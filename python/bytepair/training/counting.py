"""Count the pretokens of a corpus: the part of training that reads text.

The text is streamed in batches. Memory is bounded: counts beyond the limit are spilled to disk.
With a checkpoint, an interrupted count can be resumed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair._internal.checks import check_kind
from bytepair._internal.progress import Bar, Callback, ShareRead
from bytepair.corpus.bounds import Expansion, ReadBounds, most_page_bytes
from bytepair.corpus.column import Skip, SkipLog, TextBatch
from bytepair.corpus.files import INPUTS, Files, corpus_file, kind_of, recorded
from bytepair.corpus.read import read_batches
from bytepair.corpus.source import Reading, ResolvedSource, Source, resolve
from bytepair.errors import CorpusError
from bytepair.files.outputs import check_output_file, scratch
from bytepair.training.checkpoint import Checkpoint, locked
from bytepair.training.counts import Counts, FilePlace

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
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
        progress: as in `bytepair.train`.

    Raises:
        PatternError: if the pattern is neither a name nor a valid regular expression; the message
            suggests a similar name, or shows the invalid place in the expression.
        CorpusError: if the source cannot be read, or not within the limit.
        CountsError: if the checkpoint belongs to a different count, or is damaged.
        InUseError: if another count is using the checkpoint.
        OSError: if spilling to disk fails.

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
    reading = how.reading
    path = None if reading.checkpoint is None else Path(reading.checkpoint)
    # The values that must be equal to resume.
    job: dict[str, Any] = {
        "column": reading.column, "errors": reading.errors,
        "limits": [reading.max_chars, reading.doc_cap], INPUTS: None,
    }  # fmt: skip
    if path is not None and isinstance(source, Files):
        job |= recorded(source.files, path.parent)
    with contextlib.ExitStack() as stack:
        if path is not None:
            stack.enter_context(locked(path))
        folder = stack.enter_context(scratch())
        work = _Count(source, how, folder, Checkpoint(path, how.pattern, job), bar)
        try:
            work.add_all()
            counts = work.finish()
        except BaseException as error:
            work.checkpoint.save_rest(work.counter, error)
            raise
    return counts, work.checkpoint.state.skips


class _Count:
    """A count that runs: its source, and a counter of the text since the last checkpoint."""

    def __init__(
        self,
        source: ResolvedSource,
        how: CountOptions,
        folder: Path,
        checkpoint: Checkpoint,
        bar: Bar,
    ) -> None:
        self._source, self._how, self._reading = source, how, how.reading
        self._folder, self._parts, self._bar = folder, 0, bar
        self.checkpoint = checkpoint
        size = source.size if isinstance(source, Files) and not bar.is_silent else None
        self._share = ShareRead(size)
        #: None after a checkpoint, until there is more text.
        self.counter: _core.Counter | None = None
        self._current()

    def _current(self) -> _core.Counter:
        """The current counter, which spills to its own folder; a new one after a checkpoint."""
        if self.counter is None:
            folder = self._folder / str(self._parts)
            folder.mkdir()
            self._parts += 1
            limit = self._reading.memory_limit or round(MEMORY_FRACTION * memory())
            self.counter = _core.Counter(
                self._how.pattern, self._how.threads,
                memory_limit=limit or None, spill_folder=folder,
                # A checkpoint must contain complete batches, even if the pattern fails on a text.
                careful=self.checkpoint.path is not None,
            )  # fmt: skip
        return self.counter

    def finish(self) -> Counts:
        """Return all counts; write them to the checkpoint, if there is one."""
        if self.checkpoint.path is None:
            return self.checkpoint.total(self._current())
        return self._save(complete=True)

    def _save(self, *, complete: bool = False) -> Counts:
        try:
            return self.checkpoint.save(self._current(), complete=complete)
        finally:
            self.counter = None  # it is consumed, also if Ctrl-C was pressed meanwhile

    def _show(self, size: int) -> None:
        size += self.checkpoint.state.bytes
        self._bar.update("count", size, self._share.total(size))

    def add_all(self) -> None:
        """Count the source; if possible, the counting threads read the files themselves."""
        files = self._source.paths if isinstance(self._source, Files) else None
        if files is None or not self._core_reads(files) or self.checkpoint.is_of_stream:
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
        if self._reading.is_whole and self.checkpoint.path is None:
            return True
        tables = [file for file in files if _is_parquet(file)]
        column = self._reading.column
        return all(_core.parquet_rows(file, column) is not None for file in tables)

    def _add_stream(self, source: ResolvedSource) -> None:
        checkpoint = self.checkpoint
        if checkpoint.path is not None:
            checkpoint.state.skips = SkipLog()  # the documents of the checkpoint are read again
        batches = read_batches(
            source, self._reading, share=self._share, on_skip=checkpoint.state.skips.add
        )
        for batch in checkpoint.uncounted(batches):
            self._add(batch)
            self._show(self._current().text_bytes)
            if checkpoint.is_due:
                self._save()

    def _add(self, batch: TextBatch) -> None:
        try:
            if isinstance(batch, list):
                self._current().add(batch)
            else:
                self._current().add_utf8(batch.data, batch.offsets)
        except CorpusError as error:
            raise (error if isinstance(batch, list) else error.at(batch.place)) from None

    def _add_group(self, files: list[Path], first: int) -> bool:
        share, checkpoint = self._share, self.checkpoint
        share.enter(max(sum(file.stat().st_size for file in files), 1))
        end = first + len(files)
        is_read = True
        while checkpoint.state.reached.file < end:
            with contextlib.suppress(_SaveDueError):
                is_read = self._add_core(files, first)
                checkpoint.state.reached = FilePlace(end, chars=checkpoint.state.reached.chars)
            if checkpoint.is_due:
                self._save()
        if is_read:
            share.within(1.0)
            self._show(self._current().text_bytes)
        else:
            share.leave()
        return is_read

    def _place_in(self, first: int) -> _core.FilePlace:
        reached = self.checkpoint.state.reached
        return _core.FilePlace(*reached._replace(file=max(reached.file - first, 0)))

    def _note(self, files: list[Path], first: int, counter: _core.Counter) -> None:
        """Note the place that the core has reached, and the documents that it has skipped."""
        place = counter.reached
        self.checkpoint.state.reached = FilePlace(
            first + place.file, place.byte, place.line, place.row, place.chars
        )
        skips = counter.take_skips()
        named = (Skip(str(files[s.file]), s.row, 1, s.reason, s.hint) for s in skips.first)
        self.checkpoint.state.skips.add(*named, documents=skips.documents)

    def _add_core(self, files: list[Path], first: int) -> bool:
        """Count files in the core from the current place until a checkpoint is due."""
        counter, start, column = self._current(), self._place_in(first), self._reading.column
        is_parquet, sizes = _is_parquet(files[0]), [file.stat().st_size for file in files]
        expansions = [Expansion(str(f), size) for f, size in zip(files, sizes, strict=True)]
        units = sizes  # of which a share is read: bytes, or rows of tables
        if is_parquet:
            is_needed = self.checkpoint.path is not None or not self._bar.is_silent
            units = [_core.parquet_rows(f, column) or 0 for f in files] if is_needed else []
        before = sum(units[: start.file]) + is_parquet * (start.row - counter.texts)

        def report(done: _core.CountProgress) -> None:
            totals = enumerate(done.of_files) if is_parquet else done.expanded.items()
            for number, total in totals:
                expansions[number].reach(total)
            share = (before + (done.texts if is_parquet else done.packed)) / max(sum(units), 1)
            self._report_within(share, done.chars, done.text_bytes)

        try:
            if not is_parquet:
                inputs = [corpus_file(file) for file in files]
                counter.add_files(inputs, column, report, start=start, **self._limits())
                return True
            most = most_page_bytes(self._reading.max_document_bytes)
            return counter.add_parquet(
                files, column, report, start=start, most_page_bytes=most, **self._limits()
            )
        except OSError as error:
            if not is_parquet:
                raise
            raise CorpusError(str(error)) from error
        finally:
            self._note(files, first, counter)

    def _limits(self) -> dict[str, Any]:
        how = self._reading
        return {
            "max_chars": how.max_chars, "doc_cap": how.doc_cap, "errors": how.errors,
            "bounds": ReadBounds(how.max_document_bytes),
        }  # fmt: skip

    def _report_within(self, share: float, chars: int, size: int) -> None:
        """Report the progress of the core in a group of files; leave it if a checkpoint is due."""
        self._share.within(share)
        if (most := self._reading.max_chars) is not None:
            self._share.limit(chars / most)
        self._show(size)
        if size and share < 1 and self.checkpoint.is_due:
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
