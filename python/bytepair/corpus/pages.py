"""A chunk of a parquet column in, its pages out: how large they are, read from their headers.

A page is what a reader must unpack as a whole, and the footer of a file says nothing of pages. The
headers are structs of Thrift's compact protocol, of which numbers and structs are read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

# Kinds of pages; all others are data.
INDEX: Final = 1
DICTIONARY: Final = 2

# How the texts of a page are written: themselves, or as numbers of texts in the dictionary. In all
# other ways a text may be written as a change of the one before, and so be much longer.
_WHOLE: Final = frozenset({0, 6})
_NUMBERS: Final = frozenset({2, 8})

#: So many rows are in a batch at most.
MOST_ROWS: Final = 1 << 16
#: The bytes of a page that stands in the place of another.
NOTHING_BYTES: Final = 1 << 20


class ByteSource(Protocol):
    """An open file."""

    def read_at(self, nbytes: int, offset: int, /) -> bytes:
        """So many bytes from a place on, or all that are left."""
        ...


@dataclass(frozen=True)
class Chunk:
    """What the footer of a file says of a column in a row group, by the names that pyarrow has."""

    num_values: int
    total_uncompressed_size: int
    total_compressed_size: int
    dictionary_page_offset: int | None
    data_page_offset: int
    encodings: list[str]


@dataclass(frozen=True)
class Page:
    """What the header of a page says.

    Attributes:
        place: where in the file the header begins.
        end: where the page ends.
        kind: what it holds.
        size: bytes when unpacked.
        rows: how many rows a data page has, or how many texts a dictionary.
        row: the first of them in the chunk.
        encoding: how its texts are written, by number.
    """

    place: int
    end: int
    kind: int
    size: int
    rows: int
    row: int
    encoding: int

    @property
    def is_data(self) -> bool:
        """Whether it has rows."""
        return self.kind not in (INDEX, DICTIONARY)


def rows_at_once(pages: list[Page], batch_bytes: int, most_bytes: int) -> int:
    """How many rows a batch may have, lest it be too large, wherever among the pages it begins.

    Where every text is written once, a batch then has at most `batch_bytes`, and the pages in which
    it begins and ends. Where rows may repeat a text, each may be as long as all that is written
    there; a batch then has at most `most_bytes`, or one row, and the same two pages.
    """
    rows = MOST_ROWS
    numbered = sum(page.rows for page in pages if page.encoding in _NUMBERS and page.is_data)
    for page in pages:
        if not page.size or page.kind == INDEX or (page.is_data and page.encoding in _NUMBERS):
            continue
        repeats = 0 if page.encoding in _WHOLE else page.rows
        if page.kind == DICTIONARY:
            repeats = numbered - page.rows
        often = most_bytes // page.size
        rows = min(rows, often if repeats > often else batch_bytes * page.rows // page.size)
    return max(rows, 1)


def pages_of(source: ByteSource, chunk: Chunk) -> Iterator[Page]:
    """The pages of a chunk of a column, as far as their headers can be read.

    Args:
        source: the file.
        chunk: what the footer says of it.
    """
    place = chunk.dictionary_page_offset or chunk.data_page_offset
    end, row = place + chunk.total_compressed_size, 0
    while place < end:
        fields, length = _header(source, place)
        packed = _whole(fields, 3, -1)
        if packed < 0:
            return  # pyarrow will say what is wrong
        inner = next((f for n in (5, 7, 8) if isinstance(f := fields.get(n), dict)), {})
        encoding = _whole(inner, 4 if 8 in fields else 2, -1)
        kind, rows = _whole(fields, 1, -1), _whole(inner, 1, 0)
        after = place + length + packed
        page = Page(place, after, kind, _whole(fields, 2, 0), rows, row, encoding)
        yield page
        place, row = after, row + (rows if page.is_data else 0)


def _whole(fields: dict[int, Any], number: int, otherwise: int) -> int:
    """A number of a header, which may be damaged."""
    found = fields.get(number)
    return found if isinstance(found, int) else otherwise


def nothing(page: Page, start: int, stop: int) -> bytes:
    """What stands between two places instead of a page: small pages of zeros, which say nothing.

    They are of a kind that every reader passes over, and need not read at once.
    """
    data = bytearray(stop - start)
    last = max((page.end - page.place) // NOTHING_BYTES, 1) - 1
    for number in range(min((start - page.place) // NOTHING_BYTES, last), last + 1):
        place = page.place + number * NOTHING_BYTES
        end = page.end if number == last else place + NOTHING_BYTES
        for at, byte in enumerate(_empty_header(end - place), place):
            if start <= at < stop:
                data[at - start] = byte
    return bytes(data)


def _empty_header(size: int) -> bytes:
    """The header of a page that takes so many bytes with it: an index of nothing."""
    doubled = 2 * (size - 10)
    number = [doubled >> shift & 127 | 128 for shift in (0, 7, 14)]
    return bytes([0x15, 2 * INDEX, 0x15, 0, 0x15, *number, doubled >> 21, 0])


def _header(source: ByteSource, place: int) -> tuple[dict[int, Any], int]:
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
