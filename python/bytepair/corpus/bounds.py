"""Limits on the memory that reading a file may use; all limits are defined here.

Files are untrusted: a few megabytes may decompress to a document of terabytes. So files are read in
blocks, a document is abandoned as soon as it exceeds the limit, and a file with an extreme
compression ratio causes a warning.
"""

from __future__ import annotations

from typing import Final

from bytepair.errors import warn

#: The default maximum size of a document; each document is held in memory completely.
DOCUMENT_BYTES: Final = 128_000_000
#: The minimum limit for the size of a parquet page, even if the limit for documents is lower.
PAGE_BYTES: Final = 192_000_000
#: The size of the block that a thread reads at a time.
BLOCK_BYTES: Final = 1 << 20
#: The compression ratio above which a file causes a warning,
MOST_EXPANSION: Final = 1000
#: unless its decompressed size is at most this.
HARMLESS_BYTES: Final = 1 << 26


class ExpansionWarning(UserWarning):
    """A file has an extreme compression ratio."""


def most_page_bytes(document_bytes: int) -> int:
    """The maximum size of a parquet page in bytes, given the maximum size of a document."""
    return max(PAGE_BYTES, document_bytes * 3 // 2)


class ReadBounds:
    """The limits of the core while it reads a file.

    A file that decompresses to more than `harmless_bytes`, and to more than `harmless_times` its
    size, is reported.
    """

    def __init__(self, document_bytes: int, block_bytes: int | None = None) -> None:
        self.document_bytes = document_bytes
        self.block_bytes = BLOCK_BYTES if block_bytes is None else block_bytes
        self.harmless_bytes = HARMLESS_BYTES
        self.harmless_times = MOST_EXPANSION


class Expansion:
    """Warns once if a file has an extreme compression ratio."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size, self._read = name, max(size, 1), 0
        self._most = max(MOST_EXPANSION * self._size, HARMLESS_BYTES)

    def add(self, size: int) -> None:
        """Add to the number of decompressed bytes."""
        self.reach(self._read + size)

    def reach(self, total: int) -> None:
        """Set the number of bytes decompressed so far."""
        before, self._read = self._read, total
        if before <= self._most < total:
            warn(
                ExpansionWarning(
                    f"{self._name}: {self._size:,} bytes decompressed to {total:,} so far, more "
                    f"than {MOST_EXPANSION:,} times as many; if this is unexpected, exclude the "
                    "file"
                )
            )
