"""Which split a file belongs to, and which documents are held out of training.

A data set may say itself which of its files are for validation:

- `splits.json` beside the files, or in one of the three folders above, with names or globs for each
  split: `{"val": ["shard_06542.parquet"]}`. Files that it does not name are for training.
- The names of the Hugging Face Hub: `train-00000-of-00002.parquet`, `validation-...`, `test-...`.
- The names of nanochat's data sets, `shard_00000.parquet` and so on, two or more and no other
  parquet file in their folder: the last one is for validation.

For any other source, `HoldOut` divides the documents.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

from bytepair.corpus.column import Column, Skip, TextBatch
from bytepair.errors import ArgumentError, CorpusError

#: What is read of a data set: the documents for training, those for validation, or all.
Split: TypeAlias = Literal["train", "val", "all"]

#: The name of the file in which a data set says which of its files are for validation.
MANIFEST: Final = "splits.json"
#: The number of folders above a file in which its manifest may be, beside that of the file.
_MOST_LEVELS: Final = 3

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


# ---------------------------------------------------------------------------- files


def splits_of(files: Sequence[File]) -> list[str | None]:
    """The split that a data set gives each of its files; None if it says nothing.

    Args:
        files: files of one or more data sets.

    Raises:
        CorpusError: if a manifest is invalid.

    Example:
        >>> from bytepair.corpus.files import Input
        >>> names = ["data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet"]
        >>> splits_of([Input(name, 1, None, name) for name in names])
        ['train', 'test']
    """
    manifest_of = cache(_manifest_of)
    last = cache(_last_shard)
    return [_split_of(file, files, manifest_of, last) for file in files]


def _split_of(file: File, files: Sequence[File], manifest_of: Any, last: Any) -> str | None:
    path = PurePosixPath(file.path) if file.cloud else Path(file.path)
    manifest = manifest_of(path.parent) if isinstance(path, Path) else None
    if isinstance(path, Path) and manifest is not None:
        return _named_split(path, *manifest)
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


def _manifest_of(folder: Path) -> tuple[Path, dict[str, list[str]]] | None:
    """The nearest manifest of a folder, with its own folder."""
    for place in [folder, *folder.absolute().parents[:_MOST_LEVELS]]:
        if (place / MANIFEST).is_file():
            return place, _read_manifest(place / MANIFEST)
    return None


def _read_manifest(path: Path) -> dict[str, list[str]]:
    try:
        splits = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorpusError(f"{path} is not JSON: {error}", hint="repair or remove it") from None
    values: list[Any] = list(splits.values()) if isinstance(splits, dict) else [None]
    lists = all(isinstance(names, list) for names in values)
    if not lists or not all(isinstance(name, str) for names in values for name in names):
        raise CorpusError(
            f'{path} must hold lists of file names, as {{"val": ["a.parquet"]}}',
            hint="repair or remove it",
        )
    return dict(splits)


def _named_split(path: Path, folder: Path, manifest: dict[str, list[str]]) -> str:
    """The split that a manifest gives a file; `train` for a file that it does not name."""
    name = path.absolute().relative_to(folder.absolute()).as_posix()
    for split, globs in manifest.items():
        if any(fnmatch.fnmatch(name, one) for one in globs):
            return split
    return "train"


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
        CorpusError: if no file belongs to the split.
    """
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
        option="hold_out",
        hint='name the files yourself, or pass hold_out= to hold documents out, or split="all"',
    )


# ---------------------------------------------------------------------------- documents


@dataclass(frozen=True)
class HoldOut:
    """A division of any documents into those for training and those for validation.

    Attributes:
        amount: below 1, the share of documents for validation: those whose text has a small hash,
            whatever their order and the other documents. From 1, a number of documents: the first
            ones.
        split: which of the two to read.

    Example:
        >>> from bytepair.corpus.splits import HoldOut
        >>> texts = [[str(number) for number in range(10)]]
        >>> list(HoldOut(2, "val").chosen(iter(texts)))
        [['0', '1']]
        >>> list(HoldOut(0.3, "val").chosen(iter(texts)))
        [['2', '6']]
    """

    amount: float
    split: Literal["train", "val"]

    @property
    def counts(self) -> bool:
        """Whether the first documents are held out, so that their order matters."""
        return self.amount >= 1

    def flags(self, texts: Iterable[bytes], first: int) -> list[bool]:
        """For each document, whether it belongs to the split.

        Args:
            texts: the UTF-8 of consecutive documents.
            first: the number of documents before them.
        """
        is_val = self.split == "val"
        if self.counts:
            return [(at < self.amount) == is_val for at, _ in enumerate(texts, first)]
        limit = int(self.amount * (1 << 64))
        hashes = (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") for text in texts)
        return [(value < limit) == is_val for value in hashes]

    def chosen(self, stream: Iterator[TextBatch | Skip]) -> Iterator[TextBatch | Skip]:
        """The documents of a stream that belong to the split; skipped ones are passed on."""
        done = 0
        for item in stream:
            if isinstance(item, Skip):
                yield item
                continue
            flags = self.flags(_texts(item), done)
            done += len(flags)
            if all(flags):
                yield item
            elif isinstance(item, list):
                yield [text for text, is_chosen in zip(item, flags, strict=True) if is_chosen]
            elif any(flags):
                yield _joined([item[slice(*run)] for run in _runs(flags)])

    def chosen_runs(self, column: Column, first: int) -> list[Column]:
        """The consecutive documents of a column that belong to the split.

        Args:
            column: the documents.
            first: the number of documents before them.
        """
        return [column[slice(*run)] for run in _runs(self.flags(_texts(column), first))]


def hold_out(amount: Any, split: Split | None) -> HoldOut | None:
    """The division that the arguments `hold_out` and `split` ask for.

    Args:
        amount: a number of documents from 1, a share below 1, or None.
        split: `train` (also None) or `val`.

    Raises:
        ArgumentError: if the amount is neither, or the split is `all`.
    """
    if amount is None:
        return None
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    is_count = is_number and 1 <= amount < 1 << 63 and amount == int(amount)
    if not is_count and not (is_number and 0 < amount < 1):
        is_shown = not isinstance(amount, int) or abs(amount) < 1 << 63
        raise ArgumentError(
            f"hold_out is {amount!r}" if is_shown else "hold_out is too large",
            option="hold_out",
            hint="pass a number of documents, such as 1000, or a share below 1, such as 0.01",
        )
    if split == "all":
        raise ArgumentError(
            'hold_out would be ignored with split="all"', option="hold_out", hint="pass one of them"
        )
    return HoldOut(amount, split or "train")


def _texts(batch: TextBatch) -> Iterator[bytes]:
    if isinstance(batch, list):
        return (text.encode("utf-8", "surrogatepass") for text in batch)
    spans = pairwise(batch.offsets.tolist())
    return (batch.data[start:end].tobytes() for start, end in spans)


def _runs(flags: list[bool]) -> Iterator[tuple[int, int]]:
    """The start and the end of each run of true values."""
    start = None
    for at, flag in enumerate([*flags, False]):
        if flag and start is None:
            start = at
        elif not flag and start is not None:
            yield start, at
            start = None


def _joined(columns: list[Column]) -> Column:
    """Columns as one; its rows need not be consecutive."""
    import numpy as np

    data = [column.data[column.offsets[0] : column.offsets[-1]] for column in columns]
    lengths = np.concatenate([np.diff(column.offsets) for column in columns])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return replace(columns[0], data=np.concatenate(data), offsets=offsets)
