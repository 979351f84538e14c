"""Says how each file of text is read, and which of them a data set assigns to which split.

| suffix | documents |
| --- | --- |
| `.parquet`; `.arrow`, `.feather` (Arrow IPC, files and streams) | the rows of a column |
| `.jsonl`, `.ndjson` | a field of the object on each line |
| `.json` | a field of each object in a list |
| `.csv`, `.tsv`, archives | rejected; the error suggests a conversion |
| `.txt`, `.text`, `.md`, and any other or none | the file is one document of plain text |

`.gz` or `.zst` may follow. In a folder, only files with a suffix listed here are read, and no
`.json`, which is mostly a configuration there.

Two kinds of data sets say which of their files are for validation:

- Those of Hugging Face, by the names of the Hub, `train-00000-of-00002.parquet`, `validation-...`
  and `test-...`, or by the folders of `DatasetDict.save_to_disk`: `train`, `validation`, `test`.
- The names of nanochat's data sets, `shard_00000.parquet` and so on, two or more and no other
  parquet file in their folder: the last one is for validation.

If names refer to other files, or some files are left out, the logger `bytepair` reports what is
read and what is not before the work begins.

Manifests and checkpoints record the files of a job under the names that the caller gave. If any is
relative, the working directory is recorded too, as a path relative to the folder of the record, so
a corpus may be named in one way today and in another tomorrow, and moved together with its results.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, Literal, TypeAlias

from bytepair._internal.checks import check_choice
from bytepair.errors import BytepairWarning, CorpusError, warn

Kind: TypeAlias = Literal["parquet", "arrow", "jsonl", "json", "text"]

#: The names of compressions in Arrow, by suffix.
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}

#: How a pointer of Git LFS begins, which stands where the file should be.
LFS: Final = b"version https://git-lfs.github.com/spec/v1"

_KINDS: Final[dict[str, Kind]] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
}
_LIST: Final = ".json"
_CSV: Final = (
    "tables of this format are not read",
    "write it as parquet or jsonl, or rename it to .txt to read it as one plain text",
)
_ARCHIVE: Final = (
    "archives and this compression are not read", "unpack it (.gz and .zst are read)",
)  # fmt: skip
_REFUSED: Final = {
    ".csv": _CSV, ".tsv": _CSV,
    **dict.fromkeys([".tar", ".tgz", ".zip", ".7z", ".rar", ".bz2", ".xz", ".lz4"], _ARCHIVE),
}  # fmt: skip


@dataclass(frozen=True)
class CorpusFile:
    """A file as the core reads it; with "lines", each line is a document."""

    path: str | os.PathLike[str]
    kind: Kind | Literal["lines"]
    compression: str | None = None


def corpus_file(path: PurePath) -> CorpusFile:
    """How a file on this machine is read, by its suffixes."""
    return CorpusFile(path, kind_of(path), compression_of(path))


def kind_of(path: str | PurePath) -> Kind:
    """How a file is read, by its suffix."""
    ending = _ending(path)
    if ending in _REFUSED:
        problem, hint = _REFUSED[ending]
        raise CorpusError(f"{path}: {problem}", hint=hint)
    return "json" if ending == _LIST else _KINDS.get(ending, "text")


def is_listed(path: str | PurePath) -> bool:
    """Whether a file is read as part of a folder."""
    return _ending(path) in _KINDS


def is_plain_text(path: str | PurePath) -> bool:
    """Whether a file is one document of uncompressed text."""
    return kind_of(path) == "text" and compression_of(path) is None


def has_known_ending(path: str | PurePath) -> bool:
    """Whether a name has a suffix that is listed here, supported or not."""
    return compression_of(path) is not None or _ending(path) in {*_KINDS, _LIST, *_REFUSED}


def listed_endings() -> str:
    """The suffixes of files that are read from a folder, for messages."""
    return " ".join(sorted(_KINDS))


def compression_of(path: str | PurePath) -> str | None:
    """The compression of a file, by its last suffix."""
    return COMPRESSIONS.get(PurePath(path).suffix.lower())


def _ending(path: str | PurePath) -> str:
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


#: What is read of a data set: the documents for training, those for validation, or all.
Split: TypeAlias = Literal["train", "val", "all"]

#: The logger of the line that says what is read.
LOG: Final = logging.getLogger("bytepair")

#: The number of skipped files that the line names.
MOST_NAMED: Final = 3

_HUB: Final = re.compile(r"(train|validation|test)-\d{5}-of-\d{5}\b.*\.parquet")
_HUB_SPLITS: Final = {"train": "train", "validation": "val", "test": "test"}
_SHARD: Final = re.compile(r"shard_\d{5}\.parquet")


@dataclass(frozen=True)
class Input:
    """A file with documents, by the name that the user gave."""

    name: str
    size: int  # in bytes
    cloud: Any  # the Arrow file system that contains the file; None means the local one
    path: str  # in that file system

    @property
    def system(self) -> Any:
        """The Arrow file system. It is a property because Arrow is slow to import."""
        from bytepair._internal.extras import pyarrow_fs as fs

        return self.cloud or fs.LocalFileSystem()


@dataclass(frozen=True)
class Files:
    """A source of files, in the order in which they are read.

    Attributes:
        skipped: the names of the files that a folder or glob has and that are not read.
        is_listed: whether names stood for other files, or files were left out.
    """

    files: list[Input]
    skipped: list[str] = field(default_factory=list, compare=False)
    split: Split = field(default="all", compare=False)
    is_listed: bool = field(default=False, compare=False)

    @property
    def size(self) -> int:
        """The total size of the files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def paths(self) -> list[Path] | None:
        """The paths of the files if all are local, else None."""
        is_here = all(file.cloud is None for file in self.files)
        return [Path(file.path) for file in self.files] if is_here else None

    def __str__(self) -> str:
        """What is read, and what is not."""
        counts = Counter(kind_of(file.path) for file in self.files)
        kinds = [f"{n:,} {kind} {'file' if n == 1 else 'files'}" for kind, n in counts.items()]
        text = " and ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)
        if self.split != "all":
            text += f" of the split {self.split}"
        if self.skipped:
            more = len(self.skipped) - MOST_NAMED
            names = ", ".join(self.skipped[:MOST_NAMED])
            text += f"; skipped {names}" + (f" and {more:,} more" if more > 0 else "")
        return text


def is_url(name: str) -> bool:
    """Whether a name is a URL rather than a path."""
    return re.match(r"[a-z][a-z0-9+.-]+://", name) is not None


def announce(files: Files | Mapping[str, Files]) -> None:
    """Log which files, or those of which groups, are read, if the caller's names do not say it."""
    groups = {"": files} if isinstance(files, Files) else files
    for group in groups.values():
        _warn_of_repeated(group.files)
    if any(group.is_listed for group in groups.values()):
        parts = (f"{name}: {group}" if name else f"{group}" for name, group in groups.items())
        LOG.info("reading %s", "; ".join(parts))


def _warn_of_repeated(files: Iterable[Input]) -> None:
    """Warn of files that are named more than once: they are read as often."""
    names = defaultdict[str, list[str]](list)
    for file in files:
        names[file.path if file.cloud else str(Path(file.path).absolute())].append(file.name)
    if repeated := [same[0] for same in names.values() if len(same) > 1]:
        text = f"the source has {repeated[0]} more than once"
        text += f", and {len(repeated) - 1:,} other files" if repeated[1:] else ""
        warn(BytepairWarning(f"{text}; it is read as often", hint="name each file once"))


def splits_of(files: list[Input]) -> list[str | None]:
    """The split that a data set gives each of its files; None if it says nothing."""
    beside = defaultdict[PurePosixPath, list[str]](list)
    for file in files:
        beside[PurePosixPath(file.path).parent].append(PurePosixPath(file.path).name)
    last_there = cache(lambda folder: _last_shard(beside[folder]))
    last_here = cache(lambda folder: _last_shard(path.name for path in folder.glob("*.parquet")))

    def split_of(file: Input) -> str | None:
        path = PurePosixPath(file.path) if file.cloud else Path(file.path)
        if match := _HUB.fullmatch(path.name):
            return _HUB_SPLITS[match[1]]
        if isinstance(path, Path) and (path.parent.parent / "dataset_dict.json").exists():
            return _HUB_SPLITS.get(path.parent.name)
        if not _SHARD.fullmatch(path.name):
            return None
        last = (last_there if file.cloud else last_here)(path.parent)
        return last and ("val" if path.name == last else "train")

    return [split_of(file) for file in files]


def _last_shard(names: Iterable[str]) -> str | None:
    """The last of nanochat's shards; None if there is only one, or there are other names."""
    in_order = sorted(names)
    is_data_set = len(in_order) > 1 and all(map(_SHARD.fullmatch, in_order))
    return in_order[-1] if is_data_set else None


def of_split(source: Files, split: Split | None, *, by_position: bool = False) -> Files:
    """The files of a split; None means `train` if a data set says what is for validation.

    `by_position` makes the last file that for validation where no data set says it, as in nanochat;
    without a split, all files are then read.
    """
    if split is not None:
        check_choice("split", split, ("train", "val", "all"))
    files, splits = source.files, splits_of(source.files)
    if split == "all" or (split is None and not any(splits)):
        return source
    if split is not None and not any(splits):
        if not by_position:
            raise unsplit(split)
        if len(files) == 1 and split == "train":
            raise CorpusError(
                f"{files[0].name} is the only file, and the last file is the validation split",
                option="split",
                hint='divide it into two files, or pass split="all" to read it',
            )
        splits = [*["train"] * (len(files) - 1), "val"]
    name = split or "train"
    accepted = ("train", None) if name == "train" else (name,)
    pairs = list(zip(files, splits, strict=True))
    chosen = [file for file, one in pairs if one in accepted]
    if not chosen:
        others = ", ".join(dict.fromkeys(one for one in splits if one))
        raise CorpusError(
            f"no file of the source belongs to the split {name!r}: {files[0].name} belongs to "
            f"{others}",
            option="split",
            hint='pass split="all" to read it',
        )
    left = [f"{PurePosixPath(f.name).name} ({one})" for f, one in pairs if one not in accepted]
    is_listed = source.is_listed or bool(left)
    return Files(chosen, [*left, *source.skipped], name, is_listed)


def unsplit(split: str) -> CorpusError:
    """The error for a source that does not say which documents are for validation."""
    return CorpusError(
        f"the source does not say which documents belong to the split {split!r}",
        option="split",
        hint='pass the files or texts of the split alone, or split="all"',
    )


#: The names and sizes of the inputs, in a record.
INPUTS: Final = "inputs"
#: The folder to which relative names refer, in a record.
BASE: Final = "inputs_from"


def recorded(files: list[Input], folder: Path) -> dict[str, Any]:
    """The record of inputs."""
    values: dict[str, Any] = {INPUTS: [[file.name, file.size] for file in files]}
    if any(not is_url(file.name) and not Path(file.name).is_absolute() for file in files):
        here, there = os.path.realpath(os.curdir), os.path.realpath(folder)
        try:
            values[BASE] = os.path.relpath(here, there)
        except ValueError:  # another drive of Windows
            values[BASE] = here
    return values


def differing(record: Mapping[str, Any], job: Mapping[str, Any], folder: Path) -> list[str]:
    """The names of the values that differ between the records of two jobs; see `shared`."""
    keys = {**record, **job}.keys() - {INPUTS, BASE}
    changes = [key for key in keys if record.get(key) != job.get(key)]
    is_same = len(_pairs(record)) == len(_pairs(job)) == shared(record, job, folder)
    return sorted(changes if is_same else [*changes, INPUTS])


def shared(record: Mapping[str, Any], job: Mapping[str, Any], folder: Path) -> int:
    """How many inputs at the beginning are the same files, of the same size, in two records.

    Example:
        >>> folder = Path("/data/shards")
        >>> record = {"inputs": [["in/a.txt", 5], ["in/b.txt", 6]], "inputs_from": ".."}
        >>> shared(record, {"inputs": [["/data/in/a.txt", 5], ["/data/in/c.txt", 6]]}, folder)
        1
    """
    home = os.path.realpath(folder)
    bases = [
        os.path.normpath(os.path.join(home, str(side.get(BASE, os.curdir))))  # noqa: PTH118
        for side in (record, job)
    ]
    count = 0
    for old, new in zip(_pairs(record), _pairs(job), strict=False):
        if old[1] != new[1] or not _is_same_file(old[0], new[0], *bases):
            break
        count += 1
    return count


def _is_same_file(old: str, new: str, old_base: str, new_base: str) -> bool:
    """Whether two names are the same file, each relative to its base.

    A relative name that has lost its file is that of a corpus or a result that was moved.
    """
    if old == new:
        if old_base == new_base or Path(old).is_absolute() or is_url(old):
            return True
        place = _real(old_base, old)
        return place == _real(new_base, new) or not Path(place).exists()
    if is_url(old) or is_url(new):
        return False
    return _real(old_base, old) == _real(new_base, new)


def _real(base: str, name: str) -> str:
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
