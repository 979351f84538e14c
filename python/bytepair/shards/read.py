"""Reads shards: documents and batches, mapped from disk, mixed, and verified.

`Dataset` returns documents, and batches for training; `order` determines the order of batches.

`Blend` mixes folders: row n comes from the folder whose number of rows so far is furthest below its
share of n (ties: the first folder, as in Megatron's blends). So no folder is ever a whole row ahead
of its share, and after as many rows as the denominator of the shares, all shares are exact.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import inf, lcm
from numbers import Real
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.checks import check_choice, check_whole, exact_fraction, place_of, refuse
from bytepair._internal.progress import Bar, Callback
from bytepair.errors import FileFormatError, ShardError
from bytepair.formats import NATIVE
from bytepair.properties.tokens import all_tokens
from bytepair.shards.layout import LAYOUTS, check_size
from bytepair.shards.manifest import Manifest, Shard, ShardSplit
from bytepair.shards.order import (
    BUFFER_DOCUMENTS,
    Order,
    Packing,
    State,
    TokenAddress,
    check_numbers,
    delivered,
)  # fmt: skip
from bytepair.shards.writer import wrong_shards
from bytepair.tokenizer import Tokenizer, load
from bytepair.training.counts import check_names

#: The number of shards that are mapped at the same time.
MAPPED_SHARDS: Final = 64
#: The number of tokens of a sample, and of ids that are verified at once.
SAMPLE_TOKENS: Final = 60
BLOCK_IDS: Final = 1 << 22
#: Held while a data set changes what it has mapped: threads may share it.
_MAPPING: Final = Lock()


class Dataset:
    """Token shards of one folder, mapped into memory.

    Args:
        folder: the folder that `bytepair.shards.write` wrote.
        split: "train" or "val"; None means both.
        tokenizer: if given, the shards must be of this tokenizer.

    Raises:
        ShardError: if there are no finished shards, none of the split, or they have another
            tokenizer.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(bytepair.sample.paths(), 1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = bytepair.shards.write(bytepair.sample.paths(), tok, folder)
        ...     data = bytepair.shards.Dataset(folder, tokenizer=tok)
        ...     inputs, targets = next(data.batches(2, 8, seed=1))
        >>> len(data), inputs.shape, bool((inputs[:, 1:] == targets[:, :-1]).all())
        (61, (2, 8), True)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        split: ShardSplit | None = "train",
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self._folder = Path(folder)
        self.manifest = Manifest.load(folder)
        check_choice("split", split, ("train", "val", None))
        if tokenizer is not None and tokenizer.fingerprint != self.manifest.fingerprint:
            raise ShardError(
                f"{folder} was made by tokenizer {self.manifest.fingerprint[:12]}, not by "
                f"{tokenizer.fingerprint[:12]}; its ids are those of another vocabulary"
            )
        self.shards = [s for s in self.manifest.shards if split in (None, s.split)]
        if not self.shards and self.manifest.shards:
            there = " and ".join(dict.fromkeys(s.split for s in self.manifest.shards))
            raise ShardError(
                f"{folder} has no shards of the split {split!r}, only of {there!r}",
                option="split",
                hint=f"write a folder of their own, with split={split!r}",
            )
        self._starts = np.cumsum([0, *(s.documents for s in self.shards)])
        self._open: OrderedDict[int, tuple[NDArray[Any], NDArray[Any]]] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        """The state without the mapped shards, which the process that reads it maps again."""
        return {**self.__dict__, "_open": OrderedDict()}

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: int) -> NDArray[Any]:
        """The ids of one document, mapped and not copied.

        Raises:
            ArgumentError: if the index is no integer; there are no slices.
            IndexError: if there is no such document.
        """
        place = place_of("document", index, len(self))
        shard = int(np.searchsorted(self._starts, place, side="right")) - 1
        ids, ends = self.mapped(shard)
        number = place - int(self._starts[shard])
        start = int(ends[number - 1]) if number else 0
        return ids[start : int(ends[number])]

    @property
    def tokens(self) -> int:
        """The number of ids."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that made the ids, stored beside them."""
        return load(self._folder / NATIVE)

    def mapped(self, shard: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The ids of a shard and where its documents end; the last few shards stay mapped."""
        with _MAPPING:
            if shard not in self._open:
                self._open[shard] = self._map(shard)
                while len(self._open) > MAPPED_SHARDS:
                    self._open.popitem(last=False)
            self._open.move_to_end(shard)
            return self._open[shard]

    def _map(self, shard: int) -> tuple[NDArray[Any], NDArray[Any]]:
        how = LAYOUTS[self.manifest.format]
        ids, ends = how.open(self._folder, self.shards[shard], self.manifest.dtype)
        if len(ends) and ((ends[1:] < ends[:-1]).any() or not 0 <= ends[0] <= ends[-1] <= len(ids)):
            raise ShardError(f"{self._folder}, shard {shard}: its documents exceed its tokens")
        return ids, ends

    def batches(
        self,
        batch_size: int,
        length: int,
        *,
        seed: int | None = 0,
        rank: int = 0,
        world_size: int = 1,
        packing: Packing = "best-fit",
        epochs: int | None = 1,
        state: State | None = None,
        buffer: int = BUFFER_DOCUMENTS,
        torch: bool = False,
    ) -> Batches:
        """Iterate over batches of inputs and targets for one rank.

        Args:
            batch_size: the number of rows in a batch.
            length: the number of ids in a row.
            seed: the seed of the shuffle; None means no shuffle. All ranks must pass the same.
            rank: the rank of this process, from 0.
            world_size: the number of ranks.
            packing: "best-fit" begins every row with a document and fills it with the longest
                waiting documents that fit; if none fits, one is cropped to fill the row. "stream"
                cuts the ids of a shard into rows, regardless of documents; only an incomplete row
                at the end of a shard is dropped.
            epochs: the number of passes over all shards; None means no end.
            state: a value of `Batches.state` to resume from; the number of ranks may have changed.
            buffer: the number of documents that wait for a row.
            torch: whether to yield tensors (inputs int32, targets int64) instead of arrays.

        Returns:
            An iterator of inputs and targets, each (batch_size, length); targets are the ids that
            follow the inputs. Arrays have the type of the shards; both are views of one new array.
            Rows at the end that do not fill a batch for every rank are left out, and the logger
            `bytepair` says how many.

        Raises:
            ArgumentError: if a number is not positive, or the rank is out of range.
            ShardError: if the state belongs to other data or options.
        """
        order = self.order(length, seed, packing, buffer)
        return Batches(order, batch_size, (rank, world_size), epochs, torch, state)

    def order(self, length: int, seed: int | None, packing: Packing, buffer: int) -> Order:
        """The order of the rows of all epochs, as in `batches`."""
        for part in chain.from_iterable(shard.parts for shard in self.shards):
            check_size(self._folder / part.file, part.offset + part.bytes)
        width = check_whole("length", length, least=1) + 1
        return Order(self.shards, self.mapped, width, seed, packing, buffer)


class Batches(Iterator[tuple[Any, Any]]):
    """The batches of one rank; `state` is the position. Made by `Dataset.batches`.

    They can be pickled, so a worker process may go on with them.
    """

    def __init__(
        self,
        order: Order,
        batch_size: int,
        rank: tuple[int, int],
        epochs: int | None,
        torch: bool,
        state: State | None,
    ) -> None:
        check_numbers(*rank, batch_size=batch_size, epochs=1 if epochs is None else epochs)
        self._order, self._batch_size, self._torch = order, batch_size, torch
        self._step, self._first = batch_size * rank[1], batch_size * rank[0]
        self._epochs = epochs
        self._place = (0, 0, 0) if state is None else order.place_of(state, epochs)

    @property
    def state(self) -> State:
        """The position of the next batch: a small dict of plain values, equal on all ranks."""
        return self._order.state_of(self._place)

    def __next__(self) -> tuple[Any, Any]:
        """The next batch of this rank; the rows of other ranks are skipped."""
        step = self._order.runs(self._place, self._step, self._epochs)
        if step is None:
            raise StopIteration
        runs, self._place = step
        rows = self._order.copied(runs, self._first, self._first + self._batch_size)
        return delivered(rows[:, :-1], rows[:, 1:], self._torch)


@dataclass(frozen=True)
class Report:
    """What verifying found. It is true if nothing is wrong.

    Attributes:
        manifest: what was promised.
        wrong: what is not as promised, a sentence each.
        samples: the beginnings of documents: their number and their text.
    """

    manifest: Manifest
    wrong: list[str]
    samples: list[tuple[int, str]]

    def __bool__(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        if self.wrong:
            return "\n".join(self.wrong)
        lines = [f"all is as promised: {self.manifest}, format {self.manifest.format}"]
        return "\n".join([*lines, *(f"document {n:,}: {text!r}" for n, text in self.samples)])


def verify(
    folder: str | os.PathLike[str], *, samples: int = 3, progress: bool | Callback | None = None
) -> Report:
    r"""Check everything that a manifest promises.

    Args:
        folder: the folder that `bytepair.shards.write` wrote.
        samples: how many documents to decode.
        progress: as in `bytepair.train`; the stage is "verify", and counts shards.

    Raises:
        ShardError: if there is no manifest, or it is damaged itself.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(bytepair.sample.paths(), 1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = bytepair.shards.write(bytepair.sample.paths(), tok, folder, bos=False)
        ...     report = bytepair.shards.verify(folder, samples=1)
        >>> print(report)
        all is as promised: 1,061,790 tokens (uint16) of 61 documents in 1 shard, format bytepair
        document 0: 'First Citizen:\nBefore we proceed any further, hear me speak...'
    """
    check_whole("samples", samples)
    path = Path(folder)
    manifest = Manifest.load(path)
    wrong = _wrong_tokenizer(path, manifest)
    tokens = None if wrong else all_tokens(load(path / NATIVE))
    valid = None if tokens is None else np.array([bool(t) for t in tokens], np.bool_)
    with Bar(progress) as bar:
        for shard, reasons in wrong_shards(path, manifest.shards):
            wrong += reasons or _wrong_ids(path, manifest, shard, valid)
            bar.update("verify", shard.number + 1, len(manifest.shards), "shards")
    return Report(manifest, wrong, [] if wrong else _samples(path, samples))


def _wrong_tokenizer(folder: Path, manifest: Manifest) -> list[str]:
    try:
        tokenizer = load(folder / NATIVE, check=True)
    except (FileNotFoundError, FileFormatError) as error:
        return [str(error)]
    names = [one[:12] for one in (tokenizer.fingerprint, manifest.fingerprint)]
    text = f"{NATIVE} is the tokenizer {names[0]}, and the ids were made by {names[1]}"
    return [text] if tokenizer.fingerprint != manifest.fingerprint else []


def _wrong_ids(
    folder: Path, manifest: Manifest, shard: Shard, valid: NDArray[np.bool_] | None
) -> list[str]:
    name = shard.parts[-1].file
    try:
        ids, ends = LAYOUTS[manifest.format].open(folder, shard, manifest.dtype)
    except ShardError as error:
        return [str(error)]
    last = int(ends[-1]) if len(ends) else 0
    if last != shard.tokens or not (ends[1:] >= ends[:-1]).all():
        return [f"{name}: the borders of documents do not rise to {shard.tokens:,} tokens"]
    if valid is None:
        return []
    for start in range(0, len(ids), BLOCK_IDS):
        block = ids[start : start + BLOCK_IDS].astype(np.int64)
        is_token = (block >= 0) & (block < len(valid))
        is_token[is_token] = valid[block[is_token]]
        if not is_token.all():
            at = int(np.argmin(is_token))
            return [f"{shard.parts[0].file}: id {block[at]} at token {start + at} is not a token"]
    return []


def _samples(folder: Path, count: int) -> list[tuple[int, str]]:
    data = Dataset(folder, split=None)
    tok = data.tokenizer
    numbers = np.linspace(0, max(len(data) - 1, 0), min(count, len(data)), dtype=np.int64)
    texts = ((int(n), tok.decode(data[int(n)][:SAMPLE_TOKENS].astype(np.uint32))) for n in numbers)
    return [(n, text if len(text) <= 60 else f"{text[:60]}...") for n, text in texts]


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
        first, one = next(iter(self.datasets.items()))
        for name, data in self.datasets.items():
            for what in ("fingerprint", "dtype"):
                values = [str(getattr(each.manifest, what)) for each in (one, data)]
                if values[0] != values[1]:
                    raise ShardError(
                        f"{first!r} and {name!r} cannot be blended: the {what} of the first is "
                        f"{values[0][:12]}, that of the second {values[1][:12]}"
                    )
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

        The seed is that of the shuffle within each folder; `epochs` ends before any folder is read
        more often than this; a `state` has the same weights.
        """
        orders = {
            name: data.order(length, seed, packing, buffer) for name, data in self.datasets.items()
        }
        ranks = (rank, world_size)
        return BlendedBatches(orders, self.weights, batch_size, ranks, epochs, torch, state)


class BlendedBatches(Batches):
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
        self._orders, self._weights = list(orders.values()), dict(weights)
        super().__init__(self._orders[0], batch_size, rank, epochs, torch, None)
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
            name: order.state_of(place)
            for name, order, place in zip(self._weights, self._orders, self._places, strict=True)
        }
        weights = {name: str(weight) for name, weight in self._weights.items()}
        return {"rows": self.rows, "weights": weights, "folders": folders}

    def _resume(self, state: State) -> None:
        try:
            weights = dict(state["weights"])
            self._rows = [int(state["rows"][name]) for name in self._weights]
            places = [dict(state["folders"][name]) for name in self._weights]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ShardError(f"the state is not of a blend, or incomplete: {error}") from None
        if weights != (ours := self.state["weights"]):
            raise ShardError(f"the state belongs to a blend of weights {weights}, not {ours}")
        orders = zip(self._orders, places, strict=True)
        self._places = [order.place_of(place, self._epochs) for order, place in orders]

    def __next__(self) -> tuple[Any, Any]:
        """The next batch of this rank; the rows of other ranks are skipped."""
        folders, totals = chosen_rows(self._shares, self._rows, self._step)
        first, order = self._first, self._order
        rows = np.empty((self._batch_size, order.width), order.dtype)
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
