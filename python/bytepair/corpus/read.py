"""Reads files as documents with addresses, and any source of text as batches of documents.

The address of a document is its input (a local or remote file) and its row in that file. Reading
in order, resuming (`bytepair.shards`) and reading a share of a corpus rely on it. An invalid
document is either an error or a recorded `Skip`; no document is dropped silently. The core does the
reading; memory is bounded by a block of lines or a parquet page, and by the maximum size of a
document (`bytepair.corpus.column`). Files and Arrow data are kept as columns: their bytes reach
Rust without conversion to Python strings.
"""

from __future__ import annotations

import atexit
import heapq
import itertools
import json
import mmap
import random
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypeVar

from bytepair import _core
from bytepair._internal.checks import check_whole
from bytepair._internal.progress import ShareRead
from bytepair.corpus import arrow
from bytepair.corpus.arrow import is_arrow
from bytepair.corpus.column import (
    REPAIR,
    Column,
    Errors,
    Expansion,
    OnSkip,
    ReadBounds,
    Skip,
    SkipLog,
    TextBatch,
    no_column,
    strings,
    until,
)
from bytepair.corpus.files import LOG, CorpusFile, Files, Input, Kind, compression_of, kind_of
from bytepair.corpus.source import (
    Reading,
    ResolvedSource,
    Source,
    Texts,
    resolve,
    resolve_files,
)
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
    try:  # the C library aborts the process if it has no memory for the data of a thread
        mmap.mmap(-1, THREAD_BYTES).close()
    except OSError:
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
COLUMN_BYTES: Final = 1 << 24


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
    `bytepair.corpus.column.ExpansionWarning`.

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
            size, kind = batch_bytes or COLUMN_BYTES, kind or kind_of(file.path)
            reader = _reader_of(file, kind, reading, selection, size, stack)
            for piece in _pieces(file, reader, share):
                rows = piece.rows if isinstance(piece, Skip) else len(piece)
                after = piece.first + (rows or 0)
                if rows is None or after > selection.first:
                    yield _from_row(piece, selection.first)
                del piece  # free it before reading the next one
    except GeneratorExit:  # at the end of the process, when `arrow` may be gone already
        raise
    except arrow.failures() as error:
        reason, option, hint = str(error), None, ""
        if isinstance(error, CorpusError):
            reason, option, hint = error.message, error.option, error.hint
        if not reason.startswith(file.name) and reason.startswith(file.path):
            reason = file.name + reason.removeprefix(file.path)  # as the user names it
        if reading.errors != "skip":
            text = reason if reason.startswith(file.name) else f"{file.name}: {reason}"
            raise CorpusError(text, option=option, hint=hint) from error
        hint = "" if option == "errors" else hint
        yield Skip(file.name, after, None, reason.removeprefix(f"{file.name}: "), hint)


def _pieces(
    file: Input, reader: _core.DocumentReader, share: ShareRead | None
) -> Iterator[Column | Skip]:
    expansion = Expansion(file.name, file.size)
    for unit, first, data, offsets, skipped in reader:
        check_stopped()
        table_rows, packed, unpacked = reader.progress()
        if table_rows:
            expansion.add(len(data))
        elif unpacked:
            expansion.reach(unpacked)
        if share is not None:
            read = first + len(offsets) - 1
            share.within(read / table_rows if table_rows else packed / max(file.size, 1))
        column = Column(data, offsets, file.name, first, unit)
        pieces = _divided(column, skipped)
        del data, offsets, column  # the pieces alone keep the documents in memory
        yield from pieces


def _divided(
    column: Column, skipped: list[tuple[int, int, int, str, str]]
) -> Iterator[Column | Skip]:
    """Split a column at its skipped documents; yield both in order."""
    for _, row, rows, reason, hint in skipped:
        if count := row - column.first:
            yield column[:count]
        yield Skip(column.name, row, rows or None, reason, hint)
        column = replace(column[count:], first=row + rows)
    if len(column):
        yield column


def _from_row(piece: Column | Skip, first: int) -> Column | Skip:
    before = first - piece.first
    if before <= 0:
        return piece
    if isinstance(piece, Skip):
        return piece._replace(first=first, rows=piece.rows and piece.rows - before)
    return piece[before:]


def _reader_of(
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
        CorpusFile(name, kind, packing), reading,
        ReadBounds(reading.max_document_bytes, batch_bytes),
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


BATCH_CHARS: Final = 1 << 22
BATCH_TEXTS: Final = 1 << 13
BATCH_ROWS: Final = 1 << 10
BATCH_BYTES: Final = 1 << 22


def read_batches(
    source: Source | ResolvedSource,
    reading: Reading = Reading(),
    *,
    share: ShareRead | None = None,
    on_skip: OnSkip = lambda *_: None,
) -> Iterator[TextBatch]:
    """Read a source as batches of documents, in order.

    What is invalid raises an error at the latest in the consumer of the documents; the limits of
    counting do not matter here. `share` is updated with the fraction of the files that has been
    read, and `on_skip` is called for each skip.
    """
    share = share or ShareRead()
    resolved = resolve(source)
    stream = _open(resolved, reading, share)
    for item in until(stream, reading.max_chars, share.limit):
        if isinstance(item, Skip):
            on_skip(item)
        else:
            yield item


def batch_size(batch: TextBatch) -> int:
    """The number of bytes of the documents of a batch."""
    if isinstance(batch, Column):
        return batch.text_bytes
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in batch)


def _open(
    resolved: ResolvedSource, reading: Reading, share: ShareRead
) -> Iterator[TextBatch | Skip]:
    if isinstance(resolved, Files):
        yield from ahead(_read_files(resolved.files, reading, share))
        return
    column = reading.column
    batches: Iterator[TextBatch]
    if isinstance(resolved, Texts):
        batches = _read_texts(resolved.texts)
    elif resolved.kind == "rows":
        batches = _read_texts(_fields(resolved.data, column))
    else:
        batches = _read_arrow(resolved.data, column)
    for batch in _checked(batches, reading.errors):
        if reading.doc_cap is None or isinstance(batch, Skip):
            yield batch
        else:
            yield [text[: reading.doc_cap] for text in strings(batch)]


def _read_files(
    files: list[Input], reading: Reading, share: ShareRead
) -> Iterator[TextBatch | Skip]:
    for file in files:
        share.enter(file.size)
        for piece in read(file, reading, share=share, batch_bytes=BATCH_BYTES):
            is_table = kind_of(file.path) in ("parquet", "arrow")
            if isinstance(piece, Skip) and piece.rows != 1 and is_table:
                # the file is invalid, not a single document
                text = f"{file.name}, row {piece.first}: {piece.reason}"
                raise CorpusError(text, hint=piece.hint)
            yield piece


def _fields(rows: Iterable[Any], column: str) -> Iterator[Any]:
    """The text of each row; as in a table, None is an empty document."""
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise CorpusError(
                f"row {index} of the source is of type {type(row).__name__}, not a mapping"
            )
        if column not in row:
            raise no_column(f"row {index} of the source", column, row, "field")
        yield "" if row[column] is None else row[column]


def _read_texts(texts: Iterable[Any]) -> Iterator[list[str]]:
    batch: list[str] = []
    chars = 0
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise CorpusError(
                f"text {index} of the source is of type {type(text).__name__}, not str"
            )
        batch.append(text)
        chars += len(text)
        if chars >= BATCH_CHARS or len(batch) >= BATCH_TEXTS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _read_arrow(data: Any, column: str) -> Iterator[Column]:
    """The documents of Arrow data, or of an iterable of such data."""
    from bytepair._internal.extras import pyarrow as pa

    for index, item in enumerate([data] if is_arrow(data) else data):
        name = "the Arrow data" if item is data else f"item {index} of the source"
        if not is_arrow(item):
            raise CorpusError(f"{name} is of type {type(item).__name__}, not Arrow data")
        source = arrow.import_data(item)
        if isinstance(source, pa.Array | pa.ChunkedArray):
            chunks = [source] if isinstance(source, pa.Array) else source.chunks
            yield from arrow.columns(chunks, name)
            continue
        arrow.check_column(column, source.schema, name)
        arrays = (batch.column(column) for batch in source)
        yield from arrow.columns(arrays, name, BATCH_ROWS)


def _checked(batches: Iterable[TextBatch], errors: Errors) -> Iterator[TextBatch | Skip]:
    """Refuse, replace or skip lone surrogates and invalid UTF-8, as `errors` says.

    The consumer refuses invalid UTF-8, which it finds anyway.
    """
    rows: Counter[str] = Counter()
    for batch in batches:
        if isinstance(batch, list):
            name, wrong = "the source", _core.lone_surrogates(batch)
        else:
            name = batch.name
            wrong = [] if errors == "strict" else _core.not_utf8(batch.data, batch.offsets)
        first, start = rows[name], 0
        rows[name] += len(batch)
        if wrong and errors == "replace":  # surrogates that are a pair are one character
            yield (
                [t.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for t in batch]
                if isinstance(batch, list)
                else strings(batch, "replace")
            )
            continue
        for index, reason in wrong:
            if errors == "strict":
                place = f"text {first + index} of the source"
                raise CorpusError(f"{place}: {reason}", option="errors", hint=REPAIR)
            yield batch[start:index]
            yield Skip(name, first + index, 1, reason)
            start = index + 1
        yield batch[start:] if wrong else batch


#: About how many bytes of files are read for a sample; of a source in memory, how many characters.
READ_BYTES: Final = 1 << 28
#: Longer documents are sampled in pieces, so that few of them do not fill a sample: of this size,
#: or of this share of a small sample.
PIECE_CHARS: Final = 1 << 16
PIECES: Final = 100


class Sample(list[str]):
    """The documents of a sample, in the order of the source; of a long one perhaps only pieces.

    Attributes:
        chars: the number of characters of the sample.
        chars_read: the number of characters from which it was drawn.
        files: the number of files from which it was drawn; 0 for a source in memory.
        is_whole: whether it is all text of the source.
    """

    def __init__(self, texts: list[str], chars_read: int, files: int, is_all_read: bool) -> None:
        super().__init__(texts)
        self.chars, self.chars_read, self.files = sum(map(len, texts)), chars_read, files
        self.is_whole = is_all_read and self.chars == chars_read

    def __str__(self) -> str:
        if self.is_whole:
            return f"all {self.chars:,} characters"
        place = f"spread over {self.files:,} file{'s'[: self.files != 1]}"
        place = place if self.files else "drawn"
        return f"a sample of {self.chars:,} characters, {place} ({self.chars_read:,} read)"


def sample(source: Source, reading: Reading = Reading(), *, seed: int = 0) -> Sample:
    """Draw documents from all files of a source, whatever their split.

    The sample has at most `max_chars` characters of `reading`, if it says so. The same seed draws
    the same sample.
    """
    skips, most = SkipLog(), reading.max_chars
    resolved = resolve(source, split="all")
    draw, step = _Draw(most, seed), 1
    reading = replace(reading, max_chars=most and max(READ_BYTES, most))
    if isinstance(resolved, Files) and most is not None:
        step = max(1, resolved.size // READ_BYTES)
        for file in resolved.files:
            for batch in _blocks(file, reading, step, draw.random, skips):
                draw.add(batch)
    else:
        for batch in read_batches(resolved, reading, on_skip=skips.add):
            draw.add(batch)
    skips.warn()
    number = len(resolved.files) if isinstance(resolved, Files) else 0
    result = Sample(draw.texts(), draw.chars_read, number, step == 1)
    if not result.is_whole:
        LOG.info("measuring %s", result)
    return result


def _blocks(
    file: Input, reading: Reading, step: int, rng: random.Random, skips: SkipLog
) -> Iterator[TextBatch]:
    for start in dict.fromkeys((rng.randrange(step), 0)):
        is_empty = True
        if kind_of(file.path) == "text":
            start, step = 0, 1  # such a file is one document
        selection = DocumentSelection(start=start, step=step)
        for piece in read(file, reading, selection, batch_bytes=BATCH_BYTES):
            is_empty = False
            if isinstance(piece, Skip):
                skips.add(piece)
            else:
                yield piece
        if not is_empty:
            return


class _Draw:
    """The pieces with the smallest random keys, up to a number of characters."""

    def __init__(self, max_chars: int | None, seed: int) -> None:
        self.random, self.chars_read = random.Random(seed), 0
        self._max_chars, self._chars, self._documents = max_chars, 0, 0
        most = PIECE_CHARS if max_chars is None else max_chars // PIECES
        self._piece_chars = min(PIECE_CHARS, max(most, 1000))
        self._pieces: list[tuple[float, int, int, str]] = []  # a heap, the largest key first

    def add(self, batch: TextBatch) -> None:
        for text in strings(batch):
            for start in range(0, max(len(text), 1), self._piece_chars):  # also of an empty one
                piece = text[start : start + self._piece_chars][: self._max_chars]
                key = -self.random.random()
                heapq.heappush(self._pieces, (key, self._documents, start, piece))
                self._chars += len(piece)
                while self._max_chars is not None and self._chars > self._max_chars:
                    self._chars -= len(heapq.heappop(self._pieces)[3])
            self.chars_read += len(text)
            self._documents += 1

    def texts(self) -> list[str]:
        """The documents in order; neighbouring pieces are put together again."""
        texts: list[str] = []
        ends = (-1, 0)  # the document and the place at which the last text ends
        for _, document, start, piece in sorted(self._pieces, key=lambda one: one[1:3]):
            if (document, start) == ends and start:
                texts[-1] += piece
            else:
                texts.append(piece)
            ends = (document, start + len(piece))
        return texts
