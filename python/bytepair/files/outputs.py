"""Check before the work whether an output path can be written, and say why a write failed."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from bytepair.errors import NotAFileError, NotAFolderError

#: Suffixes of files with vocabularies or ids, which a new folder gets only by mistake.
OF_FILES: Final = (".json", ".bytepair", ".gguf", ".tiktoken", ".bin")


def check_output_file(path: Path) -> None:
    """Check that a file can be written.

    Raises:
        OSError: if the path is a folder, or its folder does not exist or is not writable.
    """
    if path.is_dir():
        raise NotAFileError(f"{str(path)!r} is a folder", hint="pass a file")
    if not path.parent.is_dir():
        raise NotAFolderError(
            f"the folder {str(path.parent)!r} does not exist", hint="create it first"
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {str(path.parent)!r} is not writable")


def check_output_folder(path: Path) -> None:
    """Check that a folder can be created or written to.

    Raises:
        OSError: if the path is a file, does not exist and has the name of a file, or lies in a
            folder that is not writable.
    """
    if path.name.endswith(OF_FILES) and not path.exists():
        raise NotAFolderError(f"{str(path)!r} is the name of a file", hint="pass a folder")
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise NotAFolderError(f"{str(there)!r} is a file", hint="pass a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {str(there)!r} is not writable")


def not_written(error: OSError, path: Path, size: int) -> OSError:
    """The error of a write, with the path that the caller knows, and the size if the disk is full.

    Args:
        error: what the system says.
        path: the file, which was written under a temporary name.
        size: its size in bytes.

    Example:
        >>> full = OSError(errno.ENOSPC, "No space left on device", "/data/.a.0123")
        >>> not_written(full, Path("/data/a"), 1_000).strerror
        'No space left on device for 1,000 bytes'
    """
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)):
        reason += f" for {size:,} bytes"
    return OSError(f"{error.errno} {reason} {path}")
