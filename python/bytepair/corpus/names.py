"""Finds the files that paths, folders, globs and URLs name, on this machine and in clouds.

Links are followed, and each real folder is read once, by its shortest path. Hidden files and
folders, files with an unknown suffix and the card of a data set (a README beside tables) are passed
over and listed. What cannot be read is an error. `folder`, `folder/*` and `folder/**` are the same
files in the same order.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.corpus.arrow import is_arrow
from bytepair.corpus.files import Files, Input, is_listed, is_url, kind_of, listed_endings
from bytepair.errors import CorpusError

#: What names files: a path, a folder, a glob or a URL, or an iterable of these.
Names: TypeAlias = str | os.PathLike[str] | Iterable[str] | Iterable[os.PathLike[str]] | Any

#: A cloud that does not answer within about this many seconds is an error. Once files are found,
#: reading them retries for as long as the cloud's own library does.
ANSWER_SECONDS: Final = 20

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
                f"the folder {name} contains no file with a known suffix: {listed_endings()}, or "
                "these with .gz or .zst; to read other files as text, pass their paths"
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
    limited = with_retry_limit(url)
    try:
        infos, base = _stored(system if limited == url else _file_system(limited)[0], path)
    except Exception as error:  # file systems have no common base class of errors
        hint = "" if limited == url else _GOOGLE_HINT
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


def with_retry_limit(url: str) -> str:
    """Add a retry limit to a URL of Google Cloud Storage that has none; return others unchanged.

    Google's library silently retries for 15 minutes by default; others give up within seconds.
    """
    if not url.startswith(("gs://", "gcs://")) or "retry_limit_seconds=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}retry_limit_seconds={ANSWER_SECONDS}"


_GOOGLE_HINT: Final = (
    "check the network and your credentials, or read a public bucket without credentials, as "
    "gs://anonymous@bucket/..., or wait longer for an answer, with ...?retry_limit_seconds=300"
)


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
