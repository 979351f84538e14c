"""Writes the token shards of a corpus: reads, encodes and writes at the same time.

The documents of the inputs, in order, are divided into shards: a shard ends before the document
that would exceed `tokens_per_shard`. So the shards depend only on the inputs and the options, not
on threads, interruptions or the sizes of batches. A finished shard leaves a mark with the address
of the next document; a run that is killed loses only the unfinished shard. A finished shard that is
missing or damaged is written again, with all that follow.

The shards of a run are also those of a run with more inputs behind them, except the last one, which
ended because the documents did. Whether files are whole is decided by reading every byte.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_kind
from bytepair._internal.progress import Bar, Callback, ShareRead
from bytepair.corpus import files
from bytepair.corpus.files import INPUTS, LOG, shared
from bytepair.corpus.source import Source
from bytepair.errors import BytepairWarning, CorpusError, ShardError, warn
from bytepair.files.outputs import check_alone, remove_own, sync_folder, write_whole
from bytepair.files.safe import check_own_folder, check_regular
from bytepair.formats import NATIVE
from bytepair.shards import manifest
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
from bytepair.shards.layout import LAYOUTS, DiskFile, partial
from bytepair.shards.manifest import Address, Manifest, Shard, ShardPart, ShardSplit, SkipRecord
from bytepair.tokenizer import Tokenizer

#: Passes on the documents from an address on, and says which share of the inputs is read.
Producer: TypeAlias = "Callable[[Address, Sink, ShareRead], None]"
#: Regular expressions of the names of marks, and of files that are incomplete.
MARKS: Final = r"[0-9]{6,}\.json"
TEMPORARY: Final = r"\.{}\.(?:partial|[0-9a-f]{{16}})"


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
    there = checked(folder, state_of(folder, job.values, ignore=ignore), bar)
    if there.damage:
        warn(
            f"{folder} is not as it was written: {there.damage}; it is written again, with all "
            "behind it"
        )
    elif there.shards:
        many = "all" if there.manifest is not None else f"{len(there.shards):,}"
        LOG.info("%s has %s shards already", folder, many)
    if there.manifest is None:
        begin(folder, job.values, there)
        run = Sharder(job, folder, there.shards, bar)
        run.write(there.following, feed)
    data, path = job.tokenizer.to_bytes(tables=False), folder / NATIVE
    check_regular(path)
    if not path.exists() or path.read_bytes() != data:
        write_whole(path, data)
    if there.manifest is not None:
        remove_marks(folder, job.values, len(there.shards))
        return there.manifest
    result = finish(folder, job.values, run.shards)
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
        self._job, self._folder, self._bar, self.shards = job, folder, bar, list(shards)
        self._before = sum(shard.text_bytes for shard in shards)
        self._val_end = Address(*job.values["val_end"]) if "val_end" in job.values else None
        self._skipped: list[SkipRecord] = []
        self._share = ShareRead(int(job.starts[-1]))

    def write(self, start: Address, feed: Producer) -> None:
        """Write the documents from an address on; an unfinished shard is closed as it is."""
        self._open(start)
        try:
            feed(start, self._take, self._share)
            self._close(None)
        except BaseException:
            self._file.close()  # the next run begins it anew
            raise

    def _open(self, first: Address) -> None:
        """Begin the file of the shard that begins with the document at an address."""
        layout, number = self._job.layout, len(self.shards)
        is_val = layout.validation and not number
        if self._val_end is not None:
            is_val = first < self._val_end
        self._split: ShardSplit = "val" if is_val else "train"
        earlier = [one.tokens for one in self.shards if one.split == self._split]
        self._offset = layout.joined * sum(earlier) * self._job.dtype.itemsize
        self._name = layout.data_file.format(number=number, split=self._split)
        path = self._folder / partial(self._name)
        self._file = DiskFile(path, self._offset, layout.header_bytes)
        self._lengths = [np.empty(0, np.int64)]
        self._tokens = self._documents = self._text_bytes = 0

    def _take(self, batch: EncodedRows | SkipRecord) -> None:
        """Write a batch of documents, and begin new shards as needed; or record a skip."""
        if isinstance(batch, dict):
            self._skipped.append(batch)
            return
        start, count = 0, len(batch.offsets) - 1
        while start < count:
            end = self._end_of_shard(batch, start)
            if end == start:
                following = batch.place(start)
                self._close(following)
                self._open(following)
                continue
            ids = batch.ids[batch.offsets[start] : batch.offsets[end]]
            self._file.add(np.ascontiguousarray(ids, self._job.dtype))
            self._lengths.append(np.diff(batch.offsets[start : end + 1]))
            self._tokens += len(ids)
            self._documents += end - start
            self._text_bytes += int(batch.text_ends[end]) - int(batch.text_ends[start])
            start = end
        done = self._before + self._text_bytes
        self._bar.update("shard", done, self._share.total(done))

    def _end_of_shard(self, batch: EncodedRows, start: int) -> int:
        """The end of the documents that fit this shard; an empty shard takes at least one."""
        room = self._job.values["tokens_per_shard"] - self._tokens
        end = int(np.searchsorted(batch.offsets, batch.offsets[start] + room, side="right")) - 1
        end = max(end, start + (self._documents == 0))
        if self._val_end is None or self._split == "train":
            return end
        if self._job.layout.joined:  # one file, and so one shard
            end = len(batch.offsets) - 1
        return bisect_left(range(end), self._val_end, key=batch.place)

    def _close(self, following: Address | None) -> None:
        """Finish a shard, which has the address at which the next one begins.

        Its files are synced and get their names before its mark is written.
        """
        if self._skipped and not (following or self.shards or self._documents):
            left = self._skipped[0]
            raise CorpusError(
                "nothing could be read, so there are no shards; the first skipped document is "
                f"{left['input']}, row {left['first']}: {left['reason']}"
            )
        layout, path = self._job.layout, self._folder / partial(self._name)
        lengths = np.concatenate(self._lengths)
        header = layout.header(self._tokens, self._job.dtype)
        self._file.finish(header)
        layout.finish(path, lengths, self._job.dtype)
        if not (layout.joined and self._split == "train"):
            rename(path, self._folder / self._name)
        parts = self._parts(header, lengths)
        sync_folder(self._folder)
        shard = Shard(
            len(self.shards), self._split, self._tokens, self._documents, parts, self._text_bytes,
            following, self._skipped,
        )  # fmt: skip
        if following is not None:  # the last shard needs no mark: the manifest follows at once
            manifest.save_mark(self._folder, shard)
        self._before += shard.text_bytes
        self.shards.append(shard)
        self._skipped = []

    def _parts(self, header: bytes, lengths: NDArray[np.int64]) -> list[ShardPart]:
        """Write the borders of the documents, and describe all files."""
        layout, dtype, path = self._job.layout, self._job.dtype, self._folder / self._name
        if starts := layout.starts(path):
            places = itertools.pairwise([*starts, path.stat().st_size])
            return [part_of(self._folder, self._name, *place) for place in places]
        parts = []
        if header:
            parts.append(ShardPart(self._name, 0, len(header), f"{zlib.crc32(header):08x}"))
        place, size = self._offset + len(header), self._tokens * dtype.itemsize
        parts.append(ShardPart(self._name, place, size, f"{self._file.crc:08x}"))
        data = layout.index(lengths, dtype)
        name = layout.index_file.format(number=len(self.shards), split=self._split)
        write_whole(self._folder / name, data)
        return [*parts, ShardPart(name, 0, len(data), f"{zlib.crc32(data):08x}")]


@dataclass(frozen=True)
class FolderState:
    """What a folder holds of a job."""

    shards: list[Shard] = field(default_factory=list)  # that need not be written again
    manifest: Manifest | None = None  # if the run of this very job has finished
    damage: str = ""  # what is wrong with the shard after these, if it is there

    @property
    def following(self) -> Address:
        """The document with which the shard after these begins, if the run has not finished."""
        return (self.shards[-1].following if self.shards else None) or Address(0, 0)


def state_of(folder: Path, job: dict[str, Any], *, ignore: str = manifest.PROGRESS) -> FolderState:
    """The shards that an earlier run has written for a job, unchecked; nothing is changed.

    The file or folder `ignore` may be in a new folder.
    """
    check_own_folder(folder / manifest.PROGRESS)
    try:
        return _state_of(folder, job, ignore)
    except FileNotFoundError:  # another process has just made a manifest of the marks
        return _state_of(folder, job, ignore)


def _state_of(folder: Path, job: dict[str, Any], ignore: str) -> FolderState:
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    if manifest.NAME in names:
        whole = Manifest.load(folder)
        if _common(whole.job, job) == len(whole.job[INPUTS]) < len(job[INPUTS]):
            return FolderState(whole.shards[:-1])
        check_job(folder, whole.job, job)
        return FolderState(whole.shards, whole)
    if names <= {manifest.LOCK, ignore}:
        return FolderState()
    before = _recorded(folder)
    there, common = FolderState(manifest.load_marks(folder)), _common(before, job)
    if there.shards and not there.following < (common, 0):
        check_job(folder, before, job)
    if not there.shards and not common:  # nothing is finished, so nothing can be lost
        _check_empty(folder, {*names} - {ignore}, before)
    try:
        manifest.check_order(there.shards, len(job[INPUTS]))
    except ValueError as error:
        raise manifest.damaged(folder / manifest.PROGRESS, error, folder) from None
    return there


def _recorded(folder: Path) -> dict[str, Any]:
    path = folder / manifest.PROGRESS / manifest.JOB
    return manifest.read_json(path, folder, manifest.parse_job) if path.exists() else {}


def _common(before: dict[str, Any], job: dict[str, Any]) -> int:
    """The number of inputs of two jobs, if one has others behind them and they are else the same.

    It is 0 if the jobs differ in something else.
    """
    count = min(len(before.get(INPUTS, ())), len(job[INPUTS]))
    is_same = set(differing(before, job)) <= {INPUTS} and shared(before, job) == count
    return count if is_same else 0


def _check_empty(folder: Path, names: set[str], before: dict[str, Any]) -> None:
    """Raise a `ShardError` if a folder has more than a killed run of the job `before` left."""
    own = {path.name for path in temporary_files(folder, before, 0)}
    others = sorted(names - own - {manifest.PROGRESS, manifest.LOCK})
    if NATIVE in others:
        raise ShardError(
            f"{folder} is not empty: it has shards, but no {manifest.NAME}",
            hint="remove the folder and start again, or choose another folder",
        )
    if others:
        raise ShardError(
            f"{folder} is not empty (it has {others[0]!r})", hint="choose another folder"
        )


def check_job(folder: Path, before: dict[str, Any], job: dict[str, Any]) -> None:
    """Raise a `ShardError` that names what differs between the job of a folder and another one."""
    if wrong := differing(before, job):
        hint = "choose another folder, or remove it"
        hint += "; new inputs are only added after all old ones" if INPUTS in wrong else ""
        first = f"{INPUTS}[{shared(before, job)}]"
        names = ", ".join(first if name == INPUTS else name for name in wrong)
        raise ShardError(f"{folder} belongs to a run with different {names}", hint=hint)


def differing(before: dict[str, Any], job: dict[str, Any]) -> list[str]:
    """The differences between the job of a run and the job that resumes it.

    What was done under `errors="strict"` had no errors, and so is what "skip" would have given.
    """
    if before.get("errors") == "strict":
        before = {**before, "errors": job.get("errors")}
    return files.differing(before, job)


def crc_of(path: Path, offset: int, size: int) -> str:
    """The CRC-32 of a range of a file."""
    crc = 0
    with path.open("rb") as file:
        file.seek(offset)
        while size > 0 and (block := file.read(min(size, 1 << 22))):
            crc = _core.crc32(np.frombuffer(block, np.uint8), crc)
            size -= len(block)
    return f"{crc:08x}"


def part_of(folder: Path, name: str, start: int = 0, end: int | None = None) -> ShardPart:
    """The record of a file, or of a range of its bytes."""
    size = ((folder / name).stat().st_size if end is None else end) - start
    return ShardPart(name, start, size, crc_of(folder / name, start, size))


def wrong_part(folder: Path, part: ShardPart, *, end: int | None = None) -> str:
    """What is wrong with a range of a file, in one sentence; empty if it is whole.

    The file must end at `end`. While a run is unfinished (None), a file that several shards share
    grows, and has its temporary name.
    """
    path = folder / part.file
    check_regular(path)
    if end is None and not path.exists():
        path = folder / partial(part.file)
        check_regular(path)
    if not path.exists():
        return f"{part.file} is gone"
    size, last = path.stat().st_size, part.offset + part.bytes
    if size < last:
        return f"{part.file} is cut off: it has {size:,} bytes"
    if (crc := crc_of(path, part.offset, part.bytes)) != part.crc32:
        where = f"CRC-32 of bytes {part.offset} to {last} is {crc}, not {part.crc32}"
        return f"{part.file} is damaged: {where}"
    if end == last < size:
        return f"{part.file} has {size:,} bytes; the manifest knows {end:,}"
    return ""


def wrong_shards(
    folder: Path, shards: list[Shard], *, is_finished: bool = True
) -> Iterator[tuple[Shard, list[str]]]:
    """Each shard of a folder with what is wrong with its files, in order.

    If these are all shards of a finished run, no file has more than they say.
    """
    ends: dict[str, int] = {}
    for part in itertools.chain.from_iterable(shard.parts for shard in shards):
        ends[part.file] = max(ends.get(part.file, 0), part.offset + part.bytes)
    for shard in shards:
        wrong = []
        for part in shard.parts:
            end = ends[part.file] if is_finished else None
            wrong.append(wrong_part(folder, part, end=end))
        yield shard, [reason for reason in wrong if reason]


def checked(folder: Path, state: FolderState, bar: Bar) -> FolderState:
    """Read the files of all shards; the first that is not whole is left out with all behind it."""
    is_finished = state.manifest is not None
    for shard, wrong in wrong_shards(folder, state.shards, is_finished=is_finished):
        bar.update("check", shard.number + 1, len(state.shards), "shards")
        if wrong:
            return FolderState(state.shards[: shard.number], damage=wrong[0])
    return state


def begin(folder: Path, job: dict[str, Any], state: FolderState) -> None:
    """Make a folder, which is locked, that of an unfinished run with the shards that it keeps."""
    progress, joined = folder / manifest.PROGRESS, LAYOUTS[job["format"]].joined_file
    if progress.exists():
        marks = sorted(path for path in progress.iterdir() if re.fullmatch(MARKS, path.name))
        for path in reversed(marks[len(state.shards) :]):  # so that a kill leaves no gap
            remove_own(path)
        for path in temporary_files(folder, _recorded(folder), len(marks)):
            if joined is None or path.name != partial(joined):  # which has shards that are kept
                remove_own(path)
    progress.mkdir(exist_ok=True)
    manifest.write_json(progress / manifest.JOB, job)
    if joined is not None and (folder / joined).exists():
        check_alone(folder / joined)
        rename(folder / joined, folder / partial(joined))
    if (folder / manifest.NAME).exists():
        for shard in state.shards:
            manifest.save_mark(folder, shard)
        remove_own(folder / manifest.NAME)


def finish(folder: Path, job: dict[str, Any], shards: list[Shard]) -> Manifest:
    """Make a folder that of a finished run: write the manifest, and remove the marks."""
    joined = LAYOUTS[job["format"]].joined_file
    if joined is not None and (folder / partial(joined)).exists():
        rename(folder / partial(joined), folder / joined)
    result = Manifest(job, shards)
    result.save(folder)
    remove_marks(folder, job, len(shards))
    return result


def remove_marks(folder: Path, job: dict[str, Any], shards: int) -> None:
    """Remove the marks of a run that has finished, and what killed runs of the job left."""
    for path in temporary_files(folder, job, shards):
        remove_own(path)
    remove_folder(folder / manifest.PROGRESS, rf"{MARKS}|{re.escape(manifest.JOB)}")


def rename(old: Path, new: Path) -> None:
    """Give a whole file its name, which only a file of this job may have."""
    check_alone(new)
    old.replace(new)


def temporary_files(folder: Path, job: dict[str, Any], shards: int) -> list[Path]:
    """The incomplete files of killed runs of a job, of which so many shards were finished."""
    if job.get("format") not in (*LAYOUTS,):
        return []
    names = LAYOUTS[job["format"]].names(shards + 1)
    named = [(path, re.fullmatch(TEMPORARY.format("(.+)"), path.name)) for path in folder.iterdir()]
    return [path for path, match in named if match and match[1] in names]


def check_contents(folder: Path, names: str) -> None:
    """Check that a folder of bytepair's own, if it exists, has no other files.

    Its files are those that match the regular expression `names`, and incomplete ones of these.
    """
    check_own_folder(folder)
    own = re.compile(rf"{names}|{TEMPORARY.format(f'({names})')}|{re.escape(manifest.LOCK)}")
    for path in folder.iterdir() if folder.exists() else ():
        if not own.fullmatch(path.name):
            raise ShardError(f"{path} is not a file that bytepair writes; move it elsewhere")


def remove_folder(folder: Path, names: str) -> None:
    """Remove a folder of bytepair's own, if it exists and passes `check_contents`."""
    check_contents(folder, names)
    if folder.exists():
        for path in sorted(folder.iterdir()):  # the record of the job is the last
            remove_own(path)
        try:
            folder.rmdir()
        except OSError as error:  # another rank may just be looking for its task
            if error.errno == errno.EIO:
                raise
