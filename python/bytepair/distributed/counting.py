"""Counts with many processes; the result and its order are those of one process.

A task counts its files, which are neighbours, and writes the counts as `Counts.save` does. The
process that finishes last adds up the counts of all tasks in their order. The output names its job,
so a rank that is started again finds that there is nothing to do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bytepair import _core
from bytepair._internal.progress import Bar
from bytepair.corpus.column import Skip, SkipLog
from bytepair.corpus.files import LOG, Files, recorded
from bytepair.corpus.source import Reading, Source, resolve_files
from bytepair.distributed import tasks
from bytepair.distributed.tasks import Task, TaskFolder
from bytepair.errors import ArgumentError, CountsError, InUseError, ShardError
from bytepair.files.outputs import scratch
from bytepair.shards import manifest, state
from bytepair.training.counting import CountOptions, count_with_skips
from bytepair.training.counts import Counts, check_counts_output, metadata_of, read_counts

#: The file of a task.
PART: Final = "counts.parquet"
#: The key of the job in the metadata of the output.
JOB: Final = "bytepair.job"


def count(
    source: Source,
    out: str | os.PathLike[str] | None = None,
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
            this very call already, they are returned. None, which needs Ray, writes no file; all
            workers must then share `TMPDIR`.
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
    if out is None and not ray:
        raise ShardError("several ranks need a shared folder: pass out, the file to write")
    regex = _core.pattern(pattern)
    options = CountOptions(regex, replace(reading, split=None), ranks.threads(threads))
    files = resolve_files(source, reading.split).files
    with scratch() if out is None else nullcontext(Path(out).parent) as folder:
        path = folder / ("counts.parquet" if out is None else Path(out).name)
        check_counts_output(path, overwrite=overwrite)
        job = {
            "pattern": regex, "doc_cap": reading.doc_cap, "column": reading.column,
            "errors": reading.errors, "unicode": _core.UNICODE_VERSION, **recorded(files, folder),
        }  # fmt: skip
        root = path.with_name(f"{path.name}.parts")
        parts = TaskFolder(root, {**job, "task_bytes": task_bytes}, (PART,))
        work = tasks.split(files, task_bytes)
        return _count(_Job(path, job, parts, options, overwrite), work, ranks)


@dataclass(frozen=True)
class _Job:
    """A count in tasks: its output, which it may replace, and what determines the result."""

    path: Path
    values: dict[str, Any]
    folder: TaskFolder
    options: CountOptions
    overwrite: bool


def _count(job: _Job, work: list[Task], ranks: tasks.Ranks) -> Counts | None:
    """Run the tasks of this process, and put all together if it is the last."""
    if (counts := _finished(job)) is not None:
        return counts
    if not ranks.run(job.folder, work, count_task, job.options):
        # If another rank has finished meanwhile, it has removed what this one would wait for.
        return _finished(job)
    with suppress(InUseError), manifest.locked(job.folder.root):
        if job.folder.is_done(*work):
            return _put_together(job, work)
    return None


def _finished(job: _Job) -> Counts | None:
    """The counts of a job that has finished, from its output; None if there are none.

    An output that is damaged, or that of another job, is counted again.
    """
    if not Counts.is_counts_file(job.path):
        return None
    try:
        record = json.loads(metadata_of(job.path)[JOB])
        if state.differing(record["job"], job.values, job.path.parent):
            return None
        counts = read_counts(job.path)
        if _checksum(counts) != record["checksum"]:
            return None
    except (CountsError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    job.folder.clear()
    LOG.info("%s has the counts of these files already", job.path)
    return counts


def _checksum(counts: Counts) -> str:
    crc = 0
    columns = counts.core.columns()
    for column in (columns.data, columns.offsets, columns.counts):
        crc = _core.crc32(np.ascontiguousarray(column).reshape(-1).view(np.uint8), crc)
    return f"{crc:08x}"


def count_task(task: Task, folder: TaskFolder, options: CountOptions) -> None:
    """Count the files of a task, unless it is done."""

    def work(path: Path) -> dict[str, Any]:
        with Bar(False) as bar:
            counts, skips = count_with_skips(Files(task.files), options, bar)
        counts.save(path / PART)
        return {"skipped": skips.documents, "first": skips.first}

    folder.run(task, work)


def _put_together(job: _Job, work: list[Task]) -> Counts:
    """Write the counts of all tasks, warn of what they skipped, and remove the tasks."""
    folder, skips = job.folder, SkipLog()
    folder.redo_broken(work, lambda task: count_task(task, folder, job.options))
    for task in work:
        documents, first = folder.mark(task, _skipped)
        skips.add(*first, documents=documents)
    counts = added(read_counts(folder.of(task) / PART) for task in work)
    record = {"job": job.values, "checksum": _checksum(counts)}
    counts.save(job.path, metadata={JOB: json.dumps(record)}, overwrite=job.overwrite)
    folder.clear()
    skips.warn()
    return counts


def _skipped(mark: Any) -> tuple[int, list[Skip]]:
    match mark:
        case {"skipped": documents, "first": [*places]} if manifest.are_counts(documents):
            return documents, list(map(_skip, places))
    raise ValueError("what was skipped is not what it must be")


def _skip(values: Any) -> Skip:
    match values:
        case [str(), row, int() | None, str(), str()] if manifest.are_counts(row):
            return Skip(*values)
    raise ValueError("a skipped document is not what it must be")


def added(parts: Iterable[Counts]) -> Counts:
    """The counts of consecutive texts as those of one.

    Neighbours are added in pairs, so that few counts are copied more often than others.
    """
    sums: list[tuple[int, Counts]] = []
    for part in parts:
        sums.append((1, part))
        while len(sums) > 1 and sums[-2][0] == sums[-1][0]:
            (size, one), (_, two) = sums[-2:]
            sums[-2:] = [(2 * size, one + two)]
    total = sums.pop()[1]
    while sums:
        total = sums.pop()[1] + total
    return total
