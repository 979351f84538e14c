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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypedDict, Unpack

from bytepair import _core
from bytepair._internal.checks import MOST, check_choice, check_whole
from bytepair._internal.progress import Bar, Callback, Position
from bytepair._internal.system import memory
from bytepair.corpus.bounds import DOCUMENT_BYTES, Expansion, ReadBounds, most_page_bytes
from bytepair.corpus.column import Errors, TextBatch
from bytepair.corpus.files import Files
from bytepair.corpus.inputs import BASE, INPUTS, is_same, recorded
from bytepair.corpus.kinds import corpus_file, kind_of
from bytepair.corpus.read import batch_size, read_batches
from bytepair.corpus.skips import SkipLog, SkippedPlace
from bytepair.corpus.source import Limits, ResolvedSource, Source, resolve
from bytepair.corpus.splits import Split
from bytepair.errors import (
    ArgumentError,
    CorpusError,
    CountsError,
    warn,
)
from bytepair.files.outputs import check_output_file, scratch
from bytepair.training import checkpoint as checkpoints
from bytepair.training.checkpoint import CheckpointWarning, CountState, FilePosition
from bytepair.training.counts import Counts, metadata_of, read_counts

#: The interval between checkpoints, in seconds.
SAVE_SECONDS: Final = 300.0

#: The default memory limit of the count tables, as a fraction of the machine's memory.
MEMORY_FRACTION: Final = 0.5

#: The maximum number of parquet files that the counting threads have open at once.
OPEN_FILES: Final = 64


def count(
    source: Source | None = None,
    *,
    files: Source | None = None,
    texts: Iterable[str] | None = None,
    pattern: str | Sequence[str] = "nanochat",
    max_chars: int | None = None,
    doc_cap: int | None = None,
    threads: int | None = None,
    progress: bool | Callback | None = None,
    column: str = "text",
    errors: Errors = "strict",
    memory_limit: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    max_document_bytes: int = DOCUMENT_BYTES,
    split: Split | None = None,
) -> Counts:
    """Count the pretokens of a source; the text is streamed, not held in memory.

    Args:
        source: as in `bytepair.train`.
        files: as in `bytepair.train`.
        texts: as in `bytepair.train`.
        pattern: the split pattern: a name in `bytepair.PATTERNS` or a regular expression.
        max_chars: stop after the document with which the total exceeds this many characters.
        doc_cap: read at most this many characters of each document.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
        progress: as in `bytepair.train`.
        column: the table column or JSON field that contains the text.
        errors: how to treat an invalid document (invalid UTF-8, a lone surrogate in jsonl or in a
            `str`, too long, or a line that is not a JSON object): `"strict"` raises an error with
            its place; `"replace"` replaces invalid UTF-8 and lone surrogates by U+FFFD and
            otherwise acts as `"strict"`; `"skip"` skips the document, and a `SkippedWarning`
            reports how many were skipped and the places of the first ones. Of a damaged compressed
            file, `"skip"` keeps the documents before the damage; damaged parquet is an error.
        memory_limit: the approximate maximum memory of the counts while counting, in bytes. Counts
            beyond it are spilled to a temporary folder (in `TMPDIR`); the result is the same. A
            result of more than half of the limit (the bytes of the distinct pretokens, and 16 more
            for each) stays on disk, in mapped files; on Windows it is held in memory. The limit
            does not include the batch of text being read. None means half of the memory of the
            machine or its container.
        checkpoint: a file to which the counts are saved every five minutes, and when counting is
            interrupted by Ctrl-C or an error. If the file exists, counting resumes from it, in
            local files at the place where it ended; of other sources, the documents that it
            includes are read but not counted. Remove it when the result is saved.
        max_document_bytes: the maximum size of a document in a file, since each is held in memory;
            a longer one is an error. So is a parquet page larger than both 192 MB and 1.5 times
            this size. Text files may be longer if they are read in pieces: if they are counted
            completely, with a named pattern, and without `errors="skip"`.
        split: "train", "val" or "all", for data sets that say which of their files are for
            validation (`bytepair.corpus.splits`: those that bytepair downloads, and others); None
            means "train" for these and "all" for other sources.

    Raises:
        PatternError: if the pattern is neither a name nor a valid regular expression; the message
            suggests a similar name, or shows the invalid place in the expression.
        CorpusError: if the source cannot be read, or not within the limit.
        CountsError: if the checkpoint belongs to a different count, or is damaged.
        InUseError: if another count is using the checkpoint.
        OSError: if spilling to disk fails.
        ArgumentError: if `memory_limit` is not positive, or `errors` has an unknown value.

    Example:
        >>> import bytepair
        >>> counts = bytepair.count(["one two one"], pattern="gpt2")
        >>> counts
        <bytepair.Counts: 3 distinct pretokens of 3>
        >>> counts.items()
        [(b'one', 1), (b' two', 1), (b' one', 1)]
    """
    limits = Limits(max_chars, doc_cap)
    regex = _core.pattern(pattern)
    job = CountJob(
        source, regex, limits, threads, column, errors, memory_limit, checkpoint,
        max_document_bytes, split, files=files, texts=texts,
    )  # fmt: skip
    with Bar(progress) as bar:
        return job.run(bar)


class ReadKeywords(TypedDict, total=False):
    """The keywords of `count` that determine which text is read, and how."""

    files: Source | None
    texts: Iterable[str] | None
    max_chars: int | None
    doc_cap: int | None
    threads: int | None
    column: str
    errors: Errors
    memory_limit: int | None
    checkpoint: str | os.PathLike[str] | None
    max_document_bytes: int
    split: Split | None


@dataclass(frozen=True)
class CountJob:
    """A planned count. The fields are the arguments of `count`.

    The pattern is always a regular expression, not a name.
    """

    source: Source | ResolvedSource | None
    pattern: str | tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    threads: int | None = None
    column: str = "text"
    errors: Errors = "strict"
    memory_limit: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    max_document_bytes: int = DOCUMENT_BYTES
    split: Split | None = None
    files: InitVar[Source | None] = None
    texts: InitVar[Iterable[str] | None] = None
    resolved: ResolvedSource = field(init=False)

    @classmethod
    def of(
        cls, source: Source | None, regex: str | tuple[str, ...], **reading: Unpack[ReadKeywords]
    ) -> Self:
        """Create the job for a source and keywords of `count`."""
        options: dict[str, Any] = {**reading}
        limits = Limits(options.pop("max_chars", None), options.pop("doc_cap", None))
        return cls(source, regex, limits, **options)

    def __post_init__(self, files: Source | None, texts: Iterable[str] | None) -> None:
        """Check all arguments before reading; the source last, since an iterator may be slow."""
        check_choice("errors", self.errors, ("strict", "replace", "skip"))
        check_whole("max_document_bytes", self.max_document_bytes, least=1)
        limit = self.memory_limit
        if limit is not None and check_whole("memory_limit", limit, -MOST) < 1:
            raise ArgumentError(
                f"memory_limit is {self.memory_limit}",
                option="memory_limit",
                hint="pass a positive number of bytes",
            )
        if self.checkpoint is not None:
            check_output_file(Path(self.checkpoint))
        source = resolve(self.source, files=files, texts=texts, split=self.split)
        object.__setattr__(self, "resolved", source)

    def run(self, bar: Bar) -> Counts:
        """Count, report to an open progress bar, and warn about skipped documents."""
        counts, skips = self.counted(bar)
        skips.warn()
        return counts

    def counted(self, bar: Bar) -> tuple[Counts, SkipLog]:
        """Count; return the counts and the log of skipped documents."""
        with contextlib.ExitStack() as stack:
            if self.checkpoint:
                stack.enter_context(checkpoints.locked(Path(self.checkpoint)))
            folder = stack.enter_context(scratch())
            source = self.resolved
            size = source.size if isinstance(source, Files) and not bar.is_silent else None
            progress = _Progress(self, folder, Position(size))
            try:
                self._add_all(progress, bar)
                counts = progress.finish()
            except BaseException as error:
                progress.save_rest(error)
                raise
        return counts, progress.skips

    def _add_all(self, progress: _Progress, bar: Bar) -> None:
        """Count the source; if possible, the counting threads read the files themselves."""
        files = self.resolved.paths if isinstance(self.resolved, Files) else None
        if files is None or not self._core_reads(files) or progress.is_of_stream:
            self._add_stream(self.resolved, progress, bar)
            return
        first = 0
        for some in _groups(files):
            if not progress.add_group(some, first, bar):
                self._add_stream(resolve(files=some), progress, bar)
            first += len(some)

    def _core_reads(self, files: list[Path]) -> bool:
        """Whether all files can be read by the core.

        If all of the text is counted at once, the core tries, and only what it cannot read is
        streamed.
        """
        if self.limits == Limits() and self.checkpoint is None:
            return True
        tables = [file for file in files if _is_parquet(file)]
        return all(_core.parquet_rows(file, self.column) is not None for file in tables)

    def _add_stream(self, source: ResolvedSource, progress: _Progress, bar: Bar) -> None:
        """Read a source and count it, batch by batch."""
        if self.checkpoint is not None:
            progress.skips = SkipLog()  # the documents of the checkpoint are read again
        batches = read_batches(
            source,
            column=self.column,
            limits=None if self.limits == Limits() else self.limits,
            errors=self.errors,
            position=progress.position,
            max_document_bytes=self.max_document_bytes,
            on_skip=progress.skips.add,
        )
        for batch in progress.uncounted(batches):
            progress.add(batch)
            progress.report(bar)
            progress.save_if_due()

    def describe(self) -> dict[str, Any]:
        """The values that must be equal to resume from a checkpoint."""
        limits = (self.limits.max_chars, self.limits.doc_cap)
        options = {"column": self.column, "errors": self.errors, "limits": list(limits)}
        files = self.resolved.files if isinstance(self.resolved, Files) else None
        if files is None or self.checkpoint is None:
            return {**options, INPUTS: None}
        return {**options, **recorded(files, Path(self.checkpoint).parent)}


class _Progress:
    """The state of a count: the counts of the checkpoint, and a counter for the text since."""

    def __init__(self, job: CountJob, folder: Path, position: Position) -> None:
        self._job, self._folder, self._parts = job, folder, 0
        self.position = position
        self._saved: Counts | None = None
        self._texts = self._bytes = 0
        # The size of the text in the file; less than `_bytes` after a failed write.
        self._bytes_on_disk = 0
        self.skips = SkipLog()
        # The position in all files from which the core continues.
        self._reached = checkpoints.START
        self._described = {} if job.checkpoint is None else job.describe()
        if job.checkpoint is not None and Path(job.checkpoint).exists():
            self._load(Path(job.checkpoint))
        # The counter since the checkpoint; None while it is being saved.
        self._counter: _core.Counter | None = self._new_counter()
        self._saved_at = time.monotonic()

    def _new_counter(self) -> _core.Counter:
        """A new counter, which spills to its own folder."""
        limit = self._job.memory_limit or round(MEMORY_FRACTION * memory())
        folder = self._folder / str(self._parts)
        folder.mkdir()
        self._parts += 1
        # A checkpoint must contain complete batches, even if the pattern fails on a text.
        careful = self._job.checkpoint is not None
        return _core.Counter(
            self._job.pattern, self._job.threads,
            memory_limit=limit or None, spill_folder=folder, careful=careful,
        )  # fmt: skip

    def _load(self, path: Path) -> None:
        self._saved = read_counts(path, pattern=self._job.pattern)
        text = metadata_of(path).get(checkpoints.KEY)
        if text is None:
            raise CountsError(
                f"{path} contains counts but is not a checkpoint", hint="pass another file"
            )
        state = CountState.read(text, path)
        if state.pretokens != self._saved.total:
            raise checkpoints.damaged(path)
        self._texts, self._bytes, self._reached = state.texts, state.bytes, state.reached
        self._bytes_on_disk = state.bytes
        self.skips = SkipLog(*state.skips)
        expected = self._described.items()
        differing = [name for name, value in expected if state.job.get(name) != value]
        differing = [name for name in differing if name not in (INPUTS, BASE)]
        if not is_same(state.job, self._described, path.parent):
            differing.append("files")
        if differing:
            raise CountsError(
                (
                    f"the checkpoint {path} belongs to a different count: {', '.join(differing)} "
                    "differ"
                ),
                hint="pass another file, or remove it to start again",
            )

    def uncounted(self, stream: Iterator[TextBatch]) -> Iterator[TextBatch]:
        """The documents after those included in the checkpoint."""
        skip, size = self._texts, self._bytes
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
                (
                    f"the checkpoint {self._job.checkpoint} was written for different text than "
                    "the source"
                ),
                hint="remove it to start again",
            )

    @property
    def is_of_stream(self) -> bool:
        """Whether the checkpoint has documents of a stream, and not a position in files."""
        return self._texts > 0 and self._reached == checkpoints.START

    def add_group(self, files: list[Path], first: int, bar: Bar) -> bool:
        """Count text and jsonl files, or parquet files, in the core.

        Args:
            files: the files.
            first: the index of the first one among the files of the source.
            bar: the progress is reported to it.

        Returns:
            Whether the core can read them.
        """
        self.position.enter(max(sum(file.stat().st_size for file in files), 1))
        end = first + len(files)
        add = self._add_parquet if _is_parquet(files[0]) else self._add_files
        is_read = True
        while self._reached.file < end:
            with contextlib.suppress(_SaveDueError):
                is_read = add(files, first, bar)
                self._reached = FilePosition(end, chars=self._reached.chars)
            self.save_if_due()
        if is_read:
            self.position.within(1.0)
            self.report(bar)
        else:
            self.position.leave()
        return is_read

    def _place_in(self, first: int) -> _core.FilePlace:
        """The position from which the core continues, in the files from the index `first` on."""
        file = max(self._reached.file - first, 0)
        return _core.FilePlace(*self._reached._replace(file=file))

    def _note(self, files: list[Path], first: int, counter: _core.Counter) -> None:
        """Note the position that the core has reached, and the documents that it has skipped."""
        place = counter.reached
        self._reached = FilePosition(
            first + place.file, place.byte, place.line, place.row, place.chars
        )
        skips = counter.take_skips()
        rows = (
            SkippedPlace(str(files[skip.file]), skip.row, skip.reason, skip.hint)
            for skip in skips.first
        )
        self.skips.add_all(skips.documents, rows)

    def _add_files(self, files: list[Path], first: int, bar: Bar) -> bool:
        """Count text and jsonl files from the current position until a checkpoint is due."""
        job, counter, start = self._job, self._current(), self._place_in(first)
        sizes = [file.stat().st_size for file in files]
        before, whole = sum(sizes[: start.file]), sum(sizes)

        def report(done: _core.CountProgress) -> None:
            for number, total in done.expanded.items():
                Expansion(str(files[number]), sizes[number]).reach(total)
            share = (before + done.packed) / max(whole, 1)
            self._report_within(share, done.chars, done.text_bytes, bar)

        try:
            counter.add_files(
                [corpus_file(file) for file in files], job.column, report,
                start=start, max_chars=job.limits.max_chars, doc_cap=job.limits.doc_cap,
                errors=job.errors, bounds=ReadBounds(job.max_document_bytes),
            )  # fmt: skip
        finally:
            self._note(files, first, counter)
        return True

    def _add_parquet(self, files: list[Path], first: int, bar: Bar) -> bool:
        """Count parquet files from the current position until a checkpoint is due."""
        job, counter, start = self._job, self._current(), self._place_in(first)
        is_needed = job.checkpoint is not None or not bar.is_silent
        rows = [_core.parquet_rows(f, job.column) or 0 for f in files] if is_needed else []
        before, texts_before = sum(rows[: start.file]) + start.row, counter.texts
        expansions = [Expansion(str(file), file.stat().st_size) for file in files]

        def report(done: _core.CountProgress) -> None:
            for expansion, total in zip(expansions, done.of_files, strict=True):
                expansion.reach(total)
            share = (before + done.texts - texts_before) / max(sum(rows), 1)
            self._report_within(share, done.chars, done.text_bytes, bar)

        try:
            return counter.add_parquet(
                files, job.column, report,
                start=start, max_chars=job.limits.max_chars, doc_cap=job.limits.doc_cap,
                errors=job.errors, most_page_bytes=most_page_bytes(job.max_document_bytes),
                bounds=ReadBounds(job.max_document_bytes),
            )  # fmt: skip
        except OSError as error:
            raise CorpusError(str(error)) from error
        finally:
            self._note(files, first, counter)

    def _report_within(self, share: float, chars: int, size: int, bar: Bar) -> None:
        """Report the progress of the core in a group of files; leave it if a checkpoint is due."""
        self.position.within(share)
        if (most := self._job.limits.max_chars) is not None:
            self.position.limit(chars / most)
        self._show(bar, size)
        if size and share < 1 and self._is_save_due():
            raise _SaveDueError

    def add(self, batch: TextBatch) -> None:
        """Count a batch."""
        try:
            if isinstance(batch, list):
                self._current().add(batch)
            else:
                self._current().add_utf8(batch.data, batch.offsets)
        except CorpusError as error:
            raise (error if isinstance(batch, list) else error.at(batch.place)) from None

    def _current(self) -> _core.Counter:
        """The current counter; a new one after a checkpoint."""
        if self._counter is None:
            self._counter = self._new_counter()
        return self._counter

    def report(self, bar: Bar) -> None:
        """Report the progress."""
        self._show(bar, self._current().text_bytes)

    def _show(self, bar: Bar, size: int) -> None:
        """Report progress: this many bytes in addition to those of the checkpoint."""
        size += self._bytes
        bar.update("count", size, self.position.total(size))

    def save_if_due(self) -> None:
        """Write a checkpoint if the interval has passed."""
        if self._job.checkpoint is not None and self._is_save_due():
            self._save(self._job.checkpoint)

    def _is_save_due(self) -> bool:
        is_late = time.monotonic() - self._saved_at > SAVE_SECONDS
        return self._job.checkpoint is not None and is_late

    def save_rest(self, error: BaseException) -> None:
        """Write a checkpoint after an error, and add a note about resuming to the error."""
        checkpoint, counter = self._job.checkpoint, self._counter
        if checkpoint is None:
            return
        with interrupts_held():
            # A counter with an incomplete batch is not saved: the last checkpoint remains.
            if counter is not None and counter.is_whole and (counter.texts or counter.text_bytes):
                self._add_to_checkpoint(checkpoint, counter)
        if self._bytes_on_disk:
            error.add_note(
                f"(the counts of {self._bytes_on_disk:,} bytes of text are saved in {checkpoint}; "
                "run the same count again to resume)"
            )

    def _save(self, checkpoint: str | os.PathLike[str], *, complete: bool = False) -> Counts:
        """Write a checkpoint that includes the current counter; return all counts."""
        with interrupts_held() as pressed:
            saved = self._add_to_checkpoint(checkpoint, self._current(), complete=complete)
        if pressed:
            raise KeyboardInterrupt
        return saved

    def _add_to_checkpoint(
        self,
        checkpoint: str | os.PathLike[str],
        counter: _core.Counter,
        *,
        complete: bool = False,
    ) -> Counts:
        """Add the counts of a counter to the checkpoint; this consumes the counter."""
        texts, size = self._texts + counter.texts, self._bytes + counter.text_bytes
        saved = self._saved = self._sum(counter)
        self._counter = None
        self._texts, self._bytes, self._saved_at = texts, size, time.monotonic()
        state = CountState(
            self._described, texts, size, self._reached, saved.total, self.skips.state(), complete
        )
        try:
            saved.save(checkpoint, metadata={checkpoints.KEY: state.to_json()})
            self._bytes_on_disk = size
        except OSError as error:  # the counts are in memory, so the work goes on
            reason = f"the checkpoint could not be saved: {error}; counting continues without it"
            warn(CheckpointWarning(reason))
        return saved

    def finish(self) -> Counts:
        """Return all counts; write them to the checkpoint, if there is one."""
        checkpoint = self._job.checkpoint
        if checkpoint is None:
            return self._sum(self._current())
        return self._save(checkpoint, complete=True)

    def _sum(self, counter: _core.Counter) -> Counts:
        """The sum of the saved counts and those of a counter, which is consumed."""
        new = Counts(counter.finish())
        return new if self._saved is None else self._saved + new


class _SaveDueError(Exception):
    """Raised to leave the core when a checkpoint is due."""


def _groups(files: list[Path]) -> Iterator[list[Path]]:
    """Divide files, in order, into groups for one call of the core each."""
    for is_parquet, some in itertools.groupby(files, _is_parquet):
        group = list(some)
        most = OPEN_FILES if is_parquet else len(group)
        yield from (group[at : at + most] for at in range(0, len(group), most))


def _is_parquet(file: Path) -> bool:
    return kind_of(file) == "parquet"


@contextlib.contextmanager
def interrupts_held() -> Iterator[list[object]]:
    """Delay Ctrl-C, and signals that act as it, until the end of the block.

    Example:
        >>> import signal
        >>> from bytepair.training.counting import interrupts_held
        >>> with interrupts_held() as pressed:
        ...     signal.raise_signal(signal.SIGINT)
        >>> len(pressed)
        1
    """
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
