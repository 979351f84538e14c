"""Writes files: checks what may be an output, and opens, replaces and removes it.

An output is a regular file with one name. A link is not followed, since its target may belong to
somebody else; a second name (a hard link) and a pipe are refused for the same reason. Temporary
folders (`scratch`) are removed by the next run if this one is killed. `docs/install.md` has a table
of the differences between systems.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from io import BufferedRandom
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair.errors import ArgumentError, NotAFileError, NotAFolderError, OverwriteError


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
    with _opened(folder) as handle, naming(folder):
        if handle is not None:
            os.fsync(handle)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the system name the file, where the system knows only its descriptor."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


#: Suffixes of files with vocabularies or ids, which a new folder gets only by mistake.
OF_FILES: Final = (".json", ".bytepair", ".gguf", ".tiktoken", ".bin", ".pkl")
#: The lock file of a temporary folder.
LOCK: Final = ".lock"
#: The age in seconds below which a folder may not have its lock yet.
YOUNG_SECONDS: Final = 60.0


def check_output_file(path: Path) -> None:
    """Check that a file can be written: what stands there, and its folder."""
    if path.is_dir() and not path.is_symlink():
        raise NotAFileError(f"{str(path)!r} is a folder", hint="pass a file")
    check_alone(path)
    if not path.parent.is_dir():
        raise NotAFolderError(
            f"the folder {str(path.parent)!r} does not exist", hint="create it first"
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {str(path.parent)!r} is not writable")


def check_output(path: Path, *, inputs: Iterable[Path] = (), overwrite: bool = False) -> None:
    """Check before the work begins that an output file may be written.

    It may not be one of the inputs of the same call, and exist only if it may be overwritten.
    """
    check_output_file(path)
    if not path.exists():
        return
    if any(file.exists() and file.samefile(path) for file in inputs):
        raise ArgumentError(f"{path} is also read", hint="choose another path for the output")
    if not overwrite:
        raise OverwriteError(path, "exists")


def check_alone(path: Path) -> None:
    """Check that what stands at a path, if anything, is a regular file with one name."""
    with suppress(FileNotFoundError):
        _check_status(path, path.lstat())


def _check_status(path: Path, status: os.stat_result) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode) and status.st_nlink <= 1:
        return
    kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}
    kind = kinds.get(stat.S_IFMT(mode), "not a regular file")
    if stat.S_ISREG(mode):
        kind = f"a file with {status.st_nlink} names (hard links)"
    raise NotAFileError(f"{str(path)!r} is {kind}, so it is not written to", hint="remove it")


def check_inside(folder: Path, path: Path) -> None:
    """Check that no folder between a folder and a path in it is a link."""
    for name in path.relative_to(folder).parents:
        if name.name and (folder / name).is_symlink():
            raise NotAFolderError(
                f"{str(folder / name)!r} is a link, so nothing is written there", hint="remove it"
            )


def open_own(path: Path) -> BufferedRandom:
    """Open a file that this job may have begun, for reading and writing; create it if it is new."""
    check_alone(path)
    flags = os.O_RDWR | os.O_CREAT
    for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"):  # a pipe would wait for its other end
        flags |= getattr(os, name, 0)
    handle = os.open(path, flags, 0o666)
    try:
        _check_status(path, os.fstat(handle))  # it may have been exchanged since
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "r+b")


@contextmanager
def locked(path: Path, in_use: Exception | None = None) -> Iterator[None]:
    """Hold a lock on a lock file, which is created; the system releases it if the process dies.

    If another process holds it, the error is `in_use`, or else `BlockingIOError`.
    """
    is_posix = hasattr(os, "O_DIRECTORY")  # Windows cannot remove a file that is open
    while True:
        with open_own(path) as file:
            try:
                _lock(file.fileno())
            except BlockingIOError as error:
                raise in_use or error from None
            try:
                is_there = os.path.samestat(path.stat(), os.fstat(file.fileno()))
            except FileNotFoundError:
                is_there = False
            if not is_there:
                continue  # the previous holder has removed it
            try:
                yield
            finally:
                if is_posix:  # while locked, so that no other holder's file is removed
                    path.unlink(missing_ok=True)
        if not is_posix:
            with suppress(OSError):  # another process may have opened it already
                path.unlink(missing_ok=True)
        return


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        msvcrt: Any = import_module("msvcrt")
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                raise BlockingIOError(errno.EAGAIN, "it is locked") from None
            raise
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_own(path: Path) -> None:
    """Remove a file that this job has written, if it exists."""
    check_alone(path)
    path.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes | memoryview, *, overwrite: bool = True) -> None:
    """Write a file atomically: create a temporary one beside it, sync, rename, sync the folder.

    A file that is replaced keeps its permissions, but not the one to act as its owner (setuid):
    somebody else may have made it. An error names the file.
    """
    check_output(path, overwrite=overwrite)
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    with _opened(path.parent) as folder:
        old = str(path) if folder is None else path.name
        new = str(temporary) if folder is None else temporary.name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with os.fdopen(os.open(new, flags, 0o666, dir_fd=folder), "wb") as file:
                if folder is not None and path.exists():
                    os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
                file.write(data)
                file.flush()
                sync(file.fileno())
            os.replace(new, old, src_dir_fd=folder, dst_dir_fd=folder)
            if folder is not None:
                os.fsync(folder)
        except BaseException as error:
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=folder)
            if isinstance(error, OSError):
                raise not_written(error, path, len(data)) from error
            raise


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """The descriptor of a folder; None on Windows, which cannot open one."""
    if not hasattr(os, "O_DIRECTORY"):
        yield None
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


def check_output_folder(path: Path, hint: str = "pass a folder") -> None:
    """Check that a folder, which is not new with the name of a file, can be made or written to."""
    if path.name.endswith(OF_FILES) and not path.exists():
        raise NotAFolderError(f"{str(path)!r} is the name of a file", hint=hint)
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise NotAFolderError(f"{str(there)!r} is a file", hint=hint)
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {str(there)!r} is not writable")


def not_written(error: OSError, path: Path, size: int) -> OSError:
    """The error of a write, with the path, and the size if the disk is full."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)):
        reason += f" for {size:,} bytes"
    return OSError(error.errno, reason, str(path))


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a temporary folder in `TMPDIR`, and remove it at the end; first remove unowned ones.

    Each folder has a lock file, which the system releases when the process ends in any way. A
    folder without a locked one has no owner. Its name has a code of the machine, since a temporary
    folder may be shared by machines that do not see the locks of each other.
    """
    import platform
    from tempfile import TemporaryDirectory, gettempdir

    prefix = f"bytepair-{zlib.crc32(platform.node().encode()):08x}-"
    with suppress(OSError), os.scandir(gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                _remove_unowned(entry)
    # Windows cannot remove files that are open, and an error may keep their owner alive.
    left = sys.platform == "win32"
    with (
        TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=left) as name,
        ExitStack() as locks,
    ):
        with suppress(OSError):  # the file system may have no locks; then nothing is removed later
            locks.enter_context(locked(Path(name, LOCK)))
        yield Path(name)


def _remove_unowned(entry: os.DirEntry[str]) -> None:
    """Remove a temporary folder whose process is gone."""
    import shutil

    with suppress(OSError):  # locked, of another user, or already removed
        status = entry.stat(follow_symlinks=False)
        is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if not is_own or time.time() - status.st_mtime < YOUNG_SECONDS:
            return
        with locked(Path(entry.path, LOCK)):
            pass
        shutil.rmtree(entry.path)


def check_replaced(
    tokenizer: _core.Tokenizer,
    files: Mapping[Path, bytes],
    read: Callable[[], _core.Model],
    *,
    removed: Sequence[Path] = (),
) -> None:
    """Check that writing a tokenizer would neither replace other content nor remove a file.

    Writing the same tokenizer again is allowed. So if an existing file differs from the new one,
    the existing tokenizer is read, since it may still be an equal one.
    """
    for path in files:
        check_alone(path)
    if removed:
        raise OverwriteError(removed[0])
    replaced = [path for path, data in files.items() if path.exists() and path.read_bytes() != data]
    if not replaced:
        return
    with suppress(ValueError, OSError):  # an unreadable file is different content
        if _core.Tokenizer(read()).fingerprint == tokenizer.fingerprint:
            return
    raise OverwriteError(replaced[0])


def write_files(path: Path, files: Mapping[Path, bytes], *, removed: Sequence[Path] = ()) -> None:
    """Write a file, or several into the folder `path`, each atomically, and remove others.

    All are checked before the first is written.
    """
    for file in (*files, *removed):
        if file != path:
            check_inside(path, file)
        check_alone(file)
    for file, data in files.items():
        if file != path:
            file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, data)
    for file in removed:
        remove_own(file)
