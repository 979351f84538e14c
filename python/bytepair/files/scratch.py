"""A temporary folder for the time of a block, which the next run removes if this one is killed.

Each folder has a lock file, which the system releases when the process ends in any way. A folder
without a locked one has no owner. Its name has a code of the machine, since a temporary folder may
be shared by machines that do not see the locks of each other.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from bytepair._internal import system

LOCK: Final = ".lock"

#: The age in seconds below which a folder may not have its lock yet.
YOUNG_SECONDS: Final = 60.0


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a temporary folder in `TMPDIR`, and remove it at the end; first remove unowned ones.

    Example:
        >>> with scratch() as folder:
        ...     folder.name.startswith("bytepair-"), folder.is_dir()
        (True, True)
        >>> folder.exists()
        False
    """
    from tempfile import TemporaryDirectory, gettempdir

    prefix = f"bytepair-{zlib.crc32(platform.node().encode()):08x}-"
    _remove_unowned(Path(gettempdir()), prefix)
    # Windows cannot remove files that are open, and an error may keep their owner alive.
    left = sys.platform == "win32"
    with (
        TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=left) as name,
        ExitStack() as locks,
    ):
        with suppress(OSError):  # the file system may have no locks; then nothing is removed later
            locks.enter_context(system.locked(Path(name, LOCK)))
        yield Path(name)


def _remove_unowned(root: Path, prefix: str) -> None:
    """Remove the folders of processes that are gone."""
    with suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                _remove_if_unowned(entry)


def _remove_if_unowned(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):  # locked, of another user, or already removed
        status = entry.stat(follow_symlinks=False)
        is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if not is_own or time.time() - status.st_mtime < YOUNG_SECONDS:
            return
        with system.locked(Path(entry.path, LOCK)):
            pass
        shutil.rmtree(entry.path)
