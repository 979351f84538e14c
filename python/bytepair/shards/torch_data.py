"""Data sets of torch: they feed rows of shards, blends and texts to a `DataLoader`.

A row is a pair of inputs and targets, which are the ids that follow the inputs. With `labels` it is
`{"input_ids", "labels"}` for models of `transformers`: both are the inputs, since these models
compare the output at a position with the label of the next one. All are tensors of int64.

    rows = DataLoader(TorchRows(data, 2048), batch_size=4, shuffle=True)
    stream = DataLoader(TorchStream(data.batches, 2048, seed=1), batch_size=4, num_workers=2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.checks import check_whole, place_of
from bytepair._internal.extras import torch
from bytepair.errors import ShardError
from bytepair.shards.order import check_numbers
from bytepair.shards.read import Batches, Dataset

__all__ = ["TorchRows", "TorchStream"]

#: Inputs and targets, or `input_ids` and `labels`.
TorchRow: TypeAlias = "tuple[Any, Any] | dict[str, Any]"


def _row(inputs: NDArray[Any], targets: NDArray[Any], *, labels: bool) -> TorchRow:
    ids = torch.from_numpy(inputs.astype(np.int64))
    if labels:
        return {"input_ids": ids, "labels": ids.clone()}
    return ids, torch.from_numpy(targets.astype(np.int64))


class TorchRows(torch.utils.data.Dataset):  # type: ignore[misc]
    """Rows of shards by their number, map style: `len(rows)`, `rows[i]`; samplers shuffle them.

    Rows are consecutive windows of the ids of a shard, as with `packing="stream"`. Workers may
    share them.

    Args:
        data: the shards.
        length: the number of ids in a row.
        labels: whether a row is a dict of `input_ids` and `labels`.
    """

    def __init__(self, data: Dataset, length: int, *, labels: bool = False) -> None:
        check_numbers(0, 1, length=length)
        self._data, self._length, self._labels = data, length, labels
        rows = (max(shard.tokens - 1, 0) // length for shard in data.shards)
        self._starts = np.cumsum([0, *rows])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: int) -> TorchRow:
        place = place_of("row", index, len(self))
        shard = int(np.searchsorted(self._starts, place, side="right")) - 1
        start = (place - int(self._starts[shard])) * self._length
        ids = self._data.mapped(shard)[0][start : start + self._length + 1]
        return _row(ids[:-1], ids[1:], labels=self._labels)


class TorchStream(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Rows in an order of their own, divided between ranks and the workers of a `DataLoader`.

    With W workers per rank, worker w of rank r reads what rank `r * W + w` of W times as many ranks
    reads, so each row is read once.

    Args:
        batches: the method `batches` of a `Dataset` or a `Blend`; or
            `functools.partial(TextBatches, files, tokenizer)`, whose rows the workers encode.
        length: the number of ids in a row.
        labels: whether a row is a dict of `input_ids` and `labels`.
        rank: the rank of this process. Leave it out for a trainer that distributes the rows of an
            iterable data set itself, as that of `transformers` does.
        world_size: the number of ranks.
        options: other keywords of `batches`, such as `seed` and `packing`.
    """

    def __init__(
        self,
        batches: Callable[..., Any],
        length: int,
        *,
        labels: bool = False,
        rank: int = 0,
        world_size: int = 1,
        **options: Any,
    ) -> None:
        first = batches(1, length, rank=rank, world_size=world_size, **options)
        # Others have no epochs with an order of their own.
        self._start = first.state if type(first) is Batches else None
        self._batches, self._length, self._options = batches, length, options
        self._rank, self._world_size, self._labels = rank, world_size, labels
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
        options = {**self._options, "state": self._state}
        if self._start is not None:
            options["state"] = self._state or {**self._start, "epoch": self._epoch}
            epochs = options.get("epochs", 1)
            options["epochs"] = None if epochs is None else self._epoch + epochs
        self._current = self._batches(
            1, self._length, rank=self._rank * count + number,
            world_size=self._world_size * count, **options,
        )  # fmt: skip
        self._state = None
        for inputs, targets in self._current:
            yield _row(inputs[0], targets[0], labels=self._labels)

    def state_dict(self) -> dict[str, Any]:
        """The position, for loaders that save theirs, such as torchdata's `StatefulDataLoader`."""
        state = self._state if self._current is None else self._current.state
        return {"epoch": self._epoch, "batches": state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration begin at a position of `state_dict`."""
        try:
            self._current, self._epoch, self._state = None, state["epoch"], state["batches"]
        except (KeyError, TypeError) as error:
            raise ShardError(f"the state is not of state_dict: {error}", option="state") from None
