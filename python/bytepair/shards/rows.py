"""Parquet files in, documents as ids out: read and encoded by threads of the core, without Arrow.

The rows are read in the same parts as through Arrow. If a part cannot be read as a whole, or not be
encoded, nothing of it is taken, and Arrow goes on at its beginning; so it does not show in the
shards which way the documents came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bytepair import _core
from bytepair.corpus import parquet
from bytepair.corpus.bounds import Expansion, most_page_bytes
from bytepair.corpus.documents import BATCH_BYTES
from bytepair.corpus.kinds import compression_of, kind_of
from bytepair.corpus.source import Input
from bytepair.shards.job import Address, Encoded, ShardJob

#: So many files are open to the threads at once.
FILES: Final = 64
#: Small parts are joined to items of so many bytes at most, and of so many parts.
JOIN_BYTES: Final = 1 << 22
PARTS: Final = 1 << 10


@dataclass(frozen=True)
class RowSpan:
    """Rows of an input that are read together.

    Attributes:
        place: the address of the first.
        batch: as which they are read through Arrow; maybe without the first of it.
    """

    place: Address
    batch: parquet.RowBatch

    @property
    def rows(self) -> int:
        """How many they are."""
        return self.batch.first + self.batch.rows - self.place.row

    def behind(self, place: Address) -> RowSpan | None:
        """Those that do not come before an address, if any."""
        if self.place.input > place.input:
            return self
        row = max(self.place.row, place.row)
        is_left = self.place.input == place.input and row < self.batch.first + self.batch.rows
        return RowSpan(Address(place.input, row), self.batch) if is_left else None


@dataclass(frozen=True)
class ReadPlan:
    """What the core reads.

    Attributes:
        first: the number of the first input.
        paths: of this input and those behind it.
        parts: their rows, in order.
    """

    first: int
    paths: list[str]
    parts: list[RowSpan]

    @property
    def stop(self) -> int:
        """The number of the input behind the last."""
        return self.first + len(self.paths)


def plan(job: ShardJob, first: int) -> ReadPlan:
    """The inputs from a number on that the core reads: some, or none."""
    made = ReadPlan(first, [], [])
    for number, file in enumerate(job.files[first : first + FILES], first):
        parts = _parts(job, file, number)
        if parts is None:
            break
        made.paths.append(file.path)
        made.parts.extend(parts)
    return made


def next_input(job: ShardJob, first: int) -> int:
    """The number of an input up to which, from `first` on, the core reads none."""
    looked = 0
    for number in range(first, len(job.files)):
        if _may_be(job, job.files[number]):
            if looked == FILES or _parts(job, job.files[number], number) is not None:
                return number
            looked += 1
    return len(job.files)


def _may_be(job: ShardJob, file: Input) -> bool:
    """Whether a file could be one that the core reads, by its name."""
    is_here = file.cloud is None and job.values["doc_cap"] is None
    is_plain = compression_of(file.path) is None and kind_of(file.path) == "parquet"
    return is_here and is_plain


def _parts(job: ShardJob, file: Input, number: int) -> list[RowSpan] | None:
    """The parts of an input; None if the core does not read it."""
    if not _may_be(job, file):
        return None
    footer = parquet.footer_of(file.path, job.values["column"])
    if footer is None or not footer.is_read:
        return None
    most = most_page_bytes(job.values["max_document_bytes"])
    try:
        with parquet.LocalFile(file.path) as source:
            batches = parquet.parts(source, footer.groups, BATCH_BYTES, most)
    except OSError:
        return None
    if batches is None:
        return None
    return [RowSpan(Address(number, batch.first), batch) for batch in batches]


def encode(
    job: ShardJob,
    plan: ReadPlan,
    start: Address,
    take: Callable[[Encoded], None],
    threads: int | None = None,
) -> Address:
    """Read and encode the documents of a plan from an address on.

    Returns:
        The address from which on documents are left: that behind the plan, or one at which the core
        cannot read or encode.
    """
    items = list(_joined(part.behind(start) for part in plan.parts))
    waiting = iter(items)
    left = Address(plan.stop, 0)
    expansions = [Expansion(file.name, file.size) for file in job.files[plan.first : plan.stop]]

    def took(ids: Any, offsets: Any, text_ends: Any, count: int) -> bool:
        nonlocal left
        item = next(waiting)
        if count:
            starts = np.cumsum([0, *(part.rows for part in item[: count - 1])])
            places = [part.place for part in item[:count]]
            ids = ids.astype(job.dtype, copy=False)
            for place, size in zip(places, np.diff(text_ends[[*starts, -1]]), strict=True):
                expansions[place.input - plan.first].add(int(size))
            take(Encoded(ids, offsets, text_ends, starts, places))
        if count < len(item):
            left = item[count].place
        return count == len(item)

    read = _core.encode_rows(
        job.tokenizer, plan.paths, job.values["column"],
        [[_of_core(part, plan) for part in item] for item in items], took,
        prepend=job.values["bos"], append=job.values["eos"],
        most_bytes=job.values["max_document_bytes"], threads=threads,
    )  # fmt: skip
    return left if read else start


def _of_core(part: RowSpan, plan: ReadPlan) -> tuple[int, int, int, int]:
    """A part as the core names it: file, row group, and rows of that."""
    start = part.place.row - part.batch.before
    return part.place.input - plan.first, part.batch.group, start, start + part.rows


def _joined(parts: Iterator[RowSpan | None]) -> Iterator[list[RowSpan]]:
    """Small parts together, in items."""
    held: list[RowSpan] = []
    size = 0
    for part in parts:
        if part is None:
            continue
        if held and (size + part.batch.size > JOIN_BYTES or len(held) == PARTS):
            yield held
            held, size = [], 0
        held.append(part)
        size += part.batch.size
    if held:
        yield held
