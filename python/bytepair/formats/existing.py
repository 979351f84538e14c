"""A tokenizer that is to be written, and what lies there: another one is not lost unasked.

Writing the same again replaces nothing. So what would be written is written to a temporary place
first, and its files are compared with those that are there; where one differs, what is there may
still be the same tokenizer, in other words.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from bytepair import _core
from bytepair.errors import OverwriteError


def check(
    tokenizer: _core.Tokenizer,
    path: Path,
    write: Callable[[Path], object],
    read: Callable[[Path], _core.Model],
) -> None:
    """Refuse to replace the files of another tokenizer, or of anything else.

    Args:
        tokenizer: what is to be written.
        path: where: a file, or a folder for formats of several files.
        write: writes it to any path.
        read: reads what is there as the format that is to be written.

    Raises:
        OverwriteError: if a file would be replaced that is not of the same tokenizer.
    """
    replaced = _replaced(path, write) if path.exists() else None
    if replaced is None:
        return
    with suppress(ValueError, OSError):  # what cannot be read is another one
        if _core.Tokenizer(read(path)).fingerprint == tokenizer.fingerprint:
            return
    raise OverwriteError(replaced)


def _replaced(path: Path, write: Callable[[Path], object]) -> Path | None:
    """The first file that would be replaced by other content."""
    with TemporaryDirectory(prefix="bytepair-") as folder:
        new = Path(folder, os.path.basename(os.path.abspath(path)))  # noqa: PTH100, PTH119
        write(new)
        pairs = [(new, path)]
        if new.is_dir():
            pairs = [(file, path / file.name) for file in sorted(new.iterdir())]
        for file, old in pairs:
            if old.exists() and not (old.is_file() and filecmp.cmp(file, old, shallow=False)):
                return old
    return None
