"""Resolve a source of text to files, texts or Arrow data.

The type of a source determines how it is read; nothing is guessed:

| source | read as |
| --- | --- |
| `str`, `Path` | a path, a folder, a glob or a URL |
| an iterable of `Path` | files |
| an iterable of `str` | texts; if they look like paths, an error that explains both readings |
| an object with the Arrow interface (of pyarrow, polars, pandas, DuckDB), or an iterable of such \
objects | Arrow data: a column of text, or the column `column` of a table |
| a data set of the package `datasets`, also a streamed one | its column `column` |
| an iterable of mappings, such as rows of jsonl | the field `column` of each |
| `files=`, `texts=` | files or texts |

What a folder or a glob contains is defined in `folders`, which files belong to a split in `splits`.
Where names stand for other files, or some are left out, a line of the logger `bytepair` says before
the work what is read and what is not; so does one for a source with several columns.
"""

from __future__ import annotations

import glob
import itertools
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

from bytepair._internal.arguments import checked
from bytepair.corpus.folders import in_cloud, in_folder, matching
from bytepair.corpus.kinds import has_known_ending, kind_of
from bytepair.corpus.splits import (
    HoldOut,
    Split,
    files_of_split,
    part,
    splits_of,
    unsplit,
)
from bytepair.errors import ANY, ArgumentError, CorpusError, Option, WayOut

#: The type of a source of text; see the table above.
Source: TypeAlias = "str | os.PathLike[str] | Iterable[str] | Iterable[os.PathLike[str]] | Any"

#: The number of items of an iterable that are inspected to determine its type.
LOOKED_AT: Final = 64

#: The logger of the line that says what is read.
LOG: Final = logging.getLogger("bytepair")

#: The number of skipped files that the line names.
NAMED: Final = 3

#: What both kinds of data sets of the package `datasets` have.
_OF_DATASETS: Final = ("select_columns", "with_format", "column_names")

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
        held: which documents to read if some are held out; limits apply to these.

    Raises:
        CorpusError: if a limit is below 1.
    """

    max_chars: int | None = None
    doc_cap: int | None = None
    held: HoldOut | None = None

    def __post_init__(self) -> None:
        """Reject negative limits: as slices, they would silently cut text at the end."""
        for name, value in (("max_chars", self.max_chars), ("doc_cap", self.doc_cap)):
            if value is not None and value < 1:
                raise CorpusError(
                    f"{name} is {value}", WayOut("pass at least 1, or None for no limit")
                )


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


@dataclass(frozen=True)
class HubData:
    """A data set of the package `datasets`.

    Attributes:
        data: a `datasets.Dataset` or `datasets.IterableDataset`.
    """

    data: Any


@dataclass(frozen=True)
class Rows:
    """A source of rows in memory.

    Attributes:
        rows: mappings with the text in one of their fields.
    """

    rows: Iterable[Mapping[str, Any]]


#: A resolved source.
Resolved: TypeAlias = Files | Texts | ArrowData | HubData | Rows


def resolve(
    source: Source | Resolved = None,
    *,
    files: Any = None,
    texts: Any = None,
    split: Split | None = None,
    held: HoldOut | None = None,
    logs: bool = True,
) -> Resolved:
    """Determine what a source is.

    Args:
        source: see the table above.
        files: a path, a folder, a glob or a URL, or an iterable of these.
        texts: an iterable of `str`.
        split: the split to read; None means `train` if a data set says what is for validation.
        held: the documents to hold out, if any; then `split` says nothing about files.
        logs: whether to log what is read.

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
        raise ArgumentError(
            "pass exactly one of", Option("source"), ",", Option("files"), "and", Option("texts")
        )
    for given in (source, files):
        if isinstance(given, Resolved):
            return given
    found = _resolved(source, files, texts)
    if isinstance(found, Files):
        found = of_split(found, split, held)
        if logs:
            announce(found, held)
    elif split in ("train", "val") and held is None:
        raise unsplit(split)
    return found


def _resolved(source: Source, files: Any, texts: Any) -> Resolved:
    """Resolve a source, whatever its splits."""
    if texts is not None:
        if isinstance(texts, str | bytes):
            raise CorpusError(f"texts is a {type(texts).__name__}", WayOut("pass a list of texts"))
        return Texts(texts)
    if files is not None:
        return _listed(files)
    if isinstance(source, str | os.PathLike):
        return _listed(source, "to pass a text instead of a path, pass [text]")
    if isinstance(source, bytes):
        raise CorpusError(
            "the source is bytes", WayOut("decode it to str and pass a list of texts")
        )
    if is_arrow(source):
        return ArrowData(source)
    if isinstance(source, Mapping):
        raise CorpusError(
            f"a mapping ({type(source).__name__}) is not a source of text, but its values may be",
            WayOut(f"pass one of {', '.join(map(repr, itertools.islice(source, NAMED)))}"),
        )
    if _is_of_datasets(source):
        return HubData(source)
    if not isinstance(source, Iterable):
        collect = [WayOut("call its method collect")] if hasattr(source, "collect") else []
        raise CorpusError(
            f"an object of type {type(source).__name__} is not a source of text",
            *collect,
            WayOut("see bytepair.corpus.source"),
        )
    return _of_items(source)


def resolve_files(
    names: Source | Files, split: Split | None = None, held: HoldOut | None = None
) -> Files:
    """Determine the files of a source that must be files.

    Args:
        names: a path, a folder, a glob or a URL, an iterable of these, or a resolved source.
        split: as in `resolve`.
        held: as in `resolve`.

    Raises:
        CorpusError: as in `files_of`, or if no file belongs to the split.
    """
    if isinstance(names, Files):
        return names
    found = of_split(_listed(names), split, held)
    announce(found, held)
    return found


def resolve_or_files(source: Source, split: Split | None, held: HoldOut | None) -> Resolved:
    """Determine what a source is where strings are names of files, as in `resolve_files`.

    Args:
        source: as in `resolve`, but an iterable of `str` has names of files, globs or URLs.
        split: as in `resolve`.
        held: as in `resolve`.

    Raises:
        CorpusError: as in `resolve`.
    """
    known = isinstance(source, str | os.PathLike | Mapping | Resolved)
    known = known or is_arrow(source) or _is_of_datasets(source)
    if not known and isinstance(source, Iterable):
        first, rest = _peeked(source)
        if first and all(isinstance(item, str | os.PathLike) for item in first):
            is_path = isinstance(first[0], os.PathLike) or _looks_like_path(first[0])
            way_out = "check the path" if is_path else "pass texts as rows, such as {'text': text}"
            files = of_split(_listed(rest, way_out), split, held)
            announce(files, held)
            return files
        source = rest
    return resolve(source, split=split, held=held)


def _is_of_datasets(source: object) -> bool:
    """Whether this is a data set of the package `datasets`."""
    return all(hasattr(source, name) for name in _OF_DATASETS)


def is_divided(names: Source) -> bool:
    """Whether a data set says which of these files are for validation.

    Raises:
        CorpusError: as in `files_of`.
    """
    return any(splits_of(files_of(names)))


def files_by_position(
    names: Source | Files, split: Split | None, *, is_logged: bool = True
) -> list[Input]:
    """The files of a split, where the last file is for validation if no data set says it.

    Args:
        names: as in `resolve_files`.
        split: as in `corpus.read_documents`.
        is_logged: whether to log what is read; of several ranks, the first does.

    Raises:
        CorpusError: as in `resolve_files`.
    """
    if isinstance(names, Files):
        return names.files
    found = _listed(names)
    files = part(found.files, split)
    left = [PurePosixPath(file.name).name for file in found.files if file not in files]
    chosen = "all" if not left else split or "train"
    is_listed = found.is_listed or bool(left)
    if is_logged:
        announce(Files(files, [*left, *found.skipped], chosen, is_listed))
    return files


def of_split(found: Files, split: Split | None, held: HoldOut | None) -> Files:
    """The files of a split; all of them if documents are held out.

    Raises:
        CorpusError: if no file belongs to the split, no data set says what does, or documents are
            held out of a data set that says it.
    """
    if held is not None:
        if any(splits_of(found.files)):
            raise CorpusError(
                Option("hold_out"),
                "is not needed: the source says which files are for validation",
                WayOut.passing("split", "train"),
                WayOut.passing("split", "val"),
            )
        return found
    files, chosen = files_of_split(found.files, split)
    splits = dict(zip(found.files, splits_of(found.files), strict=True)) if chosen != "all" else {}
    left = [
        f"{PurePosixPath(file.name).name} ({said})"
        for file, said in splits.items()
        if file not in files
    ]
    is_listed = found.is_listed or bool(left)
    return Files(files, [*left, *found.skipped], chosen, is_listed)


def describe(found: Files, held: HoldOut | None = None) -> str:
    """What is read of a source, and what is not, in words.

    Example:
        >>> from bytepair.corpus.source import Files, Input, describe
        >>> files = [Input(name, 1, None, name) for name in ("a.parquet", "b.parquet")]
        >>> describe(Files(files, ["README.md"]))
        '2 parquet files; skipped README.md'
        >>> describe(Files(files[:1], ["b.parquet"], "train"))
        '1 parquet file of the split train; skipped b.parquet'
    """
    counts = Counter(kind_of(file.path) for file in found.files)
    kinds = [f"{n:,} {kind} {'file' if n == 1 else 'files'}" for kind, n in counts.items()]
    text = " and ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)
    if found.split != "all":
        text += f" of the split {found.split}"
    if held is not None:
        what = (
            f"{held.amount:,} documents" if held.counts else f"{held.amount:.6g} of the documents"
        )
        text += f", {'only' if held.split == 'val' else 'without'} the held-out {what}"
    if found.skipped:
        more = len(found.skipped) - NAMED
        names = ", ".join(found.skipped[:NAMED])
        text += f"; skipped {names}" + (f" and {more:,} more" if more > 0 else "")
    return text


def announce(found: Files | Mapping[str, Files], held: HoldOut | None = None) -> None:
    """Log what is read before it is read, if the names that the caller gave do not say it.

    Args:
        found: files, or those of several groups by name.
        held: the documents to hold out, if any.
    """
    groups = {"": found} if isinstance(found, Files) else found
    if not groups or (held is None and not any(files.is_listed for files in groups.values())):
        return
    parts = [f"{name}: {describe(files, held)}" if name else describe(files, held)
             for name, files in groups.items()]  # fmt: skip
    LOG.info("reading %s", "; ".join(parts))


def files_of(names: Source | Files) -> list[Input]:
    """The files that match a path, a folder, a glob or a URL, or an iterable of these.

    Args:
        names: the path, folder, glob or URL, or an iterable of these.

    Raises:
        CorpusError: if a name matches no file, or a file of an unsupported kind.
    """
    return _listed(names).files


def _listed(names: Source | Files, way_out: str = "check the path") -> Files:
    """The files that match names, with what was passed over.

    Args:
        names: as in `files_of`.
        way_out: the remedy to suggest in the error message if nothing matches.
    """
    if isinstance(names, Files):
        return names
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
        found = _remote(text) if is_url(text) else _local(text, way_out)
        files += found.files
        skipped += found.skipped
        is_listed = is_listed or found.is_listed
    if not files:
        raise CorpusError("the source is an empty list of files")
    return Files(files, skipped, is_listed=is_listed)


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


def announce_column(found: Resolved, column: str) -> None:
    """Log which column of a source in memory is read, if it has several."""
    data = found.data if isinstance(found, ArrowData | HubData) else None
    names = columns_of(data)
    if column in names and len(names) > 1:
        others = ", ".join(name for name in names if name != column)
        kind = type(data).__name__
        LOG.info("reading the column %r of the %s, and not %s", column, kind, others)


def columns_of(table: Any) -> list[str]:
    """The names of the columns of a table or a data set; none for other objects.

    Example:
        >>> import pyarrow as pa
        >>> columns_of(pa.table({"id": [1], "text": ["one"]})), columns_of(pa.array(["one"]))
        (['id', 'text'], [])
    """
    schema = getattr(table, "schema", None)  # of a stream of record batches
    for names in (getattr(table, "column_names", None), getattr(table, "columns", None),
                  getattr(schema, "names", None)):  # fmt: skip
        if names is not None and not callable(names):
            return [name for name in names if isinstance(name, str)]
    return []


# ---------------------------------------------------------------------------- iterables


def _of_items(items: Iterable[Any]) -> Resolved:
    """Resolve an iterable by its first items."""
    first, rest = _peeked(items)
    if any(isinstance(item, os.PathLike) for item in first):
        if all(isinstance(item, os.PathLike) for item in first):
            return _listed(rest)
        raise CorpusError(
            "the source contains both paths and other items",
            WayOut.passing("files", ANY, "for paths"),
            WayOut.passing("texts", ANY, "for texts"),
        )
    if any(is_arrow(item) for item in first):
        return ArrowData(rest)
    if any(isinstance(item, Mapping) for item in first):
        return Rows(rest)
    _check_texts([item for item in first if isinstance(item, str)])
    return Texts(rest)


def _peeked(items: Iterable[Any]) -> tuple[list[Any], Iterable[Any]]:
    """The first items of an iterable, and all of them."""
    if isinstance(items, list | tuple):
        return list(items[:LOOKED_AT]), items
    stream = iter(items)
    first = list(itertools.islice(stream, LOOKED_AT))
    return first, itertools.chain(first, stream)


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
            f"strings in a source are texts, but {found!r} looks like a path",
            WayOut("pass", Option("files", python="files=[...]"), "to read files"),
            WayOut("pass", Option("texts", python="texts=[...]"), "to use the strings as texts"),
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


def _local(name: str, way_out: str) -> Files:
    """The files that match a path, a folder or a glob, sorted.

    Args:
        name: the path, the folder or the glob.
        way_out: the remedy to suggest in the error message if nothing matches.

    Raises:
        CorpusError: if nothing matches, or a file is of an unsupported kind or cannot be read.
    """
    if not _exists(name):
        if not glob.has_magic(name):
            shown = name if len(name) < 80 else f"{name[:77]}..."
            raise CorpusError(f"there is no file or folder {shown!r}", WayOut(way_out))
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


def _remote(url: str) -> Files:
    from bytepair._internal.extras import pyarrow_fs as fs

    system, path = _file_system(url)
    prefix = url[: len(url) - len(path)] if url.endswith(path) else ""
    if isinstance(system, fs.LocalFileSystem):
        if not _exists(path) and not glob.has_magic(path):
            raise CorpusError(f"there is no file at {url}")
        found = _local(path, "check the URL")
        files = [replace(file, name=prefix + file.path) for file in found.files]
        return Files(files, found.skipped, is_listed=found.is_listed)
    first = _file_system(options)[0] if (options := with_retry_limit(url)) != url else system
    try:
        infos, base = _stored(first, path)
    except Exception as error:  # file systems have no common base class of errors
        ways_out = () if options == url else _GOOGLE_WAYS_OUT
        raise CorpusError(f"{url}: {error or type(error).__name__}", *ways_out) from error
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
        found = system.get_file_info(fs.FileSelector(base, recursive=True))
        return [info for info in found if PurePosixPath(info.path).match(path)], base
    found = [system.get_file_info(path)]
    if found[0].type != fs.FileType.Directory:
        return found, None
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


_GOOGLE_WAYS_OUT: Final = (
    WayOut("check the network and your credentials"),
    WayOut("read a public bucket without credentials, as gs://anonymous@bucket/..."),
    WayOut("wait longer for an answer, with ...?retry_limit_seconds=300"),
)


def _file_system(url: str) -> tuple[Any, str]:
    """The Arrow file system of a URL, or the one of fsspec if Arrow has none."""
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_fs as fs

    try:
        if url.startswith("hf://"):
            import huggingface_hub  # noqa: F401 (Arrow before 20 does not ask for it)
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
