"""Protect existing files of another tokenizer from being overwritten.

Writing the same tokenizer again is allowed. So the new files are first written to a temporary place
and compared with the existing ones. If one differs, the existing files are loaded, since they may
still contain an equal tokenizer.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from bytepair import _core
from bytepair.errors import OverwriteError
from bytepair.files.scratch import scratch


def check(
    tokenizer: _core.Tokenizer,
    path: Path,
    write: Callable[[Path], object],
    read: Callable[[Path], _core.Model],
    *,
    merged: Sequence[str] = (),
    stale: Sequence[Path] = (),
) -> None:
    """Check that writing a tokenizer would not replace other content.

    Args:
        tokenizer: the tokenizer to write.
        path: the output file, or folder for formats with several files.
        write: a function that writes the tokenizer to a path.
        read: a function that reads the existing files in the same format.
        merged: the names of files in a folder to which writing adds.
        stale: existing files that writing removes, whatever tokenizer is there.

    Raises:
        OverwriteError: if a file would be replaced that does not contain an equal tokenizer, or
            removed.
    """
    if stale:
        raise OverwriteError(stale[0])
    replaced = _replaced(path, write, merged) if path.exists() else None
    if replaced is None:
        return
    with suppress(ValueError, OSError):  # an unreadable file is different content
        if _core.Tokenizer(read(path)).fingerprint == tokenizer.fingerprint:
            return
    raise OverwriteError(replaced)


def _replaced(path: Path, write: Callable[[Path], object], merged: Sequence[str]) -> Path | None:
    """The first file that would be replaced by different content."""
    with scratch() as folder:
        new = Path(folder, os.path.basename(os.path.abspath(path)))  # noqa: PTH100, PTH119
        for name in merged:
            if (path / name).is_file():
                new.mkdir(exist_ok=True)
                shutil.copy(path / name, new / name)
        write(new)
        pairs = [(new, path)]
        if new.is_dir():
            files = sorted(file for file in new.rglob("*") if file.is_file())
            pairs = [(file, path / file.relative_to(new)) for file in files]
        for file, old in pairs:
            if old.exists() and not (old.is_file() and filecmp.cmp(file, old, shallow=False)):
                return old
    return None
