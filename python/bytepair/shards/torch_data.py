"""This file makes datasets of torch of shards and texts: rows of a fixed length for a `DataLoader`.

`TorchRows` is map style: each row by its number, in the order of the shards, for samplers that
shuffle. `TorchStream` is iterable: rows in the order of `Dataset.batches` and its kin, divided
between ranks and the workers of a loader. A row is a pair of inputs and targets, or, for models of
`transformers`, a dict with `input_ids` and `labels`, which these models shift themselves.

`Dataset.torch_rows`, `Dataset.torch_stream` and their relatives make them. Needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.checks import check_whole, place_of
from bytepair._internal.extras import torch

#: Inputs and targets, or `input_ids` and `labels`; tensors of int64.
TorchRow: TypeAlias = "tuple[Any, Any] | dict[str, Any]"


def row_of(inputs: NDArray[Any], targets: NDArray[Any], *, labels: bool) -> TorchRow:
    """One row as tensors of int64.

    Args:
        inputs: the ids of the row.
        targets: the ids that follow them.
        labels: whether to give `{"input_ids", "labels"}`: both are the inputs, since a model of
            `transformers` compares the output at a position with the label of the next one.
    """
    ids = torch.from_numpy(inputs.astype(np.int64))
    if labels:
        return {"input_ids": ids, "labels": ids.clone()}
    return ids, torch.from_numpy(targets.astype(np.int64))


class TorchRows(torch.utils.data.Dataset):  # type: ignore[misc]
    """Rows of shards by their number: consecutive windows of ids, as with `packing="stream"`.

    Made by `Dataset.torch_rows`.
    """

    def __init__(
        self,
        mapped: Callable[[int], tuple[NDArray[Any], NDArray[Any]]],
        tokens: list[int],
        length: int,
        *,
        labels: bool,
    ) -> None:
        self._mapped, self._length, self._labels = mapped, length, labels
        self._starts = np.cumsum([0, *(max(count - 1, 0) // length for count in tokens)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: int) -> TorchRow:
        """One row.

        Raises:
            ArgumentError: if the index is no integer.
            IndexError: if there is no such row.
        """
        place = place_of("row", index, len(self))
        shard = int(np.searchsorted(self._starts, place, side="right")) - 1
        start = (place - int(self._starts[shard])) * self._length
        ids = self._mapped(shard)[0][start : start + self._length + 1]
        return row_of(ids[:-1], ids[1:], labels=self._labels)


class TorchStream(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Rows in an order of their own, divided between ranks and the workers of a `DataLoader`.

    With W workers per rank, worker w of rank r reads what rank `r * W + w` of W times as many ranks
    reads, so each row is read once. Made by `torch_stream` of a `Dataset`, a `Blend` or
    `TextBatches`.
    """

    def __init__(
        self,
        batches: Callable[..., Iterator[tuple[Any, Any]]],
        *,
        labels: bool,
        rank: int,
        world_size: int,
        has_epochs: bool = False,
    ) -> None:
        self._batches, self._labels, self._has_epochs = batches, labels, has_epochs
        self._rank, self._world_size = rank, world_size
        self._epoch = 0
        self._current: Any = None
        self._state: Any = None

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration have the order of this epoch; training loops call it.

        A blend and texts go on without end, so for them it changes nothing.
        """
        self._epoch = check_whole("epoch", epoch)

    def __iter__(self) -> Iterator[TorchRow]:
        worker = torch.utils.data.get_worker_info()
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        epoch = {"epoch": self._epoch} if self._has_epochs else {}
        self._current = self._batches(
            rank=self._rank * count + number, world_size=self._world_size * count,
            state=self._state, **epoch,
        )  # fmt: skip
        self._state = None
        for inputs, targets in self._current:
            yield row_of(inputs[0], targets[0], labels=self._labels)

    def state_dict(self) -> dict[str, Any]:
        """The position, for loaders that save theirs, such as torchdata's `StatefulDataLoader`."""
        state = self._state if self._current is None else self._current.state
        return {"epoch": self._epoch, "batches": state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration begin at a position of `state_dict`."""
        self._current, self._epoch, self._state = None, state["epoch"], state["batches"]
