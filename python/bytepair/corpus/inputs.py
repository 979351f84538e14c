"""The inputs of a job, as its manifest or checkpoint records them, and whether two jobs share them.

A name is recorded as it was given. If any is relative, the working directory is recorded too, as a
path relative to the folder of the record, so a corpus may be named in one way today and in another
tomorrow, and moved together with its results.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bytepair.corpus.files import Input
from bytepair.corpus.names import is_url

#: The names and sizes of the inputs, in a record.
INPUTS: Final = "inputs"
#: The folder to which relative names refer, in a record.
BASE: Final = "inputs_from"


def recorded(files: list[Input], folder: Path) -> dict[str, Any]:
    """The record of inputs.

    Args:
        files: the inputs.
        folder: the folder in which the record is stored.

    Example:
        >>> recorded([Input("/data/a.txt", 5, None, "/data/a.txt")], Path("/data/shards"))
        {'inputs': [['/data/a.txt', 5]]}
    """
    values: dict[str, Any] = {INPUTS: [[file.name, file.size] for file in files]}
    if any(not is_url(file.name) and not Path(file.name).is_absolute() for file in files):
        here, there = os.path.realpath(os.curdir), os.path.realpath(folder)
        try:
            values[BASE] = os.path.relpath(here, there)
        except ValueError:  # another drive of Windows
            values[BASE] = here
    return values


def is_same(record: Mapping[str, Any], job: Mapping[str, Any], folder: Path) -> bool:
    """Whether two records name the same inputs, in the same order; see `shared`."""
    return len(_pairs(record)) == len(_pairs(job)) == shared(record, job, folder)


def shared(record: Mapping[str, Any], job: Mapping[str, Any], folder: Path) -> int:
    """How many inputs at the beginning are the same files, of the same size, in two records.

    Args:
        record: the record of an earlier run.
        job: the record of this run.
        folder: the folder in which both are stored.

    Example:
        >>> folder = Path("/data/shards")
        >>> record = {"inputs": [["in/a.txt", 5], ["in/b.txt", 6]], "inputs_from": ".."}
        >>> shared(record, {"inputs": [["/data/in/a.txt", 5], ["/data/in/c.txt", 6]]}, folder)
        1
    """
    names = _Names(record, job, folder)
    pairs = zip(_pairs(record), _pairs(job), strict=False)
    count = min(len(_pairs(record)), len(_pairs(job)))
    return next((at for at, (old, new) in enumerate(pairs) if not names.is_same(old, new)), count)


class _Names:
    """Compares the names of two records, the earlier one first."""

    def __init__(self, record: Mapping[str, Any], job: Mapping[str, Any], folder: Path) -> None:
        home = os.path.realpath(folder)
        self._bases = [
            os.path.normpath(os.path.join(home, str(side.get(BASE, os.curdir))))  # noqa: PTH118
            for side in (record, job)
        ]

    def is_same(self, old: tuple[str, int], new: tuple[str, int]) -> bool:
        """Whether two inputs are the same file.

        A relative name that has lost its file is that of a corpus or a result that was moved.
        """
        if old[1] != new[1]:
            return False
        if old[0] == new[0]:
            if self._bases[0] == self._bases[1] or Path(old[0]).is_absolute() or is_url(old[0]):
                return True
            place = _real(self._bases[0], old[0])
            return place == _real(self._bases[1], new[0]) or not Path(place).exists()
        if is_url(old[0]) or is_url(new[0]):
            return False
        return _real(self._bases[0], old[0]) == _real(self._bases[1], new[0])


def _real(base: str, name: str) -> str:
    """The absolute name of a file, without links."""
    try:
        return os.path.realpath(os.path.join(base, name))  # noqa: PTH118 - ".." may follow a link
    except (OSError, ValueError):  # a name in a damaged record
        return name


def _pairs(job: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The names and sizes of the inputs of a record, which may be a damaged one."""
    inputs: list[tuple[str, int]] = []
    items = job.get(INPUTS)
    for item in items if isinstance(items, list) else ():
        match item:
            case [str(name), int(size)] if "\0" not in name:
                inputs.append((name, size))
            case _:
                break
    return inputs
