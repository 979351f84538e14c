"""This file writes token shards with many processes: byte for byte those of one process.

The end of a shard depends on all documents before it. So a task encodes its files to plain ids and
lengths (a part), and one pass that only copies then cuts the parts into shards.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.progress import Bar, Callback
from bytepair.corpus.source import Source
from bytepair.distributed import on_ray, tasks
from bytepair.distributed.tasks import Task
from bytepair.errors import InUseError
from bytepair.shards import Manifest, manifest
from bytepair.shards.encode import Take, encode_all
from bytepair.shards.job import (
    Address,
    EncodedRows,
    ShardJob,
    ShardKeywords,
    ShardOptions,
    files_for_all,
    make_job,
)
from bytepair.shards.layout import DiskFile
from bytepair.shards.manifest import MOST, Fields, Left, damaged, read_left
from bytepair.shards.state import FolderState, state_of
from bytepair.shards.writer import resumed
from bytepair.tokenizer import Tokenizer

PARTS: Final = ".parts"
#: The files of a part.
FILES: Final = ("ids", "lengths", "places")
#: The number of documents of a part that are copied at a time.
COPIED_DOCUMENTS: Final = 1 << 13


def shard(
    source: Source,
    tokenizer: Tokenizer,
    out: str | os.PathLike[str],
    *,
    rank: int | None = None,
    world_size: int | None = None,
    ray: bool = False,
    threads: int | None = None,
    task_bytes: int = tasks.TASK_BYTES,
    progress: bool | Callback | None = None,
    **options: Unpack[ShardKeywords],
) -> Manifest | None:
    """Write token shards with many processes; the result is that of `bytepair.shards.write`.

    Args:
        source: as in `bytepair.shards.write`; files that all processes can read.
        tokenizer: as in `bytepair.shards.write`.
        out: as in `bytepair.shards.write`, a folder shared by all processes.
        rank: the rank of this process; None means that of the job array in the environment.
        world_size: the number of processes; None means that of the job array.
        ray: whether a Ray cluster runs the tasks, instead of ranks; needs the extra `ray`.
        threads: the maximum number of threads of each process; None means one with Ray, which gives
            each task one core, else `BYTEPAIR_NUM_THREADS`, or else all processors.
        task_bytes: the approximate number of bytes of the files of a task.
        progress: as in `bytepair.train`.
        options: the fields of `bytepair.shards.ShardOptions`, as keywords.

    Returns:
        The manifest, from the process that finishes last, and from those that come later; None from
        the others.

    Raises:
        CorpusError: if something cannot be read and is not skipped, or if everything is skipped.
        ShardError: if the folder belongs to another job, two processes have the same rank, or a
            rank is passed with Ray.
        ImportError: if Ray is asked for and not installed.
        ConnectionError: if the Ray cluster does not answer.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(bytepair.sample.paths(), 1000)
        >>> files = bytepair.sample.paths()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for rank in range(2):
        ...         made = bytepair.distributed.shard(
        ...             files, tok, folder, rank=rank, world_size=2, task_bytes=100_000
        ...         )
        >>> made.documents
        61
    """
    tasks.check_ranks(rank, world_size, ray=ray)
    if ray:
        on_ray.check()
    folder = Path(out)
    how = ShardOptions(**options)
    job = make_job(files_for_all(source, how.split), tokenizer, how, folder)
    state = state_of(folder, job.values, ignore=PARTS)
    if state.manifest is not None:
        return assemble(folder, job, [], task_bytes, threads, progress)
    root = folder / PARTS
    work = _unwritten(tasks.split(job.files, task_bytes), state)
    mine = work if ray else tasks.share(work, rank, world_size)
    if mine:
        tasks.begin(root, {**job.values, "task_bytes": task_bytes})
    if ray:
        left = [task for task in work if not task.is_done(root)]
        on_ray.each(left, encode_task, (job, root, threads or 1))
    else:
        for task in mine:
            encode_task(task, job, root, threads)
    if not tasks.all_done(root, work):
        # If another rank has finished meanwhile, it has removed what this one would wait for.
        state = state_of(folder, job.values, ignore=PARTS)
        if state.manifest is None:
            return None
    return assemble(folder, job, work, task_bytes, threads, progress)


def _unwritten(work: list[Task], state: FolderState) -> list[Task]:
    """The tasks with documents that are in no finished shard."""
    first = state.following[0]
    return [task for task in work if task.first_input + len(task.files) > first]


def encode_task(task: Task, job: ShardJob, root: Path, threads: int | None) -> None:
    """Encode the files of a task to a part, unless it exists."""

    def work(task: Task, folder: Path) -> dict[str, Any]:
        part = replace(job, files=task.files, first_input=task.first_input)
        return _write_part(part, folder, threads)

    tasks.run(root, [task], FILES, work)


def _write_part(job: ShardJob, folder: Path, threads: int | None) -> dict[str, Any]:
    """Write ids, for each document the number of ids and of bytes of text, and the addresses.

    An address is three numbers: a document of the part, its input and its row there. Those of the
    documents after it follow from it, up to the next address.
    """
    skipped: list[tuple[int, Left]] = []
    tokens = documents = 0

    def take(item: EncodedRows | Left) -> None:
        nonlocal tokens, documents
        if isinstance(item, dict):
            skipped.append((documents, item))
            return
        ids.add(np.ascontiguousarray(item.ids, job.dtype))
        rows = np.stack([np.diff(item.offsets), np.diff(item.text_ends)], axis=1)
        lengths.add(np.ascontiguousarray(rows, np.int64).reshape(-1))
        numbers = [
            (documents + int(first), job.first_input + place.input, place.row)
            for first, place in zip(item.starts, item.places, strict=True)
        ]
        places.add(np.array(numbers, np.int64).reshape(-1))
        tokens += len(item.ids)
        documents += len(rows)

    with ExitStack() as stack:
        files = [stack.enter_context(closing(DiskFile(folder / name))) for name in FILES]
        ids, lengths, places = files
        encode_all(job, take, threads=threads)
        for file in files:
            file.finish()
    marked = [{"document": at, **left} for at, left in skipped]
    return {"tokens": tokens, "documents": documents, "skipped": marked}


def assemble(
    folder: Path,
    job: ShardJob,
    work: list[Task],
    task_bytes: int,
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Manifest | None:
    """Cut the parts of all tasks into shards; None if another process is doing so.

    It can be interrupted and called again, as `bytepair.shards.write` can. A document that is in no
    part, since its shard was finished before and is not whole, is encoded here.
    """
    root = folder / PARTS

    def feed(start: Address, take: Take) -> None:
        if not tasks.all_done(root, work) or not (work and work[0].first_input <= start.input):
            encode_all(job, take, start, threads)
            return
        tasks.redo_broken(root, work, FILES, lambda task: encode_task(task, job, root, threads))
        for item in _documents(root, work, start, job.dtype):
            take(item)

    try:
        with manifest.locked(folder), Bar(progress) as bar:
            shards = resumed(folder, job, bar, feed, ignore=PARTS)
            tasks.clear(root, {**job.values, "task_bytes": task_bytes}, FILES)
            return shards
    except InUseError:
        return None


def _documents(
    root: Path, work: list[Task], start: Address, dtype: np.dtype[Any]
) -> Iterator[EncodedRows | Left]:
    """The documents of the parts from an address on, and what was skipped, in order.

    What was skipped before the document at the address belongs to the shard before it.
    """
    for task in work:
        part = _Part.load(task, tasks.mark_of(task, root), dtype)
        first = at = part.first_from(start)
        for place, left in part.skipped:
            if place < first or (place == first and part.is_begun_at(start)):
                continue
            yield from part.slices(at, place)
            yield left
            at = place
        yield from part.slices(at, part.documents)


@dataclass(frozen=True)
class _Part:
    """The result of a task.

    Attributes:
        ids: of all documents, end to end.
        ends: where each document begins, in ids and in bytes of text; and the end of the last.
        runs: a document, its input and its row there, for each run of rows.
        skipped: what was skipped, and the document before which.
    """

    ids: NDArray[Any]
    ends: NDArray[np.int64]
    runs: NDArray[np.int64]
    skipped: list[tuple[int, Left]]

    @classmethod
    def load(cls, task: Task, mark: Fields, dtype: np.dtype[Any]) -> Self:
        """Map the files of a task that is done, whose checksums are right.

        Raises:
            ShardError: if the mark or the numbers in the files are not those of a task.
        """
        ids, lengths, places = (mark.folder / name for name in FILES)
        tokens, documents = mark.count("tokens"), mark.count("documents")
        skipped = [(left.count("document"), read_left(left)) for left in mark.objects("skipped")]
        if ids.stat().st_size != tokens * dtype.itemsize:
            raise damaged(mark.path, "the file of ids has another size", mark.folder)
        mapped = np.memmap(ids, dtype, "r") if tokens else np.empty(0, dtype)
        rows, runs = np.fromfile(lengths, np.int64), np.fromfile(places, np.int64)
        if len(rows) != 2 * documents or len(runs) % 3 or bool(len(rows)) != bool(len(runs)):
            raise damaged(mark.path, "the other files have other sizes", mark.folder)
        ends = np.concatenate([np.zeros(2, np.int64), rows]).reshape(-1, 2).cumsum(axis=0)
        runs = runs.reshape(-1, 3)
        low, high = (0, task.first_input, 0), (MOST, task.first_input + len(task.files), MOST)
        is_right = (ends[1:] >= ends[:-1]).all() and ends[-1, 0] == tokens
        is_right &= (runs >= low).all() and (runs < high).all() and not runs[:1, 0].any()
        if not is_right or (runs[1:, 0] < runs[:-1, 0]).any():
            raise damaged(mark.path, "its files have impossible numbers", mark.folder)
        return cls(mapped, ends, runs, skipped)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.ends) - 1

    def is_begun_at(self, address: Address) -> bool:
        """Whether the first document does not come after an address."""
        return bool(len(self.runs)) and tuple(self.runs[0, 1:]) <= (address.input, address.row)

    def first_from(self, address: Address) -> int:
        """The first document that does not come before an address."""
        starts = [(int(number), int(row)) for _, number, row in self.runs]
        run = bisect_right(starts, (address.input, address.row)) - 1
        if run < 0:
            return 0
        first, number, row = map(int, self.runs[run])
        end = int(self.runs[run + 1, 0]) if run + 1 < len(starts) else self.documents
        return min(first + address.row - row, end) if number == address.input else end

    def slices(self, begin: int, end: int) -> Iterator[EncodedRows]:
        """A range of documents, a few at a time."""
        for at in range(begin, end, COPIED_DOCUMENTS):
            yield self._slice(at, min(at + COPIED_DOCUMENTS, end))

    def _slice(self, begin: int, end: int) -> EncodedRows:
        ends = self.ends[begin : end + 1]
        offsets, text_ends = ends[:, 0], ends[:, 1]
        first = int(np.searchsorted(self.runs[:, 0], begin, side="right")) - 1
        last = int(np.searchsorted(self.runs[:, 0], end, side="left"))
        runs = self.runs[first:last]
        ahead = np.maximum(begin - runs[:, 0], 0)
        places = [
            Address(int(number), int(row) + int(more))
            for (_, number, row), more in zip(runs, ahead, strict=True)
        ]
        starts = np.maximum(runs[:, 0] - begin, 0)
        ids = self.ids[int(offsets[0]) : int(offsets[-1])]
        return EncodedRows(ids, offsets - offsets[0], text_ends, starts, places)
