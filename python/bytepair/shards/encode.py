"""The inputs of a job in, their documents as ids out, in order, from any address on.

Plain parquet files of this machine are read and encoded by all threads of the core (`rows`); of all
others, and of what is damaged, one thread reads and the others encode (`columns`). Both give the
same documents. With BPE-dropout and with held-out documents all go the second way, where the row of
each document is known.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from bytepair.shards import columns, rows
from bytepair.shards.job import Address, EncodedRows, Left, ShardJob


def encode_all(
    job: ShardJob,
    take: Callable[[EncodedRows | Left], None],
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
    if job.drops_merges:
        _in_order(job, start, len(job.files), take, threads)
        return
    place = start
    while place.input < len(job.files):
        stop = _end_of_run(job, place.input, is_table=True)
        while place.input < stop:
            begun = place
            place = rows.encode(job, place, stop, take, threads)
            if place.input < min(stop, begun.input + rows.OPEN_FILES):
                place = _in_order(job, place, place.input + 1, take, threads)
        place = _in_order(job, place, _end_of_run(job, stop, is_table=False), take, threads)


def _end_of_run(job: ShardJob, first: int, *, is_table: bool) -> int:
    """The end of the run of inputs from `first` that are all parquet files, or all other files."""
    stop = first
    while stop < len(job.files) and rows.is_read(job.files[stop]) == is_table:
        stop += 1
    return stop


def _in_order(
    job: ShardJob,
    start: Address,
    stop: int,
    take: Callable[[EncodedRows | Left], None],
    threads: int | None,
) -> Address:
    """Read and encode up to the input number `stop`, and return the address of this input."""
    if start.input >= stop:
        return start
    with closing(columns.encoded(job, start, stop, threads)) as stream:
        for item in stream:
            take(item)
            del item  # free it before the next one is made
    return Address(stop, 0)
