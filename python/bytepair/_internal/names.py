"""Names that stand in files of others, and the folders that they must not leave.

A manifest, a mark or a list of files may come from anybody, and so may the folder around it. A name
from there is a plain file name, the file is a regular one, and a folder that bytepair keeps for
itself is a real folder: nothing that a file says leads out of its folder.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path

from bytepair.errors import ShardError


def is_plain(name: str) -> bool:
    r"""Whether this is an ordinary file name on Linux, macOS and Windows, and no path.

    Example:
        >>> from bytepair._internal.names import is_plain
        >>> [is_plain(name) for name in ("a.bin", "", "..", "a/b", "C:x", "a\\b", "nul.txt", "x ")]
        [True, False, False, False, False, False, False, False]
    """
    plain = not re.search(r'[\x00-\x1f<>:"/\\|?*]', name) and name[-1:] not in ("", ".", " ")
    device = re.fullmatch(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])", name.partition(".")[0])
    return plain and device is None


def check_plain(name: str, place: Path) -> None:
    """Check a file name that stands in a file.

    Raises:
        ShardError: if it is a path, or no name on some system; it names the place.
    """
    if not is_plain(name):
        raise ShardError(
            f"{place} names the file {name[:200]!r}; it must be a plain file name, of a file in "
            "the same folder"
        )


def check_regular(path: Path) -> None:
    """Check that what stands at a path, if anything, is a regular file and no link.

    Raises:
        ShardError: if it is a link, a folder, a pipe or a device.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = "symbolic link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "pipe"
        raise ShardError(f"{path} is a {kind}; it must be a regular file, so it is not read")


def check_own_folder(path: Path) -> None:
    """Check that what stands at the path of a folder of bytepair's own is a folder and no link.

    Raises:
        ShardError: if it is a link or a file.
    """
    if path.is_symlink():
        raise ShardError(
            f"{path} is a symbolic link, and its target would be changed", hint="remove the link"
        )
    if path.exists() and not path.is_dir():
        raise ShardError(f"{path} is a file, and a folder is kept there", hint="remove it")
