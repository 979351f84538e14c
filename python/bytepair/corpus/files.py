"""Names in, files out: paths, folders, globs and URLs, of this machine and of clouds.

What a folder or a glob contains is defined in `folders`, which files belong to a split in `splits`.
Where names stand for other files, or some are left out, a line of the logger `bytepair` says before
the work what is read and what is not.
"""

from __future__ import annotations

import glob
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

from bytepair.corpus.arrow import is_arrow
from bytepair.corpus.folders import in_cloud, in_folder, matching
from bytepair.corpus.kinds import kind_of
from bytepair.corpus.splits import Split, files_of_split, splits_of
from bytepair.errors import CorpusError

#: What names files: a path, a folder, a glob or a URL, or an iterable of these.
Names: TypeAlias = str | os.PathLike[str] | Iterable[str] | Iterable[os.PathLike[str]] | Any

#: The logger of the line that says what is read.
LOG: Final = logging.getLogger("bytepair")

#: The number of skipped files that the line names.
MOST_NAMED: Final = 3

#: A cloud that does not answer within about this many seconds is an error. Once files are found,
#: reading them retries for as long as the cloud's own library does.
ANSWER_SECONDS: Final = 20


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


@dataclass(frozen=True)
class Input:
    """A file with documents.

    Attributes:
        name: the name as given by the user.
        size: the size in bytes.
        cloud: the Arrow file system that contains the file; None means the local one.
        path: the path in that file system.
    """

    name: str
    size: int
    cloud: Any
    path: str

    @property
    def system(self) -> Any:
        """The Arrow file system. It is a property because Arrow is slow to import."""
        from bytepair._internal.extras import pyarrow_fs as fs

        return self.cloud or fs.LocalFileSystem()


@dataclass(frozen=True)
class Files:
    """A source of files.

    Attributes:
        files: the files in the order in which they are read.
        skipped: the names of the files that a folder or glob has and that are not read.
        split: the split to which the files belong; "all" if none was chosen.
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


def of_split(all_files: Files, split: Split | None) -> Files:
    """The files of a split.

    Raises:
        CorpusError: if no file belongs to the split, or no data set says what does.
    """
    files, actual = files_of_split(all_files.files, split)
    splits: dict[Input, str | None] = {}
    if actual != "all":
        splits = dict(zip(all_files.files, splits_of(all_files.files), strict=True))
    left = [
        f"{PurePosixPath(file.name).name} ({name})"
        for file, name in splits.items()
        if file not in files
    ]
    is_listed = all_files.is_listed or bool(left)
    return Files(files, [*left, *all_files.skipped], actual, is_listed)


def describe(files: Files) -> str:
    """What is read of a source, and what is not, in words.

    Example:
        >>> from bytepair.corpus.files import Files, Input, describe
        >>> files = [Input(name, 1, None, name) for name in ("a.parquet", "b.parquet")]
        >>> describe(Files(files, ["README.md"]))
        '2 parquet files; skipped README.md'
        >>> describe(Files(files[:1], ["b.parquet"], "train"))
        '1 parquet file of the split train; skipped b.parquet'
    """
    counts = Counter(kind_of(file.path) for file in files.files)
    kinds = [f"{n:,} {kind} {'file' if n == 1 else 'files'}" for kind, n in counts.items()]
    text = " and ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)
    if files.split != "all":
        text += f" of the split {files.split}"
    if files.skipped:
        more = len(files.skipped) - MOST_NAMED
        names = ", ".join(files.skipped[:MOST_NAMED])
        text += f"; skipped {names}" + (f" and {more:,} more" if more > 0 else "")
    return text


def announce(files: Files | Mapping[str, Files]) -> None:
    """Log what is read before it is read, if the names that the caller gave do not say it.

    Args:
        files: files, or those of several groups by name.
    """
    groups = {"": files} if isinstance(files, Files) else files
    if not any(group.is_listed for group in groups.values()):
        return
    parts = [f"{name}: {describe(group)}" if name else describe(group)
             for name, group in groups.items()]  # fmt: skip
    LOG.info("reading %s", "; ".join(parts))


def files_of(names: Names | Files) -> list[Input]:
    """The files that match a path, a folder, a glob or a URL, or an iterable of these.

    Args:
        names: the path, folder, glob or URL, or an iterable of these.

    Raises:
        CorpusError: if a name matches no file, or a file of an unsupported kind.
    """
    return files_matching(names).files


def files_matching(names: Names | Files, way_out: str = "check the path") -> Files:
    """The files that match names, with what was passed over.

    Args:
        names: as in `files_of`.
        way_out: the remedy to suggest in the error message if nothing matches.
    """
    if isinstance(names, Files):
        return names
    if isinstance(names, Paths):
        names = names.names
    if isinstance(names, str | os.PathLike):
        names = [names]
    if is_arrow(names) or not isinstance(names, Iterable):
        raise CorpusError("the source must be files: paths, folders, globs or URLs")
    files: list[Input] = []
    skipped: list[str] = []
    is_listed = False
    for name in names:
        if not isinstance(name, str | os.PathLike) or not os.fspath(name):
            raise CorpusError("the source must be files: paths, folders, globs or URLs")
        text = os.fspath(name)
        matches = _remote(text) if is_url(text) else _local(text, way_out)
        files += matches.files
        skipped += matches.skipped
        is_listed = is_listed or matches.is_listed
    if not files:
        raise CorpusError("the source is an empty list of files")
    return Files(files, skipped, is_listed=is_listed)


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
    return [file.name for file in files_of(names)]


def is_url(name: str) -> bool:
    """Whether a name is a URL rather than a path."""
    return re.match(r"[a-z][a-z0-9+.-]+://", name) is not None


# ---------------------------------------------------------------------------- this machine


def exists(name: str) -> bool:
    """Whether there is a file or a folder of this name."""
    return bool(name) and os.path.exists(name)  # noqa: PTH110 - a text may be no valid path


def _local(name: str, way_out: str) -> Files:
    """The files that match a path, a folder or a glob, sorted.

    Args:
        name: the path, the folder or the glob.
        way_out: the remedy to suggest in the error message if nothing matches.

    Raises:
        CorpusError: if nothing matches, or a file is of an unsupported kind or cannot be read.
    """
    if not exists(name):
        if not glob.has_magic(name):
            short = name if len(name) < 80 else f"{name[:77]}..."
            raise CorpusError(f"there is no file or folder {short!r}", hint=way_out)
        listing = matching(name)
    elif Path(name).is_dir():
        listing = in_folder(Path(name))
    else:
        return Files([_input(Path(name))])
    return Files([_input(path) for path in listing.files], listing.skipped, is_listed=True)


def _input(path: Path) -> Input:
    """A local file."""
    kind_of(path)  # raises if the file is not supported
    try:
        size = path.stat().st_size
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
    if not os.access(path, os.R_OK):
        raise CorpusError(f"{path} cannot be read: change its permissions, or leave it out")
    return Input(str(path), size, None, str(path))


# ---------------------------------------------------------------------------- clouds


def _remote(url: str) -> Files:
    from bytepair._internal.extras import pyarrow_fs as fs

    system, path = _file_system(url)
    prefix = url[: len(url) - len(path)] if url.endswith(path) else ""
    if isinstance(system, fs.LocalFileSystem):
        if not exists(path) and not glob.has_magic(path):
            raise CorpusError(f"there is no file at {url}")
        local = _local(path, "check the URL")
        files = [replace(file, name=prefix + file.path) for file in local.files]
        return Files(files, local.skipped, is_listed=local.is_listed)
    first = _file_system(options)[0] if (options := with_retry_limit(url)) != url else system
    try:
        infos, base = _stored(first, path)
    except Exception as error:  # file systems have no common base class of errors
        hint = "" if options == url else _GOOGLE_HINT
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

    if any(mark in path for mark in "*?["):
        base = re.split(r"/[^/]*[*?\[]", path)[0]
        entries = system.get_file_info(fs.FileSelector(base, recursive=True))
        return [info for info in entries if PurePosixPath(info.path).match(path)], base
    entries = [system.get_file_info(path)]
    if entries[0].type != fs.FileType.Directory:
        return entries, None
    return system.get_file_info(fs.FileSelector(path, recursive=True)), path


def with_retry_limit(url: str) -> str:
    """Add a retry limit to a URL of Google Cloud Storage that has none; return others unchanged.

    Google's library silently retries for 15 minutes by default; others give up within seconds.

    Example:
        >>> with_retry_limit("gs://bucket/a.parquet")
        'gs://bucket/a.parquet?retry_limit_seconds=20'
        >>> with_retry_limit("s3://bucket/a.parquet")
        's3://bucket/a.parquet'
    """
    if not url.startswith(("gs://", "gcs://")) or "retry_limit_seconds=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}retry_limit_seconds={ANSWER_SECONDS}"


_GOOGLE_HINT: Final = (
    "check the network and your credentials, or read a public bucket without credentials, as "
    "gs://anonymous@bucket/..., or wait longer for an answer, with ...?retry_limit_seconds=300"
)


def _file_system(url: str) -> tuple[Any, str]:
    """The Arrow file system of a URL, or the one of fsspec if Arrow has none."""
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
