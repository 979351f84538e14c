"""This file reads the inputs of a job and gives their documents as ids, from any address on.

Plain parquet files of this machine are read and encoded by all threads of the core
(`encode_tables`); of all others, and of what is damaged, one thread reads and the others encode
(`encode_in_order`). Both give the same documents. With BPE-dropout all go the second way, where the
row of each document is known.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair.corpus import arrow
from bytepair.corpus.bounds import Expansion
from bytepair.corpus.column import Column, Skip, SkipLog, TextBatch, strings
from bytepair.corpus.documents import DocumentSelection, read
from bytepair.corpus.files import Files, Input, of_split
from bytepair.corpus.kinds import compression_of, kind_of
from bytepair.corpus.read import read_batches
from bytepair.corpus.read_ahead import ahead
from bytepair.corpus.source import Reading, ResolvedSource, Source, resolve
from bytepair.files.outputs import scratch
from bytepair.shards.job import Address, EncodedRows, ShardJob, ShardOptions
from bytepair.shards.manifest import SkipRecord
from bytepair.shards.order import GOLDEN, mixed

#: Takes documents, and what is left out, in order.
Sink: TypeAlias = "Callable[[EncodedRows | SkipRecord], None]"
#: A column of documents with the address of the first.
Placed: TypeAlias = tuple[Address, Column]

#: The name of a source in memory, in manifests and messages.
IN_MEMORY: Final = "the source"
#: The maximum number of files that the threads of the core have open at once.
OPEN_FILES: Final = 64
#: Small columns are joined to batches of this many bytes, and of this many columns at most.
JOIN_BYTES: Final = 1 << 22
JOIN_COLUMNS: Final = 1 << 10
#: Larger batches are processed one at a time.
LARGE_BYTES: Final = 1 << 25


@contextmanager
def on_disk(source: Source, options: ShardOptions) -> Iterator[Files]:
    """The files of a source, else a parquet file with its text, which is removed at the end.

    Shards can be resumed and written again, since each document has an address: a file and a row in
    it. Texts, data frames and data sets have none; the same source gives the same file.

    Args:
        source: as in `write`.
        options: the column, and how to treat invalid texts.

    Raises:
        CorpusError: as in `bytepair.train`.
    """
    resolved = resolve(source, split=options.files_split)
    if isinstance(resolved, Files):
        yield resolved
        return
    with scratch() as folder:
        path = folder / "source.parquet"
        _write_texts(resolved, str(path), options)
        file = Input(IN_MEMORY, path.stat().st_size, None, str(path))
        yield of_split(Files([file]), options.files_split)


def _write_texts(resolved: ResolvedSource, path: str, options: ShardOptions) -> None:
    """Write the text of a source to a parquet file with one column."""
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_parquet as parquet

    skips = SkipLog()
    most = options.max_document_bytes
    reading = Reading(options.column, options.errors, max_document_bytes=most)
    batches = read_batches(resolved, reading, on_skip=skips.add)
    schema = pa.schema([(options.column, pa.large_string())])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(arrow.record_batch(_column(batch), options.column))
    skips.warn()


def _column(batch: TextBatch) -> Column:
    """Documents as the column that they are, or as one of the bytes of texts."""
    if isinstance(batch, Column):
        return batch
    texts = [text.encode() for text in batch]
    offsets = np.cumsum([0, *map(len, texts)])
    return Column(np.frombuffer(b"".join(texts), np.uint8), offsets, IN_MEMORY)


def encode_all(
    job: ShardJob,
    take: Sink,
    start: Address = Address(0, 0),  # noqa: B008 - it is frozen
    threads: int | None = None,
) -> None:
    """Read and encode the documents from an address on.

    Args:
        job: says what is read, and how it is encoded.
        take: is called with batches of documents, and with what is left out, in order.
        start: the address of the first document.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
    """
    place = start
    while place.input < len(job.files):
        stop = _end_of_run(job, place.input)
        if not _is_table(job, place.input):
            place = encode_in_order(job, place, stop, take, threads)
            continue
        begun = place
        place = encode_tables(job, place, stop, take, threads)
        if place.input < min(stop, begun.input + OPEN_FILES):
            place = encode_in_order(job, place, place.input + 1, take, threads)


def _end_of_run(job: ShardJob, first: int) -> int:
    """The end of the run of inputs from `first` that are read in the same way."""
    stop = first + 1
    while stop < len(job.files) and _is_table(job, stop) == _is_table(job, first):
        stop += 1
    return stop


def _is_table(job: ShardJob, number: int) -> bool:
    """Whether the threads of the core may read an input."""
    file = job.files[number]
    is_plain = compression_of(file.path) is None and kind_of(file.path) == "parquet"
    return is_plain and file.cloud is None and not job.drops_merges


def encode_tables(
    job: ShardJob, start: Address, stop: int, take: Sink, threads: int | None
) -> Address:
    """Read and encode documents of parquet files up to the input number `stop`, exclusive.

    The core reads rows in parts. If a part cannot be read or encoded as a whole, nothing of it is
    taken, and `encode_in_order` continues at its beginning. So the shards do not depend on which of
    the two read the documents.

    Returns:
        The address of the first document that is left: the input `stop`, the input after
        `OPEN_FILES` inputs, or the place at which the core cannot read or encode.
    """
    files = job.files[start.input : min(stop, start.input + OPEN_FILES)]
    expansions = [Expansion(file.name, file.size) for file in files]

    def took(ids: Any, offsets: Any, text_ends: Any, parts: list[_core.RowRange]) -> None:
        ends = np.cumsum([part.rows for part in parts])
        starts = np.concatenate([[0], ends[:-1]])
        places = [Address(start.input + part.file, part.row) for part in parts]
        for part, size in zip(parts, np.diff(text_ends[[*starts, -1]]), strict=True):
            expansions[part.file].add(int(size))
        take(EncodedRows(ids.astype(job.dtype, copy=False), offsets, text_ends, starts, places))

    end = _core.encode_rows(
        job.tokenizer, [file.path for file in files], job.values["column"], took,
        first=start.row, doc_cap=job.values["doc_cap"],
        prepend=job.values["bos"], append=job.values["eos"],
        most_bytes=job.values["max_document_bytes"], threads=threads,
    )  # fmt: skip
    return Address(start.input + end.file, end.row)


def encode_in_order(
    job: ShardJob, start: Address, stop: int, take: Sink, threads: int | None
) -> Address:
    """Read and encode documents of any files up to the input number `stop`, which is returned.

    One thread reads columns of documents, a second one encodes them on all threads, and the caller
    takes the ids.
    """
    texts = ahead(_gathered(_pieces(job, start, stop)), _is_large)
    with closing(ahead(_encoded(texts, job, threads), _is_large)) as stream:
        for item in stream:
            take(item)
            del item  # free it before the next one is made
    return Address(stop, 0)


def _is_large(item: list[Placed] | EncodedRows | SkipRecord) -> bool:
    """Whether a batch is so large that no other one should be in memory."""
    size = 0
    if isinstance(item, EncodedRows):
        size = item.ids.nbytes
    elif isinstance(item, list):
        size = sum(column.text_bytes for _, column in item)
    return size > LARGE_BYTES


def _pieces(job: ShardJob, start: Address, stop: int) -> Iterator[Placed | SkipRecord]:
    """The columns of the inputs with their addresses, and what is left out."""
    names = ("column", "errors", "doc_cap", "max_document_bytes")
    reading = Reading(**{name: job.values[name] for name in names})
    for number in range(start.input, stop):
        selection = DocumentSelection(first=start.row if number == start.input else 0)
        for piece in read(job.files[number], reading, selection):
            if isinstance(piece, Skip):
                yield piece.record()
            else:
                yield Address(number, piece.first), piece
            del piece  # free it while the caller processes it


def _gathered(pieces: Iterator[Placed | SkipRecord]) -> Iterator[list[Placed] | SkipRecord]:
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


def _encoded(
    stream: Iterator[list[Placed] | SkipRecord], job: ShardJob, threads: int | None
) -> Generator[EncodedRows | SkipRecord, None, None]:
    for item in stream:
        if isinstance(item, dict):
            yield item
            continue
        texts = _joined([column for _, column in item])
        if job.drops_merges:
            ids, offsets = _encode_with_dropout(job, item, threads)
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


def _encode_with_dropout(
    job: ShardJob, placed: list[Placed], threads: int | None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The ids of documents, end to end, and where each begins and the last ends.

    The random numbers of a document depend on the seed, the number of its input and its row there.
    So the ids are the same for any batches, threads and processes, and after an interruption.
    """
    parts, ends = [], [np.zeros(1, np.int64)]
    for place, column in placed:
        seed = input_seed(job.values["seed"], job.first_input + place.input)
        ids, offsets = job.tokenizer.encode_batch_to_numpy(
            strings(column), prepend=job.values["bos"], append=job.values["eos"],
            dropout=job.values["dropout"], seed=(seed + place.row * GOLDEN) % (1 << 64),
            threads=threads,
        )  # fmt: skip
        parts.append(ids)
        ends.append(ends[-1][-1] + offsets[1:])
    return np.concatenate(parts), np.concatenate(ends)


def input_seed(seed: int, number: int) -> int:
    """The seed of an input, from 0 on: row `i` of it is text `i` of a batch with this seed.

    >>> input_seed(1234567, 1)
    3203168211198807973
    """
    state = (seed + (number + 1) * GOLDEN) % (1 << 64)
    return int(mixed(np.array([state], np.uint64))[0])
