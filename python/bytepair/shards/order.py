"""Orders documents for training and fills rows: the same for any number of ranks.

The order of an epoch depends only on the seed. Units are shuffled: documents, or windows of a
stream of ids. Neighbouring units form blocks. The blocks of all shards are shuffled and taken in
chunks of 64; the units of a chunk are shuffled again and packed into rows. The rows of a step are
distributed over the ranks. So the rows do not depend on the number of ranks, reading stays local
on disk, and a position is three numbers: the epoch, the chunk, the row.

Loaders that encode while a corpus is read know no lengths in advance; they use `WaitingDocuments`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_choice, check_mapping, check_whole
from bytepair.corpus.files import LOG
from bytepair.errors import ShardError
from bytepair.shards.manifest import Shard

T = TypeVar("T")

State: TypeAlias = dict[str, Any]
Mapped: TypeAlias = "Callable[[int], tuple[NDArray[Any], NDArray[Any]]]"
Index: TypeAlias = "NDArray[np.uintp]"
#: The epoch, the chunk, the row in it.
TokenAddress: TypeAlias = "tuple[int, int, int]"
#: Rows of one chunk: the epoch, the chunk, the first row and the end.
Run: TypeAlias = "tuple[int, int, int, int]"

#: The rows of one chunk, as pieces of shards: the shards, which of them has each piece, where it
#: starts, its length; and where the pieces of each row end.
ChunkRows: TypeAlias = "tuple[list[NDArray[Any]], Index, Index, Index, Index]"

#: How rows are filled: with whole documents, each row beginning with one, or with all ids in order.
Packing: TypeAlias = Literal["best-fit", "stream"]

#: What SplitMix64 adds to its state for each number.
GOLDEN: Final = 0x9E3779B97F4A7C15
#: The number of neighbouring units that stay together in the first shuffle.
BLOCK_UNITS: Final = 1024
#: The number of blocks whose units are shuffled together in the second.
CHUNK_BLOCKS: Final = 64
#: The number of documents that wait for a row in which they fit, as in nanochat.
BUFFER_DOCUMENTS: Final = 1000


@dataclass
class Order:
    """The rows of all epochs."""

    shards: list[Shard]
    mapped: Mapped  # gives the ids of a shard, and where its documents end
    width: int
    seed: int | None
    packing: Packing
    buffer: int

    def __post_init__(self) -> None:
        check_choice("packing", self.packing, get_args(Packing))
        check_numbers(0, 1, buffer=self.buffer)
        shards, width, stream = self.shards, self.width, self.packing == "stream"
        self.dtype = self.mapped(0)[0].dtype if shards else np.dtype(np.uint16)
        units = [max(s.tokens - 1, 0) // (width - 1) if stream else s.documents for s in shards]
        self._units = np.array(units, np.int64)
        self._blocks = np.cumsum([0, *-(-self._units // BLOCK_UNITS)])
        blocks = int(self._blocks[-1])
        self.chunks = -(-blocks // CHUNK_BLOCKS)
        self.plan = lru_cache(2)(self._plan)
        self._order = lru_cache(2)(lambda epoch: shuffled(blocks, self.seed, epoch, 0))
        crcs = "".join(part.crc32 for shard in shards for part in shard.parts)
        self.identity: State = {
            "seed": self.seed, "length": width - 1, "packing": self.packing, "buffer": self.buffer,
            "data": f"{zlib.crc32(crcs.encode()):08x}",
        }  # fmt: skip

    def __reduce__(self) -> tuple[type[Order], tuple[Any, ...]]:
        """Pickled by its fields; what follows from them is computed again."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def state_of(self, place: TokenAddress) -> State:
        """The state of a loader at a place."""
        return {**dict(zip(("epoch", "chunk", "row"), place, strict=True)), **self.identity}

    def place_of(self, state: State, epochs: int | None) -> TokenAddress:
        """The place of a state, which must belong to the same data, options and epochs."""
        check_mapping("state", state, "pass the state of a loader")
        for key, value in self.identity.items():
            if state.get(key) != value:
                raise ShardError(
                    f"the state belongs to a run with {key} {state.get(key)!r}, not {value!r}"
                )
        try:
            epoch, chunk, row = (int(state[name]) for name in ("epoch", "chunk", "row"))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ShardError(f"the state is incomplete: {error}", option="state") from None
        if not (0 <= epoch < 1 << 63 and 0 <= chunk <= self.chunks and 0 <= row < 1 << 63):
            place = f"epoch {epoch}, chunk {chunk} and row {row}"
            raise ShardError(f"the state has {place}; there are {self.chunks} chunks")
        if epochs is not None and epoch >= epochs:
            text = f"the state is in epoch {epoch} (from 0), and epochs is {epochs}"
            raise ShardError(text, option="epochs", hint=f"pass at least epochs={epoch + 1}")
        return epoch, chunk, row

    def runs(
        self, place: TokenAddress, rows: int, epochs: int | None
    ) -> tuple[list[Run], TokenAddress] | None:
        """The next rows, and the place behind them; None if there are not so many."""
        epoch, chunk, row = place
        runs: list[Run] = []
        empty = 0
        while rows:
            if chunk == self.chunks:
                epoch, chunk, row, empty = epoch + 1, 0, 0, empty + 1
                if empty > 1 and not runs:
                    raise ShardError(f"no row of {self.width} ids can be filled", hint="pass fewer")
            if epochs is not None and epoch >= epochs:
                if left := sum(end - start for *_, start, end in runs):
                    LOG.info("the last %s rows do not fill a batch and are left out", f"{left:,}")
                return None
            count = len(self.plan(epoch, chunk)[-1]) if self.chunks else 0
            end = min(row + rows, count)
            if end > row:
                runs.append((epoch, chunk, row, end))
                rows -= end - row
            chunk, row = (chunk, end) if end < count else (min(chunk + 1, self.chunks), 0)
        return runs, (epoch, chunk, row)

    def copied(self, runs: list[Run], first: int, last: int) -> NDArray[Any]:
        """Some of the rows of runs, from the first up to the last, exclusive."""
        rows = np.empty((last - first, self.width), self.dtype)
        at = 0  # the number of the first row of a run
        for epoch, chunk, start, stop in runs:
            low, high = max(first, at), min(last, at + stop - start)
            if low < high:
                sources, which, starts, lengths, ends = self.plan(epoch, chunk)
                begin, end = start + low - at, start + high - at
                pieces = slice(int(ends[begin - 1]) if begin else 0, int(ends[end - 1]))
                out = rows[low - first : high - first].reshape(-1).view(f"u{rows.itemsize}")
                _core.gather(sources, which[pieces], starts[pieces], lengths[pieces], out)
            at += stop - start
        return rows

    def _plan(self, epoch: int, chunk: int) -> ChunkRows:
        shards, starts, lengths = self._chunk_units(epoch, chunk)
        order = shuffled(len(starts), self.seed, epoch, chunk + 1)
        shards, starts, lengths = shards[order], starts[order], lengths[order]
        if self.packing == "best-fit":
            documents, lengths, ends = _core.plan_rows(lengths, self.width, self.buffer)
            shards, starts = shards[documents], starts[documents]
        else:
            ends = np.arange(1, len(starts) + 1, dtype=np.uintp)
        numbers, which = np.unique(shards, return_inverse=True)
        sources = [self.mapped(int(s))[0].view(f"u{self.dtype.itemsize}") for s in numbers]
        return sources, which.astype(np.uintp), starts, lengths, ends

    def _chunk_units(self, epoch: int, chunk: int) -> tuple[Index, Index, Index]:
        """The shard, the start and the length of each unit of the blocks of a chunk."""
        parts: list[tuple[Index, Index, Index]] = []
        for block in self._order(epoch)[chunk * CHUNK_BLOCKS : (chunk + 1) * CHUNK_BLOCKS].tolist():
            shard = int(np.searchsorted(self._blocks, block, side="right")) - 1
            first = (block - int(self._blocks[shard])) * BLOCK_UNITS
            end = min(first + BLOCK_UNITS, int(self._units[shard]))
            if self.packing == "best-fit":
                ends = self.mapped(shard)[1]
                borders = ends[max(first, 1) - 1 : end].astype(np.uintp)
                borders = borders if first else np.concatenate([np.zeros(1, np.uintp), borders])
                starts, lengths = borders[:-1], np.diff(borders)
            else:
                starts = np.arange(first, end, dtype=np.uintp) * np.uintp(self.width - 1)
                lengths = np.full(end - first, self.width, np.uintp)
            parts.append((np.full(end - first, shard, np.uintp), starts, lengths))
        columns = zip(*parts, strict=True)
        shards, starts, lengths = (np.concatenate(column) for column in columns)
        return shards, starts, lengths


def shuffled(count: int, seed: int | None, *salt: int) -> Index:
    """An order of so many things that follows from the seed and the salt, now and for ever.

    The things are sorted by a hash of their number (the finaliser of SplitMix64).
    """
    numbers = np.arange(count, dtype=np.uint64)
    if seed is None:
        return numbers.astype(np.uintp)
    state = np.zeros(1, np.uint64)
    for value in (seed, *salt):
        state = mixed(state + np.uint64(value % (1 << 64)) + np.uint64(GOLDEN))
    return np.argsort(mixed(mixed(numbers + state) + state), kind="stable").astype(np.uintp)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def check_numbers(rank: int, world_size: int, **positive: int) -> None:
    """Raise an `ArgumentError` that names the first of these numbers that is out of range."""
    for name, value in {**positive, "world_size": world_size}.items():
        check_whole(name, value, least=1)
    check_whole("rank", rank, most=world_size - 1)


class WaitingDocuments(Generic[T]):
    """Documents that wait for a row, each with a length and whatever it consists of.

    A row is filled only while at least `buffer` documents wait. If none fits, the shortest is cut
    to fill it (`cut`), or the row ends there.
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
        return [(self._documents.pop(document), length) for document, length in row]


def delivered(inputs: NDArray[Any], targets: NDArray[Any], torch: bool) -> tuple[Any, Any]:
    """A batch as arrays, or as tensors: inputs in int32 and targets in int64, as losses require."""
    if not torch:
        return inputs, targets
    import torch as library

    return (
        library.from_numpy(inputs.astype(np.int32)),
        library.from_numpy(targets.astype(np.int64)),
    )
