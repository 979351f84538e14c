"""A corpus in, token shards out: read, encoded and written at the same time, and resumable.

The documents of the inputs, in order, are divided into shards: a shard ends before the document
that would exceed `tokens_per_shard`. So the shards depend only on the inputs and the options, not
on threads, interruptions or the sizes of batches. A finished shard leaves a mark with the address
of the next document; a run that is killed loses only the unfinished shard. A finished shard that is
missing or damaged is written again, alone if its files are its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_kind
from bytepair._internal.names import check_own_folder, check_regular
from bytepair._internal.progress import Bar, Callback, Position
from bytepair.corpus.files import LOG, Input
from bytepair.corpus.kinds import compression_of, kind_of
from bytepair.corpus.source import Source
from bytepair.errors import BytepairWarning, CorpusError, ShardError, warn
from bytepair.files.outputs import write_whole
from bytepair.formats.names import FILE_NAME
from bytepair.shards import manifest, resume
from bytepair.shards.encode import encode_all
from bytepair.shards.job import (
    Address,
    EncodedRows,
    Left,
    ShardJob,
    ShardKeywords,
    ShardOptions,
    make_job,
)
from bytepair.shards.layout import ShardWriter
from bytepair.shards.manifest import Manifest, Shard
from bytepair.shards.names import ShardSplit
from bytepair.shards.resume import FolderState
from bytepair.shards.spool import on_disk
from bytepair.tokenizer import Tokenizer

#: Takes documents, and what is left out, in order.
Take: TypeAlias = "Callable[[EncodedRows | Left], None]"
#: Passes on the documents from an address on.
Feed: TypeAlias = "Callable[[Address, Take], None]"


def write(
    source: Source,
    tokenizer: Tokenizer,
    out: str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: bool | Callback | None = None,
    **options: Unpack[ShardKeywords],
) -> Manifest:
    """Write token shards. The same call resumes a run that was interrupted.

    Shards that are there already are checked: one that is missing or damaged is written again, with
    a warning. A call with new inputs behind the old ones adds these.

    Args:
        source: files, as in `corpus.read_documents`; or a table, a data set or rows in memory, as
            in `bytepair.train`, whose text is first written to a temporary parquet file (in
            `TMPDIR`; extra `data`). Strings are names of files.
        tokenizer: encodes it; special tokens in the text are text.
        out: the folder: new, empty, or with shards of the same job, finished or not.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
        progress: as in `bytepair.train`; the stage is "check" for shards that are there already,
            and counts shards, then "shard", and counts bytes of text.
        options: the fields of `bytepair.shards.ShardOptions`, as keywords.

    Returns:
        The contents of `manifest.json`.

    Raises:
        CorpusError: if a document cannot be read and `errors` is "strict", or if all are skipped.
        ShardError: if the folder has other content, another run uses it, or a shard that is written
            again is not what it was, because an input has changed.
        SpecialTokenError: if the special token does not exist.
        OSError: if the disk is full. Finished shards are kept, and the next run resumes.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(bytepair.sample.paths(), 1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = bytepair.shards.write(bytepair.sample.paths(), tok, folder, bos=True)
        ...     made.documents, len(made.shards)
        (61, 1)
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    folder, values = Path(out), ShardOptions(**options)
    with on_disk(source, values) as files:
        job = make_job(files, tokenizer, values, folder)

        def feed(start: Address, take: Take) -> None:
            encode_all(job, take, start, threads)

        with manifest.locked(folder), Bar(progress) as bar:
            return resumed(folder, job, bar, feed)


def resumed(
    folder: Path,
    job: ShardJob,
    bar: Bar,
    feed: Feed,
    *,
    ignore: str = manifest.PROGRESS,
) -> Manifest:
    """Write what is missing of the shards of a job, in a locked folder.

    Args:
        folder: the folder.
        job: the job.
        bar: shows the progress.
        feed: passes on the documents from an address on.
        ignore: the name of a file that may be in a new folder.
    """
    state = resume.state_of(folder, job.values, ignore=ignore)
    state = resume.checked(folder, job.values, state, bar)
    _tell(folder, state)
    if state.manifest is not None:
        _write_tokenizer(folder, job)
        remove_marks(folder, job.values, state.shards)
        return state.manifest
    resume.begin(folder, job.values, state)
    shards = state.shards
    if state.following is not None:
        start = Address(*state.following)
        read = Read(job, start)
        with Cut(job, folder, shards, bar, read.position) as run:
            feed(start, lambda item: run.take(read.moved(item)))
            run.finish()
            shards = run.shards
    return finish(folder, job, shards)


def _tell(folder: Path, state: FolderState) -> None:
    """Say what is there already, and from which shard on it is written again, and why."""
    if state.damage:
        first, more = next(iter(state.damage.values()))[0], len(state.damage) - 1
        others = f" (and {more:,} more shards)" if more else ""
        warn(
            f"{folder} is not as it was written: {first}{others}; it is written again, with all "
            "behind it"
        )
    elif state.manifest is not None:
        LOG.info("%s has all shards already", folder)
    elif state.shards:
        LOG.info("%s has %s shards already", folder, f"{len(state.shards):,}")


# ---------------------------------------------------------------------------- progress


class Read:
    """Tracks the position in the inputs of a job while documents are taken, for progress.

    Within a local parquet file the position follows from the row, within other local files from the
    share of bytes read. Within a compressed file, or a file in cloud storage, it does not move.

    Args:
        job: has the inputs.
        start: the address of the first document.

    Attributes:
        position: the tracked position.
    """

    def __init__(self, job: ShardJob, start: Address) -> None:
        self._files, self._column = job.files, job.values["column"]
        self.position = Position(sum(file.size for file in job.files))
        self._input = -1
        self._rows = self._bytes = 0
        self._enter(start.input)

    def _enter(self, number: int) -> None:
        """Move the position to the beginning of an input."""
        if number > self._input:
            for file in self._files[self._input + 1 : number + 1]:
                self.position.enter(file.size)
            self._input, self._bytes = number, 0
            self._rows = _rows(self._files[number], self._column)

    def moved(self, item: EncodedRows | Left) -> EncodedRows | Left:
        """Move the position to the end of a batch of documents, and return the batch."""
        if isinstance(item, dict) or not item.places:
            return item
        last, first = item.places[-1], int(item.starts[-1])
        self._enter(last.input)
        self._bytes += int(item.text_ends[-1]) - int(item.text_ends[first])
        if self._rows:
            row = last.row + len(item.offsets) - 1 - first
            self.position.within(row / self._rows)
        elif not _is_packed(self._files[self._input].path):
            self.position.within(self._bytes / max(self._files[self._input].size, 1))
        return item


def _is_packed(path: str) -> bool:
    """Whether the size of a file differs from the size of its text: compressed files, parquet."""
    return compression_of(path) is not None or kind_of(path) == "parquet"


def _rows(file: Input, column: str) -> int:
    """The number of rows of a local parquet file; 0 for other files."""
    is_table = file.cloud is None and file.path.lower().endswith(".parquet")
    return (_core.parquet_rows(file.path, column) or 0) if is_table else 0


# ---------------------------------------------------------------------------- writing


class Cut:
    """Divides documents into shards and writes them.

    As a context manager, it abandons an unfinished shard on exit.

    Args:
        job: defines the shards.
        folder: the output folder.
        shards: the earlier shards.
        bar: shows the progress.
        position: the position of the documents in the inputs.

    Attributes:
        shards: the earlier shards and those that this object has finished.
    """

    def __init__(
        self,
        job: ShardJob,
        folder: Path,
        shards: list[Shard],
        bar: Bar,
        position: Position,
    ) -> None:
        self._job, self._folder, self._bar, self._position = job, folder, bar, position
        self.shards = list(shards)
        self._before = sum(shard.text_bytes for shard in shards)
        self._limit: int = job.values["tokens_per_shard"]
        self._skipped: list[Left] = []
        self.writer = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.abandon()

    @property
    def number(self) -> int:
        """The number of the shard that is being written."""
        return len(self.shards)

    @property
    def text_bytes(self) -> int:
        """The bytes of text written, in this run and the earlier ones."""
        return self._before + self.writer.text_bytes

    def _open(self) -> ShardWriter:
        """Begin the next shard."""
        layout = self._job.layout
        split: ShardSplit = "val" if layout.validation and not self.shards else "train"
        same = [s for s in self.shards if layout.joined and s.split == split]
        offset = sum(shard.tokens for shard in same) * self._job.dtype.itemsize
        return ShardWriter(layout, self._folder, self.number, split, self._job.dtype, offset)

    def take(self, item: EncodedRows | Left) -> None:
        """Write a batch of documents, or record a skip."""
        if isinstance(item, dict):
            self._skipped.append(item)
        else:
            self._add(item)
            self._bar.update("shard", self.text_bytes, self._position.total(self.text_bytes))

    def _add(self, batch: EncodedRows) -> None:
        """Write a batch; begin new shards as needed."""
        start, count = 0, len(batch.offsets) - 1
        while start < count:
            end = self._fitting(batch.offsets, start)
            if end == start:
                self.close(batch.place(start))
                self.writer = self._open()
                continue
            ids = batch.ids[batch.offsets[start] : batch.offsets[end]]
            lengths = np.diff(batch.offsets[start : end + 1])
            self.writer.add(ids, lengths, int(batch.text_ends[end]) - int(batch.text_ends[start]))
            start = end

    def _fitting(self, offsets: NDArray[np.int64], start: int) -> int:
        """The end of the documents that fit this shard; an empty shard takes at least one."""
        room = self._limit - self.writer.tokens
        end = int(np.searchsorted(offsets, offsets[start] + room, side="right")) - 1
        return max(end, start + (self.writer.documents == 0))

    def finish(self) -> None:
        """Finish the last shard.

        Raises:
            CorpusError: if no document could be read.
        """
        documents = sum(shard.documents for shard in self.shards) + self.writer.documents
        if self._skipped and not documents:
            left = self._skipped[0]
            raise CorpusError(
                f"nothing could be read, so there are no shards; the first skipped document is "
                f"{left['input']}, row {left['first']}: {left['reason']}"
            )
        self.close(None)

    def close(self, following: Address | None) -> None:
        """Finish a shard, which has the address at which the next one begins."""
        after = None if following is None else (following.input, following.row)
        shard = self.writer.close(after, self._skipped)
        manifest.save_mark(self._folder, shard)
        self._before += shard.text_bytes
        self.shards.append(shard)
        self._skipped = []


# ---------------------------------------------------------------------------- the end of a run


def finish(folder: Path, job: ShardJob, shards: list[Shard]) -> Manifest:
    """Write the manifest of a finished run, and remove the marks."""
    name = job.layout.joined_file
    if name is not None and (folder / manifest.partial(name)).exists():
        (folder / manifest.partial(name)).replace(folder / name)
    result = Manifest(job.values, shards)
    _write_tokenizer(folder, job)
    result.save(folder)
    remove_marks(folder, job.values, shards)
    if shards and result.tokens and all(shard.split == "val" for shard in shards):
        warn(
            BytepairWarning(
                (
                    f"all {result.tokens:,} tokens are in the first shard, which is for "
                    f"validation in the format {result.format!r}"
                ),
                option="tokens_per_shard",
                hint="pass a smaller tokens_per_shard",
            )
        )
    return result


def _write_tokenizer(folder: Path, job: ShardJob) -> None:
    """Write the tokenizer beside the shards, unless it is there."""
    data, path = job.tokenizer.to_bytes(tables=False), folder / FILE_NAME
    check_regular(path)
    if not path.exists() or path.read_bytes() != data:
        write_whole(path, data)


def remove_marks(folder: Path, job: dict[str, Any], shards: list[Shard]) -> None:
    """Remove the marks, after the manifest was written, and what killed runs of the job left."""
    for path in resume.temporary_files(folder, job, len(shards)):
        path.unlink()
    progress = folder / manifest.PROGRESS
    check_own_folder(progress)
    if progress.is_dir():
        others = [path for path in progress.iterdir() if not manifest.is_own(path.name)]
        if others:
            raise ShardError(f"{others[0]} is not a file that bytepair writes; move it elsewhere")
        for mark in progress.iterdir():
            mark.unlink()
        progress.rmdir()
