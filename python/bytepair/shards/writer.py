"""Writes the token shards of a corpus: reads, encodes and writes at the same time.

The documents of the inputs, in order, are divided into shards: a shard ends before the document
that would exceed `tokens_per_shard`. So the shards depend only on the inputs and the options, not
on threads, interruptions or the sizes of batches. A finished shard leaves a mark with the address
of the next document; a run that is killed loses only the unfinished shard. A finished shard that is
missing or damaged is written again, with all that follow.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_kind
from bytepair._internal.progress import Bar, Callback, ShareRead
from bytepair.corpus.files import LOG
from bytepair.corpus.source import Source
from bytepair.errors import BytepairWarning, CorpusError, warn
from bytepair.files.outputs import sync_folder, write_whole
from bytepair.files.safe import check_regular
from bytepair.properties.entries import NATIVE
from bytepair.shards import manifest, state
from bytepair.shards.encode import (
    EncodedRows,
    ShardJob,
    ShardKeywords,
    ShardOptions,
    Sink,
    encode_all,
    make_job,
    on_disk,
)
from bytepair.shards.layout import DiskFile, Ids, partial
from bytepair.shards.manifest import Address, Manifest, Shard, ShardPart, ShardSplit, SkipRecord
from bytepair.tokenizer import Tokenizer

#: Passes on the documents from an address on, and says which share of the inputs is read.
Producer: TypeAlias = "Callable[[Address, Sink, ShareRead], None]"


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
        source: as in `bytepair.train`. The text of a source in memory is first written to a
            temporary parquet file (in `TMPDIR`; extra `data`).
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
        ...     made = bytepair.shards.write(bytepair.sample.paths(), tok, folder)
        ...     made.documents, len(made.shards)
        (61, 1)
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    folder, values = Path(out), ShardOptions(**options)
    with on_disk(source, values) as files:
        job = make_job(files.files, tokenizer, values, folder)

        def feed(start: Address, take: Sink, share: ShareRead) -> None:
            encode_all(job, take, start, threads, share)

        with manifest.locked(folder), Bar(progress) as bar:
            return resumed(folder, job, bar, feed)


def resumed(
    folder: Path, job: ShardJob, bar: Bar, feed: Producer, *, ignore: str = manifest.PROGRESS
) -> Manifest:
    """Write what is missing of the shards of a job, in a locked folder.

    `feed` passes on the documents from an address on; `ignore` may be in a new folder.
    """
    there = state.checked(folder, state.state_of(folder, job.values, ignore=ignore), bar)
    if there.damage:
        warn(
            f"{folder} is not as it was written: {there.damage}; it is written again, with all "
            "behind it"
        )
    elif there.shards:
        many = "all" if there.manifest is not None else f"{len(there.shards):,}"
        LOG.info("%s has %s shards already", folder, many)
    if there.manifest is None:
        state.begin(folder, job.values, there)
        run = Sharder(job, folder, there.shards, bar)
        run.write(there.following, feed)
    data, path = job.tokenizer.to_bytes(tables=False), folder / NATIVE
    check_regular(path)
    if not path.exists() or path.read_bytes() != data:
        write_whole(path, data)
    if there.manifest is not None:
        state.remove_marks(folder, job.values, len(there.shards))
        return there.manifest
    result = state.finish(folder, job.values, run.shards)
    if job.layout.validation and result.tokens and result.shards[-1].split == "val":
        message = (
            f"all {result.tokens:,} tokens are in the first shard, which is for validation in the "
            f"format {result.format!r}"
        )
        hint = "pass a smaller tokens_per_shard"
        warn(BytepairWarning(message, option="tokens_per_shard", hint=hint))
    return result


class Sharder:
    """Divides the documents of a job into shards and writes them behind the earlier ones."""

    def __init__(self, job: ShardJob, folder: Path, shards: list[Shard], bar: Bar) -> None:
        self._job, self._folder, self._bar = job, folder, bar
        self.shards = list(shards)
        self._before = sum(shard.text_bytes for shard in shards)
        self._limit: int = job.values["tokens_per_shard"]
        self._val_end = Address(*job.values.get("val_end", (0, 0)))
        self._skipped: list[SkipRecord] = []
        self._share = ShareRead(int(job.starts[-1]))

    def write(self, start: Address, feed: Producer) -> None:
        """Write the documents from an address on; an unfinished shard is closed as it is."""
        self._writer = self._open(start)
        try:
            feed(start, self._take, self._share)
            self._finish()
        except BaseException:
            self._writer.abandon()
            raise

    def _open(self, first: Address) -> ShardWriter:
        layout = self._job.layout
        is_val = layout.validation and not self.shards
        if "val_end" in self._job.values:
            is_val = first < self._val_end
        split: ShardSplit = "val" if is_val else "train"
        offset = 0
        if layout.joined:
            tokens = sum(shard.tokens for shard in self.shards if shard.split == split)
            offset = tokens * self._job.dtype.itemsize
        return ShardWriter(self._job, self._folder, len(self.shards), split, offset)

    def _take(self, batch: EncodedRows | SkipRecord) -> None:
        """Write a batch of documents, and begin new shards as needed; or record a skip."""
        if isinstance(batch, dict):
            self._skipped.append(batch)
            return
        start, count = 0, len(batch.offsets) - 1
        while start < count:
            end = self._end_of_shard(batch, start)
            if end == start:
                self._close(batch.place(start))
                self._writer = self._open(batch.place(start))
                continue
            ids = batch.ids[batch.offsets[start] : batch.offsets[end]]
            lengths = np.diff(batch.offsets[start : end + 1])
            self._writer.add(ids, lengths, int(batch.text_ends[end]) - int(batch.text_ends[start]))
            start = end
        done = self._before + self._writer.text_bytes
        self._bar.update("shard", done, self._share.total(done))

    def _end_of_shard(self, batch: EncodedRows, start: int) -> int:
        """The end of the documents that fit this shard; an empty shard takes at least one."""
        room = self._limit - self._writer.tokens
        end = int(np.searchsorted(batch.offsets, batch.offsets[start] + room, side="right")) - 1
        end = max(end, start + (self._writer.documents == 0))
        if "val_end" not in self._job.values or self._writer.split == "train":
            return end
        if self._job.layout.joined:  # one file, and so one shard
            end = len(batch.offsets) - 1
        return bisect_left(range(end), self._val_end, key=batch.place)

    def _finish(self) -> None:
        if self._skipped and not (self.shards or self._writer.documents):
            left = self._skipped[0]
            raise CorpusError(
                f"nothing could be read, so there are no shards; the first skipped document is "
                f"{left['input']}, row {left['first']}: {left['reason']}"
            )
        self._close(None)

    def _close(self, following: Address | None) -> None:
        """Finish a shard, which has the address at which the next one begins."""
        shard = self._writer.close(following, self._skipped)
        if following is not None:  # the last shard needs no mark: the manifest follows at once
            manifest.save_mark(self._folder, shard)
        self._before += shard.text_bytes
        self.shards.append(shard)
        self._skipped = []


class ShardWriter:
    """One shard on its way to disk, from an offset of its file on."""

    def __init__(
        self, job: ShardJob, folder: Path, number: int, split: ShardSplit, offset: int
    ) -> None:
        self._layout, self._dtype, self.split = job.layout, job.dtype, split
        self._folder, self._number, self._offset = folder, number, offset
        self._name = self._layout.data_file.format(number=number, split=split)
        self._path = folder / partial(self._name)
        self._file = DiskFile(self._path, offset, self._layout.header_bytes)
        self._lengths: list[NDArray[np.int64]] = []
        self.tokens = self.documents = self.text_bytes = 0

    def add(self, ids: Ids, lengths: NDArray[np.int64], text_bytes: int) -> None:
        """Write documents: their ids end to end, and how many each has."""
        self._file.add(np.ascontiguousarray(ids, self._dtype))
        self._lengths.append(lengths)
        self.tokens += len(ids)
        self.documents += len(lengths)
        self.text_bytes += text_bytes

    def close(self, following: Address | None, skipped: list[SkipRecord]) -> Shard:
        """Finish the files, sync them, give them their names, and describe the shard."""
        lengths = np.concatenate([np.empty(0, np.int64), *self._lengths])
        header = self._layout.header(self.tokens, self._dtype)
        self._file.finish(header)
        self._layout.finish(self._path, lengths, self._dtype)
        if not (self._layout.joined and self.split == "train"):
            state.rename(self._path, self._folder / self._name)
        parts = self._parts(header, lengths)
        sync_folder(self._folder)  # before the mark of the shard is written
        return Shard(
            self._number, self.split, self.tokens, self.documents, parts, self.text_bytes,
            following, skipped,
        )  # fmt: skip

    def _parts(self, header: bytes, lengths: NDArray[np.int64]) -> list[ShardPart]:
        """Write the borders of the documents, and describe all files."""
        if self._layout.rewrites:
            return [state.part_of(self._folder, self._name)]
        parts = []
        if header:
            parts.append(ShardPart(self._name, 0, len(header), f"{zlib.crc32(header):08x}"))
        place, size = self._offset + len(header), self.tokens * self._dtype.itemsize
        parts.append(ShardPart(self._name, place, size, f"{self._file.crc:08x}"))
        data = self._layout.index(lengths, self._dtype)
        name = self._layout.index_file.format(number=self._number, split=self.split)
        write_whole(self._folder / name, data)
        parts.append(ShardPart(name, 0, len(data), f"{zlib.crc32(data):08x}"))
        return parts

    def abandon(self) -> None:
        """Close the file; the next run begins it anew."""
        self._file.close()
