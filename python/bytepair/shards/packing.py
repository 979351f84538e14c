"""What the loaders that pack rows while a corpus is read have in common.

`WaitingDocuments` holds the ids from which rows are packed; the core chooses among them by their
lengths. `Dataset` knows all lengths in advance, so the core plans its rows (`order`).
"""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_choice
from bytepair.errors import ArgumentError, ShardError
from bytepair.shards.names import Packing
from bytepair.tokenizer import Tokenizer

T = TypeVar("T")


def check_numbers(rank: int, world_size: int, **positive: int) -> None:
    """Raise a `ShardError` that names the first of these numbers that is out of range."""
    for name, value in {**positive, "world_size": world_size}.items():
        if value < 1:
            raise ShardError(f"{name} is {value}; it must be positive", option=name)
    if not 0 <= rank < world_size:
        raise ShardError(
            f"rank is {rank}; it must be from 0 to {world_size - 1} (world_size - 1)", option="rank"
        )


def check_epochs(epochs: int | None) -> None:
    """Raise a `ShardError` unless this is a number of passes, or None for no end."""
    if epochs is not None and epochs < 1:
        raise ShardError(
            f"epochs is {epochs}", option="epochs", hint="pass at least 1, or None for no end"
        )


def check_packing(packing: str) -> None:
    """Raise an `ArgumentError` unless this is a way of filling rows."""
    check_choice("packing", packing, get_args(Packing))


def check_tokenizer(tokenizer: object) -> None:
    """Raise a `TypeError` unless this is a tokenizer."""
    if not isinstance(tokenizer, Tokenizer):
        kind = type(tokenizer).__name__
        raise ArgumentError(
            f"tokenizer is of type {kind}", hint="pass a Tokenizer, as bytepair.load gives"
        )


class Unpicklable:
    """A loader that has a thread and documents that wait, which another process would lack."""

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"{name} cannot be pickled: it reads files in a thread; build it in the process that "
            f"uses it, as an IterableDataset (TextBatches.torch_stream) does in each worker"
        )


class WaitingDocuments(Generic[T]):
    """Documents that wait for a row, each with a length and whatever it consists of.

    Args:
        width: the number of ids in a row.
        buffer: a row is filled only while at least this many documents wait.
        cut: whether the shortest document is cut to fill a row into which none fits; otherwise the
            row ends there.

    Example:
        >>> from bytepair.shards.packing import WaitingDocuments
        >>> waiting = WaitingDocuments(7, 3, cut=True)
        >>> for length, document in [(5, "five"), (3, "three"), (3, "other"), (2, "two")]:
        ...     waiting.add(length, document)
        >>> waiting.row(), waiting.row()
        ([('five', 5), ('two', 2)], None)
    """

    def __init__(self, width: int, buffer: int, *, cut: bool) -> None:
        self._packer = _core.RowPacker(width, buffer, cut=cut)
        self._documents: dict[int, T] = {}
        self._number = 0

    def add(self, length: int, document: T) -> None:
        """Add a document."""
        self._packer.add(self._number, length)
        self._documents[self._number] = document
        self._number += 1

    def row(self) -> list[tuple[T, int]] | None:
        """The next row: documents with the number of ids to take; None if too few wait."""
        row = self._packer.row()
        if row is None:
            return None
        return [(self._documents.pop(piece.document), piece.length) for piece in row]


def delivered(inputs: NDArray[Any], targets: NDArray[Any], torch: bool) -> tuple[Any, Any]:
    """A batch as arrays, or as tensors: inputs in int32 and targets in int64, as losses require."""
    if not torch:
        return inputs, targets
    import torch as library

    return (
        library.from_numpy(inputs.astype(np.int32)),
        library.from_numpy(targets.astype(np.int64)),
    )
