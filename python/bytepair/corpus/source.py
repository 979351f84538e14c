"""A source of text in, what it names out: files, addresses in clouds, or nothing but texts.

A source is whatever people have: texts, a file, many files, a folder, a glob, a URL, or Arrow data.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bytepair.corpus.kinds import is_listed, is_table, kind_of, listed_endings
from bytepair.errors import CorpusError

#: Texts, a path, paths, a folder, a glob, or Arrow data.
Source: TypeAlias = "str | os.PathLike[str] | Iterable[str] | Iterable[os.PathLike[str]] | Any"


@dataclass(frozen=True)
class Limits:
    """How much of a corpus is read.

    Attributes:
        max_chars: reading stops with the document that takes the total above so many characters.
        doc_cap: of each document, so many characters are read.

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


def files_of(source: Source) -> list[Path] | None:
    """The files that a source names, in the order in which they are read; None if it names none.

    Raises:
        CorpusError: if a path, a folder or a glob has nothing behind it, or a file that is not
            read.

    Example:
        >>> import bytepair
        >>> from bytepair.corpus.source import files_of
        >>> files_of(bytepair.sample.paths()) == bytepair.sample.paths()
        True
    """
    if isinstance(source, str):
        return expand(source, "for a text, and not a path, pass [text]")
    if isinstance(source, os.PathLike):
        return expand(os.fspath(source))
    if isinstance(source, list | tuple) and are_paths(source):
        return [file for path in source for file in expand(os.fspath(path))]
    return None


def are_paths(items: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list names files. A list of strings does if every one of them exists."""
    if not items:
        return False
    if all(isinstance(item, os.PathLike) for item in items):
        return True
    # Most texts are long or have lines; asking the system about each would take as long as
    # counting them.
    short = (item for item in items if isinstance(item, str) and len(item) < 4096)
    names = [name for name in short if "\n" not in name and "\0" not in name]
    found = sum(1 for name in names if _exists(name))
    missing = [name for name in names if is_table(name) and not _exists(name)]
    if missing and not re.search(r"\s", missing[0]):
        raise CorpusError(f"there is no file {missing[0]!r}")
    if found and found < len(items):
        raise CorpusError(
            "the list holds both paths of files and other texts; pass one or the other"
        )
    return found > 0


def _exists(name: str) -> bool:
    return bool(name) and os.path.exists(name)  # noqa: PTH110 - a text may be no valid path


def expand(name: str, way_out: str = "look at its name") -> list[Path]:
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


def is_url(name: str) -> bool:
    """Whether a name is a URL, and not a path."""
    return re.match(r"[a-z][a-z0-9+.-]+://", name) is not None


def are_urls(source: Source) -> bool:
    """Whether a source that may also be texts names files of which some have URLs.

    A list of nothing but strings does if all are URLs, one at least of a table or a packed file: it
    could also be a corpus of addresses.

    Example:
        >>> from bytepair.corpus.source import are_urls
        >>> are_urls("s3://bucket/folder"), are_urls(["s3://bucket/a.parquet"])
        (True, True)
        >>> are_urls(["https://example.com", "https://example.com/page"])
        False
    """
    if isinstance(source, str):
        return is_url(source)
    if not isinstance(source, list | tuple):
        return False
    names = [name for name in source if isinstance(name, str)]
    urls = [name for name in names if is_url(name) and not re.search(r"\s", name)]
    if len(names) < len(source):
        return bool(urls) and all(isinstance(name, str | os.PathLike) for name in source)
    return len(urls) == len(source) and any(is_table(url) for url in urls)
