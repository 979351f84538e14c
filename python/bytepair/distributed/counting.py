"""This file counts with many processes: the result is that of one process, in the same order.

A task counts its files, which are neighbours, and writes the counts as `Counts.save` does. The
process that finishes last adds up the counts of all tasks in their order. The output names its job,
so a rank that is started again finds that there is nothing to do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import repeat
from math import isqrt
from pathlib import Path
from typing import Any, Final

import numpy as np

from bytepair import _core
from bytepair._internal.progress import Bar
from bytepair.corpus.column import SkipLog, SkippedPlace
from bytepair.corpus.files import LOG, Files, Input
from bytepair.corpus.inputs import recorded
from bytepair.corpus.source import Reading, Source, resolve_files
from bytepair.distributed import on_ray, tasks
from bytepair.distributed.tasks import Task
from bytepair.errors import ArgumentError, CountsError, InUseError, ShardError
from bytepair.files.outputs import scratch
from bytepair.shards import manifest, state
from bytepair.shards.manifest import Fields
from bytepair.training.counting import count_with_skips
from bytepair.training.counts import Counts, read_counts
from bytepair.training.counts_file import check_counts_output, metadata_of

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
        ConnectionError: if the Ray cluster does not answer.

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
    options: dict[str, Any] = {
        "pattern": _core.pattern(pattern), "doc_cap": reading.doc_cap, "column": reading.column,
        "errors": reading.errors,
    }  # fmt: skip
    files = resolve_files(source, reading.split).files
    with scratch() if out is None else nullcontext(Path(out).parent) as folder:
        path = folder / ("counts.parquet" if out is None else Path(out).name)
        check_counts_output(path, overwrite=overwrite)
        job = {**options, **recorded(files, folder), "unicode": _core.UNICODE_VERSION}
        options["max_document_bytes"] = reading.max_document_bytes
        options["threads"] = ranks.threads(threads)
        return _count(CountTasks(path, job, options, task_bytes, overwrite), files, ranks)


@dataclass(frozen=True)
class CountTasks:
    """A count that is divided into tasks.

    Attributes:
        path: the output.
        job: what determines the result.
        options: the pattern, the threads and the values of `Reading` for each task.
        task_bytes: the approximate number of bytes of the files of a task.
        overwrite: whether the output may replace a file that holds no counts.
    """

    path: Path
    job: dict[str, Any]
    options: dict[str, Any]
    task_bytes: int
    overwrite: bool

    @property
    def root(self) -> Path:
        """The folder of the tasks."""
        return self.path.with_name(f"{self.path.name}.parts")

    @property
    def task_job(self) -> dict[str, Any]:
        """What determines the tasks."""
        return {**self.job, "task_bytes": self.task_bytes}


def _count(plan: CountTasks, files: list[Input], ranks: tasks.Ranks) -> Counts | None:
    """Run the tasks of this process, and put all together if it is the last."""
    if (counts := _finished(plan)) is not None:
        return counts
    root, work = plan.root, tasks.split(files, plan.task_bytes)
    if not ranks.run(root, plan.task_job, work, count_task, root, plan.options):
        # If another rank has finished meanwhile, it has removed what this one would wait for.
        return _finished(plan)
    try:
        with manifest.locked(root):
            if tasks.all_done(root, work):
                return _put_together(plan, work, ray=ranks.ray)
    except InUseError:
        pass
    return None


def _finished(plan: CountTasks) -> Counts | None:
    """The counts of a job that has finished, from its output; None if there are none.

    An output that is damaged, or that of another job, is counted again.
    """
    if not Counts.is_counts_file(plan.path):
        return None
    try:
        record = json.loads(metadata_of(plan.path)[JOB])
        if state.differing(record["job"], plan.job, plan.path.parent):
            return None
        counts = read_counts(plan.path)
    except (CountsError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    if _checksum(counts) != record["checksum"]:
        return None
    tasks.clear(plan.root, plan.task_job, [PART])
    LOG.info("%s has the counts of these files already", plan.path)
    return counts


def _checksum(counts: Counts) -> str:
    """The CRC-32 of all pretokens and their numbers."""
    crc = 0
    columns = counts.core.columns()
    for column in (columns.data, columns.offsets, columns.counts):
        crc = _core.crc32(np.ascontiguousarray(column).reshape(-1).view(np.uint8), crc)
    return f"{crc:08x}"


def count_task(task: Task, root: Path, options: dict[str, Any]) -> None:
    """Count the files of a task, unless it is done."""

    def work(task: Task, folder: Path) -> dict[str, Any]:
        keywords = dict(options)
        regex, threads = keywords.pop("pattern"), keywords.pop("threads")
        reading, files = Reading(**keywords), Files(task.files)
        with Bar(False) as bar:
            counts, skips = count_with_skips(files, regex, reading, threads, bar)
        counts.save(folder / PART)
        return {"skipped": skips.documents, "first": skips.first}

    tasks.run(root, [task], [PART], work)


def _put_together(plan: CountTasks, work: list[Task], *, ray: bool) -> Counts:
    """Write the counts of all tasks, warn of what they skipped, and remove the tasks."""
    root, skips = plan.root, SkipLog()
    tasks.redo_broken(root, work, [PART], lambda task: count_task(task, root, plan.options))
    for task in work:
        mark = tasks.mark_of(task, root)
        skips.add_all(mark.count("skipped"), map(_skipped, mark.items("first"), repeat(mark)))
    counts = _sum(root, work, ray=ray)
    record = {"job": plan.job, "checksum": _checksum(counts)}
    counts.save(plan.path, metadata={JOB: json.dumps(record)}, overwrite=plan.overwrite)
    tasks.clear(root, plan.task_job, [PART])
    skips.warn()
    return counts


def _sum(root: Path, work: list[Task], *, ray: bool) -> Counts:
    """The counts of all tasks; with Ray, workers add up those of neighbours first."""
    if not ray:
        return added(read_counts(task.folder(root) / PART) for task in work)
    size = isqrt(len(work)) + 1
    groups = [work[at : at + size] for at in range(0, len(work), size)]
    columns = on_ray.results(groups, columns_of_sum, (root,))
    return added(Counts(_core.Counts.from_columns(*values)) for values in columns)


def columns_of_sum(work: list[Task], root: Path) -> tuple[Any, ...]:
    """The sum of the counts of some tasks, as values that can be sent."""
    counts = _sum(root, work, ray=False)
    columns = counts.core.columns()
    return columns.data, columns.offsets, columns.counts, counts.pattern


def _skipped(values: Any, mark: Fields) -> SkippedPlace:
    """A skipped document that a mark names."""
    match values:
        case [str(source), int(row), str(reason), str(hint)] if manifest.is_count(row):
            return SkippedPlace(source, row, reason, hint)
    raise mark.wrong("first")


def added(parts: Iterable[Counts]) -> Counts:
    """The counts of consecutive texts as those of one.

    Neighbours are added in pairs, so that few counts are copied more often than others.

    Example:
        >>> import bytepair
        >>> words = ["one", "two", "one"]
        >>> added(bytepair.count([word]) for word in words) == bytepair.count(words)
        True
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
