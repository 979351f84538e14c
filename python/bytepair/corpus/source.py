"""What people pass as a source of text in; files, texts or Arrow data out.

The type of a source says what it is, and nothing is guessed:

| source | read as |
| --- | --- |
| `str`, `Path` | a path, a folder, a glob or a URL |
| an iterable of `Path` | files |
| an iterable of `str` | texts; if they look like paths, an error that names both readings |
| what has the Arrow interface, or an iterable of such | Arrow data |
| `files=`, `texts=` | what the keyword says |
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

from bytepair.corpus.kinds import has_known_ending, is_listed, kind_of, listed_endings
from bytepair.errors import CorpusError

#: What a function that reads text takes; see the table above.
Source: TypeAlias = "str | os.PathLike[str] | Iterable[str] | Iterable[os.PathLike[str]] | Any"

#: The number of items of an iterable that are looked at to learn what it holds.
LOOKED_AT: Final = 64


@dataclass(frozen=True)
class Input:
    """A file with documents.

    Attributes:
        name: as the user names it.
        size: bytes.
        cloud: the Arrow file system in which it lies; None is that of this machine.
        path: where it lies there.
    """

    name: str
    size: int
    cloud: Any
    path: str

    @property
    def system(self) -> Any:
        """The Arrow file system. Arrow takes a while to import, so this is not said before."""
        from bytepair._internal.extras import pyarrow_fs as fs

        return self.cloud or fs.LocalFileSystem()


@dataclass(frozen=True)
class Limits:
    """How much of a corpus is read.

    Attributes:
        max_chars: reading stops with the document that takes the total above this many characters.
        doc_cap: the number of characters of each document that are read.

    Raises:
        CorpusError: if one of them is below 1.
    """

    max_chars: int | None = None
    doc_cap: int | None = None

    def __post_init__(self) -> None:
        """A negative number would cut text from the end without a word."""
        for name, value in (("max_chars", self.max_chars), ("doc_cap", self.doc_cap)):
            if value is not None and value < 1:
                raise CorpusError(f"{name} is {value}; pass at least 1, or None for no limit")


@dataclass(frozen=True)
class Files:
    """A source that names files.

    Attributes:
        files: in the order in which they are read.
    """

    files: list[Input]

    @property
    def size(self) -> int:
        """Of all files together, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def paths(self) -> list[Path] | None:
        """Where the files lie, if all are on this machine."""
        is_here = all(file.cloud is None for file in self.files)
        return [Path(file.path) for file in self.files] if is_here else None


@dataclass(frozen=True)
class Texts:
    """A source that holds the texts themselves.

    Attributes:
        texts: one document each.
    """

    texts: Iterable[str]


@dataclass(frozen=True)
class ArrowData:
    """A source of columns in memory.

    Attributes:
        data: has the Arrow interface, or is an iterable of what has.
    """

    data: Any


#: What a source has turned out to be.
Resolved: TypeAlias = Files | Texts | ArrowData


def resolve(source: Source | Resolved = None, *, files: Any = None, texts: Any = None) -> Resolved:
    """Say what a source is.

    Args:
        source: see the table above.
        files: a path, a folder, a glob or a URL, or an iterable of such.
        texts: an iterable of `str`.

    Raises:
        CorpusError: if a path, a folder, a glob or a URL has nothing behind it, or a file that is
            not read; if texts look like paths; or if this is no source of text.
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
        raise TypeError("pass one source of text: a source, files= or texts=")
    if isinstance(source, Files | Texts | ArrowData):
        return source
    if texts is not None:
        if isinstance(texts, str | bytes):
            raise CorpusError(f"texts is a {type(texts).__name__}; pass a list of texts")
        return Texts(texts)
    if files is not None:
        return Files(files_of(files))
    if isinstance(source, str | os.PathLike):
        return Files(files_of(source, "for a text, and not a path, pass [text]"))
    if isinstance(source, bytes):
        raise CorpusError("the source is bytes; decode it to str and pass a list of texts")
    if is_arrow(source):
        return ArrowData(source)
    if not isinstance(source, Iterable):
        raise CorpusError(f"a {type(source).__name__} is no source of text; see bytepair.corpus")
    return _of_items(source)


def files_of(names: Source, way_out: str = "look at its name") -> list[Input]:
    """The files that a path, a folder, a glob or a URL, or an iterable of such, stand for.

    Args:
        names: what names them.
        way_out: what an error says that one may do if there is nothing behind a name.

    Raises:
        CorpusError: if there is nothing behind a name, or a file that is not read.
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
        raise CorpusError("the source names no files")
    return found


def list_files(names: Source) -> list[str]:
    """The names of the files that a path, a folder, a glob or a URL stands for.

    Args:
        names: one of them, or an iterable of such.

    Raises:
        CorpusError: if there is nothing behind a name, or a file that is not read.

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
    """Whether a name is a URL, and not a path."""
    return re.match(r"[a-z][a-z0-9+.-]+://", name) is not None


# ---------------------------------------------------------------------------- iterables


def _of_items(items: Iterable[Any]) -> Resolved:
    """What an iterable holds, by its first items."""
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
            "the source holds both paths and other items; pass files= for names of files, or "
            "texts= for texts"
        )
    if any(is_arrow(item) for item in first):
        return ArrowData(rest)
    _check_texts([item for item in first if isinstance(item, str)])
    return Texts(rest)


def _check_texts(first: list[str]) -> None:
    """Texts must not look like the names of files.

    Raises:
        CorpusError: if one of them exists, or all look like paths.
    """
    found = next((text for text in first if _may_be_path(text) and _exists(text)), None)
    if found is None and first and all(map(_looks_like_path, first)):
        found = first[0]
    if found is not None:
        raise CorpusError(
            f"the source holds str, which are texts, but {found!r} looks like the name of a file; "
            "pass files=[...] to read the files, or texts=[...] to take the names as texts"
        )


def _may_be_path(text: str) -> bool:
    """Most texts are long or have lines; to ask the system about each would take too long."""
    return 0 < len(text) < 4096 and "\n" not in text and "\0" not in text


def _looks_like_path(text: str) -> bool:
    """Whether a text has no white space, and a separator or an ending that files have here."""
    if not _may_be_path(text) or re.search(r"\s", text):
        return False
    return "/" in text or "\\" in text or has_known_ending(text)


def _exists(name: str) -> bool:
    return bool(name) and os.path.exists(name)  # noqa: PTH110 - a text may be no valid path


# ---------------------------------------------------------------------------- files


def _expand(name: str, way_out: str) -> list[Path]:
    """The files that a path, a folder or a glob stands for, in sorted order.

    Args:
        name: the path, the folder or the glob.
        way_out: what an error says that one may do if there is nothing.

    Raises:
        CorpusError: if there is nothing, or a file that is not read.
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
    """A file that is read, or the files of a folder that are."""
    if path.is_dir():
        return _folder(path)
    kind_of(path)  # which raises if it is not read
    return [path]


def _folder(folder: Path) -> list[Path]:
    files = [f for f in folder.rglob("*") if f.is_file() and is_listed(f)]
    files = sorted(f for f in files if not any(p.startswith(".") for p in f.parts[-1:]))
    if not files:
        raise CorpusError(
            f"the folder {folder} holds no file of a known kind: {listed_endings()}, or .gz, .zst; "
            "to read others as text, name the files themselves"
        )
    return files


def _local(name: str, way_out: str) -> list[Input]:
    found = _expand(name, way_out)
    return [Input(str(p), p.stat().st_size, None, str(p)) for p in found]


def _remote(url: str) -> list[Input]:
    from bytepair._internal.extras import pyarrow_fs as fs

    system, path = _file_system(url)
    prefix = url[: len(url) - len(path)] if url.endswith(path) else ""
    try:
        if any(mark in path for mark in "*?["):
            base = re.split(r"/[^/]*[*?\[]", path)[0]
            found = system.get_file_info(fs.FileSelector(base, recursive=True))
            chosen = [i for i in found if PurePosixPath(i.path).match(path)]
        else:
            chosen = [system.get_file_info(path)]
            if chosen[0].type == fs.FileType.Directory:
                found = system.get_file_info(fs.FileSelector(path, recursive=True))
                chosen = [info for info in found if is_listed(info.path)]
    except Exception as error:  # those of other file systems have no common base
        raise CorpusError(f"{url}: {error or type(error).__name__}") from error
    files = sorted((i for i in chosen if i.type == fs.FileType.File), key=lambda info: info.path)
    if not files:
        raise CorpusError(f"there is no file at {url}")
    for info in files:
        kind_of(info.path)  # which raises if it is not read
    cloud = None if isinstance(system, fs.LocalFileSystem) else system
    return [Input(prefix + info.path, info.size, cloud, info.path) for info in files]


def _file_system(url: str) -> tuple[Any, str]:
    """The Arrow file system of a URL, or that of fsspec where Arrow has none."""
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
