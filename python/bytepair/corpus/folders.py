"""A folder or a glob in, the files of text in it out, and what was passed over.

Links are followed, and each real folder is read once, by its shortest path. Hidden files and
folders, files with an unknown suffix and the card of a data set (a README beside tables) are passed
over and listed. What cannot be read is an error. `folder`, `folder/*` and `folder/**` are the same
files in the same order.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

from bytepair import _core
from bytepair.corpus.kinds import is_listed, kind_of, listed_endings
from bytepair.errors import CorpusError

#: The parts of a glob that match any name, and so select nothing by it.
_ANY: Final = ("*", "**")


@dataclass(frozen=True)
class Listing:
    """The files of a folder or a glob.

    Attributes:
        files: the files with text, sorted.
        skipped: the names of what was passed over, relative to the folder; those of folders end
            with a slash.
    """

    files: list[Path]
    skipped: list[str]


def in_folder(folder: Path) -> Listing:
    """The files of text in a folder and in those below it.

    Raises:
        CorpusError: if there is none, or something cannot be read.

    Example:
        >>> import tempfile
        >>> from bytepair.corpus.folders import in_folder
        >>> with tempfile.TemporaryDirectory() as name:
        ...     for file in ("b.txt", "a.txt", ".hidden.txt", "c.py"):
        ...         _ = Path(name, file).write_text("text")
        ...     listing = in_folder(Path(name))
        >>> [path.name for path in listing.files], listing.skipped
        (['a.txt', 'b.txt'], ['.hidden.txt', 'c.py'])
    """
    files: list[Path] = []
    skipped: list[Path] = []
    for place in _folders(folder):
        for path in _entries(place):
            is_hidden = path.name.startswith(".")
            if is_hidden or not _is_folder(path):
                is_text = not is_hidden and path.is_file() and is_listed(path)
                (files if is_text else skipped).append(path)
    if not files:
        raise CorpusError(
            f"the folder {folder} contains no file with a known suffix: {listed_endings()}, or "
            "these with .gz or .zst; to read other files as text, pass their paths"
        )
    return _without_cards(folder, sorted(files), skipped)


def matching(pattern: str) -> Listing:
    """The files that match a glob; for a folder that matches, those in it.

    A name that matches more than `*` is read whatever its suffix.

    Raises:
        CorpusError: if nothing matches, or something cannot be read.
    """
    path = Path(pattern)
    start = Path(path.anchor) if path.anchor else Path()
    parts = path.relative_to(path.anchor).parts if path.anchor else path.parts
    says_any = parts[-1] in _ANY
    files: dict[Path, None] = {}
    skipped = []
    for path in _matches(start, parts):
        if _is_folder(path):
            inner = _or_empty(path)
            files |= dict.fromkeys(inner.files)
            skipped += [str(path.relative_to(start) / name) for name in inner.skipped]
        elif says_any and not (path.is_file() and is_listed(path)):
            skipped.append(str(path))
        else:
            files[path] = None
    if not files:
        raise CorpusError(f"no file matches {_core.shown(pattern)}")
    unique = _once(files)
    listing = Listing(unique, [])
    if says_any:
        listing = _without_cards(start, unique, [])
    return Listing(listing.files, list(dict.fromkeys([*skipped, *listing.skipped])))


def _or_empty(folder: Path) -> Listing:
    """The files in a folder, which may have none because the glob also matches others."""
    try:
        return in_folder(folder)
    except CorpusError as error:
        if "contains no file" not in str(error):
            raise
        return Listing([], [])


# ---------------------------------------------------------------------------- walking


def _entries(folder: Path) -> list[Path]:
    """What a folder contains, sorted.

    Raises:
        CorpusError: if the folder cannot be read.
    """
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise CorpusError(
            f"the folder {folder} cannot be read: {error.strerror}",
            hint="change its permissions, or name the files to read",
        ) from error


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder, through any links.

    Raises:
        CorpusError: if it is a link that leads nowhere.
    """
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
        for place in level:
            for path in _entries(place):
                if path.name.startswith(".") or not _is_folder(path):
                    continue
                real = os.path.realpath(path)
                if real not in seen:
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


def _without_cards(folder: Path, files: list[Path], skipped: list[Path]) -> Listing:
    """The listing of files without the cards of data sets."""
    cards = _cards(files)
    names = []
    for path in sorted([*skipped, *(file for file in files if file in cards)]):
        name = str(path.relative_to(folder))
        names.append(f"{name}/" if path.is_dir() else name)
    return Listing([file for file in files if file not in cards], names)


def _cards(files: Sequence[PurePath]) -> set[PurePath]:
    """The cards of data sets: each README beside or above tables."""
    tables = {parent for file in files if kind_of(file) != "text" for parent in file.parents}
    return {f for f in files if f.stem.lower() == "readme" and f.parent in tables}


def in_cloud(names: list[str], base: str, pattern: str) -> tuple[list[str], list[str]]:
    """The files of text among the files of a cloud folder or glob, and those passed over.

    Args:
        names: the paths of the files.
        base: the folder that was listed.
        pattern: the folder or the glob.

    Example:
        >>> from bytepair.corpus.folders import in_cloud
        >>> names = ["b/a.parquet", "b/.cache/a.parquet", "b/README.md", "b/a.py"]
        >>> in_cloud(names, "b", "b")
        (['b/a.parquet'], ['.cache/a.parquet', 'README.md', 'a.py'])
    """
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
