"""Inputs in, documents as ids out, through Arrow: the way for every kind of file.

A thread reads columns of documents, a second lets all threads encode them, the caller takes the
ids.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair.corpus import arrow
from bytepair.corpus.documents import Rows, Skip, capped, read, require
from bytepair.corpus.read_ahead import ahead
from bytepair.shards.job import Address, Encoded, Left, ShardJob
from bytepair.tokenizer import Tokenizer

if TYPE_CHECKING:
    import pyarrow as pa

#: Small columns are joined to batches of so many bytes at most, and of so many columns.
JOIN_BYTES: Final = 1 << 22
PIECES: Final = 1 << 10
#: A batch has at most so many bytes, or one document.
MOST_BYTES: Final = 1 << 26
#: Larger batches are worked on one at a time.
LARGE_BYTES: Final = 1 << 25


@dataclass(frozen=True)
class TextColumns:
    """Columns of documents with their addresses, on their way to the encoder."""

    columns: list[Any]
    places: list[Address]


def encoded(
    job: ShardJob, start: Address, stop: int, threads: int | None = None
) -> Generator[Encoded | Left, None, None]:
    """Read and encode the documents from an address on, up to the input of a number."""
    texts = ahead(_gathered(_pieces(job, start, stop)), _large)
    return ahead(_encode_all(texts, job, threads), _large)


def _large(item: TextColumns | Encoded | Left) -> bool:
    """Whether there should be nothing else in memory."""
    size = 0
    if isinstance(item, TextColumns):
        size = sum(column.nbytes for column in item.columns)
    elif isinstance(item, Encoded):
        size = item.ids.nbytes
    return size > LARGE_BYTES


def _pieces(job: ShardJob, start: Address, stop: int) -> Iterator[tuple[Address, Any] | Left]:
    """The columns of the inputs with their addresses, and what is left out."""
    column, doc_cap = job.values["column"], job.values["doc_cap"]
    limit = job.values["max_document_bytes"]
    for number in range(start.input, stop):
        file = job.files[number]
        first = start.row if number == start.input else 0
        for piece in read(file, column, first=first, max_bytes=limit):
            if isinstance(piece, Skip) and job.values["errors"] == "skip":
                yield {"input": file.name, **asdict(piece)}
            else:
                rows: Rows = require(file, piece)
                yield from _portions(Address(number, rows.first), capped(rows.texts, doc_cap))


def _portions(place: Address, texts: Any) -> Iterator[tuple[Address, Any]]:
    """A column with its address, in portions that are not too large, unless a document is."""
    ends, start = arrow.offsets(texts), 0
    while start < len(texts):
        found = int(np.searchsorted(ends, ends[start] + MOST_BYTES, side="right")) - 1
        stop = max(found, start + 1)
        yield Address(place.input, place.row + start), texts[start:stop]
        start = stop


def _gathered(pieces: Iterator[tuple[Address, Any] | Left]) -> Iterator[TextColumns | Left]:
    """Join small columns, for there may be many small files."""
    held = TextColumns([], [])
    size = 0
    for piece in pieces:
        small = isinstance(piece, tuple) and size + piece[1].nbytes <= JOIN_BYTES
        if held.places and not (small and len(held.places) < PIECES):
            yield held
            held, size = TextColumns([], []), 0
        if isinstance(piece, dict):
            yield piece
            continue
        held.places.append(piece[0])
        held.columns.append(piece[1])
        size += piece[1].nbytes
        del piece  # what is being worked on should not be held here as well
        if size > JOIN_BYTES:
            yield held
            held, size = TextColumns([], []), 0
    if held.places:
        yield held


def _encode_all(
    stream: Iterator[TextColumns | Left], job: ShardJob, threads: int | None
) -> Iterator[Encoded | Left]:
    from bytepair._internal.extras import pyarrow as pa

    options = {"bos": job.values["bos"], "eos": job.values["eos"], "threads": threads}
    for item in stream:
        if isinstance(item, dict):
            yield item
            continue
        if _large(item):
            pa.default_memory_pool().release_unused()  # what reading it took
        texts = _joined(item.columns)
        ids, offsets = encode(job.tokenizer, texts, job.dtype, **options)
        starts = np.cumsum([0, *(len(column) for column in item.columns[:-1])])
        made = Encoded(ids, offsets, arrow.offsets(texts), starts, item.places)
        del item, texts, ids  # they should not be held while the next are read
        yield made
        del made


def _joined(columns: list[Any]) -> Any:
    """Columns of strings, small and large, as one."""
    from bytepair._internal.extras import pyarrow as pa

    if len(columns) == 1:
        return columns[0]
    kinds = {column.type for column in columns}
    return pa.concat_arrays([c.cast(pa.large_string()) if len(kinds) > 1 else c for c in columns])


def encode(
    tokenizer: Tokenizer,
    texts: pa.Array,
    dtype: np.dtype[Any],
    *,
    bos: int | None = None,
    eos: int | None = None,
    threads: int | None = None,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Encode documents; special tokens in their text are text.

    Args:
        tokenizer: the tokenizer.
        texts: strings, without nulls.
        dtype: of the ids; every id of the tokenizer fits.
        bos: the id to begin each document with.
        eos: the id to end each document with.
        threads: how many threads to use at most; None means all.

    Returns:
        The ids of all documents, and where each begins (int64), with the end of the last.

    Example:
        >>> import bytepair, numpy, pyarrow
        >>> from bytepair.shards.columns import encode
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> texts = pyarrow.array(["hello", "he"])
        >>> ids, offsets = encode(tok, texts, numpy.dtype("uint16"), bos=260)
        >>> ids.tolist(), offsets.tolist()
        ([260, 259, 260, 104, 101], [0, 2, 5])
    """
    ids, offsets = _core.encode_utf8(
        tokenizer, arrow.data(texts), arrow.offsets(texts),
        special=None, prepend=bos, append=eos, threads=threads,
    )  # fmt: skip
    return ids.astype(dtype, copy=False), offsets
