"""A source of text in, files, texts or Arrow data out: what a source is.

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

`files` finds the files that names stand for. Of a source with several columns, a line of the logger
`bytepair` says before the work which one is read.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bytepair._internal.checks import MOST, check_choice, check_whole
from bytepair.corpus.arrow import is_arrow
from bytepair.corpus.files import LOG, MOST_NAMED, Files, announce, exists, files_matching, of_split
from bytepair.corpus.kinds import has_known_ending
from bytepair.corpus.splits import Split, unsplit
from bytepair.errors import ArgumentError, CorpusError

#: The type of a source of text; see the table above.
Source: TypeAlias = str | os.PathLike[str] | Iterable[str] | Iterable[os.PathLike[str]] | Any

#: The number of items of an iterable that are inspected to determine its type.
PEEKED_ITEMS: Final = 64

#: What both kinds of data sets of the package `datasets` have.
_OF_DATASETS: Final = ("select_columns", "with_format", "column_names")


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
            if value is not None and check_whole(name, value, -MOST) < 1:
                raise CorpusError(
                    f"{name} is {value}", hint="pass at least 1, or None for no limit"
                )


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
ResolvedSource: TypeAlias = Files | Texts | ArrowData | HubData | Rows


def resolve(
    source: Source | ResolvedSource = None,
    *,
    files: Any = None,
    texts: Any = None,
    split: Split | None = None,
    logs: bool = True,
) -> ResolvedSource:
    """Determine what a source is.

    Args:
        source: see the table above.
        files: a path, a folder, a glob or a URL, or an iterable of these.
        texts: an iterable of `str`.
        split: the split to read; None means `train` if a data set says what is for validation.
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
    if split is not None:
        check_choice("split", split, ("train", "val", "all"))
    if sum(one is not None for one in (source, files, texts)) != 1:
        raise ArgumentError("pass exactly one of source, files and texts", option="source")
    for value in (source, files):
        if isinstance(value, ResolvedSource):
            return value
    resolved = _resolved(source, files, texts)
    if isinstance(resolved, Files):
        resolved = of_split(resolved, split)
        if logs:
            announce(resolved)
    elif split in ("train", "val"):
        raise unsplit(split)
    return resolved


def _resolved(source: Source, files: Any, texts: Any) -> ResolvedSource:
    """Resolve a source, whatever its splits."""
    if texts is not None:
        if isinstance(texts, str | bytes):
            raise CorpusError(f"texts is a {type(texts).__name__}", hint="pass a list of texts")
        return Texts(texts)
    if files is not None:
        return files_matching(files)
    if isinstance(source, str | os.PathLike):
        return files_matching(source, "to pass a text instead of a path, pass [text]")
    if isinstance(source, bytes):
        raise CorpusError("the source is bytes", hint="decode it to str and pass a list of texts")
    if is_arrow(source):
        return ArrowData(source)
    if isinstance(source, Mapping):
        raise CorpusError(
            (f"a mapping ({type(source).__name__}) is not a source of text, but its values may be"),
            hint=f"pass one of {', '.join(map(repr, itertools.islice(source, MOST_NAMED)))}",
        )
    if _is_of_datasets(source):
        return HubData(source)
    if not isinstance(source, Iterable):
        collect = "call its method collect, or " if hasattr(source, "collect") else ""
        raise CorpusError(
            f"an object of type {type(source).__name__} is not a source of text",
            hint=f"{collect}see bytepair.corpus.source",
        )
    return _of_items(source)


def resolve_or_files(source: Source, split: Split | None) -> ResolvedSource:
    """Determine what a source is where strings are names of files, as in `resolve_files`.

    Args:
        source: as in `resolve`, but an iterable of `str` has names of files, globs or URLs.
        split: as in `resolve`.

    Raises:
        CorpusError: as in `resolve`.
    """
    is_clear = isinstance(source, str | os.PathLike | Mapping | ResolvedSource)
    is_clear = is_clear or is_arrow(source) or _is_of_datasets(source)
    if not is_clear and isinstance(source, Iterable):
        first, rest = _peeked(source)
        if first and all(isinstance(item, str | os.PathLike) for item in first):
            is_path = isinstance(first[0], os.PathLike) or _looks_like_path(first[0])
            way_out = "check the path" if is_path else "pass texts as rows, such as {'text': text}"
            files = of_split(files_matching(rest, way_out), split)
            announce(files)
            return files
        source = rest
    return resolve(source, split=split)


def _is_of_datasets(source: object) -> bool:
    """Whether this is a data set of the package `datasets`."""
    return all(hasattr(source, name) for name in _OF_DATASETS)


def announce_column(resolved: ResolvedSource, column: str) -> None:
    """Log which column of a source in memory is read, if it has several."""
    data = resolved.data if isinstance(resolved, ArrowData | HubData) else None
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


def _of_items(items: Iterable[Any]) -> ResolvedSource:
    """Resolve an iterable by its first items."""
    first, rest = _peeked(items)
    if any(isinstance(item, os.PathLike) for item in first):
        if all(isinstance(item, os.PathLike) for item in first):
            return files_matching(rest)
        raise CorpusError(
            "the source contains both paths and other items",
            option="files",
            hint="pass files= for paths, or texts= for texts",
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
        return list(items[:PEEKED_ITEMS]), items
    stream = iter(items)
    first = list(itertools.islice(stream, PEEKED_ITEMS))
    return first, itertools.chain(first, stream)


def _check_texts(first: list[str]) -> None:
    """Check that texts do not look like paths.

    Raises:
        CorpusError: if one is the path of an existing file, or all look like paths.
    """
    path = next((text for text in first if _may_be_path(text) and exists(text)), None)
    if path is None and first and all(map(_looks_like_path, first)):
        path = first[0]
    if path is not None:
        raise CorpusError(
            f"strings in a source are texts, but {path!r} looks like a path",
            option="files",
            hint="pass files=[...] to read files, or texts=[...] to use the strings as texts",
        )


def _may_be_path(text: str) -> bool:
    """Whether a text may be a path: short and without line breaks, so that few are looked up."""
    return 0 < len(text) < 4096 and "\n" not in text and "\0" not in text


def _looks_like_path(text: str) -> bool:
    """Whether a text has no white space, and has a path separator or a known suffix."""
    if not _may_be_path(text) or re.search(r"\s", text):
        return False
    return "/" in text or "\\" in text or has_known_ending(text)
