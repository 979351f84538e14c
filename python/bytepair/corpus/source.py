"""Resolve a source of text to files, texts or Arrow data.

The type of a source determines how it is read; nothing is guessed:

| source | read as |
| --- | --- |
| `str`, `Path` | a path, a folder, a glob or a URL |
| an iterable of `Path` | files |
| an iterable of `str` | texts; if they look like paths, an error that explains both readings |
| an object with the Arrow interface, or an iterable of such objects | Arrow data |
| `files=`, `texts=` | files or texts |
"""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

from bytepair._internal.arguments import checked
from bytepair.corpus.kinds import has_known_ending, is_listed, kind_of, listed_endings
from bytepair.errors import ArgumentError, CorpusError

#: The type of a source of text; see the table above.
Source: TypeAlias = "str | os.PathLike[str] | Iterable[str] | Iterable[os.PathLike[str]] | Any"

#: The number of items of an iterable that are inspected to determine its type.
LOOKED_AT: Final = 64

#: A cloud that does not answer within about this many seconds is an error. Once files are found,
#: reading them retries for as long as the cloud's own library does.
ANSWER_SECONDS: Final = 20


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
class Limits:
    """Limits on how much of a corpus to read.

    Attributes:
        max_chars: stop after the document with which the total exceeds this many characters.
        doc_cap: read at most this many characters of each document.

    Raises:
        CorpusError: if a limit is below 1.
    """

    max_chars: int | None = None
    doc_cap: int | None = None

    def __post_init__(self) -> None:
        """Reject negative limits: as slices, they would silently cut text at the end."""
        for name, value in (("max_chars", self.max_chars), ("doc_cap", self.doc_cap)):
            if value is not None and value < 1:
                raise CorpusError(f"{name} is {value}; pass at least 1, or None for no limit")


@dataclass(frozen=True)
class Files:
    """A source of files.

    Attributes:
        files: the files in the order in which they are read.
    """

    files: list[Input]

    @property
    def size(self) -> int:
        """The total size of the files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def paths(self) -> list[Path] | None:
        """The paths of the files if all are local, else None."""
        is_here = all(file.cloud is None for file in self.files)
        return [Path(file.path) for file in self.files] if is_here else None


@dataclass(frozen=True)
class Texts:
    """A source of texts in memory.

    Attributes:
        texts: one document each.
    """

    texts: Iterable[str]


@dataclass(frozen=True)
class ArrowData:
    """A source of Arrow columns in memory.

    Attributes:
        data: an object with the Arrow interface, or an iterable of such objects.
    """

    data: Any


#: A resolved source.
Resolved: TypeAlias = Files | Texts | ArrowData


def resolve(source: Source | Resolved = None, *, files: Any = None, texts: Any = None) -> Resolved:
    """Determine what a source is.

    Args:
        source: see the table above.
        files: a path, a folder, a glob or a URL, or an iterable of these.
        texts: an iterable of `str`.

    Raises:
        CorpusError: if a path, folder, glob or URL matches no file or an unsupported file; if texts
            look like paths; or if the argument is not a source of text.
        TypeError: unless exactly one of the three is given.

    Example:
        >>> import bytepair
        >>> from bytepair.corpus.source import resolve
        >>> resolve(["one text", "another"])
        Texts(texts=['one text', 'another'])
        >>> resolve(bytepair.sample.paths()) == resolve(files=bytepair.sample.paths())
        True
    """
    if sum(one is not None for one in (source, files, texts)) != 1:
        raise ArgumentError("pass exactly one of source, files= and texts=")
    if isinstance(source, Files | Texts | ArrowData):
        return source
    if texts is not None:
        if isinstance(texts, str | bytes):
            raise CorpusError(f"texts is a {type(texts).__name__}; pass a list of texts")
        return Texts(texts)
    if files is not None:
        return Files(files_of(files))
    if isinstance(source, str | os.PathLike):
        return Files(files_of(source, "to pass a text instead of a path, pass [text]"))
    if isinstance(source, bytes):
        raise CorpusError("the source is bytes; decode it to str and pass a list of texts")
    if is_arrow(source):
        return ArrowData(source)
    if not isinstance(source, Iterable):
        raise CorpusError(
            f"an object of type {type(source).__name__} is not a source of text; see "
            "bytepair.corpus.source"
        )
    return _of_items(source)


def files_of(names: Source, way_out: str = "check the path") -> list[Input]:
    """The files that match a path, a folder, a glob or a URL, or an iterable of these.

    Args:
        names: the path, folder, glob or URL, or an iterable of these.
        way_out: the remedy to suggest in the error message if nothing matches.

    Raises:
        CorpusError: if a name matches no file, or a file of an unsupported kind.
    """
    if isinstance(names, Files):
        return names.files
    if isinstance(names, str | os.PathLike):
        names = [names]
    if is_arrow(names) or not isinstance(names, Iterable):
        raise CorpusError("the source must be files: paths, folders, globs or URLs")
    found = []
    for name in names:
        if not isinstance(name, str | os.PathLike) or not os.fspath(name):
            raise CorpusError("the source must be files: paths, folders, globs or URLs")
        text = os.fspath(name)
        found += _remote(text) if is_url(text) else _local(text, way_out)
    if not found:
        raise CorpusError("the source is an empty list of files")
    return found


@checked
def list_files(names: Source) -> list[str]:
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


def is_arrow(source: object) -> bool:
    """Whether an object has the Arrow interface."""
    return any(hasattr(source, f"__arrow_c_{kind}__") for kind in ("array", "stream"))


def is_url(name: str) -> bool:
    """Whether a name is a URL rather than a path."""
    return re.match(r"[a-z][a-z0-9+.-]+://", name) is not None


# ---------------------------------------------------------------------------- iterables


def _of_items(items: Iterable[Any]) -> Resolved:
    """Resolve an iterable by its first items."""
    rest: Iterable[Any] = items
    if isinstance(items, list | tuple):
        first = list(items[:LOOKED_AT])
    else:
        stream = iter(items)
        first = list(itertools.islice(stream, LOOKED_AT))
        rest = itertools.chain(first, stream)
    if any(isinstance(item, os.PathLike) for item in first):
        if all(isinstance(item, os.PathLike) for item in first):
            return Files(files_of(rest))
        raise CorpusError(
            "the source contains both paths and other items; pass files= for paths, or texts= for "
            "texts"
        )
    if any(is_arrow(item) for item in first):
        return ArrowData(rest)
    _check_texts([item for item in first if isinstance(item, str)])
    return Texts(rest)


def _check_texts(first: list[str]) -> None:
    """Check that texts do not look like paths.

    Raises:
        CorpusError: if one is the path of an existing file, or all look like paths.
    """
    found = next((text for text in first if _may_be_path(text) and _exists(text)), None)
    if found is None and first and all(map(_looks_like_path, first)):
        found = first[0]
    if found is not None:
        raise CorpusError(
            f"strings in a source are texts, but {found!r} looks like a path; pass files=[...] to "
            "read files, or texts=[...] to use the strings as texts"
        )


def _may_be_path(text: str) -> bool:
    """Whether a text may be a path: short and without line breaks, so that few are looked up."""
    return 0 < len(text) < 4096 and "\n" not in text and "\0" not in text


def _looks_like_path(text: str) -> bool:
    """Whether a text has no white space, and has a path separator or a known suffix."""
    if not _may_be_path(text) or re.search(r"\s", text):
        return False
    return "/" in text or "\\" in text or has_known_ending(text)


def _exists(name: str) -> bool:
    return bool(name) and os.path.exists(name)  # noqa: PTH110 - a text may be no valid path


# ---------------------------------------------------------------------------- files


def _expand(name: str, way_out: str) -> list[Path]:
    """The files that match a path, a folder or a glob, sorted.

    Args:
        name: the path, the folder or the glob.
        way_out: the remedy to suggest in the error message if nothing matches.

    Raises:
        CorpusError: if nothing matches, or a file is of an unsupported kind.
    """
    if _exists(name):
        return _expanded(Path(name))
    if glob.has_magic(name):
        files = sorted(Path(found) for found in glob.glob(name, recursive=True))  # noqa: PTH207
        if not files:
            raise CorpusError(f"no file matches {name!r}")
        return [found for file in files for found in _expanded(file)]
    shown = name if len(name) < 80 else f"{name[:77]}..."
    raise CorpusError(f"there is no file or folder {shown!r}; {way_out}")


def _expanded(path: Path) -> list[Path]:
    """The file, or the supported files of a folder."""
    if path.is_dir():
        return _folder(path)
    kind_of(path)  # raises if the file is not supported
    return [path]


def _folder(folder: Path) -> list[Path]:
    files = [f for f in folder.rglob("*") if f.is_file() and is_listed(f)]
    files = sorted(f for f in files if not any(p.startswith(".") for p in f.parts[-1:]))
    if not files:
        raise CorpusError(
            f"the folder {folder} contains no file with a known suffix: {listed_endings()}, or "
            "these with .gz or .zst; to read other files as text, pass their paths"
        )
    return files


def _local(name: str, way_out: str) -> list[Input]:
    found = _expand(name, way_out)
    return [Input(str(p), p.stat().st_size, None, str(p)) for p in found]


def _remote(url: str) -> list[Input]:
    from bytepair._internal.extras import pyarrow_fs as fs

    system, path = _file_system(url)
    first = _file_system(asked)[0] if (asked := with_retry_limit(url)) != url else system
    prefix = url[: len(url) - len(path)] if url.endswith(path) else ""
    try:
        if any(mark in path for mark in "*?["):
            base = re.split(r"/[^/]*[*?\[]", path)[0]
            found = first.get_file_info(fs.FileSelector(base, recursive=True))
            chosen = [i for i in found if PurePosixPath(i.path).match(path)]
        else:
            chosen = [first.get_file_info(path)]
            if chosen[0].type == fs.FileType.Directory:
                found = first.get_file_info(fs.FileSelector(path, recursive=True))
                chosen = [info for info in found if is_listed(info.path)]
    except Exception as error:  # file systems have no common base class of errors
        way_out = "" if asked == url else f" {_GOOGLE_WAY_OUT}"
        raise CorpusError(f"{url}: {error or type(error).__name__}{way_out}") from error
    files = sorted((i for i in chosen if i.type == fs.FileType.File), key=lambda info: info.path)
    if not files:
        raise CorpusError(f"there is no file at {url}")
    for info in files:
        kind_of(info.path)  # raises if the file is not supported
    cloud = None if isinstance(system, fs.LocalFileSystem) else system
    return [Input(prefix + info.path, info.size, cloud, info.path) for info in files]


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


_GOOGLE_WAY_OUT: Final = (
    "Check the network and your credentials; gs://anonymous@bucket/... reads a public bucket "
    "without credentials, and ...?retry_limit_seconds=300 waits longer for an answer"
)


def _file_system(url: str) -> tuple[Any, str]:
    """The Arrow file system of a URL, or the one of fsspec if Arrow has none."""
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_fs as fs

    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        try:
            import fsspec

            other, path = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as second:
            raise CorpusError(f"{url}: {error}; and fsspec says: {second}") from error
        found = fs.PyFileSystem(fs.FSSpecHandler(other)), path
    except ImportError as error:  # Arrow asks huggingface_hub for hf://
        raise ImportError(
            f"to read {url}, install huggingface_hub: pip install 'bytepair[hub]'"
        ) from error
    return found
