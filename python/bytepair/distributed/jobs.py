"""Counts and writes shards with many processes; the results are those of one process.

A task of a count writes the counts of its files as `Counts.save` does. The process that finishes
last adds up the counts of all tasks in their order. The output names its job, so a rank that is
started again finds that there is nothing to do.

The end of a shard depends on all documents before it. So a task encodes its files to batches of
documents (a part), and one pass that only copies then cuts the parts into shards.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, Unpack

import numpy as np
from numpy.lib.format import read_array

from bytepair import _core
from bytepair._internal.progress import Bar, Callback, ShareRead
from bytepair.corpus.column import Skip, SkipLog
from bytepair.corpus.files import LOG, Files, recorded
from bytepair.corpus.source import Reading, Source, resolve_files
from bytepair.distributed import tasks
from bytepair.distributed.tasks import Task, TaskFolder
from bytepair.errors import ArgumentError, CountsError, InUseError
from bytepair.files.outputs import naming, open_own, sync
from bytepair.files.safe import MAX_COUNT, are_counts
from bytepair.shards import Manifest, manifest, writer
from bytepair.shards.encode import (
    EncodedRows,
    ShardJob,
    ShardKeywords,
    ShardOptions,
    Sink,
    encode_all,
    make_job,
)
from bytepair.shards.manifest import Address, SkipRecord, parse_skip
from bytepair.shards.writer import resumed, state_of
from bytepair.tokenizer import Tokenizer
from bytepair.training.counting import CountOptions, count_with_skips
from bytepair.training.counts import Counts, check_counts_output, metadata_of, read_counts, skip_of

#: The files of tasks.
COUNTS: Final = "counts.parquet"
DOCUMENTS: Final = "documents"
#: The key of the job in the metadata of the output.
JOB: Final = "bytepair.job"


def count(
    source: Source,
    out: str | os.PathLike[str],
    *,
    rank: int | None = None,
    world_size: int | None = None,
    ray: bool = False,
    pattern: str | Sequence[str] = "nanochat",
    reading: Reading = Reading(),
    threads: int | None = None,
    task_bytes: int = tasks.TASK_BYTES,
    overwrite: bool = False,
) -> Counts | None:
    """Count the pretokens of files with many processes; the result is that of `bytepair.count`.

    Args:
        source: files that all processes can read.
        out: the parquet file to write, in a folder shared by all processes; if it has the counts of
            this very call already, they are returned.
        rank: the rank of this process; None means that of the job array in the environment.
        world_size: the number of processes; None means that of the job array.
        ray: whether a Ray cluster runs the tasks, instead of ranks; needs the extra `ray`.
        pattern: as in `bytepair.count`.
        reading: as in `bytepair.count`, but all text is read, and the tasks are the checkpoint. The
            process that finishes last warns of what all skipped.
        threads: the maximum number of threads of each process; None means one with Ray, which gives
            each task one core, else `BYTEPAIR_NUM_THREADS`, or else all processors.
        task_bytes: the approximate number of bytes of the files of a task.
        overwrite: whether to replace a file that holds no counts.

    Returns:
        The counts, from the process that finishes last, and from all that come later; None from the
        others.

    Raises:
        CorpusError: if something cannot be read.
        ShardError: if the folder has tasks of a different count, two processes have the same rank,
            or a rank is passed with Ray.
        OverwriteError: if `out` exists and holds no counts, and `overwrite` is false.
        ImportError: if Ray is asked for and not installed.

    Example:
        >>> import bytepair, pathlib, tempfile
        >>> files = bytepair.sample.paths()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for rank in range(2):
        ...         counts = bytepair.distributed.count(
        ...             files, pathlib.Path(folder, "counts.parquet"),
        ...             rank=rank, world_size=2, task_bytes=100_000,
        ...         )
        >>> counts == bytepair.count(files)
        True
    """
    ranks = tasks.Ranks(rank, world_size, ray)
    for name in ("max_chars", "memory_limit", "checkpoint"):
        if (value := getattr(reading, name)) is not None:
            raise ArgumentError(
                f"{name} is for one process", option=name, value=value, hint="omit it"
            )
    regex, path = _core.pattern(pattern), Path(out)
    options = CountOptions(regex, replace(reading, split=None), ranks.threads(threads))
    files = resolve_files(source, reading.split).files
    check_counts_output(path, overwrite=overwrite)
    job = {
        "pattern": regex, "doc_cap": reading.doc_cap, "column": reading.column,
        "errors": reading.errors, "unicode": _core.UNICODE_VERSION, **recorded(files, path.parent),
    }  # fmt: skip
    root = path.with_name(f"{path.name}.parts")
    parts = TaskFolder(root, {**job, "task_bytes": task_bytes}, COUNTS)
    work = tasks.split(files, task_bytes)
    if (counts := _finished(path, job, parts)) is not None:
        return counts
    if not ranks.run(parts, work, count_task, options):
        # If another rank has finished meanwhile, it has removed what this one would wait for.
        return _finished(path, job, parts)
    with suppress(InUseError), manifest.locked(root):
        if parts.is_done(*work):
            counts, skips = _put_together(parts, work, options)
            record = {"job": job, "checksum": counts.core.fingerprint}
            counts.save(path, metadata={JOB: json.dumps(record)}, overwrite=overwrite)
            parts.clear()
            skips.warn()
            return counts
    return None


def _finished(path: Path, job: dict[str, Any], parts: TaskFolder) -> Counts | None:
    """The counts of a job that has finished, from its output; None if there are none.

    An output that is damaged, or that of another job, is counted again.
    """
    if not Counts.is_counts_file(path):
        return None
    try:
        record = json.loads(metadata_of(path)[JOB])
        if writer.differing(record["job"], job):
            return None
        counts = read_counts(path)
        if counts.core.fingerprint != record["checksum"]:
            return None
    except (CountsError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    parts.clear()
    LOG.info("%s has the counts of these files already", path)
    return counts


def count_task(task: Task, folder: TaskFolder, options: CountOptions) -> None:
    """Count the files of a task, unless it is done."""

    def work(path: Path) -> dict[str, Any]:
        with Bar(False) as bar:
            counts, skips = count_with_skips(Files(task.files), options, bar)
        counts.save(path)
        return {"skipped": skips.documents, "first": skips.first}

    folder.run(task, work)


def _put_together(
    folder: TaskFolder, work: list[Task], options: CountOptions
) -> tuple[Counts, SkipLog]:
    skips = SkipLog()
    folder.redo_broken(work, lambda task: count_task(task, folder, options))
    for task in work:
        documents, first = folder.mark(task, _skipped)
        skips.add(*first, documents=documents)
    return added([folder.of(task) / COUNTS for task in work]), skips


def _skipped(mark: Any) -> tuple[int, list[Skip]]:
    match mark:
        case {"skipped": documents, "first": [*places]} if are_counts(documents):
            return documents, list(map(skip_of, places))
    raise ValueError("what was skipped is not what it must be")


def added(paths: list[Path]) -> Counts:
    """The counts of consecutive texts as those of one, from the files of their parts.

    Halves are added, so that few counts are copied more often than others.
    """
    if len(paths) == 1:
        return read_counts(paths[0])
    half = len(paths) // 2
    return added(paths[:half]) + added(paths[half:])


PARTS: Final = ".parts"


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

    All processes can read the files and share the folder `out`. `rank`, `world_size`, `ray`,
    `threads` and `task_bytes` are those of `bytepair.distributed.count`; the other arguments are
    those of `bytepair.shards.write`.

    Returns:
        The manifest, from the process that finishes last, and from those that come later; None from
        the others.

    Raises:
        CorpusError: if something cannot be read and is not skipped, or if everything is skipped.
        ShardError: if the folder belongs to another job, two processes have the same rank, or a
            rank is passed with Ray.
        ImportError: if Ray is asked for and not installed.

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
    ranks, folder = tasks.Ranks(rank, world_size, ray), Path(out)
    how = ShardOptions(**options)
    job = make_job(resolve_files(source, how.files_split).files, tokenizer, how, folder)
    there = state_of(folder, job.values, ignore=PARTS)
    parts = TaskFolder(folder / PARTS, {**job.values, "task_bytes": task_bytes}, DOCUMENTS)
    if there.manifest is not None:
        return _assemble(folder, job, parts, [], threads, progress)
    work = [t for t in tasks.split(job.files, task_bytes) if t.end > there.following.input]
    is_done = ranks.run(parts, work, encode_task, job, ranks.threads(threads))
    # If another rank has finished meanwhile, it has removed what this one would wait for.
    if not is_done and state_of(folder, job.values, ignore=PARTS).manifest is None:
        return None
    return _assemble(folder, job, parts, work, threads, progress)


def encode_task(task: Task, parts: TaskFolder, job: ShardJob, threads: int | None) -> None:
    """Encode the files of a task to a part, unless it exists."""
    of_task = replace(job, files=task.files, first_input=task.first_input)
    parts.run(task, lambda path: _write_part(of_task, path, threads))


def _write_part(job: ShardJob, path: Path, threads: int | None) -> dict[str, Any]:
    """Write the arrays of all documents of a task as numpy does, one behind the other."""
    skipped: list[dict[str, Any]] = []
    batches = 0

    def take(item: EncodedRows | SkipRecord) -> None:
        nonlocal batches
        if isinstance(item, dict):
            skipped.append({"batch": batches, **item})
        if isinstance(item, dict) or len(item.offsets) == 1:
            return
        batches += 1
        places = [(job.first_input + place.input, place.row) for place in item.places]
        with naming(path):
            for array in (item.ids, item.offsets, item.text_ends, item.starts, places):
                np.save(file, np.asarray(array))

    with open_own(path) as file:
        file.truncate()
        encode_all(job, take, threads=threads)
        with naming(path):
            file.flush()
            sync(file.fileno())
    return {"batches": batches, "skipped": skipped}


def _assemble(
    folder: Path, job: ShardJob, parts: TaskFolder, work: list[Task], threads: int | None,
    progress: bool | Callback | None,
) -> Manifest | None:  # fmt: skip
    """Cut the parts of all tasks into shards; None if another process is doing so.

    It can be interrupted and called again, as `bytepair.shards.write` can. A document that is in no
    part, since its shard was finished before and is not whole, is encoded here.
    """

    def feed(start: Address, take: Sink, share: ShareRead) -> None:
        if not (work and work[0].first_input <= start.input and parts.is_done(*work)):
            encode_all(job, take, start, threads, share)
            return
        parts.redo_broken(work, lambda task: encode_task(task, parts, job, threads))
        for task in work:
            share.enter(0, after=int(job.starts[task.end]))
            batches, skipped = parts.mark(task, _parse_mark)
            with (parts.of(task) / DOCUMENTS).open("rb") as file:
                read = (_read_batch(file, task, job.dtype, folder) for _ in range(batches))
                for item in documents_from(start, read, skipped):
                    take(item)
                if file.read(1):
                    why = "it has more batches than its mark says"
                    raise manifest.damaged(Path(file.name), why, folder)

    with suppress(InUseError), manifest.locked(folder), Bar(progress) as bar:
        shards = resumed(folder, job, bar, feed, ignore=PARTS)
        parts.clear()
        return shards
    return None


def documents_from(
    start: Address, batches: Iterable[EncodedRows], skipped: list[tuple[int, SkipRecord]]
) -> Iterator[EncodedRows | SkipRecord]:
    """The documents of batches from an address on, and what was skipped, in order.

    What was skipped before the document at the address belongs to the shard before it.
    """
    is_behind, left = False, deque(skipped)
    for number, batch in enumerate(batches):
        first = bisect_left(range(len(batch.offsets) - 1), start, key=batch.place)
        while left and left[0][0] <= number:
            _, skip = left.popleft()
            if batch.place(0) > start:
                yield skip
        is_behind = first == len(batch.offsets) - 1
        if not is_behind:
            offsets, text_ends = batch.offsets[first:], batch.text_ends[first:]
            yield EncodedRows(batch.ids, offsets, text_ends, batch.starts - first, batch.places)
    if not is_behind:
        yield from (skip for _, skip in left)


def _read_batch(
    file: BufferedReader, task: Task, dtype: np.dtype[Any], folder: Path
) -> EncodedRows:
    """The next documents of a part, whose checksum is right; its numbers may be forged."""
    try:
        arrays = [read_array(file, allow_pickle=False) for _ in range(5)]
        ids, offsets, text_ends, starts, places = arrays
        count = len(offsets) - 1
        shapes = [(offsets[-1],), (count + 1,), (count + 1,), starts.shape, (*starts.shape, 2)]
        is_right = (
            ids.dtype == dtype
            and all(array.dtype.kind in "iu" for array in arrays)
            and [array.shape for array in arrays] == shapes
            and all((one[1:] >= one[:-1]).all() for one in (offsets, text_ends, starts))
            and offsets[0] == 0 == starts[0]
            and starts[-1] <= count
            and 0 <= text_ends[0] <= text_ends[-1] < MAX_COUNT
            and ((places >= (task.first_input, 0)) & (places < (task.end, MAX_COUNT))).all()
        )
    except Exception as error:  # numpy parses headers in several ways
        raise manifest.damaged(Path(file.name), error, folder) from error
    if not is_right:
        raise manifest.damaged(Path(file.name), "it has impossible numbers", folder)
    return EncodedRows(ids, offsets, text_ends, starts, [Address(*of) for of in places.tolist()])


def _parse_mark(mark: Any) -> tuple[int, list[tuple[int, SkipRecord]]]:
    """The number of batches of a part, and what was skipped, each with the batch before which."""
    match mark:
        case {"batches": batches, "skipped": [*items]} if are_counts(batches):
            numbers: list[Any] = [
                item.get("batch") if isinstance(item, dict) else None for item in items
            ]
            if are_counts(*numbers) and numbers == sorted(numbers):
                return batches, list(zip(numbers, map(parse_skip, items), strict=True))
    raise ValueError("its number of batches, or what was skipped, is not what it must be")
