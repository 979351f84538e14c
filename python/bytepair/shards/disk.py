"""Arrays in, a synced file out: straight to the disk, with the checksum of what was written.

Shards are larger than the memory of many machines, and are read much later. So their bytes are
gathered in one buffer that lies as disks want it, and written from there past the cache of the
system (`O_DIRECT`). That saves a copy and the pages for it, leaves the cache to others, and there
is almost nothing to sync at the end. Where a system or file system has no such writing, the same
buffer is written in the usual way.
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.system import sync

#: The bytes of a write.
BUFFER_BYTES: Final = 1 << 22
#: Writes past the cache begin at multiples of this in the file.
BLOCK_BYTES: Final = 1 << 12


class DiskFile:
    """A file that is written from one place on to its end.

    Args:
        path: the file, which is made if it is not there, and cut off at `offset` if it is.
        offset: where to begin, in bytes.
        header: bytes to leave free there, for `finish`.

    Attributes:
        crc: the CRC-32 of the bytes behind the header, when the file is finished.
    """

    def __init__(self, path: Path, offset: int = 0, header: int = 0) -> None:
        self.crc = 0
        self._offset = offset
        # The buffer stands for the bytes of the file from a multiple of a block on.
        self._buffer = memoryview(_buffer())
        path.touch()
        self._file = path.open("r+b", buffering=0)
        self._file.truncate(offset)
        self._file.seek(offset - offset % BLOCK_BYTES)
        before = self._file.read(offset % BLOCK_BYTES) + bytes(header)
        self._buffer[: len(before)] = before
        self._filled = self._unchecked = len(before)
        self._file.seek(offset - offset % BLOCK_BYTES)
        self._direct = self._past_cache(True)

    def _past_cache(self, wanted: bool) -> bool:
        """Turn writing past the cache on or off, and return whether it is on."""
        if not hasattr(os, "O_DIRECT"):
            return False
        import fcntl

        flags = fcntl.fcntl(self._file, fcntl.F_GETFL) & ~os.O_DIRECT
        try:
            fcntl.fcntl(self._file, fcntl.F_SETFL, flags | (os.O_DIRECT if wanted else 0))
        except OSError:  # the file system knows no such writing
            return False
        return wanted

    def add(self, array: NDArray[Any]) -> None:
        """Write the bytes of an array that lies in one piece.

        Raises:
            OSError: if the disk is full.
        """
        left = array.view(np.uint8)
        while len(left):
            taken = left[: BUFFER_BYTES - self._filled]
            np.frombuffer(self._buffer, np.uint8)[self._filled :][: len(taken)] = taken
            self._filled += len(taken)
            left = left[len(taken) :]
            if self._filled == BUFFER_BYTES:
                self._write()

    def _write(self) -> None:
        """Write what the buffer holds, and begin it anew."""
        data = self._buffer[: self._filled]
        new = np.frombuffer(self._buffer, np.uint8)[self._unchecked : self._filled]
        self.crc = _core.crc32(new, self.crc)
        self._filled = self._unchecked = 0
        while data:
            try:
                data = data[self._file.write(data) :]
            except OSError as error:
                if not (self._direct and error.errno == errno.EINVAL):
                    raise OSError(error.errno, error.strerror, str(self._file.name)) from error
                self._direct = self._past_cache(False)  # the file system wants other blocks

    def finish(self, header: bytes = b"") -> None:
        """Write the rest and the header, sync and close."""
        self._direct = self._past_cache(False)
        self._write()
        self._file.seek(self._offset)
        self._file.write(header)
        sync(self._file.fileno())
        self.close()

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()


def _buffer() -> mmap.mmap:
    """A buffer that lies as disks want it."""
    try:
        return mmap.mmap(-1, BUFFER_BYTES)
    except OSError as error:  # whatever its number is on this system
        message = f"out of memory: {BUFFER_BYTES} bytes could not be reserved for a file"
        raise MemoryError(message) from error
