"""What operating systems do differently: locks, syncs and the size of memory.

`docs/install.md` has a table of what each does; the tests imitate those that are not there.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

#: Where Linux says how much memory a container may take: control groups of version 2 and 1.
_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)  # fmt: skip


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file that is made for it; the lock ends with the process, whatever happens to it.

    Raises:
        BlockingIOError: if it is held already.
        OSError: if there cannot be such a file, or the file system has no locks.
    """
    try:
        import fcntl
    except ImportError:
        yield from _locked_on_windows(path)
        return
    handle = -1
    while handle < 0:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise
        if not _is_file(path, handle):  # who held it before has removed it
            os.close(handle)
            handle = -1
    try:
        yield
    finally:
        try:
            path.unlink(missing_ok=True)  # while it is held, so that nobody else's file is removed
        finally:
            os.close(handle)


def _is_file(path: Path, handle: int) -> bool:
    """Whether a handle is of the file that has this name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _locked_on_windows(path: Path) -> Iterator[None]:
    """The same by a lock on the first byte; no file is removed there while somebody has it open."""
    msvcrt: Any = import_module("msvcrt")
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        os.close(handle)
        if error.errno in (errno.EACCES, errno.EDEADLK):
            raise BlockingIOError(errno.EAGAIN, "it is locked", str(path)) from None
        raise
    try:
        yield
    finally:
        os.close(handle)  # which ends the lock
        with suppress(OSError):  # the next one has opened it already
            path.unlink(missing_ok=True)


def sync(file: int) -> None:
    """Wait until a disk has what was written to a file.

    Args:
        file: its descriptor, open for writing: Windows syncs no other.

    Raises:
        OSError: if it could not be written.
    """
    if sys.platform == "darwin":  # where `fsync` leaves it in the cache of the disk
        import fcntl

        try:
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
        else:
            return
    os.fsync(file)  # or the file system knows no other


def sync_folder(folder: Path) -> None:
    """Wait until a disk has the names in a folder; Windows opens no folders.

    Raises:
        OSError: if they could not be written.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def memory() -> int:
    """How many bytes of memory the machine has, or its container if that has less.

    0 where the system does not say.

    Example:
        >>> from bytepair._internal.system import memory
        >>> memory() >= 0
        True
    """
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        with suppress(ImportError, AttributeError, OSError):
            return _memory_of_windows() if hasattr(sys, "getwindowsversion") else _memory_of_macos()
        return 0
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # "max" is no number
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


def _memory_of_macos() -> int:
    import ctypes

    found, size = ctypes.c_uint64(), ctypes.c_size_t(8)
    library = ctypes.CDLL(None)
    failed = library.sysctlbyname(
        b"hw.memsize", ctypes.byref(found), ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return 0 if failed else found.value
