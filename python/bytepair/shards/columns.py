"""Inputs in, documents as ids out, in order, for files of every kind.

One thread reads columns of documents, a second one encodes them on all threads, and the caller
takes the ids.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, TypeAlias

import numpy as np

from bytepair import _core
from bytepair.corpus.column import Column, Skip
from bytepair.corpus.documents import DocumentSelection, ReadOptions, read
from bytepair.corpus.read_ahead import ahead
from bytepair.shards import dropout
from bytepair.shards.job import Address, EncodedRows, Left, ShardJob

#: A column of documents with the address of the first.
Placed: TypeAlias = tuple[Address, Column]

#: Small columns are joined to batches of this many bytes, and of this many columns at most.
JOIN_BYTES: Final = 1 << 22
JOIN_COLUMNS: Final = 1 << 10
#: Larger batches are processed one at a time.
LARGE_BYTES: Final = 1 << 25


def encoded(
    job: ShardJob, start: Address, stop: int, threads: int | None = None
) -> Generator[EncodedRows | Left, None, None]:
    """Read and encode the documents from `start` up to the input number `stop`, exclusive."""
    texts = ahead(_gathered(_pieces(job, start, stop)), _large)
    return ahead(_encode_all(texts, job, threads), _large)


def _large(item: list[Placed] | EncodedRows | Left) -> bool:
    """Whether a batch is so large that no other one should be in memory."""
    size = 0
    if isinstance(item, EncodedRows):
        size = item.ids.nbytes
    elif isinstance(item, list):
        size = sum(column.text_bytes for _, column in item)
    return size > LARGE_BYTES


def _pieces(job: ShardJob, start: Address, stop: int) -> Iterator[Placed | Left]:
    """The columns of the inputs with their addresses, and what is left out."""
    names = ("column", "errors", "doc_cap", "max_document_bytes")
    how = ReadOptions(**{name: job.values[name] for name in names})
    for number in range(start.input, stop):
        file = job.files[number]
        selection = DocumentSelection(first=start.row if number == start.input else 0)
        for piece in read(file, how, selection):
            if isinstance(piece, Skip):
                yield piece.record()
            else:
                yield Address(number, piece.first), piece
            del piece  # free it while the caller processes it


def _gathered(pieces: Iterator[Placed | Left]) -> Iterator[list[Placed] | Left]:
    """Join small columns to batches, since there may be many small files."""
    batch: list[Placed] = []
    size = 0
    for piece in pieces:
        more = JOIN_BYTES + 1 if isinstance(piece, dict) else piece[1].text_bytes
        if batch and (size + more > JOIN_BYTES or len(batch) == JOIN_COLUMNS):
            yield batch
            batch, size = [], 0
        if isinstance(piece, dict):
            yield piece
            continue
        batch.append(piece)
        size += more
        del piece
        if size > JOIN_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _encode_all(
    stream: Iterator[list[Placed] | Left], job: ShardJob, threads: int | None
) -> Iterator[EncodedRows | Left]:
    for item in stream:
        if isinstance(item, dict):
            yield item
            continue
        texts = _joined([column for _, column in item])
        if job.drops_merges:
            ids, offsets = dropout.encode(job, item, threads)
        else:
            ids, offsets = _core.encode_utf8(
                job.tokenizer, texts.data, texts.offsets, special=None,
                prepend=job.values["bos"], append=job.values["eos"], threads=threads,
            )  # fmt: skip
        starts = np.cumsum([0, *(len(column) for _, column in item[:-1])])
        ids = ids.astype(job.dtype, copy=False)
        encoded = EncodedRows(ids, offsets, texts.offsets, starts, [place for place, _ in item])
        del item, texts, ids  # free them before the next ones are read
        yield encoded
        del encoded


def _joined(columns: list[Column]) -> Column:
    """Columns as one."""
    if len(columns) == 1:
        return columns[0]
    data = [column.data[column.offsets[0] : column.offsets[-1]] for column in columns]
    lengths = [np.diff(column.offsets) for column in columns]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return Column(np.concatenate(data), offsets, columns[0].name)
