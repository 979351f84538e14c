"""A source of text in, batches of documents out, ready to be counted.

A source is whatever people have: texts, a file, many files, a folder, a glob, a column of Arrow
data. A batch is a few megabytes, so that a corpus of any size streams through. Files and columns of
Arrow data stay columns: their bytes reach Rust without becoming Python strings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from bytepair import _core
from bytepair._internal.progress import Position
from bytepair.corpus import arrow
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import Column, Errors, Skip, TextBatch, strings, until
from bytepair.corpus.documents import ReadOptions, read
from bytepair.corpus.read_ahead import ahead
from bytepair.corpus.source import (
    Files,
    Input,
    Limits,
    Resolved,
    Source,
    Texts,
    is_arrow,
    resolve,
)
from bytepair.errors import CorpusError

BATCH_CHARS: Final = 1 << 22
BATCH_TEXTS: Final = 1 << 13
BATCH_ROWS: Final = 1 << 10
BATCH_BYTES: Final = 1 << 22


def read_batches(
    source: Source | Resolved,
    *,
    column: str = "text",
    limits: Limits | None = None,
    errors: Errors = "strict",
    position: Position | None = None,
    max_document_bytes: int = DOCUMENT_BYTES,
    on_skip: Callable[[str, int, str], object] = lambda *_: None,
) -> Iterator[TextBatch]:
    """Read a source as batches of documents, in order.

    Args:
        source: what `bytepair.corpus.source` says a source is.
        column: the column of a table, or the field of a json object, that holds the text.
        limits: how much to read; None means all.
        errors: what to do with bytes of files and of Arrow data that are not UTF-8: `"strict"`
            leaves an error, at the latest to whoever takes the documents; `"replace"` puts U+FFFD
            in their place, as Python does. `"skip"` leaves out a document that is not UTF-8, and
            of files one that is too long, or a line that is no JSON object.
        position: is told which part of the files is read.
        max_document_bytes: a longer document of a file is an error.
        on_skip: is told of each document that is left out, in order: the name of its file, or what
            else it comes from, its row there, and what is wrong.

    Raises:
        CorpusError: if there is nothing to read, or a file cannot be read as what its ending says
            (`bytepair.corpus.kinds`); the message names the file and the place.

    Example:
        >>> from bytepair.corpus.read import read_batches
        >>> list(read_batches(["one text", "another"]))
        [['one text', 'another']]
    """
    position, limits = position or Position(), limits or Limits()
    how = ReadOptions(column, errors, limits.doc_cap, max_document_bytes, BATCH_BYTES)
    stream = until(_open(resolve(source), how, position), limits.max_chars, position.limit)
    return _kept(stream, on_skip)


def _kept(
    stream: Iterator[TextBatch | Skip], on_skip: Callable[[str, int, str], object]
) -> Iterator[TextBatch]:
    """The documents that can be read, after it was said what was left out before them."""
    for item in stream:
        if isinstance(item, Skip):
            on_skip(item.input, item.first, item.reason)
        else:
            yield item


def batch_size(batch: TextBatch) -> int:
    """How many bytes the documents of a batch have.

    Example:
        >>> from bytepair.corpus.read import batch_size
        >>> batch_size(["one", "é"])
        5
    """
    if isinstance(batch, Column):
        return batch.text_bytes
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in batch)


def _open(found: Resolved, how: ReadOptions, position: Position) -> Iterator[TextBatch | Skip]:
    if isinstance(found, Files):
        return ahead(_read_files(found.files, how, position))
    if isinstance(found, Texts):
        return _capped(_read_texts(found.texts), how.doc_cap)
    if is_arrow(found.data):
        columns = _read_arrow(found.data, how.column, "the Arrow data")
    else:
        columns = _read_columns(found.data, how.column)
    return _capped(_checked(columns, how), how.doc_cap)


def _read_files(
    files: list[Input], how: ReadOptions, position: Position
) -> Iterator[TextBatch | Skip]:
    for file in files:
        position.enter(file.size)
        for piece in read(file, how, position=position):
            if isinstance(piece, Skip) and piece.rows != 1:  # not a document is wrong, but the file
                raise CorpusError(f"{file.name}, row {piece.first}: {piece.reason}")
            yield piece


# ---------------------------------------------------------------------------- texts


def _read_texts(texts: Iterable[Any]) -> Iterator[TextBatch]:
    """Gather texts into batches of a few megabytes."""
    batch: list[str] = []
    chars = 0
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise CorpusError(f"text {index} of the source is {type(text).__name__}, not str")
        batch.append(text)
        chars += len(text)
        if chars >= BATCH_CHARS or len(batch) >= BATCH_TEXTS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


# ---------------------------------------------------------------------------- Arrow


def _read_columns(columns: Iterable[Any], column: str) -> Iterator[Column]:
    """The columns of an iterable of Arrow data."""
    for index, data in enumerate(columns):
        if not is_arrow(data):
            raise CorpusError(
                f"item {index} of the source is {type(data).__name__}, not Arrow data"
            )
        yield from _read_arrow(data, column, f"item {index} of the source")


def _read_arrow(source: Any, column: str, name: str) -> Iterator[Column]:
    from bytepair._internal.extras import pyarrow as pa

    if isinstance(source, pa.Array):
        yield arrow.column(source, name)
    elif isinstance(source, pa.ChunkedArray):
        for chunk in source.chunks:
            yield arrow.column(chunk, name)
    elif hasattr(source, "__arrow_c_stream__"):
        yield from _read_stream(source, column, name)
    else:
        yield from _read_arrow(_imported(source), column, name)


def _read_stream(source: Any, column: str, name: str) -> Iterator[Column]:
    """A stream of record batches, or of arrays (a column that is no table)."""
    from bytepair._internal.extras import pyarrow as pa

    try:
        reader = pa.RecordBatchReader.from_stream(source)
    except pa.ArrowInvalid:
        yield from _read_arrow(pa.chunked_array(source), column, name)
        return
    arrow.check_column(column, reader.schema, name)
    for batch in reader:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield arrow.column(batch.slice(start, BATCH_ROWS).column(column), name)


def _imported(source: Any) -> Any:
    """An array, or a record batch as a table, out of an object with the Arrow interface."""
    from bytepair._internal.extras import pyarrow as pa

    imported = pa.array(source)
    if pa.types.is_struct(imported.type):
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(imported)])
    return imported


def _checked(columns: Iterable[Column], how: ReadOptions) -> Iterator[TextBatch | Skip]:
    """Columns without what is not UTF-8, or with U+FFFD in its place, if that is asked for."""
    rows: Counter[str] = Counter()
    for column in columns:
        first = rows[column.name]
        rows[column.name] += len(column)
        wrong = [] if how.errors == "strict" else _core.not_utf8(column.data, column.offsets)
        if wrong and how.errors == "replace":
            yield strings(column, "replace")
            continue
        start = 0
        for row, at in wrong:
            yield column[start:row]
            yield Skip(column.name, first + row, 1, f"the document is not UTF-8 at its byte {at}")
            start = row + 1
        yield column[start:] if wrong else column


# ---------------------------------------------------------------------------- limits


def _capped(stream: Iterator[TextBatch | Skip], doc_cap: int | None) -> Iterator[TextBatch | Skip]:
    """Cut documents that are in memory, by characters."""
    for batch in stream:
        if doc_cap is None or isinstance(batch, Skip):
            yield batch
        else:
            yield [text[:doc_cap] for text in strings(batch)]
