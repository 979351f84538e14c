"""Read files as documents with addresses. All code that reads files uses this module.

The address of a document is its input (a local or remote file) and its row in that file. Reading
in order, resuming (`bytepair.shards`) and reading a share of a corpus rely on it. An invalid
document is either an error or a recorded `Skip`; no document is dropped silently. The core does the
reading; memory is bounded by a block of lines or a parquet page, and by the maximum size of a
document (`bytepair.corpus.bounds`).
"""

from __future__ import annotations

import atexit
import itertools
import json
import mmap
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypeVar

from bytepair import _core
from bytepair._internal.checks import check_whole
from bytepair._internal.progress import ShareRead
from bytepair.corpus import arrow
from bytepair.corpus.bounds import Expansion, ReadBounds, most_page_bytes
from bytepair.corpus.column import Column, Skip, SkipLog, strings, until
from bytepair.corpus.files import CorpusFile, Input, Kind, compression_of, kind_of
from bytepair.corpus.source import Reading, Source, resolve_files
from bytepair.errors import CorpusError
from bytepair.files.safe import read_json

if TYPE_CHECKING:
    import pyarrow as pa


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
    def __init__(self, stream: Iterator[Any]) -> None:
        super().__init__(name="bytepair-corpus", daemon=True)
        _live.add(self)
        self.is_stopped = False
        self._stream, self._item = stream, None
        self._error: BaseException | None = None
        self._requests, self._ready = threading.Semaphore(0), threading.Semaphore(0)

    def run(self) -> None:
        try:
            while self._requests.acquire() and not self.is_stopped:
                self._item = next(self._stream, None)
                self._ready.release()
        except BaseException as error:  # which the caller raises
            self._error = error
            self._ready.release()

    def ask(self) -> None:
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


#: The approximate size of a column in bytes.
BATCH_BYTES: Final = 1 << 24


@dataclass(frozen=True)
class DocumentSelection:
    """Which documents of a file to read: from a row on, every `step`-th row group or block."""

    first: int = 0
    start: int = 0
    step: int = 1


def read_documents(
    source: Source, reading: Reading = Reading(), *, start: int = 0, step: int = 1
) -> Iterator[pa.RecordBatch]:
    """Read documents as Arrow batches with one column of large strings. Needs the extra `data`.

    Args:
        source: files, as in `bytepair.train`: tables or text files (one document per file),
            optionally compressed as `.gz` or `.zst`, of this machine or of remote storage that
            Arrow supports (`s3://`, `gs://`, `hf://` and others).
        reading: which text is read; its limits of counting do not matter. Where no data set says
            which of its files are for validation, its split "val" means the last file and "train"
            all others, as in nanochat.
        start: the first row group of each parquet file to read; for jsonl, the first block of
            16 MB; for text files, the first file.
        step: read every `step`-th row group, so that rank r of w passes `start=r, step=w`.

    Raises:
        CorpusError: if there is nothing to read, or something cannot be read; the message contains
            the file and the place.

    A file that decompresses to more than a thousand times its size causes a
    `bytepair.corpus.bounds.ExpansionWarning`.

    Example:
        >>> import bytepair
        >>> batches = bytepair.corpus.read_documents(bytepair.sample.paths()[1:])
        >>> sum(batch.num_rows for batch in batches)
        60
    """
    check_whole("start", start)
    check_whole("step", step, least=1)
    files = resolve_files(source, reading.split, by_position=True).files
    selected = _strided(files, reading, DocumentSelection(0, start, step))
    stream = until(selected, reading.max_chars)
    return ahead(arrow.record_batch(texts, reading.column) for texts in stream)


def _strided(
    files: list[Input], reading: Reading, selection: DocumentSelection
) -> Iterator[Column]:
    """The documents of every `step`-th unit of each table, and of every `step`-th text file."""
    skips = SkipLog()
    turns, texts = range(selection.start, sys.maxsize, selection.step), itertools.count()
    for file in files:
        is_text = kind_of(file.path) == "text"
        if is_text and next(texts) not in turns:
            continue
        for piece in read(file, reading, DocumentSelection() if is_text else selection):
            if isinstance(piece, Column):
                yield piece
            else:
                skips.add(piece)
    skips.warn()


def read_list(file: Input) -> list[Any]:
    """The rows of a list in one value of JSON, as Alpaca and ShareGPT are published."""
    whole = Reading(max_document_bytes=sys.maxsize)
    pieces = [piece for piece in read(file, whole, kind="text") if isinstance(piece, Column)]
    try:
        rows = read_json("".join(text for piece in pieces for text in strings(piece)))
    except ValueError as error:
        hint = "if each line is an object, rename it to .jsonl"
        raise CorpusError(f"{file.name}: {error}", hint=hint) from None
    if not isinstance(rows, list):
        raise CorpusError(f"{file.name}: it must be a list of rows, not an object")
    return rows


def read(
    file: Input,
    reading: Reading,
    selection: DocumentSelection = DocumentSelection(),
    share: ShareRead | None = None,
    *,
    batch_bytes: int | None = None,
    kind: Kind | Literal["lines"] | None = None,
) -> Iterator[Column | Skip]:
    """Read one file in order: documents, and with `errors="skip"` the skipped ones.

    `share` is updated with the fraction of the file that has been read. Without a kind, the suffix
    says it; with "lines", each line is a document.
    """
    after = 0
    try:
        with ExitStack() as stack:
            size, kind = batch_bytes or BATCH_BYTES, kind or kind_of(file.path)
            reader = _open(file, kind, reading, selection, size, stack)
            for piece in _pieces(file, reader, share):
                rows = piece.rows if isinstance(piece, Skip) else len(piece)
                after = piece.first + (rows or 0)
                if rows is None or after > selection.first:
                    yield _from_row(piece, selection.first)
                del piece  # free it before reading the next one
    except GeneratorExit:  # at the end of the process, when `arrow` may be gone already
        raise
    except arrow.failures() as error:
        problem, option, hint = str(error), None, ""
        if isinstance(error, CorpusError):
            problem, option, hint = error.message, error.option, error.hint
        reason = _with_name(problem, file)
        if reading.errors != "skip":
            text = reason if reason.startswith(file.name) else f"{file.name}: {reason}"
            raise CorpusError(text, option=option, hint=hint) from error
        hint = "" if option == "errors" else hint
        yield Skip(file.name, after, None, reason.removeprefix(f"{file.name}: "), hint)


def _with_name(reason: str, file: Input) -> str:
    """A message of the core, with the name that the user gave instead of the path of the file."""
    if reason.startswith(file.name) or not reason.startswith(file.path):
        return reason
    return file.name + reason.removeprefix(file.path)


def _pieces(
    file: Input, reader: _core.DocumentReader, share: ShareRead | None
) -> Iterator[Column | Skip]:
    expansion, table_rows = Expansion(file.name, file.size), reader.rows
    for batch in reader:
        check_stopped()
        if table_rows:
            expansion.add(len(batch.data))
        elif (total := reader.take_expanded()) is not None:
            expansion.reach(total)
        if share is not None:
            done, whole = reader.packed, max(file.size, 1)
            if table_rows:
                done, whole = batch.first_row + len(batch.offsets) - 1, table_rows
            share.within(done / whole)
        column = Column(batch.data, batch.offsets, file.name, batch.first_row, batch.unit)
        pieces = _divided(column, batch.skipped)
        del batch, column  # the pieces alone keep the documents in memory
        yield from pieces


def _divided(column: Column, skipped: list[_core.SkippedRows]) -> Iterator[Column | Skip]:
    """Split a column at its skipped documents; yield both in order."""
    for skip in skipped:
        count = skip.row - column.first
        if count:
            yield column[:count]
        yield Skip(column.name, skip.row, skip.rows or None, skip.reason, skip.hint)
        column = replace(column[count:], first=skip.row + skip.rows)
    if len(column):
        yield column


def _from_row(piece: Column | Skip, first: int) -> Column | Skip:
    before = first - piece.first
    if before <= 0:
        return piece
    if isinstance(piece, Skip):
        return piece._replace(first=first, rows=piece.rows and piece.rows - before)
    return piece[before:]


def _open(
    file: Input,
    kind: Kind | Literal["lines"],
    reading: Reading,
    selection: DocumentSelection,
    batch_bytes: int,
    stack: ExitStack,
) -> _core.DocumentReader:
    """Open a file in the core: by its path, or as a Python file object.

    Arrow and lists of JSON are copied to a temporary file of parquet or jsonl.
    """
    name, packing, size, source = file.path, compression_of(file.path), file.size, None
    if kind == "json":
        kind, packing, source = "jsonl", None, _temporary(stack)
        source.writelines(json.dumps(row).encode() + b"\n" for row in read_list(file))
        size = source.tell()
        source.seek(0)
    elif kind in ("parquet", "arrow") and packing is not None:
        source = _temporary(stack)
        size, packing = _unpack(file, packing, source), None
    elif file.cloud is not None:
        name, source = file.name, stack.enter_context(_open_cloud(file, kind))
    if kind == "arrow":
        table, kind, source = source or file.path, "parquet", _temporary(stack)
        arrow.write_parquet(table, reading.column, file.name, source)
        size = source.tell()
    return _core.DocumentReader(
        CorpusFile(name, kind, packing), reading.column, errors=reading.errors,
        doc_cap=reading.doc_cap, bounds=ReadBounds(reading.max_document_bytes, batch_bytes),
        page_bytes=most_page_bytes(reading.max_document_bytes),
        selection=selection, source=source, size=size,
    )  # fmt: skip


def _temporary(stack: ExitStack) -> IO[bytes]:
    from tempfile import TemporaryFile

    return stack.enter_context(TemporaryFile())


def _open_cloud(file: Input, kind: str) -> Any:
    if kind in ("parquet", "arrow"):
        return file.cloud.open_input_file(file.path)
    return file.cloud.open_input_stream(file.path, compression=None)


def _unpack(file: Input, packing: str, into: IO[bytes]) -> int:
    expansion = Expansion(file.name, file.size)

    def write(data: bytes) -> None:
        check_stopped()
        expansion.add(len(data))
        into.write(data)

    with nullcontext() if file.cloud is None else _open_cloud(file, "stream") as source:
        _core.unpack(file.path if source is None else file.name, packing, write, source=source)
    return into.tell()
