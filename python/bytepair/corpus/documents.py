"""Files in, documents out as columns of Arrow, with the place of every one of them.

A document has an address: the input (a file, here or in a cloud) and its row there. Everything that
reads a corpus in order, stops and goes on later (`bytepair.shards`), or reads a share of it, builds
on that. What cannot be read is an error or a recorded `Skip`, as the caller wishes; no document is
ever left out without a word. Memory is bounded by a row group, or a few megabytes of lines, and by
the length that a document may have (`bytepair.corpus.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from bytepair.corpus import arrow, bounds, jsonl, parquet
from bytepair.corpus.bounds import DOCUMENT_BYTES, Expansion
from bytepair.corpus.kinds import compression_of, kind_of
from bytepair.corpus.read_ahead import ahead
from bytepair.corpus.source import Input, Limits, Source, files_of
from bytepair.errors import CorpusError

if TYPE_CHECKING:
    import pyarrow as pa

Split: TypeAlias = Literal["train", "val"]

#: How much text a batch has, about.
BATCH_BYTES: Final = 1 << 24


@dataclass(frozen=True)
class Rows:
    """Documents that follow each other in one input.

    Attributes:
        first: the row of the first.
        unit: the row group, or the piece of lines, or 0.
        texts: the documents; a null has become an empty document.
    """

    first: int
    unit: int
    texts: pa.Array


@dataclass(frozen=True)
class Skip:
    """Documents that cannot be read.

    Attributes:
        first: the row of the first.
        rows: how many there are; None means the rest of the input.
        reason: what is wrong.
    """

    first: int
    rows: int | None
    reason: str


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
    """Read documents as Arrow batches with one column.

    Args:
        source: a path, or a list of paths, to parquet, jsonl or text files (one document a file),
            each also `.gz` or `.zst`; a folder; a glob; URLs of cloud storage that Arrow knows
            (`s3://`, `gs://`, `hf://` and others).
        column: the column of a table, or the field of a json object, that holds the text.
        split: "val" means the last file, "train" all others, as nanochat does it; None means all.
        start: the first row group of each parquet file to read; jsonl has pieces of 16 MB instead,
            and text files are counted one by one.
        step: read every so many row groups, so that rank r of w reads with `start=r, step=w`.
        max_chars: reading stops with the document that takes the total above so many characters.
        doc_cap: of each document, so many characters are read.
        max_document_bytes: a longer document is an error; so is a page of a parquet file that has
            more than 192 MB and more than one and a half times as many bytes.

    Raises:
        CorpusError: if there is nothing to read, or something cannot be read; the message names
            the file and the row.

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
    stream = _strided(files, column, start, step, max_document_bytes)
    return ahead(_record_batches(_limited(stream, limits), column))


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


# ---------------------------------------------------------------------------- reading


def read(
    file: Input,
    column: str,
    *,
    first: int = 0,
    wanted: Callable[[int], bool] | None = None,
    max_bytes: int = DOCUMENT_BYTES,
    replace: bool = False,
) -> Iterator[Rows | Skip]:
    """Read one file, in order.

    Args:
        file: the file.
        column: the column or field with the text.
        first: the row to begin with.
        wanted: says of a row group, by its number, whether to read it; None means all.
        max_bytes: a longer document is skipped.
        replace: whether U+FFFD is put in the place of bytes that are not UTF-8; otherwise such a
            document is skipped.

    Yields:
        Documents, and what cannot be read. Where batches end does not depend on `first`.
    """
    from bytepair._internal.extras import pyarrow as pa

    after = 0
    try:
        for item in _raw(file, column, first, wanted, max_bytes):
            for piece in _checked(item, max_bytes, replace) if isinstance(item, Rows) else [item]:
                size = piece.rows if isinstance(piece, Skip) else len(piece.texts)
                after = piece.first + (size or 0)
                if size is None or after > first:
                    yield _from_row(piece, first)
    except (pa.ArrowException, OSError, CorpusError) as error:
        reason = str(error)
        yield Skip(after, None, reason.removeprefix(f"{file.name}: "))


def _raw(
    file: Input, column: str, first: int, wanted: Callable[[int], bool] | None, max_bytes: int
) -> Iterator[Rows | Skip]:
    match kind_of(file.path):
        case "parquet":
            return _parquet(file, column, first, wanted, max_bytes)
        case "jsonl":
            return _jsonl(file, column, wanted, max_bytes)
        case "text":
            return _text(file, max_bytes)


def _from_row(piece: Rows | Skip, first: int) -> Rows | Skip:
    """A piece without the rows before `first`."""
    before = first - piece.first
    if before <= 0:
        return piece
    if isinstance(piece, Skip):
        return Skip(first, piece.rows and piece.rows - before, piece.reason)
    return Rows(first, piece.unit, piece.texts.slice(before))


def _parquet(
    file: Input,
    column: str,
    first: int,
    wanted: Callable[[int], bool] | None,
    max_bytes: int,
) -> Iterator[Rows | Skip]:
    packed = compression_of(file.path) is not None
    opened = _stream(file) if packed else file.system.open_input_file(file.path)
    path = file.path if file.cloud is None and not packed else None
    expansion = Expansion(file.name, file.size)
    with parquet.open_parquet(opened, expansion, packed=packed, path=path) as table:
        arrow.check_column(column, table.schema, "it")
        row = 0
        for unit in range(table.metadata.num_row_groups):
            end = row + table.metadata.row_group(unit).num_rows
            if end > first and (wanted is None or wanted(unit)):
                yield from _row_group(table, column, unit, row, max_bytes)
            row = end


def _row_group(
    table: parquet.File, column: str, unit: int, row: int, max_bytes: int
) -> Iterator[Rows | Skip]:
    """The documents of a row group, which begins at a row."""
    from bytepair._internal.extras import pyarrow as pa

    end = row + table.metadata.row_group(unit).num_rows
    try:
        for batch in table.group(unit, column, BATCH_BYTES, bounds.most_page_bytes(max_bytes)):
            if isinstance(batch, parquet.Heavy):
                yield Skip(row, batch.rows, batch.reason)
                row += batch.rows
            else:
                yield Rows(row, unit, batch)
                row += len(batch)
    except (pa.ArrowException, OSError) as error:
        yield Skip(row, end - row, str(error))


def _stream(file: Input) -> pa.NativeFile:
    """A readable stream over a file, decompressed by its ending."""
    return file.system.open_input_stream(file.path, compression=compression_of(file.path))


def _blocks(file: Input) -> Iterator[bytes]:
    """The bytes of a file, a few megabytes at a time."""
    with _stream(file) as stream:
        yield from bounds.blocks(stream, BATCH_BYTES, Expansion(file.name, file.size))


def _jsonl(
    file: Input, column: str, wanted: Callable[[int], bool] | None, max_bytes: int
) -> Iterator[Rows | Skip]:
    row = nulls = 0
    for unit, lines in enumerate(bounds.whole_lines(_blocks(file), max_bytes)):
        if not (wanted is None or wanted(unit)):
            row += lines.count(b"\n") if isinstance(lines, bytes) else 1
            continue
        for found in _parsed(lines, column, max_bytes):
            if isinstance(found, str):
                yield Skip(row, 1, found)
                row += 1
                continue
            nulls += found.null_count
            yield Rows(row, unit, found)
            row += len(found)
    if row and nulls == row:
        raise CorpusError(f"no object has a field {column!r} with a text")


def _parsed(lines: bytes | int, column: str, max_bytes: int) -> Iterator[pa.Array | str]:
    """The texts of lines, or what is wrong with one of them; bad lines are found by halving."""
    from bytepair._internal.extras import pyarrow as pa

    if isinstance(lines, int):
        yield bounds.too_long(max_bytes, lines)
        return
    try:
        yield from jsonl.parse(lines, column)
    except pa.ArrowInvalid as error:
        middle = lines.find(b"\n", len(lines) // 2) + 1
        middle = middle if 0 < middle < len(lines) else lines.rfind(b"\n", 0, len(lines) - 1) + 1
        if not 0 < middle < len(lines):
            yield str(error)
            return
        yield from _parsed(lines[:middle], column, max_bytes)
        yield from _parsed(lines[middle:], column, max_bytes)


def _text(file: Input, max_bytes: int) -> Iterator[Rows | Skip]:
    from bytepair._internal.extras import pyarrow as pa

    data = bounds.whole(_blocks(file), max_bytes)
    if data is None:
        yield Skip(0, 1, bounds.too_long(max_bytes))
        return
    yield Rows(0, 0, pa.array([data], pa.binary()).view(pa.string()))


def _checked(rows: Rows, max_bytes: int, replace: bool) -> Iterator[Rows | Skip]:
    """The documents of a column that are UTF-8 and not too long, and the others as skips."""
    import numpy as np

    from bytepair._internal.extras import pyarrow as pa

    texts = _plain(rows.texts)
    sizes = np.diff(arrow.offsets(texts))
    wrong = {
        int(i): bounds.too_long(max_bytes, int(sizes[i])) for i in np.flatnonzero(sizes > max_bytes)
    }
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        if replace:
            texts = _replaced(texts)
        else:
            wrong |= _not_utf8(texts)
    start = 0
    for index in sorted(wrong):
        if index > start:
            yield Rows(rows.first + start, rows.unit, texts.slice(start, index - start))
        yield Skip(rows.first + index, 1, wrong[index])
        start = index + 1
    if start < len(texts):
        yield Rows(rows.first + start, rows.unit, texts.slice(start))


def _plain(texts: pa.Array) -> pa.Array:
    """A column of strings, in which nulls are empty."""
    try:
        texts = arrow.plain(texts)
    except TypeError as error:
        raise CorpusError(str(error)) from None
    return texts.fill_null("") if texts.null_count else texts


def _replaced(texts: pa.Array) -> pa.Array:
    """The texts with U+FFFD in the place of bytes that are not UTF-8."""
    from bytepair._internal.extras import pyarrow as pa

    decoded = [text.as_py().decode(errors="replace") for text in _as_bytes(texts)]
    return pa.array(decoded, texts.type)


def _as_bytes(texts: pa.Array) -> pa.Array:
    from bytepair._internal.extras import pyarrow as pa

    wide = pa.types.is_large_string(texts.type)
    return texts.view(pa.large_binary() if wide else pa.binary())


def _not_utf8(texts: pa.Array) -> dict[int, str]:
    wrong = {}
    for index, text in enumerate(_as_bytes(texts)):
        try:
            text.as_py().decode()
        except UnicodeDecodeError as error:
            wrong[index] = f"it is not UTF-8 at its byte {error.start}"
    return wrong


# ---------------------------------------------------------------------------- the stream


def _strided(
    files: list[Input], column: str, start: int, step: int, max_bytes: int
) -> Iterator[pa.Array]:
    """The documents of every so many units of each table, and of every so many text files."""

    def wanted(unit: int) -> bool:
        return unit >= start and (unit - start) % step == 0

    texts = 0
    for file in files:
        if kind_of(file.path) == "text":
            texts += 1
            if not wanted(texts - 1):
                continue
        for piece in read(file, column, wanted=wanted, max_bytes=max_bytes):
            yield require(file, piece).texts


def require(file: Input, piece: Rows | Skip) -> Rows:
    """The documents, or an error if they cannot be read."""
    if isinstance(piece, Skip):
        raise CorpusError(f"{file.name}, row {piece.first}: {piece.reason}")
    return piece


def capped(texts: pa.Array, doc_cap: int | None) -> pa.Array:
    """Documents cut to so many characters."""
    if doc_cap is None:
        return texts
    from bytepair._internal.extras import pyarrow_compute as pc

    return pc.utf8_slice_codeunits(texts, 0, stop=doc_cap)


def _limited(stream: Iterator[pa.Array], limits: Limits) -> Iterator[pa.Array]:
    total = 0
    for texts in stream:
        texts = capped(texts, limits.doc_cap)
        if limits.max_chars is None:
            yield texts
            continue
        taken, chars = within(texts, limits.max_chars - total)
        total += chars
        yield texts.slice(0, taken)
        if total > limits.max_chars:
            return


def within(texts: pa.Array, max_chars: int) -> tuple[int, int]:
    """How many documents to take until one takes the total above, and their characters."""
    import numpy as np

    from bytepair._internal.extras import pyarrow_compute as pc

    sums = np.cumsum(pc.utf8_length(texts).to_numpy(zero_copy_only=False), dtype=np.int64)
    taken = min(int(np.searchsorted(sums, max_chars, side="right")) + 1, len(texts))
    return taken, int(sums[taken - 1]) if taken else 0


def _record_batches(stream: Iterator[pa.Array], column: str) -> Iterator[pa.RecordBatch]:
    from bytepair._internal.extras import pyarrow as pa

    for texts in stream:
        yield pa.RecordBatch.from_arrays([texts], [column])
