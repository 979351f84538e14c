"""Defines what a source of text is, and resolves it to files, texts or Arrow data.

The type of a source determines how it is read, in every function that takes one; nothing is
guessed. One string is a name of files, and strings in a list are texts:

| source | read as |
| --- | --- |
| `str`, `Path` | a path, a folder, a glob or a URL |
| an iterable of `Path` | files |
| an iterable of `str` | texts; if they look like paths, an error that explains both readings |
| `Paths` of strings | files: each is a path, a folder, a glob or a URL |
| `Texts` of strings | texts, whatever they look like |
| an object with the Arrow interface (of pyarrow, polars, pandas, DuckDB), or an iterable of such \
objects | Arrow data: a column of text, or the column `column` of a table |
| an iterable of mappings, such as rows of jsonl or a data set of the package `datasets` (faster: \
its `with_format("arrow").iter(1000)`) | the field `column` of each |
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from bytepair._internal.checks import DOCUMENT_BYTES, check_choice, check_kind, check_whole
from bytepair.corpus.arrow import is_arrow
from bytepair.corpus.column import Errors
from bytepair.corpus.files import (
    Files,
    Paths,
    Split,
    announce,
    exists,
    files_matching,
    has_known_ending,
    of_split,
    unsplit,
)
from bytepair.errors import CorpusError

#: The type of a source of text; see the table above.
Source: TypeAlias = str | os.PathLike[str] | Iterable[str] | Iterable[os.PathLike[str]] | Any

#: The number of items of an iterable that are inspected to determine its type; all of them are in
#: memory at once, so an Arrow column or this many characters are enough.
PEEKED_ITEMS: Final = 64
PEEKED_CHARS: Final = 1 << 20


@dataclass(frozen=True)
class Reading:
    """Which text of a source is read, and how it is counted.

    Attributes:
        column: the table column, or field of JSON and mappings, that contains the text.
        errors: how to treat an invalid document (invalid UTF-8, a lone surrogate in jsonl or in a
            `str`, too long, or a line that is not a JSON object): `"strict"` raises an error with
            its place; `"replace"` replaces invalid UTF-8 and lone surrogates by U+FFFD; `"skip"`
            skips the document, and a `SkippedWarning` reports how many and the first places. Of a
            damaged compressed file, `"skip"` keeps the documents before the damage; damaged
            parquet is an error.
        max_chars: stop after the document with which the total exceeds this many characters; of
            groups of sources, each is read up to this.
        doc_cap: read at most this many characters of each document.
        max_document_bytes: the maximum size of a document in a file, since each is held in memory;
            a longer one is an error. So is a parquet page larger than both 192 MB and 1.5 times
            this size. Text files may be longer if they are read in pieces: if they are counted
            completely, with a named pattern, and without `errors="skip"`.
        split: "train", "val" or "all", for data sets that say which of their files are for
            validation (`bytepair.corpus.files`: those that bytepair downloads, and others); None
            means "train" for these and "all" for other sources.
        memory_limit: the approximate maximum memory of the counts while counting, in bytes, without
            the batch of text being read. Counts beyond it are spilled to a temporary folder (in
            `TMPDIR`), and a result of more than half of it stays on disk, except on Windows; the
            result is the same. None means half of the memory of the machine or its container.
        checkpoint: a file to which the counts are saved every five minutes, and when counting is
            interrupted by Ctrl-C or an error. If it exists, counting resumes from it; of sources
            that are no local files, what it includes is read but not counted. Remove it when the
            result is saved. It is for one count, so not for a recipe.

    Raises:
        ArgumentError: if a value is not one of those above, or a number is below 1.

    Example:
        >>> import bytepair
        >>> rows = [{"body": "one two"}, {"body": "three"}]
        >>> bytepair.count(rows, reading=bytepair.Reading(column="body")).total
        3
    """

    column: str = "text"
    errors: Errors = "strict"
    max_chars: int | None = None
    doc_cap: int | None = None
    max_document_bytes: int = DOCUMENT_BYTES
    split: Split | None = None
    memory_limit: int | None = None
    checkpoint: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_kind("column", self.column, str)
        check_choice("errors", self.errors, get_args(Errors))
        check_whole("max_document_bytes", self.max_document_bytes, least=1)
        for name in ("max_chars", "doc_cap", "memory_limit"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least=1)
        if self.split is not None:
            check_choice("split", self.split, ("train", "val", "all"))

    @property
    def is_whole(self) -> bool:
        """Whether all text is read."""
        return self.max_chars is None and self.doc_cap is None


@dataclass(frozen=True)
class Texts:
    """A source of texts in memory, whatever they look like.

    Attributes:
        texts: one document each.

    Example:
        >>> import bytepair
        >>> bytepair.count(bytepair.corpus.Texts(["a.txt", "b.txt"])).text_bytes
        10
    """

    texts: Iterable[str]


@dataclass(frozen=True)
class TableData:
    """A source of tables in memory, or an iterable of mappings."""

    kind: Literal["arrow", "rows"]
    data: Any


#: A resolved source.
ResolvedSource: TypeAlias = Files | Texts | TableData


def resolve(
    source: Source | ResolvedSource, *, split: Split | None = None, logs: bool = True
) -> ResolvedSource:
    """Determine what a source is; see the table above."""
    if split is not None:
        check_choice("split", split, ("train", "val", "all"))
    if isinstance(source, Files | TableData):
        return source
    resolved = _resolved(source)
    if isinstance(resolved, Files):
        resolved = of_split(resolved, split)
        if logs:
            announce(resolved)
    elif split in ("train", "val"):
        raise unsplit(split)
    return resolved


def resolve_files(
    source: Source, split: Split | None = None, *, logs: bool = True, by_position: bool = False
) -> Files:
    """Determine the files of a source that must be files."""
    if isinstance(source, Files):
        return source
    # An error about the names then suggests no text.
    if isinstance(source, str | os.PathLike) or (isinstance(source, list) and not source):
        source = Paths(source)
    resolved = _resolved(source)
    if not isinstance(resolved, Files):
        message = "the source must be files: paths, folders, globs or URLs"
        raise CorpusError(message, option="source", hint="pass paths")
    files = of_split(resolved, split, by_position=by_position)
    if logs:
        announce(files)
    return files


def _resolved(source: Source) -> ResolvedSource:
    if isinstance(source, Texts):
        if isinstance(source.texts, str | bytes):
            kind = type(source.texts).__name__
            raise CorpusError(f"texts is a {kind}", hint="pass a list of texts")
        return source
    if isinstance(source, Paths):
        return files_matching(source)
    if isinstance(source, str | os.PathLike):
        return files_matching(source, "to pass a text instead of a path, pass [text]")
    if is_arrow(source):
        return TableData("arrow", source)
    if isinstance(source, bytes | Mapping) or not isinstance(source, Iterable):
        raise CorpusError(
            f"an object of type {type(source).__name__} is not a source of text",
            hint="see bytepair.corpus.source",
        )
    return _of_items(source)


def _of_items(items: Iterable[Any]) -> ResolvedSource:
    first, rest = _peeked(items)
    if any(isinstance(item, os.PathLike) for item in first):
        if all(isinstance(item, os.PathLike) for item in first):
            return files_matching(rest)
        raise CorpusError(
            "the source contains both paths and other items",
            option="source",
            hint="pass all as pathlib.Path, or all as texts",
        )
    if any(is_arrow(item) for item in first):
        return TableData("arrow", rest)
    if any(isinstance(item, Mapping) for item in first):
        return TableData("rows", rest)
    _check_texts([item for item in first if isinstance(item, str)])
    return Texts(rest)


def _peeked(items: Iterable[Any]) -> tuple[list[Any], Iterable[Any]]:
    if isinstance(items, list | tuple):
        return list(items[:PEEKED_ITEMS]), items
    stream, first, size = iter(items), list[Any](), 0
    for item in stream:
        first.append(item)
        size += PEEKED_CHARS if is_arrow(item) else len(item) if isinstance(item, str) else 0
        if len(first) == PEEKED_ITEMS or size >= PEEKED_CHARS:
            break
    return first, itertools.chain(first, stream)


def _check_texts(first: list[str]) -> None:
    """Refuse texts if one is the path of an existing file, or all look like paths.

    A path is short, without line breaks; it looks like one if it has no white space, and a path
    separator or a known suffix.
    """
    short = [text for text in first if re.fullmatch(r"[^\n\0]{1,4095}", text)]
    looks = [
        text for text in short
        if not re.search(r"\s", text) and (re.search(r"[/\\]", text) or has_known_ending(text))
    ]  # fmt: skip
    path = next(filter(exists, short), None)
    if path is None and first and len(looks) == len(first):
        path = first[0]
    if path is not None:
        raise CorpusError(
            f"strings in a source are texts, but {path!r} looks like a path",
            option="source",
            hint="to read files, pass a pathlib.Path for each, or bytepair.corpus.Paths(names); "
            "to use the strings as texts, pass bytepair.corpus.Texts(strings)",
        )
