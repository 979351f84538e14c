"""Arrays in, a synced file out: written with direct I/O, with the checksum of the bytes.

Shards are larger than the memory of many machines, and are read much later. So their bytes are
collected in one aligned buffer and written from there, bypassing the page cache (`O_DIRECT`). That
saves a copy, leaves the page cache to other data, and leaves almost nothing to sync at the end. If
the system or the file system does not support direct I/O, the same buffer is written through the
page cache.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.system import sync
from bytepair.errors import ShardError

#: The size of the buffer, and so of a write, in bytes.
BUFFER_BYTES: Final = 1 << 22
#: The alignment of direct writes in the file, in bytes.
BLOCK_BYTES: Final = 1 << 12


class DiskFile:
    """A file that is written from an offset to its end.

    Args:
        path: the file; it is created if it does not exist, else truncated to `offset`.
        offset: where writing begins, in bytes.
        header: the number of bytes to reserve there for the header, which `finish` writes.

    Attributes:
        crc: the CRC-32 of the bytes after the header, once the file is finished.
    """

    def __init__(self, path: Path, offset: int = 0, header: int = 0) -> None:
        self.crc = 0
        self._offset = offset
        # The buffer begins at a multiple of the block size in the file.
        self._buffer = memoryview(_buffer())
        # A link at this name would lead out of the folder.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        self._path = path
        self._file = os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            self._file.close()
            raise ShardError(
                f"{path} must be a regular file with one name, so nothing is written to it",
                hint="remove it",
            )
        self._file.truncate(offset)
        self._file.seek(offset - offset % BLOCK_BYTES)
        before = self._file.read(offset % BLOCK_BYTES) + bytes(header)
        self._buffer[: len(before)] = before
        self._filled = self._unchecked = len(before)
        self._file.seek(offset - offset % BLOCK_BYTES)
        self._direct = self._set_direct(True)

    def _set_direct(self, is_on: bool) -> bool:
        """Turn direct I/O on or off, and return whether it is on."""
        if not hasattr(os, "O_DIRECT"):
            return False
        import fcntl

        flags = fcntl.fcntl(self._file, fcntl.F_GETFL) & ~os.O_DIRECT
        try:
            fcntl.fcntl(self._file, fcntl.F_SETFL, flags | (os.O_DIRECT if is_on else 0))
        except OSError:  # the file system does not support it
            return False
        return is_on

    def add(self, array: NDArray[Any]) -> None:
        """Write the bytes of a contiguous array.

        Raises:
            OSError: if the disk is full.
        """
        left = array.view(np.uint8)
        while len(left):
            piece = left[: BUFFER_BYTES - self._filled]
            np.frombuffer(self._buffer, np.uint8)[self._filled :][: len(piece)] = piece
            self._filled += len(piece)
            left = left[len(piece) :]
            if self._filled == BUFFER_BYTES:
                self._write()

    def _write(self) -> None:
        """Write the contents of the buffer, and empty it."""
        data = self._buffer[: self._filled]
        new = np.frombuffer(self._buffer, np.uint8)[self._unchecked : self._filled]
        self.crc = _core.crc32(new, self.crc)
        self._filled = self._unchecked = 0
        while data:
            try:
                data = data[self._file.write(data) :]
            except OSError as error:
                if not (self._direct and error.errno == errno.EINVAL):
                    raise OSError(error.errno, error.strerror, str(self._path)) from error
                self._direct = self._set_direct(False)  # the file system needs another alignment

    def finish(self, header: bytes = b"") -> None:
        """Write the rest and the header, sync and close."""
        self._direct = self._set_direct(False)
        self._write()
        self._file.seek(self._offset)
        self._file.write(header)
        sync(self._file.fileno())
        self.close()

    def close(self) -> None:
        """Close the file without writing the rest."""
        self._file.close()


def _buffer() -> mmap.mmap:
    """A buffer that is aligned for direct I/O."""
    try:
        return mmap.mmap(-1, BUFFER_BYTES)
    except OSError as error:  # its errno differs between systems
        message = f"out of memory: {BUFFER_BYTES} bytes could not be reserved for a file"
        raise MemoryError(message) from error
