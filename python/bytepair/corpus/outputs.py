"""Check before the work whether an output path can be written."""

from __future__ import annotations

import os
from pathlib import Path


def check_output_file(path: Path) -> None:
    """Check that a file can be written.

    Raises:
        OSError: if the path is a folder, or its folder does not exist or is not writable.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; pass a file")
    if not path.parent.is_dir():
        raise NotADirectoryError(f"the folder {str(path.parent)!r} does not exist; create it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {str(path.parent)!r} is not writable")


def check_output_folder(path: Path) -> None:
    """Check that a folder can be created or written to.

    Raises:
        OSError: if the path is a file, or lies in a folder that is not writable.
    """
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{str(there)!r} is a file; pass a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"the folder {str(there)!r} is not writable")
