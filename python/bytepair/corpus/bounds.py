"""Bounds on what a file may make of itself in memory: the only place that says what they are.

A file is hostile until it was read: a few megabytes may unpack to a document of terabytes. So files
are read in blocks, a document is given up as soon as it is too long, and a file that becomes much
larger when it is read is named in a warning.
"""

from __future__ import annotations

import warnings
from typing import Final

#: A longer document is an error, or is skipped, since it is in memory as a whole.
DOCUMENT_BYTES: Final = 128_000_000
#: The bytes that a page of a parquet file may always have, however short documents must be.
PAGE_BYTES: Final = 192_000_000
#: The bytes of a file that a thread works on at a time.
BLOCK_BYTES: Final = 1 << 20
#: A file that becomes this many times as large is named in a warning,
MOST_TIMES: Final = 1000
#: unless it becomes no larger than this.
HARMLESS_BYTES: Final = 1 << 26


class ExpansionWarning(UserWarning):
    """A file has become far larger than it is while it was read."""


def most_page_bytes(document_bytes: int) -> int:
    """How large a page of a parquet file may be, if a document may have this many bytes.

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
        """Add the number of bytes that came out of the file."""
        self.reach(self._read + size)

    def reach(self, total: int) -> None:
        """Set the number of bytes that came out of the file until now."""
        before, self._read = self._read, total
        if before <= self._most < total:
            grown = f"its {self._size:,} bytes have become {total:,} so far, {MOST_TIMES:,} times"
            warnings.warn(
                f"{self._name}: {grown} as many and more; if that is not meant, leave the file out",
                ExpansionWarning,
                stacklevel=2,
            )
