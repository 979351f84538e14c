"""A parquet file in, the texts of a column out: batch by batch, in bounded memory.

pyarrow unpacks a page as a whole, at up to three times its size, and a page is as large as its
largest text. So the headers of the pages are read first, where a row group could make too large a
batch: they say how many rows may be read at once, and which pages are too large to be read at all.
Such a page comes out as `Heavy`, and nothing of it is read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from bytepair import _core
from bytepair.corpus import arrow
from bytepair.corpus.bounds import Expansion, blocks, page_too_large
from bytepair.corpus.pages import (
    DICTIONARY,
    MOST_ROWS,
    ByteSource,
    Chunk,
    Page,
    nothing,
    pages_of,
    rows_at_once,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BLOCK_BYTES: Final = 1 << 20
#: A batch has at most so many bytes, or one row; and the pages in which it begins and ends.
MOST_BYTES: Final = 1 << 26
#: Batches are much smaller than usual if they have less than this part of the rows.
_MUCH_SMALLER: Final = 8
#: No row group has more batches.
_MOST_PARTS: Final = 1 << 20
#: Of a chunk with these encodings alone, no batch has more bytes than the chunk.
_UNREPEATED: Final = frozenset({"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"})


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
class Group:
    """What the footer of a file says of a row group.

    Attributes:
        rows: how many it has.
        chunks: the column that is read: one, if it is no nested one.
    """

    rows: int
    chunks: list[Chunk]


@dataclass(frozen=True)
class Footer:
    """What the footer of a file says of a column.

    Attributes:
        groups: of each row group.
        is_read: whether the core reads the texts.
    """

    groups: list[Group]
    is_read: bool


@dataclass(frozen=True)
class RowBatch:
    """Rows that are read together.

    Attributes:
        group: their row group.
        before: how many rows of the file stand before that.
        first: the first of them, as a row of the file.
        rows: how many they are.
        size: of their texts in bytes, about.
    """

    group: int
    before: int
    first: int
    rows: int
    size: int


class LocalFile(io.FileIO):
    """A file of this machine, to read from places in it without Arrow."""

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """So many bytes from a place on, or all that are left."""
        self.seek(offset)
        return self.read(nbytes)


@contextmanager
def open_parquet(
    source: pa.NativeFile, expansion: Expansion, *, packed: bool = False, path: str | None = None
) -> Iterator[File]:
    """Open a parquet file so that a page of it is in memory at a time.

    Args:
        source: the file, which is closed at the end; a stream if it is packed.
        expansion: is told how much comes out of it.
        packed: whether the file as a whole was compressed; it is unpacked on disk then.
        path: where it lies, if on this machine and as it is.
    """
    from bytepair._internal.extras import pyarrow as pa

    with ExitStack() as opened:
        opened.enter_context(source)
        if packed:
            from tempfile import TemporaryFile

            unpacked = opened.enter_context(TemporaryFile())
            for block in blocks(source, BLOCK_BYTES, expansion):
                unpacked.write(block)
            source = pa.PythonFile(unpacked, "r")
        yield File(source, expansion, path)


def footer_of(path: str, column: str) -> Footer | None:
    """What the footer of a local file says; None if it is damaged or has no such column."""
    found = _core.parquet_footer(path, column)
    if found is None:
        return None
    groups = [Group(facts[0], [Chunk(*facts[1:])]) for facts in found[0]]
    return Footer(groups, is_read=found[1])


def rows_of(path: str, column: str) -> int:
    """How many rows a local file has; 0 if its footer is damaged or has no such column."""
    footer = footer_of(path, column)
    return 0 if footer is None else sum(group.rows for group in footer.groups)


class File:
    """An open parquet file.

    Attributes:
        metadata: what pyarrow says of it. Where the footer is damaged, to ask it for a column may
            end the process; so `row_group` asks the core, where it can.
        schema: that of Arrow.
    """

    def __init__(
        self, source: pa.NativeFile, expansion: Expansion, path: str | None = None
    ) -> None:
        from bytepair._internal.extras import pyarrow as pa

        self._source, self._expansion, self._path = source, expansion, path
        self._footers: dict[str, Footer | None] = {}
        try:
            self._table = _opened(source)
            self.metadata = self._table.metadata
            self.schema: pa.Schema = self._table.schema_arrow
        except UnicodeDecodeError as error:
            raise pa.ArrowInvalid(f"a name in its footer is not UTF-8: {error}") from None

    def batches(self, column: str, batch_bytes: int, page_bytes: int) -> Iterator[pa.Array | Heavy]:
        """The texts of all row groups, as `group` gives them."""
        for unit in range(self.metadata.num_row_groups):
            yield from self.group(unit, column, batch_bytes, page_bytes)

    def group(
        self, unit: int, column: str, batch_bytes: int, page_bytes: int
    ) -> Iterator[pa.Array | Heavy]:
        """The texts of a row group, in batches.

        Args:
            unit: the number of the row group.
            column: the name of the column.
            batch_bytes: how large a batch should be, about.
            page_bytes: a page that is larger when unpacked is `Heavy`.
        """
        from bytepair._internal.extras import pyarrow as pa

        asked = self.row_group(unit, column)
        rows, _, pages = _rows_at_once(self._source, asked, batch_bytes, page_bytes)
        heavy = [page for page in pages if page.size > page_bytes]
        reason = page_too_large(max([page.size for page in heavy], default=0), page_bytes)
        if any(page.kind == DICTIONARY for page in heavy):
            yield Heavy(asked.rows, reason)
            return
        table = _opened(_Without(self._source, heavy)) if heavy else self._table
        found = table.iter_batches(rows, row_groups=[unit], columns=[column], use_threads=False)
        texts = (arrow.plain(batch.column(0)) for batch in found)
        left = asked.rows
        for batch in _filled(texts, heavy, reason):
            if isinstance(batch, Heavy):
                left -= batch.rows
            else:
                left -= len(batch)
                self._expansion.add(batch.nbytes)
            yield batch
        if left > 0:
            raise pa.ArrowInvalid(f"row group {unit} lacks {left:,} of its {asked.rows:,} rows")

    def row_group(self, unit: int, column: str) -> Group:
        """What the footer says of a row group and a column."""
        from bytepair._internal.extras import pyarrow as pa

        if self._path is not None:
            if column not in self._footers:
                self._footers[column] = footer_of(self._path, column)
            footer = self._footers[column]
            if footer is None:
                raise pa.ArrowInvalid("its footer is damaged")
            return footer.groups[unit]
        group, schema = self.metadata.row_group(unit), self._table.schema
        places = [index for index in range(len(schema)) if schema.column(index).path == column]
        return Group(group.num_rows, [group.column(index) for index in places])


def parts(
    source: ByteSource, groups: list[Group], batch_bytes: int, page_bytes: int
) -> list[RowBatch] | None:
    """Where the batches are that `File.group` makes of each row group.

    Args:
        source: the file.
        groups: what its footer says of the row groups.
        batch_bytes: as there.
        page_bytes: as there.

    Returns:
        None if a page is larger than a batch, and so would be unpacked again and again by who reads
        batches each by itself; if the texts are so different that batches are much smaller than
        they should be; or if the footer speaks of more rows than can be.
    """
    found: list[RowBatch] = []
    before = 0
    for unit, group in enumerate(groups):
        rows, usual, _ = _rows_at_once(source, group, batch_bytes, page_bytes)
        size = sum(chunk.total_uncompressed_size for chunk in group.chunks)
        if rows * _MUCH_SMALLER < min(usual, group.rows):
            return None
        pages = (page for chunk in group.chunks for page in pages_of(source, chunk))
        if rows < group.rows and any(page.size > batch_bytes for page in pages):
            return None
        if group.rows > rows * _MOST_PARTS:
            return None
        for row in range(0, group.rows, rows):
            count = min(rows, group.rows - row)
            found.append(RowBatch(unit, before, before + row, count, size * count // group.rows))
        before += group.rows
    return found


def _rows_at_once(
    source: ByteSource, group: Group, batch_bytes: int, page_bytes: int
) -> tuple[int, int, list[Page]]:
    """How many rows a batch may have; how many, if all were alike; and the pages, if read."""
    rows = usual = MOST_ROWS
    pages: list[Page] = []
    for chunk in group.chunks:
        pages = _pages(source, chunk, min(MOST_BYTES, page_bytes))
        average = batch_bytes * group.rows // max(chunk.total_uncompressed_size, 1)
        usual = max(min(average, MOST_ROWS), 1)
        rows = max(min(average, rows_at_once(pages, batch_bytes, MOST_BYTES)), 1)
    return rows, usual, pages


def _pages(source: ByteSource, chunk: Chunk, most: int) -> list[Page]:
    """The pages of a chunk; none if no batch of it can have more bytes than so many."""
    small = chunk.total_uncompressed_size <= most
    if small and _UNREPEATED.issuperset(chunk.encodings):
        return []
    pages = pages_of(source, chunk)
    first = list(islice(pages, 1))
    if small and any(p.kind == DICTIONARY and p.rows >= chunk.num_values for p in first):
        return []  # no text occurs twice
    return [*first, *pages]


def _opened(source: Any) -> pq.ParquetFile:
    """With a reader's own threads, or no buffer of fixed size, a row group would be in memory."""
    from bytepair._internal.extras import pyarrow_parquet as pq

    return pq.ParquetFile(source, pre_buffer=False, buffer_size=BLOCK_BYTES)


def _filled(
    batches: Iterator[pa.Array], heavy: list[Page], reason: str
) -> Iterator[pa.Array | Heavy]:
    """Batches that lack the rows of some pages, divided there, with what they lack."""
    row, left = 0, list(heavy)
    for batch in batches:
        while left and left[0].row <= row + len(batch):
            page = left.pop(0)
            before = batch[: page.row - row]
            if len(before):
                yield before
            yield Heavy(page.rows, reason)
            batch, row = batch[len(before) :], page.row + page.rows
        if len(batch):
            yield batch
        row += len(batch)
    yield from (Heavy(page.rows, reason) for page in left)


class _Without(io.RawIOBase):
    """A file in which small empty pages stand in the place of some, and are passed over."""

    def __init__(self, source: pa.NativeFile, pages: list[Page]) -> None:
        self._source, self._pages, self._at = source, pages, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size()}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """So many bytes from here on, or all."""
        end = self._source.size() if size < 0 else min(self._at + size, self._source.size())
        parts = []
        while self._at < end:
            page = next((page for page in self._pages if page.end > self._at), None)
            if page is None or self._at < page.place:
                stop = end if page is None else min(end, page.place)
                parts.append(self._source.read_at(stop - self._at, self._at))
            else:
                stop = min(end, page.end)
                parts.append(nothing(page, self._at, stop))
            self._at = stop
        return b"".join(parts)
