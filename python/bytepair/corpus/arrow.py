"""Converts between Arrow string columns and the bytes and offsets that the Rust core accepts.

All functions that take columns use this module, so all accept the same types: strings, large
strings, string views, and null columns. A dictionary, which all parts of a column may share, is
refused: to check and convert it for each part takes the square of a file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, Final

from bytepair.corpus.column import Column, no_column, strings
from bytepair.errors import ArgumentError, CorpusError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

#: The number of rows that are converted at once of views, in which a few bytes may stand for a long
#: text.
_BATCH_ROWS: Final = 1024
#: The bytes before the stream of batches in an Arrow file.
_MAGIC_BYTES: Final = 8
#: The number of rows of a column without a value, which take no bytes.
_MOST_NULLS: Final = 1 << 24


def import_data(source: Any) -> pa.Array | pa.ChunkedArray | pa.RecordBatchReader:
    """Import an object with the Arrow interface; a table is a reader of its batches."""
    from bytepair._internal.extras import pyarrow as pa

    if isinstance(source, pa.Array | pa.ChunkedArray | pa.RecordBatchReader):
        return source
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):  # the interface would read it before it is validated
        return source.to_reader()
    if hasattr(source, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(source)
        except pa.ArrowInvalid:  # a stream of arrays
            return pa.chunked_array(source)
    array = pa.array(source)
    if pa.types.is_struct(array.type):
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(array)]).to_reader()
    return array


def import_column(source: Any) -> pa.Array | pa.ChunkedArray:
    """Import an array or chunked array from an object with the Arrow interface."""
    from bytepair._internal.extras import pyarrow as pa

    if not is_arrow(source):
        kind = type(source).__name__
        raise ArgumentError(
            f"a {kind} is not Arrow data", hint="pass a list of str to encode_batch_to_numpy"
        )
    data = import_data(source)
    if isinstance(data, pa.Array | pa.ChunkedArray):
        check_nulls(data, "the column")
        return data
    # DuckDB has no type for columns: the column of a relation is a relation of one column.
    if type(source).__name__ != "DuckDBPyRelation" or len(data.schema) != 1:
        raise ArgumentError("expected a column, not a table", hint="pass for example table['text']")
    return data.read_all().column(0)


def is_arrow(source: object) -> bool:
    """Whether an object has the Arrow interface."""
    return any(hasattr(source, f"__arrow_c_{kind}__") for kind in ("array", "stream"))


def texts(source: Any) -> Iterable[str]:
    """The texts of a column, as strings. The core calls this for batches of texts.

    Without pyarrow, a column that can be iterated is returned as it is.
    """
    if hasattr(source, "__iter__") and find_spec("pyarrow") is None:
        return source  # type: ignore[no-any-return]
    array = import_column(source)
    chunks = list(plain([array] if hasattr(array, "buffers") else array.chunks))
    if any(chunk.null_count for chunk in chunks):
        row = array.is_null().index(True).as_py()
        raise ArgumentError(
            f"text {row} of the column is null; fill nulls with empty texts, drop them, or call "
            "encode_arrow, which keeps them"
        )
    try:
        return [text for chunk in chunks for text in chunk.to_pylist()]
    except UnicodeDecodeError:  # the slower way names the text
        return [text for part in columns(chunks, "the column") for text in strings(part)]


def plain(chunks: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Convert the chunks of a column to strings or large strings; nulls are kept.

    Whether the texts are UTF-8 is not checked.
    """
    for chunk in chunks:
        _validate(chunk)
        yield _strings(chunk)


def _strings(array: pa.Array) -> pa.Array:
    from bytepair._internal.extras import pyarrow as pa

    types, kind = pa.types, array.type
    if types.is_string(kind) or types.is_large_string(kind):
        return array
    return array.cast(pa.large_string())


def _validate(array: pa.Array) -> None:
    """Check the offsets of a column of text, which Arrow trusts: a mapped file may be damaged."""
    from bytepair._internal.extras import pyarrow as pa

    check_text(array.type)
    binary = array.view(str(array.type).replace("string", "binary"))
    try:
        if pa.types.is_string_view(array.type):  # casting reads those of nulls too
            binary.validate()
            buffers = [None, *binary.buffers()[1:]]
            binary = pa.Array.from_buffers(binary.type, len(array), buffers, offset=array.offset)
        binary.validate(full=True)
    except pa.ArrowException as error:
        raise ArgumentError(f"the column is damaged: {error}") from None


def check_text(kind: pa.DataType) -> None:
    """Check that a type of Arrow is one of text."""
    from bytepair._internal.extras import pyarrow as pa

    types = pa.types
    texts = (types.is_null, types.is_string, types.is_large_string, types.is_string_view)
    if not any(is_text(kind) for is_text in texts):
        hint = "if these are conversations, use bytepair render or render_batch"
        hint = hint if types.is_nested(kind) else ""
        hint = 'convert it with column.cast("string")' if types.is_dictionary(kind) else hint
        raise ArgumentError(f"the column has type {kind}, not text", hint=hint)


def offsets(texts: pa.Array) -> NDArray[Any]:
    """The offsets of the strings of a plain column in its bytes: all starts, and the last end."""
    import numpy as np

    from bytepair._internal.extras import pyarrow as pa

    if not len(texts):
        return np.zeros(1, np.int32)
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    end = texts.offset + len(texts) + 1  # the size of a damaged buffer may be no multiple
    return np.frombuffer(texts.buffers()[1], width, end)[texts.offset :]


def data(texts: pa.Array) -> NDArray[np.uint8]:
    """The bytes of a plain column, to which its offsets refer."""
    import numpy as np

    buffer = texts.buffers()[2] if len(texts) else None
    return np.frombuffer(b"" if buffer is None else buffer, np.uint8)


def check_column(column: str, schema: pa.Schema, place: str) -> None:
    """Raise a `CorpusError` if a table has no such column, or the column is not text."""
    if column not in schema.names:
        raise no_column(place, column, schema.names)
    if schema.names.count(column) > 1:
        raise CorpusError(f"{place} has several columns {column!r}")
    try:
        check_text(schema.field(column).type)
    except ArgumentError as error:
        text = f"{place}, column {column!r}: {error.message}"
        raise CorpusError(text, hint=error.hint) from None


def check_nulls(array: pa.Array | pa.ChunkedArray, place: str, before: int = 0) -> None:
    """Raise a `CorpusError` if a column states very many rows, of which none takes any bytes.

    So many rows of it were read before.
    """
    from bytepair._internal.extras import pyarrow as pa

    if pa.types.is_null(array.type) and before + len(array) > _MOST_NULLS:
        raise CorpusError(f"{place} states more than {_MOST_NULLS:,} rows, all without a value")


def open_ipc(source: Any) -> pa.RecordBatchReader:
    """Open an Arrow file, which has an index, or a stream, which has none; by path, or opened."""
    from bytepair._internal.extras import pyarrow as pa

    source = pa.memory_map(source) if isinstance(source, str) else source
    try:
        count = pa.ipc.open_file(source).num_record_batches
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)
    source.seek(_MAGIC_BYTES)
    stream = pa.ipc.open_stream(source)

    def batches() -> Iterator[pa.RecordBatch]:
        found = 0
        for batch in stream:
            found += 1
            yield batch
        if found != count:  # an index may list a batch many times
            raise pa.ArrowInvalid(f"it has {found} batches, and an index of {count}")

    return pa.RecordBatchReader.from_batches(stream.schema, batches())


def write_parquet(source: Any, field: str, name: str, into: IO[bytes]) -> None:
    """Copy a column of an Arrow file or stream to parquet, with a row group for each batch.

    As in other parquet files, a binary column is one of text.
    """
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_parquet as pq

    text_of = {pa.binary(): pa.string(), pa.large_binary(): pa.large_string()}
    schema = pa.schema([(field, pa.large_string())])
    try:
        reader = open_ipc(source)
        fields = [one.with_type(text_of.get(one.type, one.type)) for one in reader.schema]
        check_column(field, pa.schema(fields), name)
        with pq.ParquetWriter(into, schema, use_dictionary=False, compression="none") as writer:
            stored = reader.schema.field(field).type
            kind = text_of.get(stored, stored)
            arrays = (batch.column(field) for batch in reader)
            if kind != stored:
                arrays = (array.view(kind) for array in arrays)
            rows = None if kind in text_of.values() else _BATCH_ROWS
            for part in columns(arrays, name, rows):
                writer.write_batch(record_batch(part, field))
    except (pa.ArrowException, UnicodeDecodeError, MemoryError) as error:
        raise CorpusError(f"{name} is not valid Arrow: {error}") from error


def failures() -> tuple[type[Exception], ...]:
    """The exceptions that reading a file may raise, including Arrow's if it is imported."""
    if sys.modules.get("pyarrow"):
        return (CorpusError, OSError, sys.modules["pyarrow"].ArrowException)
    return (CorpusError, OSError)


def columns(arrays: Iterable[pa.Array], name: str, rows: int | None = None) -> Iterator[Column]:
    """The buffers of string arrays, of so many rows at a time; a null is an empty document."""
    count = 0
    for array in arrays:
        check_nulls(array, name, count)
        count += len(array)
        try:
            _validate(array)
        except ArgumentError as error:
            raise CorpusError(f"{name}: {error.message}", hint=error.hint) from None
        for start in range(0, len(array), rows or len(array) or 1):
            texts = _strings(array.slice(start, rows))
            texts = texts.fill_null("") if texts.null_count else texts
            yield Column(data(texts), offsets(texts), name)


def record_batch(texts: Column, name: str) -> pa.RecordBatch:
    """Convert documents to a record batch with one column of large strings."""
    import numpy as np

    from bytepair._internal.extras import pyarrow as pa

    starts = np.ascontiguousarray(texts.offsets, np.int64)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(texts.data)]
    array = pa.Array.from_buffers(pa.large_string(), len(texts), buffers)
    return pa.RecordBatch.from_arrays([array], [name])
