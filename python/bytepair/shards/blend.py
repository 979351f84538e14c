"""Mixes folders of shards: batches contain rows of each folder in proportion to its weight.

Row n comes from the folder whose number of rows so far is furthest below its share of n (ties: the
first folder, as in Megatron's blends). So the order of folders depends on the weights alone; no
folder is ever a whole row ahead of its share, and after as many rows as the denominator of the
shares, all shares are exact. Within a folder, rows come as from `Dataset.batches`, each folder with
epochs of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import inf, lcm
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.checks import exact_fraction, refuse
from bytepair.errors import ShardError
from bytepair.shards.order import (
    BUFFER_DOCUMENTS,
    Order,
    Packing,
    State,
    TokenAddress,
    check_numbers,
    delivered,
)  # fmt: skip
from bytepair.shards.read import Dataset
from bytepair.training.counts import check_names


class Blend:
    """Folders of shards of one tokenizer, mixed by weights while they are read.

    Args:
        datasets: the folders, or a `Dataset` of each, by name.
        weights: the share of each in the rows, by the same names; weights are normalized. A float
            means its decimal notation: 0.1 is one tenth.
        split: "train" or "val", for folders; None means both.

    Raises:
        ShardError: if the folders are of different tokenizers or types, or one has no shards.
        ArgumentError: if the names differ, or a weight is not positive.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(bytepair.sample.paths(), 1000)
        >>> with tempfile.TemporaryDirectory() as web, tempfile.TemporaryDirectory() as code:
        ...     _ = bytepair.shards.write(bytepair.sample.paths()[:3], tok, web)
        ...     _ = bytepair.shards.write(bytepair.sample.paths()[3:], tok, code)
        ...     blend = bytepair.shards.Blend({"web": web, "code": code}, {"web": 0.7, "code": 0.3})
        ...     batches = blend.batches(10, 32, packing="stream")
        ...     inputs, targets = next(batches)
        >>> inputs.shape, batches.rows, batches.epochs
        ((10, 32), {'web': 7, 'code': 3}, {'web': 0, 'code': 0})
    """

    def __init__(
        self,
        datasets: Mapping[str, Dataset | str | os.PathLike[str]],
        weights: Mapping[str, float | Fraction],
        *,
        split: Literal["train", "val"] | None = "train",
    ) -> None:
        check_names("weights", weights, datasets)
        self.datasets = {
            name: data if isinstance(data, Dataset) else Dataset(data, split=split)
            for name, data in datasets.items()
        }
        _check_same(self.datasets)
        for name, weight in weights.items():
            if not isinstance(weight, Real) or not 0 < weight < inf:
                raise refuse(f"the weight of {name!r}", weight, "a number above 0")
        shares = {name: exact_fraction(weights[name]) for name in datasets}
        total = sum(shares.values())
        self.weights = {name: share / total for name, share in shares.items()}

    def batches(
        self,
        batch_size: int,
        length: int,
        *,
        seed: int | None = 0,
        rank: int = 0,
        world_size: int = 1,
        packing: Packing = "best-fit",
        epochs: int | None = None,
        state: State | None = None,
        buffer: int = BUFFER_DOCUMENTS,
        torch: bool = False,
    ) -> BlendedBatches:
        """Iterate over batches of inputs and targets for one rank, as `Dataset.batches` does.

        Args:
            batch_size: the number of rows in a batch.
            length: the number of ids in a row.
            seed: the seed of the shuffle within each folder; None means no shuffle.
            rank: the rank of this process, from 0.
            world_size: the number of ranks.
            packing: as in `Dataset.batches`.
            epochs: stop before any folder is read more often than this; None means no end.
            state: a value of `BlendedBatches.state` to resume from; the number of ranks may have
                changed.
            buffer: as in `Dataset.batches`.
            torch: as in `Dataset.batches`.

        Raises:
            ShardError: as in `Dataset.batches`, or if the state has other weights.
        """
        orders = {
            name: data.order(length, seed, packing, buffer) for name, data in self.datasets.items()
        }
        ranks = (rank, world_size)
        return BlendedBatches(orders, self.weights, batch_size, ranks, epochs, torch, state)


class BlendedBatches:
    """The batches of one rank; `state` is the position. Made by `Blend.batches`."""

    def __init__(
        self,
        orders: Mapping[str, Order],
        weights: Mapping[str, Fraction],
        batch_size: int,
        rank: tuple[int, int],
        epochs: int | None,
        torch: bool,
        state: State | None,
    ) -> None:
        check_numbers(*rank, batch_size=batch_size, epochs=1 if epochs is None else epochs)
        self._orders, self._weights = list(orders.values()), dict(weights)
        self._batch_size, self._torch, self._epochs = batch_size, torch, epochs
        self._rank, self._world = rank
        common = lcm(*(weight.denominator for weight in weights.values()))
        self._shares = [int(weight * common) for weight in weights.values()]
        self._rows = [0] * len(orders)
        self._places: list[TokenAddress] = [(0, 0, 0)] * len(orders)
        if state is not None:
            self._resume(state)

    @property
    def rows(self) -> dict[str, int]:
        """How many rows were taken of each folder, by all ranks together."""
        return dict(zip(self._weights, self._rows, strict=True))

    @property
    def epochs(self) -> dict[str, int]:
        """How often each folder was read to its end."""
        folders = zip(self._weights, self._orders, self._places, strict=True)
        return {name: epoch + (chunk == order.chunks) for name, order, (epoch, chunk, _) in folders}

    @property
    def state(self) -> State:
        """The position of the next batch: a dict of plain values, equal on all ranks."""
        folders = {
            name: {"epoch": epoch, "chunk": chunk, "row": row, **order.identity}
            for name, order, (epoch, chunk, row) in zip(
                self._weights, self._orders, self._places, strict=True
            )
        }
        return {"rows": self.rows, "weights": self._shown_weights(), "folders": folders}

    def _shown_weights(self) -> dict[str, str]:
        return {name: str(weight) for name, weight in self._weights.items()}

    def _resume(self, state: State) -> None:
        try:
            weights = dict(state["weights"])
            self._rows = [int(state["rows"][name]) for name in self._weights]
            places = [dict(state["folders"][name]) for name in self._weights]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ShardError(f"the state is not of a blend, or incomplete: {error}") from None
        if weights != (ours := self._shown_weights()):
            raise ShardError(f"the state belongs to a blend of weights {weights}, not {ours}")
        orders = zip(self._orders, places, strict=True)
        self._places = [order.place_of(place, self._epochs) for order, place in orders]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self

    def __next__(self) -> tuple[Any, Any]:
        """The next batch of this rank; the rows of other ranks are skipped."""
        count = self._batch_size * self._world
        folders, totals = chosen_rows(self._shares, self._rows, count)
        first, width = self._batch_size * self._rank, self._orders[0].width
        rows = np.empty((self._batch_size, width), self._orders[0].dtype)
        places = []
        for number, (order, place) in enumerate(zip(self._orders, self._places, strict=True)):
            at = np.flatnonzero(folders == number)
            step = order.runs(place, len(at), self._epochs) if len(at) else ([], place)
            if step is None:
                raise StopIteration
            low, high = np.searchsorted(at, (first, first + self._batch_size)).tolist()
            rows[at[low:high] - first] = order.copied(step[0], low, high)
            places.append(step[1])
        self._rows, self._places = totals, places
        return delivered(rows[:, :-1], rows[:, 1:], self._torch)


def chosen_rows(
    shares: list[int], rows: list[int], count: int
) -> tuple[NDArray[np.int64], list[int]]:
    """The folders of the next rows, and how many rows of each folder, of `shares`, are taken then.

    Example:
        >>> chosen, rows = chosen_rows([2, 1], [0, 0], 6)
        >>> chosen.tolist(), rows
        ([0, 1, 0, 0, 1, 0], [4, 2])
    """
    total, rows = sum(shares), list(rows)
    folders = np.empty(count, np.int64)
    done = sum(rows)
    for index in range(count):
        behind = [
            share * max(done + index, 1) - total * count_so_far
            for share, count_so_far in zip(shares, rows, strict=True)
        ]
        number = behind.index(max(behind))
        folders[index] = number
        rows[number] += 1
    return folders, rows


def _check_same(datasets: Mapping[str, Dataset]) -> None:
    first, one = next(iter(datasets.items()))
    for name, data in datasets.items():
        for what in ("fingerprint", "dtype"):
            values = [getattr(each.manifest, what) for each in (one, data)]
            if values[0] != values[1]:
                texts = [str(value)[:12] for value in values]
                raise ShardError(
                    f"{first!r} and {name!r} cannot be blended: the {what} of the first is "
                    f"{texts[0]}, that of the second {texts[1]}"
                )
