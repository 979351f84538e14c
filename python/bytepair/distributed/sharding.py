"""Write token shards with many processes: byte for byte those of one process.

The end of a shard depends on all documents before it. So a task encodes its files to plain ids and
lengths (a part), and one pass that only copies then cuts the parts into shards.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.arguments import checked
from bytepair._internal.progress import Bar, Callback, Position
from bytepair.corpus.source import Source
from bytepair.distributed import on_ray, tasks
from bytepair.distributed.tasks import Task
from bytepair.errors import InUseError, ShardError
from bytepair.shards import Manifest, manifest
from bytepair.shards.disk import DiskFile
from bytepair.shards.encode import encode_all
from bytepair.shards.job import (
    Address,
    Encoded,
    Left,
    ShardJob,
    ShardKeywords,
    ShardOptions,
    make_job,
)
from bytepair.shards.writer import Cut, finish, finished
from bytepair.tokenizer import Tokenizer

PARTS: Final = ".parts"
#: The number of documents of a part that are copied at a time.
DOCUMENTS: Final = 1 << 13


@checked
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
        threads: the number of encoding threads of each process; None means all, or one with Ray,
            which gives each task one core.
        task_bytes: the approximate number of bytes of the files of a task.
        progress: as in `bytepair.train`.
        options: the fields of `bytepair.shards.ShardOptions`, as keywords.

    Returns:
        The manifest, from the process that finishes last; None from the others.

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
    tasks.check_held(options.get("hold_out"))
    job = make_job(source, tokenizer, ShardOptions(**options))
    if (Path(out) / manifest.NAME).exists() and (done := finished(Path(out), job)):
        return done
    manifest.check_folder(Path(out), job.values, ignore=PARTS)
    root = Path(out) / PARTS
    work = tasks.split(job.files, task_bytes)
    tasks.begin(root, {**job.values, "task_bytes": task_bytes})
    if ray:
        left = [task for task in work if not task.is_done(root)]
        on_ray.each(left, encode_task, (job, root, threads or 1))
    else:
        rank, world_size = tasks.place(rank, world_size)
        for task in work[rank::world_size]:
            encode_task(task, job, root, threads)
    return assemble(Path(out), job, work, progress) if tasks.all_done(root, work) else None


def encode_task(task: Task, job: ShardJob, root: Path, threads: int | None) -> None:
    """Encode the files of a task to a part, unless it exists."""

    def work(task: Task, folder: Path) -> dict[str, Any]:
        part = replace(job, files=task.files, first_input=task.first_input)
        return _write_part(part, folder, threads)

    tasks.run(root, [task], work)


def _write_part(job: ShardJob, folder: Path, threads: int | None) -> dict[str, Any]:
    """Write ids, and for each document the number of ids and of bytes of text."""
    skipped: list[Left] = []
    tokens = documents = 0

    def take(item: Encoded | Left) -> None:
        nonlocal tokens, documents
        if isinstance(item, dict):
            skipped.append(item)
            return
        ids.add(np.ascontiguousarray(item.ids, job.dtype))
        rows = np.stack([np.diff(item.offsets), np.diff(item.text_ends)], axis=1)
        lengths.add(np.ascontiguousarray(rows, np.int64).reshape(-1))
        tokens += len(item.ids)
        documents += len(rows)

    with closing(DiskFile(folder / "ids")) as ids, closing(DiskFile(folder / "lengths")) as lengths:
        encode_all(job, take, threads=threads)
        ids.finish()
        lengths.finish()
    return {"tokens": tokens, "documents": documents, "skipped": skipped}


def assemble(
    folder: Path, job: ShardJob, work: list[Task], progress: bool | Callback | None = None
) -> Manifest | None:
    """Cut the parts of all tasks into shards; None if another process is doing so.

    It can be interrupted and called again, as `bytepair.shards.write` can.
    """
    try:
        with manifest.locked(folder), Bar(progress) as bar:
            if not (made := finished(folder, job)):
                marks = manifest.begin(folder, job.values, ignore=PARTS)
                following = marks[-1].following if marks else (0, 0)
                if following is not None:
                    said = tasks.marks(folder / PARTS, work)
                    position = Position(sum(mark["tokens"] for mark in said))
                    with Cut(job, folder, marks, bar, position) as run:
                        position.enter(sum(mark.shard.tokens for mark in marks))
                        for item in _parts(folder / PARTS, work, Address(*following), job.dtype):
                            if not isinstance(item, dict):
                                position.enter(len(item.ids))
                                position.within(1.0)
                            run.take(item)
                        run.finish()
                    marks += run.marks
                made = finish(folder, job, marks)
            shutil.rmtree(folder / PARTS, ignore_errors=True)
            return made
    except InUseError:
        return None


def _parts(
    root: Path, work: list[Task], start: Address, dtype: np.dtype[Any]
) -> Iterator[Encoded | Left]:
    """The documents of the parts from a place on; after each part what it skipped."""
    for task in work[start.input :]:
        folder = task.folder(root)
        said = manifest.read_json(folder / tasks.MARK)
        rows = np.fromfile(folder / "lengths", np.int64).reshape(-1, 2)
        if len(rows) != said["documents"] or int(rows[:, 0].sum()) != said["tokens"]:
            raise ShardError(f"{folder} does not match its marker file; remove it and start again")
        ids = np.memmap(folder / "ids", dtype, "r") if said["tokens"] else np.empty(0, dtype)
        ends = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(rows, axis=0)])
        first = start.row if task.number == start.input else 0
        for begin in range(first, len(rows), DOCUMENTS):
            yield _slice(ids, ends[begin : begin + DOCUMENTS + 1], Address(task.number, begin))
        yield from said["skipped"]


def _slice(ids: NDArray[Any], ends: NDArray[np.int64], place: Address) -> Encoded:
    offsets, text_ends = ends[:, 0], ends[:, 1]
    used = ids[int(offsets[0]) : int(offsets[-1])]
    return Encoded(used, offsets - offsets[0], text_ends, np.zeros(1, np.int64), [place])
