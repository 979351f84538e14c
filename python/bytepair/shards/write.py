"""A corpus in, token shards out: read, encoded and written at the same time, and resumable.

The documents of the inputs, in order, are cut into shards: a shard ends before the document that
would take it above `tokens_per_shard`. So the shards follow from the inputs and the options alone,
and not from threads, interruptions or the sizes of batches. A finished shard leaves a mark with the
address of the next document; a run that was killed loses the shard it was at, and nothing else.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from bytepair import arrow, corpus
from bytepair.documents import (
    Input,
    Rows,
    Skip,
    capped,
    inputs,
    read,
    require,
)
from bytepair.errors import ShardError, SpecialTokenError
from bytepair.progress import Bar, Callback
from bytepair.shards import manifest
from bytepair.shards.encode import encode
from bytepair.shards.layout import Layout, Split, Writer, layout
from bytepair.shards.manifest import Manifest, Mark, Shard
from bytepair.tokenizer import FILE_NAME, Tokenizer, write_whole

OnError: TypeAlias = Literal["raise", "skip"]

TOKENS_PER_SHARD: Final = 100_000_000
#: A longer document is an error, or is skipped: it would have to be in memory as a whole.
DOCUMENT_BYTES: Final = 128_000_000
#: Small columns are joined to batches of so many bytes at most, and of so many columns.
JOIN_BYTES: Final = 1 << 22
PIECES: Final = 1 << 10
#: Larger batches are worked on one at a time.
LARGE_BYTES: Final = 1 << 26

_BOS: Final = ("<|bos|>", "<|begin_of_text|>", "<|endoftext|>", "<s>", "<bos>")
_EOS: Final = ("<|eos|>", "<|end_of_text|>", "<|endoftext|>", "</s>", "<eos>")


@dataclass(frozen=True)
class Place:
    """The address of a document: the number of its input, and its row there."""

    input: int
    row: int


@dataclass(frozen=True)
class Encoded:
    """Documents as ids.

    Attributes:
        ids: of all documents, end to end.
        offsets: int64, where each begins, and where the last ends.
        text_ends: the same for the bytes of their text.
        starts: int64, the first document of each run of rows.
        places: the address of each of these.
    """

    ids: NDArray[Any]
    offsets: NDArray[np.int64]
    text_ends: NDArray[Any]
    starts: NDArray[np.int64]
    places: list[Place]

    def place(self, document: int) -> Place:
        """The address of a document."""
        run = int(np.searchsorted(self.starts, document, side="right")) - 1
        place = self.places[run]
        return Place(place.input, place.row + document - int(self.starts[run]))


@dataclass(frozen=True)
class Texts:
    """Columns of documents with their addresses, on their way to the encoder."""

    columns: list[Any]
    places: list[Place]


class Options(TypedDict, total=False):
    """The options of `write` that decide what the shards are."""

    format: str
    tokens_per_shard: int
    bos: bool | str
    eos: bool | str
    column: str
    doc_cap: int | None
    on_error: OnError
    max_document_bytes: int


#: Something left out, as it stands in marks and manifests.
Left: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Job:
    """Everything that decides what the shards are.

    Attributes:
        tokenizer: encodes.
        files: the inputs, in order.
        values: what the manifest says of the job.
    """

    tokenizer: Tokenizer
    files: list[Input]
    values: dict[str, Any]

    @property
    def layout(self) -> Layout:
        """The format."""
        return layout(self.values["format"])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the ids."""
        found: np.dtype[Any] = np.dtype(self.values["dtype"])
        return found


def write(
    source: corpus.Source,
    tokenizer: Tokenizer,
    out: str | os.PathLike[str],
    *,
    format: str = "bytepair",
    tokens_per_shard: int = TOKENS_PER_SHARD,
    bos: bool | str = False,
    eos: bool | str = False,
    column: str = "text",
    doc_cap: int | None = None,
    on_error: OnError = "raise",
    max_document_bytes: int = DOCUMENT_BYTES,
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Manifest:
    """Write token shards. The same call continues a run that was interrupted.

    Args:
        source: files, as in `bytepair.documents`.
        tokenizer: encodes them; special tokens in their text are text.
        out: the folder; new, empty, or of a run of the same job.
        format: "bytepair", "llmc", "nanogpt", "megatron" or "arrow"; see `bytepair.shards.layout`.
            The first shard is for validation in those of llm.c and nanoGPT.
        tokens_per_shard: a shard ends before the document that would take it above this.
        bos: a special token to begin each document with; True means the one that is usual.
        eos: a special token to end each document with; True means the one that is usual.
        column: the column of a table, or the field of a json object, that holds the text.
        doc_cap: of each document, so many characters are taken.
        on_error: what a document or file that cannot be read is: an error, or left out and
            recorded in the manifest.
        max_document_bytes: a longer document cannot be read.
        threads: how many threads encode; None means all.
        progress: as in `bytepair.train`; the stage is "shard", and counts bytes of text.

    Returns:
        What is written to `manifest.json`.

    Raises:
        CorpusError: if something cannot be read, unless it is to be skipped.
        ShardError: if the folder holds something else, or another run works on it.
        SpecialTokenError: if there is no such special token.
        OSError: if the disk is full. What was finished stays, and the next run continues.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(bytepair.sample.paths(), 1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = bytepair.shards.write(bytepair.sample.paths(), tok, folder, bos=True)
        ...     made.documents, len(made.shards)
        (61, 1)
    """
    job = make_job(
        source, tokenizer, format=format, tokens_per_shard=tokens_per_shard, bos=bos, eos=eos,
        column=column, doc_cap=doc_cap, on_error=on_error, max_document_bytes=max_document_bytes,
    )  # fmt: skip
    folder = Path(out)
    with manifest.locked(folder), Bar(progress) as bar:
        if done := finished(folder, job):
            return done
        marks = manifest.begin(folder, job.values)
        if not (marks and marks[-1].following is None):
            start = Place(*marks[-1].following) if marks and marks[-1].following else Place(0, 0)
            with closing(encoded(job, start, threads)) as stream:
                marks += cut(stream, job, folder, marks, bar)
        return finish(folder, job, marks)


def make_job(
    source: corpus.Source,
    tokenizer: Tokenizer,
    *,
    format: str = "bytepair",
    tokens_per_shard: int = TOKENS_PER_SHARD,
    bos: bool | str = False,
    eos: bool | str = False,
    column: str = "text",
    doc_cap: int | None = None,
    on_error: OnError = "raise",
    max_document_bytes: int = DOCUMENT_BYTES,
) -> Job:
    """Check the options of `write` and gather them with the inputs."""
    if tokens_per_shard < 1:
        raise ShardError(f"tokens_per_shard is {tokens_per_shard}; pass at least 1")
    if on_error not in ("raise", "skip"):
        raise ShardError(f"on_error is {on_error!r}; pass 'raise' or 'skip'")
    corpus.Limits(doc_cap=doc_cap)
    files = inputs(source)
    largest = max([tokenizer.vocab_size - 1, *tokenizer.special_tokens.values()])
    values = {
        "format": format,
        "dtype": layout(format).dtype(largest).name,
        "tokenizer": tokenizer.fingerprint,
        "bos": special_id(tokenizer, bos, _BOS),
        "eos": special_id(tokenizer, eos, _EOS),
        "tokens_per_shard": tokens_per_shard,
        "column": column,
        "doc_cap": doc_cap,
        "on_error": on_error,
        "max_document_bytes": max_document_bytes,
        "inputs": [[file.name, file.size] for file in files],
    }
    return Job(tokenizer, files, values)


def special_id(tokenizer: Tokenizer, wanted: bool | str, usual: tuple[str, ...]) -> int | None:
    """The id of a special token by name, or of the first usual one that the tokenizer has."""
    if wanted is False:
        return None
    known = tokenizer.special_tokens
    names = usual if wanted is True else (wanted,)
    found = next((name for name in names if name in known), None)
    if found is None:
        raise SpecialTokenError(
            f"the tokenizer has no special token {' or '.join(names)}; it has "
            f"{', '.join(known) or 'none'}; name one of them"
        )
    return known[found]


# ---------------------------------------------------------------------------- reading, encoding


def encoded(
    job: Job, start: Place, threads: int | None = None
) -> Generator[Encoded | Left, None, None]:
    """Read and encode the documents from an address on, each in a thread of its own."""
    texts = corpus.ahead(_gathered(_pieces(job, start)), _large)
    return corpus.ahead(_encode_all(texts, job, threads), _large)


def _large(item: Texts | Encoded | Left) -> bool:
    """Whether there should be nothing else in memory."""
    size = 0
    if isinstance(item, Texts):
        size = sum(column.nbytes for column in item.columns)
    elif isinstance(item, Encoded):
        size = item.ids.nbytes
    return size > LARGE_BYTES


def _pieces(job: Job, start: Place) -> Iterator[tuple[Place, Any] | Left]:
    """The columns of the inputs with their addresses, and what is left out."""
    column, doc_cap = job.values["column"], job.values["doc_cap"]
    limit = job.values["max_document_bytes"]
    for number in range(start.input, len(job.files)):
        file = job.files[number]
        first = start.row if number == start.input else 0
        for piece in read(file, column, first=first, max_bytes=limit):
            if isinstance(piece, Skip) and job.values["on_error"] == "skip":
                yield {"input": file.name, **asdict(piece)}
            else:
                rows: Rows = require(file, piece)
                yield from _portions(Place(number, rows.first), capped(rows.texts, doc_cap))


def _portions(place: Place, texts: Any) -> Iterator[tuple[Place, Any]]:
    """A column with its address, in portions that are not too large, unless a document is."""
    ends, start = arrow.offsets(texts), 0
    while start < len(texts):
        found = int(np.searchsorted(ends, ends[start] + LARGE_BYTES, side="right")) - 1
        stop = max(found, start + 1)
        yield Place(place.input, place.row + start), texts[start:stop]
        start = stop


def _gathered(pieces: Iterator[tuple[Place, Any] | Left]) -> Iterator[Texts | Left]:
    """Join small columns, for there may be many small files."""
    held = Texts([], [])
    size = 0
    for piece in pieces:
        small = isinstance(piece, tuple) and size + piece[1].nbytes <= JOIN_BYTES
        if held.places and not (small and len(held.places) < PIECES):
            yield held
            held, size = Texts([], []), 0
        if isinstance(piece, dict):
            yield piece
            continue
        held.places.append(piece[0])
        held.columns.append(piece[1])
        size += piece[1].nbytes
        del piece  # what is being worked on should not be held here as well
        if size > JOIN_BYTES:
            yield held
            held, size = Texts([], []), 0
    if held.places:
        yield held


def _encode_all(
    stream: Iterator[Texts | Left], job: Job, threads: int | None
) -> Iterator[Encoded | Left]:
    import pyarrow as pa

    options = {"bos": job.values["bos"], "eos": job.values["eos"], "threads": threads}
    for item in stream:
        if isinstance(item, dict):
            yield item
            continue
        if _large(item):
            pa.default_memory_pool().release_unused()  # what reading it took
        texts = _joined(item.columns)
        ids, offsets = encode(job.tokenizer, texts, job.dtype, **options)
        starts = np.cumsum([0, *(len(column) for column in item.columns[:-1])])
        made = Encoded(ids, offsets, arrow.offsets(texts), starts, item.places)
        del item, texts, ids  # they should not be held while the next are read
        yield made
        del made


def _joined(columns: list[Any]) -> Any:
    """Columns of strings, small and large, as one."""
    import pyarrow as pa

    if len(columns) == 1:
        return columns[0]
    kinds = {column.type for column in columns}
    return pa.concat_arrays([c.cast(pa.large_string()) if len(kinds) > 1 else c for c in columns])


# ---------------------------------------------------------------------------- cutting, writing


def cut(
    stream: Iterator[Encoded | Left], job: Job, folder: Path, marks: list[Mark], bar: Bar
) -> list[Mark]:
    """Write a stream of documents as shards, and a mark for each; return the new marks."""
    run = _Run(job, folder, marks)
    try:
        for item in stream:
            if isinstance(item, dict):
                run.skipped.append(item)
                continue
            run.add(item)
            bar.update("shard", run.text_bytes, None, f"bytes, shard {run.number}")
            del item
        run.close(None)
    finally:
        run.writer.abandon()
    return run.marks


class _Run:
    """The shard that is being written, and what is known of those before it."""

    def __init__(self, job: Job, folder: Path, marks: list[Mark]) -> None:
        self._job, self._folder = job, folder
        self._shards = [mark.shard for mark in marks]
        self._before = sum(mark.text_bytes for mark in marks)
        self._limit: int = job.values["tokens_per_shard"]
        self.marks: list[Mark] = []
        self.skipped: list[Left] = []
        self.writer = self._open()

    @property
    def number(self) -> int:
        """Of the shard that is being written."""
        return len(self._shards)

    @property
    def text_bytes(self) -> int:
        """How much text was written, all runs together."""
        return self._before + self.writer.text_bytes

    def _open(self) -> Writer:
        """Begin the next shard."""
        layout = self._job.layout
        split: Split = "val" if layout.validation and not self._shards else "train"
        same = [s for s in self._shards if layout.joined and s.split == split]
        offset = sum(shard.tokens for shard in same) * self._job.dtype.itemsize
        return Writer(layout, self._folder, self.number, split, self._job.dtype, offset)

    def add(self, batch: Encoded) -> None:
        """Write a batch, in as many shards as it takes."""
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
        """Where the documents end that fit this shard; one fits at least if it is empty."""
        room = self._limit - self.writer.tokens
        end = int(np.searchsorted(offsets, offsets[start] + room, side="right")) - 1
        return max(end, start + (self.writer.documents == 0))

    def close(self, following: Place | None) -> None:
        """Finish a shard; its mark says where the next begins."""
        shard = self.writer.close()
        mark = Mark(
            shard,
            None if following is None else (following.input, following.row),
            self.writer.text_bytes,
            self.skipped,
        )
        mark.save(self._folder)
        self._before += self.writer.text_bytes
        self.marks.append(mark)
        self._shards.append(shard)
        self.skipped = []


# ---------------------------------------------------------------------------- the ends of a run


def finished(folder: Path, job: Job) -> Manifest | None:
    """The manifest of a folder in which this very job is finished already."""
    if not (folder / manifest.NAME).exists():
        return None
    done = Manifest.load(folder)
    manifest.check_job(folder, done.job, job.values)
    remove_marks(folder)
    return done


def finish(folder: Path, job: Job, marks: list[Mark]) -> Manifest:
    """Turn the marks of a finished run into the manifest, and leave nothing else behind."""
    for name in {part.file for mark in marks for part in mark.shard.parts}:
        if (folder / manifest.partial(name)).exists():
            (folder / manifest.partial(name)).replace(folder / name)
    shards: list[Shard] = [mark.shard for mark in marks]
    skipped = [left for mark in marks for left in mark.skipped]
    made = Manifest(job.values, shards, sum(mark.text_bytes for mark in marks), skipped)
    write_whole(folder / FILE_NAME, job.tokenizer.to_bytes())
    made.save(folder)
    remove_marks(folder)
    if shards and made.tokens and all(shard.split == "val" for shard in shards):
        warnings.warn(
            f"all {made.tokens:,} tokens are in the first shard, which is for validation in the "
            f"format {made.format!r}; pass a smaller tokens_per_shard",
            stacklevel=3,
        )
    return made


def remove_marks(folder: Path) -> None:
    """Take the marks away, after the manifest was written, and what a killed run left."""
    progress = folder / manifest.PROGRESS
    if progress.is_dir():
        for mark in progress.iterdir():
            mark.unlink()
        progress.rmdir()
    for left in folder.iterdir():
        if manifest.is_left_over(left.name):
            left.unlink()
