"""A parquet file in, the texts of a column out: page by page, in bounded memory.

pyarrow unpacks a page as a whole, at up to three times its size, and a page is as large as its
largest text. So the headers of the pages of a large row group are read first. A page that is too
large is declared one of another kind, which every reader passes over, and comes out as `Heavy`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BLOCK_BYTES: Final = 1 << 20

# Kinds of pages; all others are data.
_INDEX: Final = 1
_DICTIONARY: Final = 2


@dataclass(frozen=True)
class Heavy:
    """Rows of a page that is too large.

    Attributes:
        rows: how many.
        reason: what is wrong.
    """

    rows: int
    reason: str


@dataclass(frozen=True)
class Page:
    """What the header of a page says.

    Attributes:
        place: where in the file the header begins.
        kind: what it holds.
        size: bytes when unpacked.
        rows: how many rows a data page has.
    """

    place: int
    kind: int
    size: int
    rows: int


@contextmanager
def open_parquet(source: pa.NativeFile, *, packed: bool) -> Iterator[File]:
    """Open a parquet file so that a page of it is in memory at a time.

    Args:
        source: the file, which is closed at the end; a stream if it is packed.
        packed: whether the file as a whole was compressed; it is unpacked on disk then.
    """
    import pyarrow as pa

    with ExitStack() as opened:
        opened.enter_context(source)
        if packed:
            from shutil import copyfileobj
            from tempfile import TemporaryFile

            unpacked = opened.enter_context(TemporaryFile())
            copyfileobj(source, unpacked, BLOCK_BYTES)
            source = pa.PythonFile(unpacked, "r")
        yield File(source)


class File:
    """An open parquet file.

    Attributes:
        metadata: what pyarrow says of it.
        names: the names of its columns.
    """

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._table = _opened(source)
        self.metadata = self._table.metadata
        self.names: list[str] = self._table.schema_arrow.names

    def batches(self, column: str, rows: int, units: list[int] | None = None) -> Iterator[pa.Array]:
        """The values of a column, so many rows at a time, of some row groups or all."""
        return _batches(self._table, column, rows, units)

    def group(
        self, unit: int, column: str, rows: int, page_bytes: int
    ) -> Iterator[pa.Array | Heavy]:
        """The values of a column of a row group, without the pages that are larger than allowed."""
        heavy = list(self._heavy(unit, column, page_bytes))
        if not heavy:
            yield from self.batches(column, rows, [unit])
        elif any(page.kind == _DICTIONARY for _, page in heavy):
            yield Heavy(self.metadata.row_group(unit).num_rows, _reason(heavy, page_bytes))
        else:
            # The kind is the first field of a header: its tag, then the kind times two.
            altered = _Altered(self._source, {page.place + 1: 2 * _INDEX for _, page in heavy})
            others = _batches(_opened(altered), column, rows, [unit])
            yield from _filled(others, heavy, _reason(heavy, page_bytes))

    def _heavy(self, unit: int, column: str, page_bytes: int) -> Iterator[tuple[int, Page]]:
        """The pages that are too large, each with its first row in the group."""
        for chunk in chunks(self.metadata.row_group(unit), column):
            row = 0
            if chunk.total_uncompressed_size <= page_bytes:
                continue
            for page in _pages(self._source, chunk):
                if page.size > page_bytes:
                    yield row, page
                row += page.rows


def _reason(heavy: list[tuple[int, Page]], page_bytes: int) -> str:
    size = max(page.size for _, page in heavy)
    return f"the page has {size:,} bytes, more than the {page_bytes:,} that are unpacked at once"


def _opened(source: Any) -> pq.ParquetFile:
    """With a reader's own threads, or no buffer of fixed size, a row group would be in memory."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(source, pre_buffer=False, buffer_size=BLOCK_BYTES)


def _batches(
    table: pq.ParquetFile, column: str, rows: int, units: list[int] | None
) -> Iterator[pa.Array]:
    found = table.iter_batches(rows, row_groups=units, columns=[column], use_threads=False)
    return (batch.column(0) for batch in found)


def _filled(
    batches: Iterator[pa.Array], heavy: list[tuple[int, Page]], reason: str
) -> Iterator[pa.Array | Heavy]:
    """Batches that lack the rows of some pages, divided there, with what they lack."""
    row, left = 0, list(heavy)
    for batch in batches:
        while left and left[0][0] <= row + len(batch):
            first, page = left.pop(0)
            before = batch[: first - row]
            if len(before):
                yield before
            yield Heavy(page.rows, reason)
            batch, row = batch[len(before) :], first + page.rows
        if len(batch):
            yield batch
        row += len(batch)
    yield from (Heavy(page.rows, reason) for _, page in left)


def chunks(group: Any, column: str) -> list[Any]:
    """What the metadata of a row group says of a column: one chunk, if it is no nested one."""
    all_chunks = (group.column(index) for index in range(group.num_columns))
    return [chunk for chunk in all_chunks if chunk.path_in_schema == column]


class _Altered(io.RawIOBase):
    """A file in which some bytes are others."""

    def __init__(self, source: pa.NativeFile, others: dict[int, int]) -> None:
        self._source, self._others, self._at = source, others, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size()}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._source.read_at(len(buffer), self._at)
        buffer[: len(data)] = data
        for place, byte in self._others.items():
            if 0 <= place - self._at < len(data):
                buffer[place - self._at] = byte
        self._at += len(data)
        return len(data)


# ---------------------------------------------------------------------------- headers of pages


def _pages(source: pa.NativeFile, chunk: Any) -> Iterator[Page]:
    """The pages of a chunk of a column, as far as their headers can be read."""
    place = chunk.dictionary_page_offset or chunk.data_page_offset
    end = place + chunk.total_compressed_size
    while place < end:
        fields, length = _header(source, place)
        packed = fields.get(3, -1)
        if packed < 0:
            return  # pyarrow will say what is wrong
        inner = fields.get(5) or fields.get(8) or {}
        yield Page(place, fields.get(1, -1), fields.get(2, 0), inner.get(1, 0))
        place += length + packed


def _header(source: pa.NativeFile, place: int) -> tuple[dict[int, Any], int]:
    """The numbers and structs of a header by their fields, and its length; none if damaged."""
    for size in (1 << 8, 1 << 16):  # statistics may make it long
        try:
            return _struct(source.read_at(size, place), 0)
        except (IndexError, ValueError, RecursionError):
            continue
    return {}, 0


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """A struct of Thrift's compact protocol: fields until a zero byte."""
    found: dict[int, Any] = {}
    field = 0
    while tag := data[at]:
        at += 1
        if tag >> 4:
            field += tag >> 4
        else:
            field, at = _number(data, at)
        found[field], at = _value(data, at, tag & 15)
    return found, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    """A value of a field, as far as headers of pages have such: no lists, sets and maps."""
    match kind:
        case 1 | 2:  # true and false stand in the tag
            return kind == 1, at
        case 3:
            return data[at], at + 1
        case 4 | 5 | 6:
            return _number(data, at)
        case 8:
            length, at = _varint(data, at)
            return None, at + length
        case 12:
            return _struct(data, at)
    raise ValueError(f"there is no kind {kind} in the header of a page")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A signed number, of which the sign is the lowest bit."""
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
