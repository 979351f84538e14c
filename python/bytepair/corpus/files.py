"""Finds the files that names stand for, and says how each is read and of which split it is.

Links are followed, and each real folder is read once, by its shortest path. Hidden files and
folders, files with an unknown suffix and the card of a data set (a README beside tables) are passed
over and listed. What cannot be read is an error. `folder`, `folder/*` and `folder/**` are the same
files in the same order.

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

If names stand for other files, the logger `bytepair` says what is read and what is not.

Manifests and checkpoints record the real paths of the files of a job, from the folder of the first
one on, so a corpus may be named in one way today and in another tomorrow, and moved together with
its results.
"""

from __future__ import annotations

import fnmatch
import glob
import itertools
import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, Literal, TypeAlias

from bytepair import _core
from bytepair._internal.checks import check_choice
from bytepair.corpus.arrow import is_arrow
from bytepair.errors import BytepairWarning, CorpusError, warn

Kind: TypeAlias = Literal["parquet", "arrow", "jsonl", "json", "text"]

#: The names of compressions in Arrow, by suffix.
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}

#: How a pointer of Git LFS begins, which stands where the file should be.
LFS: Final = b"version https://git-lfs.github.com/spec/v1"

_KINDS: Final[dict[str, Kind]] = {
    ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".txt": "text", ".text": "text", ".md": "text",
}  # fmt: skip
_LIST: Final = ".json"
_TABLES: Final = (".csv", ".tsv")
_PACKED: Final = (".tar", ".tgz", ".zip", ".7z", ".rar", ".bz2", ".xz", ".lz4")


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
    if ending in (*_TABLES, *_PACKED):
        hint = "write it as parquet or jsonl" if ending in _TABLES else "unpack it"
        raise CorpusError(f"{path}: files of this kind are not read", hint=hint)
    return "json" if ending == _LIST else _KINDS.get(ending, "text")


def is_listed(path: str | PurePath) -> bool:
    """Whether a file is read as part of a folder."""
    return _ending(path) in _KINDS


def is_plain_text(path: str | PurePath) -> bool:
    """Whether a file is one document of uncompressed text."""
    return kind_of(path) == "text" and compression_of(path) is None


def has_known_ending(path: str | PurePath) -> bool:
    """Whether a name has a suffix that is listed here, supported or not."""
    return compression_of(path) is not None or _ending(path) in {*_KINDS, _LIST, *_TABLES, *_PACKED}


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
        splits = [*["train"] * (len(files) - 1), "val"]
    name = split or "train"
    accepted = ("train", None) if name == "train" else (name,)
    pairs = list(zip(files, splits, strict=True))
    chosen = [file for file, one in pairs if one in accepted]
    if not chosen:
        others = ", ".join(dict.fromkeys(one for one in splits if one))
        text = f"the source has no file of the split {name!r}: {files[0].name} belongs to {others}"
        raise CorpusError(text, option="split", hint='pass split="all" to read it')
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
#: The folder to which local names refer, in a record: its path, and that from the record's folder.
BASE: Final = "inputs_from"


def recorded(files: list[Input], folder: Path) -> dict[str, Any]:
    """The record of inputs; a local one is named by its path from the folder of the first one."""
    home = os.path.realpath(folder)
    is_local = [file.name == file.path for file in files]
    base = os.path.realpath(Path(files[0].path).parent) if is_local[0] else home
    names = [
        _relative(os.path.realpath(file.path), base) if is_here else file.name
        for file, is_here in zip(files, is_local, strict=True)
    ]
    record: dict[str, Any] = {
        INPUTS: [[name, file.size] for name, file in zip(names, files, strict=True)]
    }
    if is_local[0]:
        record[BASE] = [base, _relative(base, home)]
    return record


def _relative(path: str, base: str) -> str:
    try:
        return Path(os.path.relpath(path, base)).as_posix()
    except ValueError:  # another drive of Windows
        return path


def differing(record: Mapping[str, Any], job: Mapping[str, Any]) -> list[str]:
    """The names of the values that differ between the records of two jobs.

    The folder of the inputs is the same at the same path, and where it was moved with the record.
    """
    names = sorted(key for key in {**record, **job} if record.get(key) != job.get(key))
    match record.get(BASE), job.get(BASE):
        case [old, old_way], [new, new_way] if old == new or old_way == new_way:
            return [name for name in names if name != BASE]
    return names


def shared(record: Mapping[str, Any], job: Mapping[str, Any]) -> int:
    """How many inputs at the beginning have equal names and sizes in two records."""
    pairs = zip(record.get(INPUTS, ()), job.get(INPUTS, ()), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


#: What names files: a path, a folder, a glob or a URL, or an iterable of these.
Names: TypeAlias = str | os.PathLike[str] | Iterable[str] | Iterable[os.PathLike[str]] | Any

#: The parts of a glob that match any name, and so select nothing by it.
_ANY: Final = ("*", "**")


@dataclass(frozen=True)
class Paths:
    """A source of files, by their names: strings in it are paths, folders, globs or URLs.

    Attributes:
        names: one name, or an iterable of them.

    Example:
        >>> import bytepair
        >>> names = [str(path) for path in bytepair.sample.paths()]
        >>> bytepair.count(bytepair.corpus.Paths(names)).total > 10_000
        True
    """

    names: Any


def list_files(names: Names) -> list[str]:
    """The names of the files that match a path, a folder, a glob or a URL.

    Args:
        names: one of these, or an iterable of them.

    Raises:
        CorpusError: if a name matches no file, or a file of an unsupported kind.

    Example:
        >>> import bytepair
        >>> len(list_files(bytepair.sample.paths()))
        61
    """
    return [file.name for file in files_matching(names).files]


def files_matching(names: Names | Paths, way_out: str = "check the path") -> Files:
    """The files that match names, with what was passed over; `way_out` is a hint if none does."""
    if isinstance(names, Paths):
        names = names.names
    if isinstance(names, str | os.PathLike):
        names = [names]
    not_names = CorpusError("the source must be files: paths, folders, globs or URLs")
    if is_arrow(names) or not isinstance(names, Iterable):
        raise not_names
    files: list[Input] = []
    skipped: list[str] = []
    is_listed = False
    for name in names:
        if not isinstance(name, str | os.PathLike) or not os.fspath(name):
            raise not_names
        text = os.fspath(name)
        matches = _remote(text) if is_url(text) else _local(text, way_out)
        files += matches.files
        skipped += matches.skipped
        is_listed = is_listed or matches.is_listed
    if not files:
        raise CorpusError("the source is an empty list of files")
    return Files(files, skipped, is_listed=is_listed)


def exists(name: str) -> bool:
    """Whether there is a file or a folder of this name."""
    return bool(name) and os.path.exists(name)  # noqa: PTH110 - a text may be no valid path


def _local(name: str, way_out: str) -> Files:
    if not exists(name):
        if not glob.has_magic(name):
            short = name if len(name) < 80 else f"{name[:77]}..."
            raise CorpusError(f"there is no file or folder {short!r}", hint=way_out)
        files, skipped = _matching(name)
    elif Path(name).is_dir():
        files, skipped = _in_folder(Path(name))
        if not files:
            raise CorpusError(
                f"the folder {name} contains no file with a known suffix: "
                f"{' '.join(sorted(_KINDS))}, or these with .gz or .zst; to read other files as "
                "text, pass their paths"
            )
    else:
        return Files([_input(Path(name))])
    return Files([_input(path) for path in files], skipped, is_listed=True)


def _input(path: Path) -> Input:
    kind_of(path)  # raises if the file is not supported
    try:
        size = path.stat().st_size
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
    if not os.access(path, os.R_OK):
        raise CorpusError(f"{path} cannot be read: change its permissions, or leave it out")
    return Input(str(path), size, None, str(path))


def _in_folder(folder: Path) -> tuple[list[Path], list[str]]:
    """The files of text in a folder and in those below it, and the names of what else is there."""
    files: list[Path] = []
    others: list[Path] = []
    for place in _folders(folder):
        for path in _entries(place):
            if path.name.startswith("."):
                others.append(path)
            elif not _is_folder(path):
                (files if path.is_file() and is_listed(path) else others).append(path)
    cards = _cards(files)
    names = (f"{path.relative_to(folder)}{'/' * path.is_dir()}" for path in {*others, *cards})
    return sorted(set(files) - cards), sorted(names)


def _matching(pattern: str) -> tuple[list[Path], list[str]]:
    """The files that match a glob, and the names of what is passed over.

    For a folder that matches, the files are those in it. A file whose name matches more than `*` is
    read whatever its suffix; a pipe or a device is not.
    """
    path = Path(pattern)
    start = Path(path.anchor) if path.anchor else Path()
    parts = path.relative_to(path.anchor).parts if path.anchor else path.parts
    says_any = parts[-1] in _ANY
    files: set[Path] = set()
    skipped: set[str] = set()
    for path in _matches(start, parts):
        if _is_folder(path):
            inner, others = _in_folder(path)
            files |= set(inner)
            skipped |= {str(path / name) for name in others}
        elif not path.is_file() or (says_any and not is_listed(path)):
            skipped.add(str(path))
        else:
            files.add(path)
    if not files:
        raise CorpusError(f"no file matches {_core.shown(pattern)}")
    cards = _cards(files) if says_any else set()
    return _once(files - cards), sorted({*skipped, *map(str, cards)})


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise CorpusError(
            f"the folder {folder} cannot be read: {error.strerror}",
            hint="change its permissions, or name the files to read",
        ) from error


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder, through any links; one that leads nowhere is an error."""
    try:
        path.stat()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        if path.is_symlink():
            reason = f"is a link to {path.readlink()}, which cannot be read: {error.strerror}"
        raise CorpusError(f"{path} {reason}", hint="repair or remove it") from error
    return path.is_dir()


def _folders(folder: Path) -> Iterator[Path]:
    """A folder and those below it, each real one once, by its shortest path; no hidden ones."""
    seen = {os.path.realpath(folder)}
    level = [folder]
    while level:
        yield from level
        below = []
        for path in (path for place in level for path in _entries(place)):
            if path.name.startswith(".") or not _is_folder(path):
                continue
            if (real := os.path.realpath(path)) not in seen:
                seen.add(real)
                below.append(path)
        level = sorted(below)


def _matches(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """The paths below a folder that match the parts of a glob; `**` is any number of folders."""
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if part == "**":
        for place in _folders(folder):
            yield from _matches(place, rest or ("*",))
    elif glob.has_magic(part):
        for path in _entries(folder):
            is_match = part.startswith(".") or not path.name.startswith(".")
            if is_match and fnmatch.fnmatch(path.name, part) and (not rest or _is_folder(path)):
                yield from _matches(path, rest)
    elif (folder / part).is_dir() or (not rest and os.path.lexists(folder / part)):
        yield from _matches(folder / part, rest)


def _once(files: Iterable[Path]) -> list[Path]:
    """The files, sorted, without those whose folder is also reached by a shorter path."""
    folders: dict[str, Path] = {}
    parents = {path.parent for path in files}
    for parent in sorted(parents, key=lambda parent: (len(parent.parts), parent)):
        folders.setdefault(os.path.realpath(parent), parent)
    unique = set(folders.values())
    return sorted(path for path in files if path.parent in unique)


def _cards(files: Iterable[Any]) -> set[Any]:
    """The cards of data sets: each README beside or above tables."""
    paths: list[PurePath] = list(files)
    tables = {parent for path in paths if kind_of(path) != "text" for parent in path.parents}
    return {path for path in paths if path.stem.lower() == "readme" and path.parent in tables}


def _remote(url: str) -> Files:
    from bytepair._internal.extras import pyarrow_fs as fs

    system, path = _file_system(url)
    prefix = url[: len(url) - len(path)] if url.endswith(path) else ""
    if isinstance(system, fs.LocalFileSystem):
        if not exists(path) and not glob.has_magic(path):
            raise CorpusError(f"there is no file at {url}")
        local = _local(path, "check the URL")
        files = [replace(file, name=prefix + file.path) for file in local.files]
        return replace(local, files=files)
    try:
        infos, base = _stored(system, path)
    except Exception as error:  # file systems have no common base class of errors
        hint = "check the network and your credentials"
        raise CorpusError(f"{url}: {error or type(error).__name__}", hint=hint) from error
    sizes = {info.path: info.size for info in infos if info.type == fs.FileType.File}
    names, skipped = (list(sizes), []) if base is None else in_cloud(list(sizes), base, path)
    if not names:
        raise CorpusError(f"there is no file at {url}")
    for name in names:
        kind_of(name)  # raises if the file is not supported
    inputs = [Input(prefix + name, sizes[name], system, name) for name in sorted(names)]
    return Files(inputs, skipped, is_listed=base is not None)


def _stored(system: Any, path: str) -> tuple[list[Any], str | None]:
    """What an Arrow file system stores at a path, and the folder that was listed, if any."""
    from bytepair._internal.extras import pyarrow_fs as fs

    is_glob = any(mark in path for mark in "*?[")
    entries = [] if is_glob else [system.get_file_info(path)]
    if entries and entries[0].type != fs.FileType.Directory:
        return entries, None
    base = re.split(r"/[^/]*[*?\[]", path)[0]
    entries = system.get_file_info(fs.FileSelector(base, recursive=True))
    return [one for one in entries if not is_glob or PurePosixPath(one.path).match(path)], base


def in_cloud(names: list[str], base: str, pattern: str) -> tuple[list[str], list[str]]:
    """The files of text among those of a cloud folder or glob, and the names of the others."""
    last = PurePosixPath(pattern).name
    if glob.has_magic(last) and last not in _ANY:
        return names, []
    paths = [PurePosixPath(name) for name in names]
    visible = [
        path
        for path in paths
        if is_listed(path) and not any(p.startswith(".") for p in path.relative_to(base).parts)
    ]
    files = set(visible) - _cards(visible)
    left = [str(path.relative_to(base)) for path in paths if path not in files]
    return [str(path) for path in paths if path in files], sorted(left)


def _file_system(url: str) -> tuple[Any, str]:
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_fs as fs

    try:
        if url.startswith("hf://"):
            import huggingface_hub  # noqa: F401 (Arrow before 20 does not ask for it)
        system_and_path: tuple[Any, str] = fs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        try:
            import fsspec

            other, path = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as second:
            raise CorpusError(f"{url}: {error}; and fsspec says: {second}") from error
        system_and_path = fs.PyFileSystem(fs.FSSpecHandler(other)), path
    except ImportError as error:  # Arrow asks huggingface_hub for hf://
        raise ImportError(
            f"to read {url}, install huggingface_hub: pip install 'bytepair[hub]'"
        ) from error
    return system_and_path
