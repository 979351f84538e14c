"""Functions that differ between operating systems: file locks, fsync and the size of memory.

`docs/install.md` has a table of the differences; the tests simulate the other systems.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

#: The files with the memory limit of a container on Linux: control groups versions 2 and 1.
_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)  # fmt: skip


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on a lock file, which is created; the system releases it if the process dies.

    If another process holds it, the error is `BlockingIOError`.
    """
    try:
        import fcntl
    except ImportError:
        yield from _locked_on_windows(path)
        return
    handle = -1
    while handle < 0:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            _check_alone(path, os.fstat(handle))
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise
        if not _is_file(path, handle):  # the previous holder has removed it
            os.close(handle)
            handle = -1
    try:
        yield
    finally:
        try:
            path.unlink(missing_ok=True)  # while locked, so that no other holder's file is removed
        finally:
            os.close(handle)


def _check_alone(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise OSError(errno.EINVAL, "it is not a regular file with one name", str(path))


def _is_file(path: Path, handle: int) -> bool:
    """Whether a file descriptor refers to the file that now has this path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _locked_on_windows(path: Path) -> Iterator[None]:
    """`locked` for Windows: lock the first byte. Windows cannot remove a file that is open."""
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
        os.close(handle)  # releases the lock
        with suppress(OSError):  # another process may have opened it already
            path.unlink(missing_ok=True)


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
