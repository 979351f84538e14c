"""The path of a result in, an error out if it cannot be written: to be asked before the work."""

from __future__ import annotations

import os
from pathlib import Path


def check_output_file(path: Path) -> None:
    """Fail where a file could not be written when the work is done.

    Raises:
        OSError: if the path is a folder, or lies in none that can be written to.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file")
    if not path.parent.is_dir():
        raise NotADirectoryError(f"there is no folder {str(path.parent)!r}; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"nothing may be written to the folder {str(path.parent)!r}")


def check_output_folder(path: Path) -> None:
    """Fail where a folder could not be made or written to when the work is done.

    Raises:
        OSError: if the path is a file, or lies in a folder that cannot be written to.
    """
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{str(there)!r} is a file; name a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"nothing may be written to the folder {str(there)!r}")
