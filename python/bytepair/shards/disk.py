"""Arrays in, a synced file out, with the checksum of its bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.system import sync
from bytepair.files.outputs import open_own

#: The largest piece that is written and added to the checksum at once, in bytes.
PIECE_BYTES: Final = 1 << 22


class DiskFile:
    """A file that is written from an offset to its end.

    Args:
        path: the file; it is created if it does not exist, else truncated to `offset`.
        offset: where writing begins, in bytes.
        header: the number of bytes to reserve there for the header, which `finish` writes.

    Attributes:
        crc: the CRC-32 of the bytes after the header.
    """

    def __init__(self, path: Path, offset: int = 0, header: int = 0) -> None:
        self.crc = 0
        self._offset, self._path = offset, path
        self._file = open_own(path).detach()  # what a full disk refused is not written at the end
        self._file.truncate(offset + header)
        self._file.seek(offset + header)

    def add(self, array: NDArray[Any]) -> None:
        """Write the bytes of a contiguous array.

        Raises:
            OSError: if the disk is full.
        """
        data = array.view(np.uint8)
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            self.crc = _core.crc32(piece, self.crc)
            self._write(piece)

    def _write(self, data: Any) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def finish(self, header: bytes = b"") -> None:
        """Write the header, sync and close."""
        self._file.seek(self._offset)
        self._write(header)
        sync(self._file.fileno())
        self.close()

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()
