"""Which split a file of a data set belongs to, as the names of its files say.

- The names of the Hugging Face Hub: `train-00000-of-00002.parquet`, `validation-...`, `test-...`.
- The names of nanochat's data sets, `shard_00000.parquet` and so on, two or more and no other
  parquet file in their folder: the last one is for validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

from bytepair._internal.checks import check_choice
from bytepair.errors import CorpusError

#: What is read of a data set: the documents for training, those for validation, or all.
Split: TypeAlias = Literal["train", "val", "all"]

_HUB: Final = re.compile(r"(train|validation|test)-\d{5}-of-\d{5}\b.*\.parquet")
_HUB_SPLITS: Final = {"train": "train", "validation": "val", "test": "test"}
_SHARD: Final = re.compile(r"shard_\d{5}\.parquet")


class File(Protocol):
    """A file as this module needs it: its path, and the file system if it is not the local one."""

    @property
    def name(self) -> str:
        """The name as given by the user."""

    @property
    def path(self) -> str:
        """The path in its file system."""

    @property
    def cloud(self) -> Any:
        """The file system; None for the local one."""


AnyFile = TypeVar("AnyFile", bound=File)


def splits_of(files: Sequence[File]) -> list[str | None]:
    """The split that a data set gives each of its files; None if it says nothing.

    Args:
        files: files of one or more data sets.

    Example:
        >>> from bytepair.corpus.files import Input
        >>> names = ["data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet"]
        >>> splits_of([Input(name, 1, None, name) for name in names])
        ['train', 'test']
    """
    last = cache(_last_shard)
    return [_split_of(file, files, last) for file in files]


def _split_of(file: File, files: Sequence[File], last: Any) -> str | None:
    path = PurePosixPath(file.path) if file.cloud else Path(file.path)
    if match := _HUB.fullmatch(path.name):
        return _HUB_SPLITS[match[1]]
    if not _SHARD.fullmatch(path.name):
        return None
    if file.cloud:
        names = [PurePosixPath(other.path) for other in files]
        end = _last_of([other.name for other in names if other.parent == path.parent])
    else:
        end = last(path.parent)
    if end is None:
        return None
    return "val" if path.name == end else "train"


def _last_shard(folder: Path) -> str | None:
    """The name of nanochat's validation shard in a folder; None if it is no such data set."""
    return _last_of(path.name for path in folder.glob("*.parquet"))


def _last_of(names: Iterable[str]) -> str | None:
    """The last of nanochat's shards; None if there is only one, or there are other names."""
    in_order = sorted(names)
    is_data_set = len(in_order) > 1 and all(map(_SHARD.fullmatch, in_order))
    return in_order[-1] if is_data_set else None


def files_of_split(files: list[AnyFile], split: Split | None) -> tuple[list[AnyFile], Split]:
    """The files of a split, and the split that this is.

    Args:
        files: files of one or more data sets.
        split: the split to read; None means `train` if a data set says what is for validation, else
            `all`.

    Raises:
        CorpusError: if no file belongs to the split, or no data set says what does.
    """
    if split == "all":
        return files, "all"
    splits = splits_of(files)
    if not any(splits):
        if split is not None:
            raise unsplit(split)
        return files, "all"
    name = split or "train"
    accepted = ("train", None) if name == "train" else (name,)
    of_name = [file for file, split in zip(files, splits, strict=True) if split in accepted]
    if not of_name:
        others = ", ".join(dict.fromkeys(split for split in splits if split))
        raise CorpusError(
            (
                f"no file of the source belongs to the split {name!r}: {files[0].name} belongs to "
                f"{others}"
            ),
            option="split",
            hint='pass split="all" to read it',
        )
    return of_name, name


def part(files: list[AnyFile], split: Split | None) -> list[AnyFile]:
    """The files of a split, by nanochat's rule where no data set says it: the last file is `val`.

    Args:
        files: files of one or more data sets.
        split: as in `files_of_split`.

    Raises:
        ArgumentError: if there is no such split.
        CorpusError: if no file belongs to the split.
    """
    if split is not None:
        check_choice("split", split, ("train", "val", "all"))
    if split in (None, "all") or any(splits_of(files)):
        return files_of_split(files, split)[0]
    if split == "train" and len(files) == 1:
        raise CorpusError(
            f"{files[0].name} is the only file, and the last file is the validation split",
            option="split",
            hint='pass split="all" to read it',
        )
    return files[-1:] if split == "val" else files[:-1]


def unsplit(split: str) -> CorpusError:
    """The error for a source that does not say which documents are for validation."""
    return CorpusError(
        f"the source does not say which documents belong to the split {split!r}",
        option="split",
        hint='pass the files or texts of the split alone, or split="all"',
    )
