"""Count with many processes: the result equals that of one process, in the same order.

A task counts its files. A hash of the pretoken divides its counts into partitions, so all counts of
a pretoken are in the same partition of each task, where they are added up. Each row has the place
where its pretoken was first seen, by which the rows of all partitions are sorted in the end. The
output names its job, so a rank that is started again finds that there is nothing to do.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal import extras
from bytepair._internal.progress import Bar
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import Errors
from bytepair.corpus.files import LOG, Files, resolve_files
from bytepair.corpus.inputs import recorded
from bytepair.corpus.skips import SkipLog
from bytepair.corpus.source import Limits, Source
from bytepair.corpus.splits import Split
from bytepair.distributed import on_ray, tasks
from bytepair.distributed.tasks import Task
from bytepair.errors import CountOverflowError, CountsError, InUseError, ShardError
from bytepair.files.outputs import scratch
from bytepair.shards import manifest
from bytepair.training.counting import CountJob
from bytepair.training.counts import Counts, metadata_of, read_counts

if TYPE_CHECKING:
    import pyarrow as pa

PARTITIONS: Final = 64
#: The file of a task.
PART: Final = "counts.parquet"
#: The key of the job in the metadata of the output.
JOB: Final = "bytepair.job"
#: A place has the number of the task in the bits from this one on, and the row in the lower bits.
FIRST_TASK_BIT: Final = 40


def count(
    source: Source,
    out: str | os.PathLike[str] | None = None,
    *,
    rank: int | None = None,
    world_size: int | None = None,
    ray: bool = False,
    pattern: str | Sequence[str] = "nanochat",
    doc_cap: int | None = None,
    column: str = "text",
    errors: Errors = "strict",
    max_document_bytes: int = DOCUMENT_BYTES,
    split: Split | None = None,
    threads: int | None = None,
    task_bytes: int = tasks.TASK_BYTES,
    partitions: int = PARTITIONS,
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
        pattern: as in `bytepair.count`, like the next five.
        doc_cap: as in `bytepair.count`.
        column: as in `bytepair.count`.
        errors: as in `bytepair.count`; the process that finishes last warns of what all skipped.
        max_document_bytes: as in `bytepair.count`.
        split: as in `bytepair.count`.
        threads: the maximum number of threads of each process; None means one with Ray, which gives
            each task one core, else `BYTEPAIR_NUM_THREADS`, or else all processors.
        task_bytes: the approximate number of bytes of the files of a task.
        partitions: the number of partitions. Each process holds one of them in memory, and the
            last one the result.

    Returns:
        The counts, from the process that finishes last, and from all that come later; None from the
        others.

    Raises:
        CorpusError: if something cannot be read.
        ShardError: if the folder has tasks of a different count, two processes have the same rank,
            or a rank is passed with Ray.
        ImportError: if pyarrow (the extra `data`) is not installed, or Ray, if it is asked for.
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
    tasks.check_ranks(rank, world_size, ray=ray)
    if out is None:
        if not ray:
            raise ShardError("several ranks need a shared folder: pass out, the file to write")
        with scratch() as folder:
            return count(
                source, folder / "counts.parquet", ray=True, pattern=pattern,
                doc_cap=doc_cap, column=column, errors=errors,
                max_document_bytes=max_document_bytes, split=split,
                threads=threads, task_bytes=task_bytes, partitions=partitions,
            )  # fmt: skip
    if ray:
        on_ray.check()
    assert extras.pyarrow  # raises the error that names the extra before anything is written
    path = Path(out)
    files = resolve_files(source, split).files
    options: dict[str, Any] = {
        "pattern": _core.pattern(pattern), "doc_cap": doc_cap, "column": column, "errors": errors,
    }  # fmt: skip
    job = {
        **options, **recorded(files, path.parent), "unicode": _core.UNICODE_VERSION,
    }  # fmt: skip
    root = path.with_name(f"{path.name}.parts")
    task_job = {**job, "task_bytes": task_bytes, "partitions": partitions}
    if (counts := _finished(path, job, root, task_job)) is not None:
        return counts
    options["max_document_bytes"] = max_document_bytes
    work = tasks.split(files, task_bytes)
    mine = work if ray else tasks.share(work, rank, world_size)
    if mine:
        tasks.begin(root, task_job)
    if ray:
        left = [task for task in work if not task.is_done(root)]
        on_ray.each(left, count_task, (root, {**options, "threads": threads or 1}, partitions))
    else:
        for task in mine:
            count_task(task, root, {**options, "threads": threads}, partitions)
    if not tasks.all_done(root, work):
        # If another rank has finished meanwhile, it has removed what this one would wait for.
        return _finished(path, job, root, task_job)

    def redo(task: Task) -> None:
        count_task(task, root, {**options, "threads": threads}, partitions)

    counts, skips = _put_together(path, root, work, job, partitions, redo, ray=ray)
    skips.warn()
    return counts


def _finished(
    path: Path, job: dict[str, Any], root: Path, task_job: dict[str, Any]
) -> Counts | None:
    """The counts of a job that has finished, from its output; None if there are none.

    An output that is damaged, or that of another job, is counted again.
    """
    if not Counts.is_counts_file(path):
        return None
    try:
        mark = json.loads(metadata_of(path)[JOB])
        if manifest.differing(mark["job"], job, path.parent):
            return None
        counts = read_counts(path)
    except (CountsError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    if _checksum(counts) != mark["checksum"]:
        return None
    tasks.clear(root, task_job)
    LOG.info("%s has the counts of these files already", path)
    return counts


def _checksum(counts: Counts) -> str:
    """The CRC-32 of all pretokens and their numbers."""
    crc = 0
    columns = counts.core.columns()
    for column in (columns.data, columns.offsets, columns.counts):
        crc = _core.crc32(np.ascontiguousarray(column).reshape(-1).view(np.uint8), crc)
    return f"{crc:08x}"


def count_task(task: Task, root: Path, options: dict[str, Any], partitions: int) -> None:
    """Count the files of a task, unless it is done; write a row group for each partition."""

    def work(task: Task, folder: Path) -> dict[str, Any]:
        from bytepair._internal.extras import pyarrow_parquet as pq

        limits = Limits(doc_cap=options["doc_cap"])
        keywords = {name: options[name] for name in options if name != "doc_cap"}
        with Bar(False) as bar:
            counts, skips = CountJob(Files(task.files), limits=limits, **keywords).counted(bar)
        tables = list(divided(counts, task.number, partitions))
        with pq.ParquetWriter(folder / PART, tables[0].schema) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=max(len(counts), 1))
        mark = {"text_bytes": counts.text_bytes, "pattern": counts.pattern}
        return {**mark, "skips": skips.state()}

    tasks.run(root, [task], [PART], work)


def divided(counts: Counts, task: int, partitions: int) -> Iterator[pa.Table]:
    """The rows of counts by partition, each with the place where its pretoken was first seen."""
    from bytepair._internal.extras import pyarrow as pa

    columns = counts.core.columns()
    data, offsets, numbers = columns.data, columns.offsets, columns.counts
    pretokens = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    places = np.arange(len(numbers), dtype=np.int64) + (task << FIRST_TASK_BIT)
    table = pa.table({"pretoken": pretokens, "count": numbers, "place": places})
    home = hashes(data, offsets) % np.uint64(partitions)
    for partition in range(partitions):
        yield table.take(np.flatnonzero(home == partition))


def hashes(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash of each string of a column, the same on every machine."""
    if len(offsets) < 2:
        return np.empty(0, np.uint64)
    lengths = np.diff(offsets)
    places = np.arange(len(data), dtype=np.int64) - np.repeat(offsets[:-1], lengths)
    weights = np.cumprod(np.full(64, 0x9E3779B97F4A7C15, np.uint64))  # of a polynomial hash
    terms = (data.astype(np.uint64) + np.uint64(1)) * weights[places % 64]
    sums: NDArray[np.uint64] = np.add.reduceat(terms, offsets[:-1])
    sums = (sums ^ (sums >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return sums ^ (sums >> np.uint64(32))


def _put_together(
    path: Path,
    root: Path,
    work: list[Task],
    job: dict[str, Any],
    partitions: int,
    redo: Callable[[Task], None],
    *,
    ray: bool,
) -> tuple[Counts | None, SkipLog]:
    """Write the counts of all tasks, and remove the tasks; None if another process does so.

    Also returns what all tasks skipped.
    """
    skips = SkipLog()
    try:
        with manifest.locked(root):
            if not tasks.all_done(root, work):
                return None, skips
            tasks.redo_broken(root, work, [PART], redo)
            for mark in tasks.marks(root, work):
                skips.add_all(*SkipLog(*mark["skips"]).state())
            counts = _reduced(root, work, partitions, ray=ray)
            mark = {"job": job, "checksum": _checksum(counts)}
            counts.save(path, metadata={JOB: json.dumps(mark)})
            shutil.rmtree(root)
            return counts, skips
    except InUseError:
        return None, SkipLog()


def _reduced(root: Path, work: list[Task], partitions: int, *, ray: bool) -> Counts:
    """Add up the partitions and put the rows in order."""
    from bytepair._internal.extras import pyarrow as pa

    marks = list(tasks.marks(root, work))
    numbers = range(partitions)
    arguments = (root, [task.number for task in work])
    tables = on_ray.results(numbers, reduce_partition, arguments) if ray else [
        reduce_partition(number, *arguments) for number in numbers
    ]  # fmt: skip
    table = pa.concat_tables(tables).sort_by("place")
    pretokens = table["pretoken"].combine_chunks()
    offsets = np.frombuffer(pretokens.buffers()[1], np.int64)[: len(pretokens) + 1]
    data = np.frombuffer(pretokens.buffers()[2] or b"", np.uint8)[: offsets[-1]]
    core = _core.Counts.from_columns(data, offsets, table["count"].to_numpy(), marks[0]["pattern"])
    counts = Counts(core)
    if counts.text_bytes != sum(mark["text_bytes"] for mark in marks):
        raise CountOverflowError("the counts do not add up to the bytes of the text")
    return counts


def reduce_partition(partition: int, root: Path, numbers: list[int]) -> pa.Table:
    """Add up one partition of all tasks."""
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_parquet as pq

    pieces = [
        pq.ParquetFile(root / f"{number:06}" / PART).read_row_group(partition) for number in numbers
    ]
    table = pa.concat_tables(pieces).group_by("pretoken")
    sums = table.aggregate([("count", "sum"), ("place", "min")])
    return sums.rename_columns({"count_sum": "count", "place_min": "place"})
