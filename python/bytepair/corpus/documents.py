"""Files in, documents out with the place of every one of them: the one way to read a file.

A document has an address: the input (a file, here or in a cloud) and its row there. Everything that
reads a corpus in order, stops and goes on later (`bytepair.shards`), or reads a share of it, builds
on that. What cannot be read is an error or a recorded `Skip`, as the caller wishes; no document is
ever left out without a word. The core reads; memory is bounded by a block of lines or a page of
parquet, and by the length that a document may have (`bytepair.corpus.bounds`).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Final, Literal, TypeAlias

from bytepair import _core
from bytepair._internal.progress import Position
from bytepair.corpus import arrow, bounds
from bytepair.corpus.bounds import DOCUMENT_BYTES, Expansion
from bytepair.corpus.column import Column, Errors, Skip, until
from bytepair.corpus.kinds import compression_of, kind_of
from bytepair.corpus.read_ahead import ahead, check_stopped
from bytepair.corpus.source import Input, Limits, Source, files_of
from bytepair.errors import CorpusError

if TYPE_CHECKING:
    import pyarrow as pa

Split: TypeAlias = Literal["train", "val"]

#: How much text a column has, about.
BATCH_BYTES: Final = 1 << 24


@dataclass(frozen=True)
class ReadOptions:
    """How documents are read.

    Attributes:
        column: the column of a table, or the field of a json object, that holds the text.
        errors: what a document is that cannot be read: an error ("strict"), or a `Skip` ("skip");
            with "replace", U+FFFD stands for bytes that are not UTF-8.
        doc_cap: the number of characters of each document that are read; None means all.
        max_document_bytes: a longer document cannot be read.
        batch_bytes: how much text a column has, about; None means `BATCH_BYTES`.
        kind: how every file is read; None means by its ending. "lines" are documents themselves.
    """

    column: str = "text"
    errors: Errors = "strict"
    doc_cap: int | None = None
    max_document_bytes: int = DOCUMENT_BYTES
    batch_bytes: int | None = None
    kind: Literal["lines"] | None = None


@dataclass(frozen=True)
class Wanted:
    """Which documents of a file are read.

    Attributes:
        first: the row to begin with.
        start: the row group, or the block of lines, to begin with.
        step: from one to the next that is read.
    """

    first: int = 0
    start: int = 0
    step: int = 1


def read_documents(
    source: Source,
    column: str = "text",
    split: Split | None = None,
    start: int = 0,
    step: int = 1,
    *,
    max_chars: int | None = None,
    doc_cap: int | None = None,
    max_document_bytes: int = DOCUMENT_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Read documents as Arrow batches with one column of large strings. Needs the extra `data`.

    Args:
        source: a path, or a list of paths, to parquet, jsonl or text files (one document a file),
            each also `.gz` or `.zst`; a folder; a glob; URLs of cloud storage that Arrow knows
            (`s3://`, `gs://`, `hf://` and others).
        column: the column of a table, or the field of a json object, that holds the text.
        split: "val" means the last file, "train" all others, as nanochat does it; None means all.
        start: the first row group of each parquet file to read; jsonl has blocks of 16 MB instead,
            and text files are counted one by one.
        step: read every `step`-th row group, so that rank r of w reads with `start=r, step=w`.
        max_chars: reading stops with the document that takes the total above this many characters.
        doc_cap: the number of characters of each document that are read.
        max_document_bytes: a longer document is an error; so is a page of a parquet file that has
            more than 192 MB and more than one and a half times as many bytes.

    Raises:
        CorpusError: if there is nothing to read, or something cannot be read; the message names
            the file and the place.

    A file that becomes more than a thousand times as large when it is read is named in an
    `ExpansionWarning` of `bytepair.corpus.bounds`.

    Example:
        >>> import bytepair
        >>> batches = bytepair.read_documents(bytepair.sample.paths()[1:])
        >>> sum(batch.num_rows for batch in batches)
        60
    """
    if start < 0 or step < 1:
        raise CorpusError(f"start is {start} and step {step}; pass at least 0 and 1")
    files = part(files_of(source), split)
    limits = Limits(max_chars, doc_cap)
    how = ReadOptions(column, doc_cap=doc_cap, max_document_bytes=max_document_bytes)
    stream = until(_strided(files, how, Wanted(0, start, step)), limits.max_chars)
    return ahead(arrow.record_batch(texts, column) for texts in stream)


def part(files: list[Input], split: Split | None) -> list[Input]:
    """The files of a split: the last is for validation."""
    if split is None:
        return files
    if split not in ("train", "val"):
        raise CorpusError(f"the split is {split!r}; pass 'train', 'val' or None")
    if split == "train" and len(files) == 1:
        raise CorpusError(
            f"{files[0].name} is the only file, so it is the split 'val'; pass split=None for all"
        )
    return files[-1:] if split == "val" else files[:-1]


def _strided(files: list[Input], how: ReadOptions, wanted: Wanted) -> Iterator[Column]:
    """The documents of every `step`-th unit of each table, and of every `step`-th text file."""
    turns, texts = range(wanted.start, sys.maxsize, wanted.step), itertools.count()
    for file in files:
        is_text = kind_of(file.path) == "text"
        if is_text and next(texts) not in turns:
            continue
        for piece in read(file, how, Wanted() if is_text else wanted):
            assert isinstance(piece, Column)  # what cannot be read is an error
            yield piece


# ---------------------------------------------------------------------------- one file


def read(
    file: Input,
    how: ReadOptions,
    wanted: Wanted = Wanted(),
    position: Position | None = None,
) -> Iterator[Column | Skip]:
    """Read one file, in order.

    Args:
        file: the file.
        how: how its documents are read.
        wanted: which of them.
        position: is told which part of the file is read.

    Yields:
        Documents, and what cannot be read, if that is to be skipped.

    Raises:
        CorpusError: if something cannot be read, and is not to be skipped; it names the place.
    """
    after = 0
    try:
        with ExitStack() as opened:
            for piece in _pieces(file, how, wanted, position, opened):
                rows = piece.rows if isinstance(piece, Skip) else len(piece)
                after = piece.first + (rows or 0)
                if after > wanted.first:
                    yield _from_row(piece, wanted.first)
                del piece  # it should not be held while the next is read
    except arrow.failures() as error:
        reason = str(error)
        if how.errors != "skip":
            named = reason if reason.startswith(file.name) else f"{file.name}: {reason}"
            raise CorpusError(named) from error
        yield Skip(file.name, after, None, reason.removeprefix(f"{file.name}: "))


def _pieces(
    file: Input, how: ReadOptions, wanted: Wanted, position: Position | None, opened: ExitStack
) -> Iterator[Column | Skip]:
    """What the core reads of a file."""
    reader = _open(file, how, wanted, opened)
    expansion, table_rows = Expansion(file.name, file.size), reader.rows
    for unit, first, data, offsets, skipped in reader:
        check_stopped()
        if table_rows:
            expansion.add(len(data))
        elif (total := reader.take_expanded()) is not None:
            expansion.reach(total)
        if position is not None:
            done, whole = reader.packed, max(file.size, 1)
            if table_rows:
                done, whole = first + len(offsets) - 1, table_rows
            position.within(done / whole)
        yield from _divided(Column(data, offsets, file.name, first, unit), skipped)
        del data


def _divided(column: Column, skipped: list[tuple[int, int, str]]) -> Iterator[Column | Skip]:
    """Documents that follow each other, and between them what was left out."""
    for first, rows, reason in skipped:
        count = first - column.first
        if count:
            yield column[:count]
        yield Skip(column.name, first, rows, reason)
        column = replace(column[count:], first=first + rows)
    if len(column):
        yield column


def _from_row(piece: Column | Skip, first: int) -> Column | Skip:
    """A piece without the rows before `first`."""
    before = first - piece.first
    if before <= 0:
        return piece
    if isinstance(piece, Skip):
        return replace(piece, first=first, rows=piece.rows and piece.rows - before)
    return piece[before:]


def _open(file: Input, how: ReadOptions, wanted: Wanted, opened: ExitStack) -> _core.DocumentReader:
    """Have the core read a file: by its path, or through an object that reads from a cloud."""
    kind, packing = how.kind or kind_of(file.path), compression_of(file.path)
    name, size, source = file.path, file.size, None
    if kind == "parquet" and packing is not None:
        from tempfile import TemporaryFile

        source = opened.enter_context(TemporaryFile())  # noqa: SIM115 - it is closed
        size, packing = _unpack(file, packing, source), None
    elif file.cloud is not None:
        name, source = file.name, opened.enter_context(_open_cloud(file, kind))
    return _core.DocumentReader(
        (name, kind, packing), how.column, errors=how.errors, doc_cap=how.doc_cap,
        bounds=bounds.block_bounds(how.max_document_bytes, how.batch_bytes or BATCH_BYTES),
        page_bytes=bounds.most_page_bytes(how.max_document_bytes),
        wanted=(wanted.first, wanted.start, wanted.step), source=source, size=size,
    )  # fmt: skip


def _open_cloud(file: Input, kind: str) -> Any:
    if kind == "parquet":
        return file.cloud.open_input_file(file.path)
    return file.cloud.open_input_stream(file.path, compression=None)


def _unpack(file: Input, packing: str, into: IO[bytes]) -> int:
    """Decompress a file as a whole, for parquet is read from its end; return its size."""
    expansion = Expansion(file.name, file.size)

    def write(data: bytes) -> None:
        check_stopped()
        expansion.add(len(data))
        into.write(data)

    with nullcontext() if file.cloud is None else _open_cloud(file, "stream") as source:
        _core.unpack(file.path if source is None else file.name, packing, write, source=source)
    return into.tell()
