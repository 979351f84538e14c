"""Functions that differ between operating systems: fsync and the size of memory.

`docs/install.md` has a table of the differences; the tests simulate the other systems.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

#: The files with the memory limit of a container on Linux: control groups versions 2 and 1.
_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)  # fmt: skip


def sync(file: int) -> None:
    """Flush a file to the disk; its descriptor must be open for writing on Windows."""
    if sys.platform == "darwin":  # `fsync` does not flush the cache of the drive
        import fcntl

        try:
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
        else:
            return
    os.fsync(file)  # also if the file system does not support F_FULLFSYNC


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk; does nothing on Windows, which cannot open one."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_DIRECTORY)
    try:
        with naming(folder):
            os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the system name the file, where the system knows only its descriptor.

    Raises:
        OSError: if what is done in the context does.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def memory() -> int:
    """The memory of the machine in bytes, or the limit of its container if that is lower.

    Returns 0 if the system does not report it.
    """
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        with suppress(ImportError, AttributeError, OSError):
            return _memory_of_windows()
        return 0
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # "max" is not a number
            total = min(total, int(limit.read_text(encoding="ascii")))
    return max(total, 0)


def _memory_of_windows() -> int:
    import ctypes

    numbers = [("length", ctypes.c_uint32), ("load", ctypes.c_uint32), ("total", ctypes.c_uint64)]
    more = [(f"unused_{index}", ctypes.c_uint64) for index in range(6)]
    status_type = type("MemoryStatus", (ctypes.Structure,), {"_fields_": numbers + more})
    status: Any = status_type(ctypes.sizeof(status_type))
    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    return status.total if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else 0
