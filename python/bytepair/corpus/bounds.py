"""Bounds on what a file may make of itself in memory: the only place that says what they are.

A file is hostile until it was read: a few megabytes may unpack to a document of terabytes. So files
are read in blocks, a document is given up as soon as it is too long, and a file that becomes much
larger when it is read is named in a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Final, Protocol

from bytepair.corpus.read_ahead import check_stopped

#: A longer document is an error, or is skipped, since it is in memory as a whole.
DOCUMENT_BYTES: Final = 128_000_000
#: A page of a parquet file may have so many bytes, however short documents must be.
PAGE_BYTES: Final = 192_000_000
#: A thread works on so many bytes of a file at a time.
BLOCK_BYTES: Final = 1 << 20
#: A file that becomes so many times as large is named in a warning,
MOST_TIMES: Final = 1000
#: unless it becomes no larger than this.
HARMLESS_BYTES: Final = 1 << 26

_WAY_OUT: Final = "raise max_document_bytes, or divide it"


class ExpansionWarning(UserWarning):
    """A file has become far larger than it is while it was read."""


def too_long(most_bytes: int, size: int | None = None) -> str:
    """What is wrong with a document that is too long.

    Args:
        most_bytes: how long it may be.
        size: how long it is; None if it was not read to its end.

    Example:
        >>> from bytepair.corpus.bounds import too_long
        >>> too_long(9, 10).partition(";")[0]
        'the document has 10 bytes, more than the 9 that are read as one'
    """
    has = f"{size:,} bytes, more than" if size else "more than"
    unit = "" if size else " bytes"
    return f"the document has {has} the {most_bytes:,}{unit} that are read as one; {_WAY_OUT}"


def page_too_large(size: int, most_bytes: int) -> str:
    """What is wrong with a page of a parquet file; the core says the same."""
    most = f"more than the {most_bytes:,} unpacked at once"
    return f"the page has {size:,} bytes, {most}; {_WAY_OUT}"


def most_page_bytes(document_bytes: int) -> int:
    """How large a page of a parquet file may be, if a document may have so many bytes.

    Example:
        >>> from bytepair.corpus.bounds import most_page_bytes
        >>> most_page_bytes(256_000_000)
        384000000
    """
    return max(PAGE_BYTES, document_bytes * 3 // 2)


def block_bounds(document_bytes: int, block_bytes: int | None = None) -> tuple[int, int, int, int]:
    """The bounds as the core takes them.

    Args:
        document_bytes: how long a document may be.
        block_bytes: how much of a file a thread works on at a time; None means `BLOCK_BYTES`.

    Example:
        >>> from bytepair.corpus.bounds import block_bounds
        >>> block_bounds(1000)
        (1048576, 1000, 67108864, 1000)
    """
    return block_bytes or BLOCK_BYTES, document_bytes, HARMLESS_BYTES, MOST_TIMES


class Expansion:
    """Warns once if a file becomes far larger than it is while it is read.

    Args:
        name: of the file, for the message.
        size: of the file in bytes.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size, self._read = name, max(size, 1), 0
        self._most = max(MOST_TIMES * self._size, HARMLESS_BYTES)

    def add(self, size: int) -> None:
        """So many bytes more came out of the file."""
        self.reach(self._read + size)

    def reach(self, total: int) -> None:
        """So many bytes came out of the file until now."""
        before, self._read = self._read, total
        if before <= self._most < total:
            grown = f"its {self._size:,} bytes have become {total:,} so far, {MOST_TIMES:,} times"
            warnings.warn(
                f"{self._name}: {grown} as many and more; if that is not meant, leave the file out",
                ExpansionWarning,
                stacklevel=2,
            )


class Stream(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes:
        """So many bytes, or all that are left."""
        ...


def blocks(stream: Stream, size: int, expansion: Expansion) -> Iterator[bytes]:
    """The bytes of a file, at most so many at a time; it ends when nobody waits for them."""
    while block := stream.read(size):
        check_stopped()
        expansion.add(len(block))
        yield block


def whole(found: Iterator[bytes], most_bytes: int) -> bytes | None:
    """All blocks as one document; None if it is too long."""
    held: list[bytes] = []
    size = 0
    for block in found:
        size += len(block)
        if size > most_bytes:
            return None
        held.append(block)
    return b"".join(held)


def whole_lines(found: Iterator[bytes], most_bytes: int) -> Iterator[bytes | int]:
    r"""The blocks of a file as pieces that end with a line; of a line that is too long the length.

    Example:
        >>> from bytepair.corpus.bounds import whole_lines
        >>> list(whole_lines(iter([b"one\nt", b"wo\nthree", b"three\n4"]), 4))
        [b'one\n', b'two\n', 11, b'4']
    """
    rest: list[bytes] = []
    held = dropped = 0
    for block in found:
        cut = block.rfind(b"\n") + 1
        if dropped and cut:
            end = block.find(b"\n") + 1
            yield dropped + end
            block, cut, dropped = block[end:], cut - end, 0
        if dropped:
            dropped += len(block)
            continue
        if cut:
            lines, rest, held = b"".join([*rest, block[:cut]]), [], 0
            yield lines
            del lines
        rest.append(block[cut:])
        held += len(block) - cut
        if held > most_bytes:
            rest, held, dropped = [], 0, held
    yield dropped or b"".join(rest)
