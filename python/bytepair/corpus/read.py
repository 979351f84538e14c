"""Read any source of text as batches of documents.

A source is a list of texts, a file, a list of files, a folder, a glob, or Arrow data. A batch has a
few megabytes, so that a corpus of any size can be streamed. Files and Arrow data are kept as
columns: their bytes reach Rust without conversion to Python strings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bytepair import _core
from bytepair._internal.progress import ShareRead
from bytepair.corpus import arrow
from bytepair.corpus.arrow import is_arrow
from bytepair.corpus.column import (
    REPAIR,
    Column,
    Errors,
    OnSkip,
    Skip,
    TextBatch,
    no_column,
    strings,
    until,
)
from bytepair.corpus.documents import read
from bytepair.corpus.files import Files, Input
from bytepair.corpus.kinds import kind_of
from bytepair.corpus.read_ahead import ahead
from bytepair.corpus.source import (
    Reading,
    ResolvedSource,
    Source,
    Texts,
    announce_column,
    resolve,
)
from bytepair.errors import CorpusError

BATCH_CHARS: Final = 1 << 22
BATCH_TEXTS: Final = 1 << 13
BATCH_ROWS: Final = 1 << 10
BATCH_BYTES: Final = 1 << 22

#: The name of texts in memory, for messages.
MEMORY: Final = "the source"


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

    Example:
        >>> list(read_batches(["one text", "another"]))
        [['one text', 'another']]
    """
    share = share or ShareRead()
    resolved = resolve(source)
    announce_column(resolved, reading.column)
    stream = _open(resolved, reading, share)
    return _without_skips(until(stream, reading.max_chars, share.limit), on_skip)


def _without_skips(stream: Iterator[TextBatch | Skip], on_skip: OnSkip) -> Iterator[TextBatch]:
    for item in stream:
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
        return ahead(_read_files(resolved.files, reading, share))
    column, cap = reading.column, reading.doc_cap
    if isinstance(resolved, Texts) or resolved.kind == "rows":
        texts = resolved.texts if isinstance(resolved, Texts) else _fields(resolved.data, column)
        return _capped(_checked_texts(_read_texts(texts), reading.errors), cap)
    if resolved.kind == "datasets":
        columns = _read_columns(_tables(resolved.data, column), column)
    elif is_arrow(resolved.data):
        columns = _read_arrow(resolved.data, column, "the Arrow data")
    else:
        columns = _read_columns(resolved.data, column)
    return _capped(_checked(columns, reading.errors), cap)


def _read_files(
    files: list[Input], reading: Reading, share: ShareRead
) -> Iterator[TextBatch | Skip]:
    for file in files:
        share.enter(file.size)
        for piece in read(file, reading, share=share, batch_bytes=BATCH_BYTES):
            is_table = kind_of(file.path) == "parquet"
            if isinstance(piece, Skip) and piece.rows != 1 and is_table:
                # the file is invalid, not a single document
                text = f"{file.name}, row {piece.first}: {piece.reason}"
                raise CorpusError(text, hint=piece.hint)
            yield piece


# ---------------------------------------------------------------------------- texts


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
    """Gather texts into batches of a few megabytes."""
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


def _checked_texts(batches: Iterator[list[str]], errors: Errors) -> Iterator[TextBatch | Skip]:
    """Refuse, replace or skip lone surrogates in texts, as `errors` says."""
    done = 0
    for batch in batches:
        lone = _core.lone_surrogates(batch)
        start = 0
        for text in lone:
            row, reason = text.index, text.reason
            if errors == "strict":
                place = f"text {done + row} of the source"
                raise CorpusError(f"{place}: {reason}", option="errors", hint=REPAIR)
            yield batch[start:row]
            if errors == "replace":
                yield [_replaced(batch[row])]
            else:
                yield Skip(MEMORY, done + row, 1, reason)
            start = row + 1
        yield batch[start:] if lone else batch
        done += len(batch)


def _replaced(text: str) -> str:
    """A text with U+FFFD in place of lone surrogates; a pair becomes its character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# ---------------------------------------------------------------------------- Arrow


def _tables(data: Any, column: str) -> Iterator[Any]:
    """The column of a data set of the package `datasets`, as tables."""
    names = data.column_names  # None for some that are streamed
    if names is not None and column not in names:
        raise no_column("the data set", column, names)
    yield from data.select_columns([column]).with_format("arrow").iter(BATCH_ROWS)


def _read_columns(columns: Iterable[Any], column: str) -> Iterator[Column]:
    """The columns of an iterable of Arrow data."""
    for index, data in enumerate(columns):
        if not is_arrow(data):
            raise CorpusError(
                f"item {index} of the source is of type {type(data).__name__}, not Arrow data"
            )
        yield from _read_arrow(data, column, f"item {index} of the source")


def _read_arrow(source: Any, column: str, name: str) -> Iterator[Column]:
    """The columns of an array, a chunked array or a table."""
    from bytepair._internal.extras import pyarrow as pa

    if not isinstance(source, pa.Array | pa.ChunkedArray):
        source = _imported(source)
    if isinstance(source, pa.Array | pa.ChunkedArray):
        for chunk in [source] if isinstance(source, pa.Array) else source.chunks:
            yield arrow.column(chunk, name)
        return
    arrow.check_column(column, source.schema, name)
    for batch in source:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield arrow.column(batch.slice(start, BATCH_ROWS).column(column), name)


def _imported(source: Any) -> Any:
    """An object with the Arrow interface as an array, a chunked array or a reader of batches."""
    from bytepair._internal.extras import pyarrow as pa

    if hasattr(source, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(source)
        except pa.ArrowInvalid:  # a stream of arrays
            return pa.chunked_array(source)
    array = pa.array(source)
    if pa.types.is_struct(array.type):
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(array)]).to_reader()
    return array


def _checked(columns: Iterable[Column], errors: Errors) -> Iterator[TextBatch | Skip]:
    """Skip or replace invalid UTF-8 in columns, as `errors` says."""
    rows: Counter[str] = Counter()
    for column in columns:
        first = rows[column.name]
        rows[column.name] += len(column)
        wrong = [] if errors == "strict" else _core.not_utf8(column.data, column.offsets)
        if wrong and errors == "replace":
            yield strings(column, "replace")
            continue
        start = 0
        for document in wrong:
            yield column[start : document.index]
            yield Skip(column.name, first + document.index, 1, document.reason)
            start = document.index + 1
        yield column[start:] if wrong else column


# ---------------------------------------------------------------------------- limits


def _capped(stream: Iterator[TextBatch | Skip], doc_cap: int | None) -> Iterator[TextBatch | Skip]:
    """Truncate documents in memory to a number of characters."""
    for batch in stream:
        if doc_cap is None or isinstance(batch, Skip):
            yield batch
        else:
            yield [text[:doc_cap] for text in strings(batch)]
