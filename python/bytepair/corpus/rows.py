"""Reads the rows of a source, such as conversations, with their places: lists, files, tables.

In a table, all rows have the same fields, and so do all structs: a field that a row lacks is null.
Such nulls are removed, so that a row is the same whatever it was read from.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.corpus import read as corpus_read
from bytepair.corpus.arrow import is_arrow, open_ipc
from bytepair.corpus.column import Column, strings
from bytepair.corpus.files import Input, compression_of, files_matching, kind_of
from bytepair.corpus.source import Reading
from bytepair.errors import BytepairWarning, ConversationError, CorpusError, warn
from bytepair.files.safe import read_json

#: Conversations; an Arrow table or column, a data frame, a data set of Hugging Face; or files: a
#: path, a folder (also of `datasets.save_to_disk`), a glob or a URL. They are parquet, Arrow IPC,
#: jsonl, or a list in `.json` (the last two optionally compressed as `.gz` or `.zst`).
ConversationSource: TypeAlias = Iterable[Any] | str | os.PathLike[str] | Any

#: A row and its place in the source, for messages. What cannot be read is an error in its place.
PlacedRow: TypeAlias = "tuple[str, Any | ConversationError]"

#: The fields whose value may be any JSON.
_FREE: Final = ("arguments", "tools", "parameters")

#: The number of values that a table may have although they take no bytes, such as nulls.
_FREE_VALUES: Final = 1 << 20

#: The number of rows of a table that are converted at once.
_BATCH_ROWS: Final = 1024


def read_rows(source: ConversationSource, ignore: Collection[str] = ()) -> Iterator[PlacedRow]:
    """The rows of a source, in order; those of lists and tables are counted from 0.

    Columns of tables that are to be ignored are not read.
    """
    paths = isinstance(source, list | tuple) and bool(source) and isinstance(source[0], os.PathLike)
    if paths or isinstance(source, str | os.PathLike):
        files = files_matching(source).files
        return itertools.chain.from_iterable(_read_file(file, ignore) for file in files)
    rows: Iterable[Any] = source
    if (tables := _tables(source)) is not None:
        rows = _read_tables(tables, "the table", ignore)
    elif isinstance(source, Mapping):
        raise ConversationError("this is one conversation", hint="pass a list of conversations")
    elif not isinstance(source, Iterable):
        raise ConversationError(
            f"a {type(source).__name__} has no conversations",
            hint="pass a list of them, files or a table",
        )
    return ((f"conversation {number}", row) for number, row in enumerate(rows))


def sequence(source: Any, ignore: Collection[str]) -> Sequence[Any]:
    """The rows of a source by their number: a sequence as it is, and any other in memory."""
    is_sequence = hasattr(source, "__len__") and hasattr(source, "__getitem__")
    if not is_sequence or isinstance(source, str | Mapping) or _tables(source) is not None:
        return [_valid(*placed) for placed in read_rows(source, ignore)]
    given: Sequence[Any] = source
    return given


def _valid(place: str, row: Any) -> Any:
    if isinstance(row, ConversationError):
        raise row.at(place)
    return row


def _tables(source: Any) -> Iterable[Any] | None:
    """The tables of Arrow data, a data frame or a data set of Hugging Face; else None."""
    if hasattr(source, "with_format") and hasattr(source, "column_names"):
        batches: Iterable[Any] = source.with_format("arrow").iter(batch_size=_BATCH_ROWS)
        return batches
    # The batches of a reader are validated one by one; a table of them would be read before.
    tables = source if hasattr(source, "read_next_batch") else [source]
    return tables if is_arrow(source) else None


def _read_file(file: Input, ignore: Collection[str]) -> Iterator[PlacedRow]:
    kind = kind_of(file.path)
    if kind == "jsonl":
        return _read_lines(file)
    if kind == "json":
        try:
            rows = iter(corpus_read.read_list(file))
        except CorpusError as error:
            raise ConversationError(error.message, hint=error.hint) from None
    elif kind in ("parquet", "arrow") and compression_of(file.path) is None:
        tables = _parquet(file, ignore) if kind == "parquet" else _arrow_batches(file)
        rows = _read_tables(tables, file.name, ignore, file.size)
    else:
        raise ConversationError(f"{file.name} is not a .jsonl, .json, .parquet or .arrow file")
    return ((f"{file.name}, row {number}", row) for number, row in enumerate(rows, 1))


def _read_lines(file: Input) -> Iterator[PlacedRow]:
    for column in corpus_read.read(file, Reading(), kind="lines"):
        assert isinstance(column, Column)  # with errors="strict" there are no skips
        for number, line in enumerate(strings(column), column.first + 1):
            if line.strip():
                try:
                    row = read_json(line)
                except ValueError as error:
                    row = ConversationError(str(error))
                yield f"{file.name}, line {number}", row


def _parquet(file: Input, ignore: Collection[str]) -> Iterator[Any]:
    """The table of a parquet file, without the columns that are not read."""
    from bytepair._internal.extras import pyarrow_parquet as pq

    with file.system.open_input_file(file.path) as source:
        # Arrow believes a footer, and may end the process.
        size, values = _core.parquet_size(file.name, source, file.size)
        if size > file.size:
            raise ConversationError("its row groups have more bytes than the file")
        _check_values(values, size)
        table = pq.ParquetFile(source)
        yield table.read([name for name in table.schema_arrow.names if name not in ignore])


def _arrow_batches(file: Input) -> Iterator[Any]:
    yield from open_ipc(file.path if file.cloud is None else file.cloud.open_input_file(file.path))


def _read_tables(
    tables: Iterable[Any], place: str, ignore: Collection[str], file_size: int | None = None
) -> Iterator[Any]:
    noted: list[str] = []
    values = size = 0
    with _as_own_errors(place):
        for table in tables:
            rows = _rows_of(table, ignore)
            chunks = getattr(rows, "chunks", [rows])
            values += sum(map(_size, chunks))
            size += rows.nbytes  # which counts bytes that columns share for each of them
            _check_values(values, size if file_size is None else file_size)
            for chunk in chunks:
                for start in range(0, len(chunk), _BATCH_ROWS):
                    for row in chunk.slice(start, _BATCH_ROWS).to_pylist():
                        yield _without_nulls(row, noted)


@contextmanager
def _as_own_errors(place: str) -> Iterator[None]:
    """Give errors the place, also those of Arrow and Python, such as of a date in year 10,000."""
    from bytepair._internal.extras import pyarrow as pa

    try:
        yield
    except ConversationError as error:
        raise error.at(place) from None
    except (pa.ArrowException, ValueError, KeyError, TypeError, ArithmeticError, OSError) as error:
        raise ConversationError(f"{place} is not valid: {error}") from error


def _rows_of(source: Any, ignore: Collection[str]) -> Any:
    from bytepair._internal.extras import pyarrow as pa

    if not hasattr(source, "validate"):
        source = pa.array(source) if hasattr(source, "__arrow_c_array__") else pa.table(source)
    source.validate(full=True)  # first, since Arrow trusts the offsets in a file
    if isinstance(source, pa.RecordBatch | pa.Table):
        names = [name for name in source.schema.names if name not in ignore]
        source = source.select(names).to_struct_array()
    return source


def _check_values(values: int, size: int) -> None:
    if values > 8 * size + _FREE_VALUES:
        raise ConversationError(f"it states {values:,} values, and has {size:,} bytes")


def _size(array: Any) -> int:
    """How many values an array has, all inside of it counted; no type may repeat values."""
    from bytepair._internal.extras import pyarrow as pa

    array = getattr(array, "storage", array)  # of a type that extends another
    kind, types, inner = array.type, pa.types, []
    if types.is_struct(kind):
        inner = [array.field(n).slice(array.offset, len(array)) for n in range(kind.num_fields)]
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        first, end = (array.offsets[at].as_py() for at in (0, len(array)))
        inner = [array.values.slice(first, end - first)]
    elif types.is_fixed_size_list(kind):
        inner = [array.flatten()]
    elif types.is_run_end_encoded(kind) or types.is_dictionary(kind) or types.is_nested(kind):
        hint = "convert it to lists, structs and strings"
        raise ConversationError(f"a column has values of the type {kind}", hint=hint)
    return len(array) + sum(map(_size, inner))


def _without_nulls(value: Any, noted: list[str], free: bool = False) -> Any:
    """A value of a table without the nulls of its structs; a map becomes a mapping.

    In a value of free form (`free`), a null may be meant: that it is left out is a warning, unless
    `noted` has one already.
    """
    if isinstance(value, dict):
        if {*map(type, value.values())} == {str}:
            return value
        if free and not noted and None in value.values():
            name = next(name for name, one in value.items() if one is None)
            text = (
                f"{name!r} is null in the arguments of a tool call or in a tool of a table, which "
                "has nulls for all that other rows have; nulls are left out there"
            )
            warn(BytepairWarning(text, hint="store arguments and tools as JSON strings"))
            noted.append(text)
        return {
            name: _without_nulls(one, noted, free or name in _FREE)
            for name, one in value.items()
            if one is not None
        }
    if not isinstance(value, list) or not value or isinstance(value[0], str | int | float):
        return value
    if isinstance(value[0], tuple):  # so Arrow gives the pairs of a map, whose nulls are values
        return {name: _without_nulls(one, noted, free) for name, one in value}
    return [_without_nulls(one, noted, free) for one in value]
