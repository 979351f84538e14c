"""A source of text in, batches of documents out, ready to be counted.

A source is whatever people have: texts, a file, many files, a folder, a glob, a column of Arrow
data. A batch is a few megabytes, so that a corpus of any size streams through. Columns of Arrow
data, and with them parquet and jsonl, stay columns: their bytes reach Rust without becoming Python
strings.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from bytepair import _core
from bytepair._internal.progress import Position
from bytepair.corpus import arrow, bounds, documents
from bytepair.corpus.bounds import DOCUMENT_BYTES, Expansion
from bytepair.corpus.kinds import compression_of, kind_of
from bytepair.corpus.parquet import Heavy, open_parquet
from bytepair.corpus.read_ahead import ahead, check_stopped
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

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

#: What to do with bytes that are not UTF-8.
Errors: TypeAlias = Literal["strict", "replace"]

BATCH_CHARS: Final = 1 << 22
BATCH_TEXTS: Final = 1 << 13
BATCH_ROWS: Final = 1 << 10
BATCH_BYTES: Final = 1 << 22


@dataclass(frozen=True)
class Column:
    """Documents as Arrow lays out strings.

    Attributes:
        data: uint8, the UTF-8 of all documents, end to end.
        offsets: int32 or int64, where each document starts in `data`, and the end of the last.
        place: where the documents come from, for messages.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int32 | np.int64]
    place: str

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, documents: slice) -> Column:
        """Some documents that stand together."""
        start, stop, _ = documents.indices(len(self))
        return Column(self.data, self.offsets[start : max(start, stop) + 1], self.place)


#: Documents that are on their way to be counted.
TextBatch: TypeAlias = "list[str] | Column"


def read_batches(
    source: Source | Resolved,
    *,
    column: str = "text",
    limits: Limits | None = None,
    errors: Errors = "strict",
    position: Position | None = None,
    max_document_bytes: int = DOCUMENT_BYTES,
) -> Iterator[TextBatch]:
    """Read a source as batches of documents, in order.

    Args:
        source: what `bytepair.corpus.source` says a source is.
        column: the column of a table, or the field of a json object, that holds the text.
        limits: how much to read; None means all.
        errors: what to do with bytes of files and of Arrow data that are not UTF-8: `"strict"`
            leaves an error, at the latest to whoever takes the documents; `"replace"` puts U+FFFD
            in their place, as Python does.
        position: is told which part of the files is read.
        max_document_bytes: a longer document of a file is an error.

    Raises:
        CorpusError: if there is nothing to read, or a file cannot be read as what its ending says
            (`bytepair.corpus.kinds`); the message names the file and the place.

    Example:
        >>> from bytepair.corpus.read import read_batches
        >>> list(read_batches(["one text", "another"]))
        [['one text', 'another']]
    """
    position = position or Position()
    how = _How(column, errors, max_document_bytes, position)
    stream = _open(source, how)
    return stream if limits is None else _limited(stream, limits, position)


@dataclass(frozen=True)
class _How:
    """How files are read; the fields are the arguments of `batches`."""

    column: str
    errors: Errors
    max_document_bytes: int
    position: Position


def batch_size(batch: TextBatch) -> int:
    """How many bytes the documents of a batch have.

    Example:
        >>> from bytepair.corpus.read import batch_size
        >>> batch_size(["one", "é"])
        5
    """
    if isinstance(batch, Column):
        return int(batch.offsets[-1] - batch.offsets[0])
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in batch)


def _open(source: Source | Resolved, how: _How) -> Iterator[TextBatch]:
    found = resolve(source)
    if isinstance(found, Files):
        return ahead(_read_files(found.files, how))
    if isinstance(found, Texts):
        return _read_texts(found.texts)
    if is_arrow(found.data):
        columns = _read_arrow(found.data, how.column, "the Arrow data")
    else:
        columns = _read_columns(found.data, how.column)
    return (_repaired(column, how) for column in columns)


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


def _read_columns(columns: Iterable[Any], column: str) -> Iterator[Column]:
    """The columns of an iterable of Arrow data."""
    for index, data in enumerate(columns):
        if not is_arrow(data):
            raise CorpusError(
                f"item {index} of the source is {type(data).__name__}, not Arrow data"
            )
        yield from _read_arrow(data, column, f"item {index} of the source")


# ---------------------------------------------------------------------------- files


def _read_files(files: list[Input], how: _How) -> Iterator[TextBatch]:
    for file in files:
        try:
            how.position.enter(file.size)
            yield from _read_file(file, how)
        except arrow.failures() as error:
            raise CorpusError(_named(file, error)) from error
    arrow.release_memory()  # what comes next needs memory of its own


def _named(file: Input, error: Exception) -> str:
    """What is wrong with a file; the core names the file itself."""
    said = str(error)
    return said if said.startswith(file.name) else f"{file.name}: {said}"


def _read_file(file: Input, how: _How) -> Iterator[TextBatch]:
    if kind_of(file.path) != "parquet":
        return _read_by_core(file, how)
    return _read_parquet(Path(file.path), how) if file.cloud is None else _read_cloud(file, how)


def _read_cloud(file: Input, how: _How) -> Iterator[TextBatch]:
    most, replace = how.max_document_bytes, how.errors == "replace"
    for piece in documents.read(file, how.column, max_bytes=most, replace=replace):
        rows = documents.require(file, piece)
        yield _column(rows.texts, f"{file.name}, from row {rows.first} on")


def _read_by_core(file: Input, how: _How) -> Iterator[TextBatch]:
    """The documents of a text or jsonl file, plain or compressed, here or in a cloud."""
    name, source = file.path, None
    if file.cloud is not None:
        name, source = file.name, file.cloud.open_input_stream(file.path, compression=None)
    reader = _core.DocumentReader(
        [(name, kind_of(file.path), compression_of(file.path))], how.column, errors=how.errors,
        bounds=bounds.block_bounds(how.max_document_bytes, BATCH_BYTES),
        source=source, size=file.size,
    )  # fmt: skip
    for _, _, row, data, offsets, _ in reader:
        check_stopped()
        for _, total in reader.take_expanded():
            Expansion(name, file.size).reach(total)
        how.position.within(reader.packed / max(file.size, 1))
        yield Column(data, offsets, f"{name}, from row {row} on")


def _read_parquet(path: Path, how: _How) -> Iterator[TextBatch]:
    """Most files are read by the core, the others by Arrow."""
    most = bounds.most_page_bytes(how.max_document_bytes)
    try:
        found = _core.TextRows(path, how.column, batch_bytes=BATCH_BYTES, most_page_bytes=most)
    except OSError as error:
        if not arrow.is_installed():
            raise CorpusError(f"{error}; pip install 'bytepair[data]' reads more") from error
        return _read_parquet_by_arrow(path, how)
    return _read_rows(found, path, how)


def _read_rows(found: _core.TextRows, path: Path, how: _How) -> Iterator[TextBatch]:
    expansion, row = Expansion(str(path), path.stat().st_size), 0
    for data, offsets in found:
        expansion.add(len(data))
        batch = Column(data, offsets, f"{path}, from row {row} on")
        how.position.within((row + len(batch)) / max(len(found), 1))
        yield _checked(batch, path, row, how)
        row += len(batch)


def _read_parquet_by_arrow(path: Path, how: _How) -> Iterator[TextBatch]:
    from bytepair._internal.extras import pyarrow as pa

    compression = compression_of(path)
    packed, source = compression is not None, pa.OSFile(str(path))
    if packed:
        source = pa.CompressedInputStream(source, compression)
    name = None if packed else str(path)
    expansion = Expansion(str(path), path.stat().st_size)
    with open_parquet(source, expansion, packed=packed, path=name) as file:
        arrow.check_column(how.column, file.schema, str(path))
        most, row = bounds.most_page_bytes(how.max_document_bytes), 0
        for texts in file.batches(how.column, BATCH_BYTES, most):
            if isinstance(texts, Heavy):
                raise CorpusError(f"{path}, row {row}: {texts.reason}")
            how.position.within((row + len(texts)) / max(file.metadata.num_rows, 1))
            yield _checked(_column(texts, f"{path}, from row {row} on"), path, row, how)
            row += len(texts)


def _checked(documents: Column, path: Path, first: int, how: _How) -> TextBatch:
    """Documents of a file, of which none is too long, repaired if that is asked for."""
    import numpy as np

    sizes = np.diff(documents.offsets)
    for row in np.flatnonzero(sizes > how.max_document_bytes).tolist():
        reason = bounds.too_long(how.max_document_bytes, int(sizes[row]))
        raise CorpusError(f"{path}, row {first + row}: {reason}")
    return _repaired(documents, how)


# ---------------------------------------------------------------------------- Arrow


def _read_arrow(source: Any, column: str, name: str) -> Iterator[Column]:
    from bytepair._internal.extras import pyarrow as pa

    if isinstance(source, pa.Array):
        yield _column(source, name)
    elif isinstance(source, pa.ChunkedArray):
        for chunk in source.chunks:
            yield _column(chunk, name)
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
            yield _column(batch.slice(start, BATCH_ROWS).column(column), name)


def _imported(source: Any) -> Any:
    """An array, or a record batch as a table, out of an object with the Arrow interface."""
    from bytepair._internal.extras import pyarrow as pa

    imported = pa.array(source)
    if pa.types.is_struct(imported.type):
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(imported)])
    return imported


def _column(array: pa.Array, place: str) -> Column:
    """The buffers of a string array; a null is an empty document."""
    try:
        texts = arrow.plain(array)
    except TypeError as error:
        raise CorpusError(f"{place}: {error}") from None
    texts = texts.fill_null("") if texts.null_count else texts
    return Column(arrow.data(texts), arrow.offsets(texts), place)


# ---------------------------------------------------------------------------- limits


def _limited(
    stream: Iterator[TextBatch], limits: Limits, position: Position
) -> Iterator[TextBatch]:
    """Cut documents and stop, by characters."""
    total = 0
    for batch in stream:
        texts = batch if isinstance(batch, list) else strings(batch)
        texts = texts if limits.doc_cap is None else [text[: limits.doc_cap] for text in texts]
        for index, text in enumerate(texts):
            total += len(text)
            if limits.max_chars is not None and total > limits.max_chars:
                yield texts[: index + 1]
                return
        if limits.max_chars is not None:
            position.limit(total / limits.max_chars)
        yield texts


def strings(column: Column, errors: Errors = "strict") -> list[str]:
    """The documents of a column as Python strings.

    Raises:
        CorpusError: if a document is not UTF-8 and `errors` is `"strict"`.

    Example:
        >>> import pyarrow as pa
        >>> from bytepair.corpus.read import read_batches, strings
        >>> [strings(column) for column in read_batches(pa.array(["one", "two"]))]
        [['one', 'two']]
    """
    data, ends = column.data.tobytes(), column.offsets.tolist()
    texts = []
    for index, (start, end) in enumerate(itertools.pairwise(ends)):
        try:
            texts.append(data[start:end].decode(errors=errors))
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{column.place}: document {index} is not UTF-8 at its byte {error.start}"
            ) from None
    return texts


def _repaired(column: Column, how: _How) -> TextBatch:
    """The column with U+FFFD in the place of bytes that are not UTF-8, if that is asked for."""
    if how.errors == "strict":
        return column
    starts = column.offsets[:-1][column.offsets[:-1] < len(column.data)]
    within = (column.data[starts] & 0xC0) == 0x80
    with contextlib.suppress(UnicodeDecodeError):
        column.data[column.offsets[0] : column.offsets[-1]].tobytes().decode()
        if not within.any():
            return column
    return strings(column, "replace")
