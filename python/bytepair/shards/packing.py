"""Items with lengths in, the best one for the free space of a row out.

`Waiting` holds the documents from which rows are packed while a corpus is read. `Dataset` knows all
lengths in advance; the core plans its rows (`order`).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from bytepair.errors import ArgumentError, ShardError
from bytepair.tokenizer import Tokenizer

T = TypeVar("T")


def check_numbers(rank: int, world_size: int, **positive: int) -> None:
    """Raise a `ShardError` that names the first of these numbers that is out of range."""
    for name, value in {**positive, "world_size": world_size}.items():
        if value < 1:
            raise ShardError(f"{name} is {value}; it must be positive")
    if not 0 <= rank < world_size:
        raise ShardError(f"rank is {rank}; it must be from 0 to {world_size - 1} (world_size - 1)")


def check_epochs(epochs: int | None) -> None:
    """Raise a `ShardError` unless this is a number of passes, or None for no end."""
    if epochs is not None and epochs < 1:
        raise ShardError(f"epochs is {epochs}; pass at least 1, or None for no end")


def check_tokenizer(tokenizer: object) -> None:
    """Raise a `TypeError` unless this is a tokenizer."""
    if not isinstance(tokenizer, Tokenizer):
        kind = type(tokenizer).__name__
        raise ArgumentError(
            f"tokenizer is of type {kind}; pass a Tokenizer, as bytepair.load gives"
        )


class Unpicklable:
    """A loader that has a thread and documents that wait, which another process would lack."""

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"{name} cannot be pickled: it reads files in a thread; build it in the process that "
            f"uses it, as an IterableDataset (TextBatches.torch_stream) does in each worker"
        )


class Waiting(Generic[T]):
    """Items that wait for a row, each with a length, in the order in which they came.

    Example:
        >>> from bytepair.shards.packing import Waiting
        >>> waiting = Waiting()
        >>> for length, item in [(5, "five"), (3, "three"), (3, "other"), (9, "nine")]:
        ...     waiting.add(length, item)
        >>> waiting.longest(4), waiting.longest(2), waiting.shortest(), len(waiting)
        ('three', None, 'other', 2)
    """

    def __init__(self) -> None:
        # Sorted by length; among equal lengths, the first item to arrive is last.
        self._order: list[tuple[int, int]] = []
        self._items: dict[int, T] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._order)

    def add(self, length: int, item: T) -> None:
        """Add an item."""
        insort(self._order, (length, self._next))
        self._items[self._next] = item
        self._next -= 1

    def longest(self, room: int) -> T | None:
        """Take the longest item of at most this length, the first of several; None if none fits."""
        index = bisect_right(self._order, (room, 0)) - 1
        return None if index < 0 else self._take(index)

    def shortest(self) -> T:
        """Take the shortest item, the first of several; there must be one."""
        length, _ = self._order[0]
        return self._take(bisect_right(self._order, (length, 0)) - 1)

    def _take(self, index: int) -> T:
        _, number = self._order.pop(index)
        return self._items.pop(number)


def delivered(inputs: NDArray[Any], targets: NDArray[Any], torch: bool) -> tuple[Any, Any]:
    """A batch as arrays, or as tensors: inputs in int32 and targets in int64, as losses require."""
    if not torch:
        return inputs, targets
    import torch as library

    return (
        library.from_numpy(inputs.astype(np.int32)),
        library.from_numpy(targets.astype(np.int64)),
    )
