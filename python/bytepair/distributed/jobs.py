"""Counts and writes shards with many processes; the results are those of one process.

A task of a count counts its files, which are neighbours, and writes the counts as `Counts.save`
does. The process that finishes last adds up the counts of all tasks in their order. The output
names its job, so a rank that is started again finds that there is nothing to do.

The end of a shard depends on all documents before it. So a task encodes its files to plain ids and
lengths (a part), and one pass that only copies then cuts the parts into shards.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.progress import Bar, Callback, ShareRead
from bytepair.corpus.column import Skip, SkipLog
from bytepair.corpus.files import LOG, Files, recorded
from bytepair.corpus.source import Reading, Source, resolve_files
from bytepair.distributed import tasks
from bytepair.distributed.tasks import Task, TaskFolder
from bytepair.errors import ArgumentError, CountsError, InUseError, ShardError
from bytepair.files.outputs import scratch
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
from bytepair.shards.layout import DiskFile
from bytepair.shards.manifest import MOST, Address, SkipRecord, are_counts, parse_skip
from bytepair.shards.writer import resumed, state_of
from bytepair.tokenizer import Tokenizer
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
        whole = _Job(path, job, parts, options, overwrite)
        if (counts := _finished(whole)) is not None:
            return counts
        if not ranks.run(parts, work, count_task, options):
            # If another rank has finished meanwhile, it has removed what this one would wait for.
            return _finished(whole)
        with suppress(InUseError), manifest.locked(root):
            if parts.is_done(*work):
                return _put_together(whole, work)
        return None


@dataclass(frozen=True)
class _Job:
    """A count in tasks: its output, which it may replace, and what determines the result."""

    path: Path
    values: dict[str, Any]
    folder: TaskFolder
    options: CountOptions
    overwrite: bool


def _finished(job: _Job) -> Counts | None:
    """The counts of a job that has finished, from its output; None if there are none.

    An output that is damaged, or that of another job, is counted again.
    """
    if not Counts.is_counts_file(job.path):
        return None
    try:
        record = json.loads(metadata_of(job.path)[JOB])
        if writer.differing(record["job"], job.values, job.path.parent):
            return None
        counts = read_counts(job.path)
        if counts.core.fingerprint != record["checksum"]:
            return None
    except (CountsError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    job.folder.clear()
    LOG.info("%s has the counts of these files already", job.path)
    return counts


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
    record = {"job": job.values, "checksum": counts.core.fingerprint}
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


PARTS: Final = ".parts"
#: The files of a part.
FILES: Final = ("ids", "documents")
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
    parts = TaskFolder(folder / PARTS, {**job.values, "task_bytes": task_bytes}, FILES)
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
    parts.run(task, lambda folder: _write_part(of_task, folder, threads))


def _write_part(job: ShardJob, folder: Path, threads: int | None) -> dict[str, Any]:
    """Write ids, and four numbers for each document: of ids, of bytes, its input, its row there."""
    skipped: list[dict[str, Any]] = []
    tokens = documents = 0

    def take(item: EncodedRows | SkipRecord) -> None:
        nonlocal tokens, documents
        if isinstance(item, dict):
            skipped.append({"document": documents, **item})
            return
        ids.add(np.ascontiguousarray(item.ids, job.dtype))
        count = len(item.offsets) - 1
        of_run = np.diff([*item.starts, count])
        firsts = [(job.first_input + place.input, place.row) for place in item.places]
        places = np.repeat(np.array(firsts, np.int64).reshape(-1, 2), of_run, axis=0)
        places[:, 1] += np.arange(count) - np.repeat(item.starts, of_run)
        sizes = np.stack([np.diff(item.offsets), np.diff(item.text_ends)], axis=1)
        rows.add(np.hstack([sizes, places]).astype(np.int64).reshape(-1))
        tokens += len(item.ids)
        documents += count

    with ExitStack() as stack:
        ids, rows = (stack.enter_context(closing(DiskFile(folder / name))) for name in FILES)
        encode_all(job, take, threads=threads)
        ids.finish()
        rows.finish()
    return {"tokens": tokens, "documents": documents, "skipped": skipped}


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
            part = parts.mark(task, partial(_Part.load, task, parts.of(task), job.dtype))
            for item in _documents(part, start):
                take(item)

    with suppress(InUseError), manifest.locked(folder), Bar(progress) as bar:
        shards = resumed(folder, job, bar, feed, ignore=PARTS)
        parts.clear()
        return shards
    return None


def _documents(part: _Part, start: Address) -> Iterator[EncodedRows | SkipRecord]:
    """The documents of a part from an address on, and what was skipped, in order.

    What was skipped before the document at the address belongs to the shard before it.
    """
    first = at = part.first_from(start)
    is_begun = len(part.rows) > 0 and tuple(part.rows[0, 2:]) <= start
    for place, left in part.skipped:
        if place < first or (place == first and is_begun):
            continue
        yield from part.slices(at, place)
        yield left
        at = place
    yield from part.slices(at, len(part.rows))


@dataclass(frozen=True)
class _Part:
    """The result of a task: the ids and rows that `_write_part` writes, and what was skipped."""

    ids: NDArray[Any]
    rows: NDArray[np.int64]
    skipped: list[tuple[int, SkipRecord]]  # with the document before which it was

    @classmethod
    def load(cls, task: Task, folder: Path, dtype: np.dtype[Any], mark: Any) -> Self:
        """Map the files of a task that is done, whose checksums are right."""
        ids, documents = (folder / name for name in FILES)
        sizes = [path.stat().st_size for path in (ids, documents)]
        match mark:
            case {"tokens": tokens, "documents": count, "skipped": [*items]} if are_counts(
                tokens, count
            ) and sizes == [tokens * dtype.itemsize, 32 * count]:
                skipped = list(map(_parse_skip, items))
            case _:
                raise ValueError("its files have other sizes, or what was skipped is missing")
        rows = np.fromfile(documents, np.int64).reshape(-1, 4)
        low, high = (0, 0, task.first_input, 0), (tokens + 1, MOST, task.end, MOST)
        marked = [0, *(at for at, _ in skipped), len(rows)]
        is_right = ((rows >= low) & (rows < high)).all() and marked == sorted(marked)
        if not is_right or rows[:, 0].sum() != tokens:
            raise ValueError("its files have impossible numbers")
        return cls(np.memmap(ids, dtype, "r") if tokens else np.empty(0, dtype), rows, skipped)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the ids of each document begin, and where the last ones end."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.rows[:, 0])])

    def first_from(self, address: Address) -> int:
        """The first document that does not come before an address."""
        _, _, inputs, rows = self.rows.T
        before = (inputs < address.input) | ((inputs == address.input) & (rows < address.row))
        return int(np.count_nonzero(before))

    def slices(self, begin: int, end: int) -> Iterator[EncodedRows]:
        """A range of documents, a few at a time."""
        at = int(self.starts[begin])
        for first in range(begin, end, COPIED_DOCUMENTS):
            tokens, text_bytes, inputs, rows = self.rows[
                first : min(first + COPIED_DOCUMENTS, end)
            ].T
            offsets, text_ends = (np.cumsum([0, *sizes]) for sizes in (tokens, text_bytes))
            places = [Address(*place) for place in zip(inputs.tolist(), rows.tolist(), strict=True)]
            ids = self.ids[at : at + int(offsets[-1])]
            yield EncodedRows(ids, offsets, text_ends, np.arange(len(rows)), places)
            at += len(ids)


def _parse_skip(values: Any) -> tuple[int, SkipRecord]:
    """What was skipped, and the document before which."""
    match values:
        case {"document": document} if are_counts(document):
            return document, parse_skip(values)
    raise ValueError("a skipped document is not what it must be")
