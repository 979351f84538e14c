"""The inputs of a job in, their documents as ids out, in order, from any address on.

What the core can read by itself it reads (`rows`); all else comes through Arrow (`columns`). Both
give the same documents, and where something is damaged, Arrow decides what can be read of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from bytepair.shards import columns, rows
from bytepair.shards.job import Address, Encoded, Left, ShardJob


def encode_all(
    job: ShardJob,
    take: Callable[[Encoded | Left], None],
    start: Address = Address(0, 0),  # noqa: B008 - it is frozen
    threads: int | None = None,
) -> None:
    """Read and encode the documents from an address on.

    Args:
        job: says what is read, and how it is encoded.
        take: is called with batches of documents, and with what is left out, in order.
        start: the address of the first document.
        threads: how many threads encode; None means all.
    """
    place = start
    while place.input < len(job.files):
        plan = rows.plan(job, place.input)
        while place.input < plan.stop:
            place = rows.encode(job, plan, place, take, threads)
            if place.input < plan.stop:
                place = _through_arrow(job, place, place.input + 1, take, threads)
        place = _through_arrow(job, place, rows.next_input(job, place.input), take, threads)


def _through_arrow(
    job: ShardJob,
    start: Address,
    stop: int,
    take: Callable[[Encoded | Left], None],
    threads: int | None,
) -> Address:
    """Read and encode up to the input of a number, and return where that begins."""
    if start.input >= stop:
        return start
    with closing(columns.encoded(job, start, stop, threads)) as stream:
        for item in stream:
            take(item)
            del item  # it should not be held while the next is made
    return Address(stop, 0)
