"""Documents and their addresses in, ids with BPE-dropout out, the same whatever they come with.

The random numbers of a document depend on the seed, the number of its input and its row there. So
the ids are the same for any batches, threads and processes, and after an interruption.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair import reference
from bytepair.corpus.column import Column, strings
from bytepair.shards.job import Address, ShardJob


def input_seed(seed: int, number: int) -> int:
    """The seed of an input: row `i` of it is text `i` of a batch with this seed.

    Args:
        seed: that of the job.
        number: of the input, from 0 on.

    Returns:
        Number `number` of `bytepair.reference.random_numbers(seed)`.

    >>> input_seed(1234567, 1)
    3203168211198807973
    """
    return next(reference.random_numbers(reference.seed_at(seed, number)))


def encode(
    job: ShardJob, placed: list[tuple[Address, Column]], threads: int | None = None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The ids of all documents, concatenated, and where each begins and the last ends."""
    parts = [_encode_column(job, place, column, threads) for place, column in placed]
    lengths = [np.diff(offsets) for _, offsets in parts]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])
    return np.concatenate([ids for ids, _ in parts]), offsets


def _encode_column(
    job: ShardJob, place: Address, column: Column, threads: int | None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    seed = input_seed(job.values["seed"], job.first_input + place.input)
    return job.tokenizer.encode_batch_to_numpy(
        strings(column), prepend=job.values["bos"], append=job.values["eos"],
        dropout=job.values["dropout"], seed=reference.seed_at(seed, place.row), threads=threads,
    )  # fmt: skip
