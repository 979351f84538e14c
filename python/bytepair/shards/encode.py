"""Collects everything that determines shards (a job), and encodes documents from any address on.

Plain parquet files of this machine are read and encoded by all threads of the core
(`encode_tables`); of all others, and of what is damaged, one thread reads and the others encode
(`encode_in_order`). Both produce the same documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import DOCUMENT_BYTES, check_choice, check_kind, check_whole, refuse
from bytepair._internal.progress import ShareRead
from bytepair.corpus import arrow
from bytepair.corpus.column import Column, Errors, Expansion, Skip, SkipLog
from bytepair.corpus.files import Files, Input, Split, compression_of, kind_of, of_split, recorded
from bytepair.corpus.read import DocumentSelection, ahead, read, read_batches
from bytepair.corpus.source import Reading, ResolvedSource, Source, resolve
from bytepair.errors import CorpusError, SpecialTokenError
from bytepair.files.outputs import scratch
from bytepair.shards.layout import LAYOUTS, Layout
from bytepair.shards.manifest import Address, InputSplit, ShardFormat, SkipRecord
from bytepair.tokenizer import Tokenizer

TOKENS_PER_SHARD: Final = 100_000_000


@dataclass(frozen=True)
class ShardOptions:
    """The options that determine the shards of a corpus and a tokenizer.

    Attributes:
        format: "bytepair", "llmc", "nanogpt", "megatron" or "arrow"; see `bytepair.shards.layout`.
            With llm.c and nanoGPT, the first shard is for validation, unless `split` is "both".
        tokens_per_shard: the maximum number of tokens of a shard, unless a document is longer.
        bos: the name of the special token before each document; True means the usual one, False
            none.
        eos: the name of the special token after each document, as for `bos`; by default none.
        column: as in `bytepair.Reading`.
        doc_cap: as in `bytepair.Reading`.
        errors: as in `bytepair.Reading`, but "skip" also skips a damaged file from the damage on,
            and the manifest records what was skipped.
        max_document_bytes: as in `bytepair.Reading`.
        split: as in `bytepair.count`; or "both": shards of the documents for validation, then those
            for training. As in `corpus.read_documents`, the last file is for validation where no
            data set says it.
        val_share: in place of `split`, the share of the text for validation, between 0 and 1: the
            first documents, up to this share of the bytes of the files. All files are read.

    Example:
        >>> from bytepair.shards import ShardOptions
        >>> ShardOptions(tokens_per_shard=1000).bos
        True
    """

    format: ShardFormat = "bytepair"
    tokens_per_shard: int = TOKENS_PER_SHARD
    bos: bool | str = True
    eos: bool | str = False
    column: str = "text"
    doc_cap: int | None = None
    errors: Errors = "strict"
    max_document_bytes: int = DOCUMENT_BYTES
    split: InputSplit | None = None
    val_share: float | None = None

    def __post_init__(self) -> None:
        check_choice("format", self.format, get_args(ShardFormat))
        check_choice("errors", self.errors, get_args(Errors))
        for name in ("tokens_per_shard", "max_document_bytes", "doc_cap"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_whole(name, value, least=1))
        if self.val_share is not None:
            if self.split is not None:
                raise refuse("split", self.split, "None where val_share divides the text")
            check_kind("val_share", self.val_share, float)
            if not 0 < self.val_share < 1:
                raise refuse("val_share", self.val_share, "between 0 and 1")

    @property
    def files_split(self) -> Split | None:
        """The split of the source that is read; `make_job` divides all of it."""
        if self.split == "both" or self.val_share is not None:
            return "all"
        return self.split


class ShardKeywords(TypedDict, total=False):
    """The fields of `ShardOptions`, as keywords of `write`."""

    format: ShardFormat
    tokens_per_shard: int
    bos: bool | str
    eos: bool | str
    column: str
    doc_cap: int | None
    errors: Errors
    max_document_bytes: int
    split: InputSplit | None
    val_share: float | None


@dataclass
class ShardJob:
    """Everything that determines the shards.

    `values` are what the manifest says of it; "val_end" only if the documents before this address
    are for validation.
    """

    tokenizer: Tokenizer
    files: list[Input]
    values: dict[str, Any]
    first_input: int = 0  # the number of the first input in the source

    def __post_init__(self) -> None:
        self.layout: Layout = LAYOUTS[self.values["format"]]
        self.dtype: np.dtype[Any] = np.dtype(self.values["dtype"])
        self.starts: NDArray[np.int64] = np.cumsum([0, *(file.size for file in self.files)])


def make_job(
    files: list[Input], tokenizer: Tokenizer, options: ShardOptions, folder: Path
) -> ShardJob:
    """Collect everything that determines the shards in a folder."""
    val_end = None
    if options.split == "both":
        val = of_split(Files(files), "val", by_position=True).files
        files = [*val, *of_split(Files(files), "train", by_position=True).files]
        val_end = Address(len(val), 0)
    elif options.val_share is not None:
        val_end = _end_of_share(files, options, options.val_share)
    largest = max([tokenizer.vocab_size - 1, *tokenizer.special_tokens.values()])
    values = asdict(options) | {
        "dtype": LAYOUTS[options.format].dtype(largest).name,
        "tokenizer": tokenizer.fingerprint,
        "bos": special_id(tokenizer, options.bos, "bos"),
        "eos": special_id(tokenizer, options.eos, "eos"),
        **recorded(files, folder),
    }
    del values["split"], values["val_share"]  # the inputs and `val_end` say what was read
    if val_end is not None:
        values["val_end"] = list(val_end)
    return ShardJob(tokenizer, files, values)


def _end_of_share(files: list[Input], options: ShardOptions, share: float) -> Address:
    """The first document for training, if those before it have a share of the bytes of the files.

    The file that contains it is read twice, since its documents are counted first.
    """
    ends = np.cumsum([file.size for file in files])
    share_end = share * float(ends[-1])
    number = min(int(np.searchsorted(ends, share_end, side="right")), len(files) - 1)
    reading = Reading(options.column, options.errors, max_document_bytes=options.max_document_bytes)
    documents = sum(
        (piece.rows or 0) if isinstance(piece, Skip) else len(piece)
        for piece in read(files[number], reading)
    )
    rest = (float(ends[number]) - share_end) / max(files[number].size, 1)
    end = max(Address(number, documents - round(rest * documents)), Address(0, 1))
    if end >= Address(len(files) - 1, documents):
        raise CorpusError(
            f"val_share leaves no document for training; {files[number].name} has {documents}",
            option="val_share",
            hint="pass a smaller share, or divide the text into more documents",
        )
    return end


def special_id(tokenizer: Tokenizer, token: bool | str, role: str) -> int | None:
    """The id of a special token by name, or of the one with the role.

    If no token has the role of beginning a text, as in Qwen's vocabularies, it is the one that ends
    a text.
    """
    if token is False:
        return None
    special = tokenizer.special_tokens
    roles = tokenizer.roles
    name = roles.get(role, roles.get("eos")) if token is True else token
    if name not in special:
        what = f"{role} token" if token is True else f"special token {token}"
        raise SpecialTokenError(
            f"the tokenizer has no {what}; it has {', '.join(special) or 'no special tokens'}",
            hint=f"name one of them, or pass {role}=False to use none",
        )
    return special[name]


#: Takes documents, and what is left out, in order.
Sink: TypeAlias = "Callable[[EncodedRows | SkipRecord], None]"
#: A column of documents with the address of the first.
Placed: TypeAlias = tuple[Address, Column]

#: The name of a source in memory, in manifests and messages.
IN_MEMORY: Final = "the source"
#: The maximum number of files that the threads of the core have open at once.
OPEN_FILES: Final = 64
#: Small columns are joined to batches of this many bytes, and of this many columns at most.
JOIN_BYTES: Final = 1 << 22
JOIN_COLUMNS: Final = 1 << 10
#: Larger batches are processed one at a time.
LARGE_BYTES: Final = 1 << 25


@dataclass(frozen=True)
class EncodedRows:
    """Documents as ids, end to end."""

    ids: NDArray[Any]
    offsets: NDArray[np.int64]  # the start of each document, and the end of the last
    text_ends: NDArray[Any]  # the same for the bytes of their text
    starts: NDArray[np.int64]  # the first document of each run of rows
    places: list[Address]  # of each of these documents

    def place(self, document: int) -> Address:
        """The address of a document."""
        run = int(np.searchsorted(self.starts, document, side="right")) - 1
        place = self.places[run]
        return Address(place.input, place.row + document - int(self.starts[run]))


@contextmanager
def on_disk(source: Source, options: ShardOptions) -> Iterator[Files]:
    """The files of a source, else a parquet file with its text, which is removed at the end.

    Shards can be resumed and written again, since each document has an address: a file and a row in
    it. Texts, data frames and data sets have none; the same source gives the same file.
    """
    resolved = resolve(source, split=options.files_split)
    if isinstance(resolved, Files):
        yield resolved
        return
    with scratch() as folder:
        path = folder / "source.parquet"
        _write_texts(resolved, str(path), options)
        file = Input(IN_MEMORY, path.stat().st_size, None, str(path))
        yield of_split(Files([file]), options.files_split)


def _write_texts(resolved: ResolvedSource, path: str, options: ShardOptions) -> None:
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_parquet as parquet

    skips = SkipLog()
    most = options.max_document_bytes
    reading = Reading(options.column, options.errors, max_document_bytes=most)
    schema = pa.schema([(options.column, pa.large_string())])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in read_batches(resolved, reading, on_skip=skips.add):
            if isinstance(batch, list):
                texts = [text.encode() for text in batch]
                data = np.frombuffer(b"".join(texts), np.uint8)
                batch = Column(data, np.cumsum([0, *map(len, texts)]), IN_MEMORY)
            writer.write_batch(arrow.record_batch(batch, options.column))
    skips.warn()


def encode_all(
    job: ShardJob,
    take: Sink,
    start: Address = Address(0, 0),  # noqa: B008 - it is immutable
    threads: int | None = None,
    share: ShareRead = ShareRead(),  # noqa: B008 - without a size it says nothing
) -> None:
    """Call `take` with the documents from an address on, and with what is left out, in order."""
    are_tables = [_is_table(file) for file in job.files]
    place = start
    while place.input < len(job.files):
        others = range(place.input + 1, len(job.files))
        stop = next((n for n in others if are_tables[n] != are_tables[place.input]), others.stop)
        if are_tables[place.input]:
            whole = min(stop, place.input + OPEN_FILES)
            place = encode_tables(job, place, whole, take, threads, share)
            if place.input == whole:
                continue
            stop = place.input + 1
        place = encode_in_order(job, place, stop, take, threads, share)


def _is_table(file: Input) -> bool:
    """Whether the threads of the core may read a file."""
    is_plain = kind_of(file.path) == "parquet" and compression_of(file.path) is None
    return is_plain and file.cloud is None


def encode_tables(
    job: ShardJob, start: Address, stop: int, take: Sink, threads: int | None, share: ShareRead
) -> Address:
    """Read and encode documents of parquet files up to the input number `stop`, exclusive.

    The core reads rows in parts. If a part cannot be read or encoded as a whole, nothing of it is
    taken, and its address is returned, so that `encode_in_order` goes on there. So the shards do
    not depend on which of the two read the documents.
    """
    files, column = job.files[start.input : stop], job.values["column"]
    expansions = [Expansion(file.name, file.size) for file in files]
    rows_of = lru_cache(1)(lambda number: _core.parquet_rows(files[number].path, column) or 1)

    def took(ids: Any, offsets: Any, text_ends: Any, parts: list[tuple[int, int, int]]) -> None:
        starts = np.cumsum([0, *(rows for _, _, rows in parts[:-1])])
        places = [Address(start.input + file, row) for file, row, _ in parts]
        for (number, _, _), size in zip(parts, np.diff(text_ends[[*starts, -1]]), strict=True):
            expansions[number].add(int(size))
        last, row, rows = parts[-1]
        share.enter(files[last].size, after=int(job.starts[start.input + last]))
        share.within((row + rows) / rows_of(last))
        take(EncodedRows(ids.astype(job.dtype, copy=False), offsets, text_ends, starts, places))

    file, row = _core.encode_rows(
        job.tokenizer, [file.path for file in files], column, took,
        first=start.row, doc_cap=job.values["doc_cap"],
        prepend=job.values["bos"], append=job.values["eos"],
        most_bytes=job.values["max_document_bytes"], threads=threads,
    )  # fmt: skip
    return Address(start.input + file, row)


def encode_in_order(
    job: ShardJob, start: Address, stop: int, take: Sink, threads: int | None, share: ShareRead
) -> Address:
    """Read and encode documents of any files up to the input number `stop`, exclusive.

    One thread reads columns of documents, a second one encodes them on all threads, and the caller
    takes the ids.
    """
    texts = ahead(_gathered(job, start, stop, share), _is_large)
    with closing(ahead(_encoded(texts, job, threads), _is_large)) as stream:
        for item in stream:
            take(item)
            del item  # free it before the next one is made
    return Address(stop, 0)


def _is_large(item: list[Placed] | EncodedRows | SkipRecord) -> bool:
    """Whether a batch is so large that no other one should be in memory."""
    if isinstance(item, EncodedRows):
        return item.ids.nbytes > LARGE_BYTES
    return isinstance(item, list) and sum(text.text_bytes for _, text in item) > LARGE_BYTES


def _gathered(
    job: ShardJob, start: Address, stop: int, share: ShareRead
) -> Iterator[list[Placed] | SkipRecord]:
    """Read documents, and join small columns to batches, since there may be many small files."""
    batch: list[Placed] = []
    size = 0
    for piece in _pieces(job, start, stop, share):
        more = JOIN_BYTES + 1 if isinstance(piece, dict) else piece[1].text_bytes
        if batch and (size + more > JOIN_BYTES or len(batch) == JOIN_COLUMNS):
            yield batch
            batch, size = [], 0
        if isinstance(piece, dict):
            yield piece
            continue
        batch.append(piece)
        size += more
        del piece  # free it while the caller processes the batch
        if size > JOIN_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _pieces(
    job: ShardJob, start: Address, stop: int, share: ShareRead
) -> Iterator[Placed | SkipRecord]:
    names = ("column", "errors", "doc_cap", "max_document_bytes")
    reading = Reading(**{name: job.values[name] for name in names})
    for number in range(start.input, stop):
        file = job.files[number]
        share.enter(file.size, after=int(job.starts[number]))
        selection = DocumentSelection(first=start.row if number == start.input else 0)
        for piece in read(file, reading, selection, share):
            if isinstance(piece, Skip):
                names = ("input", "first", "rows", "reason")
                yield dict(zip(names, piece, strict=False))
            else:
                yield Address(number, piece.first), piece
            del piece  # free it while the caller processes it


def _encoded(
    stream: Iterator[list[Placed] | SkipRecord], job: ShardJob, threads: int | None
) -> Iterator[EncodedRows | SkipRecord]:
    for item in stream:
        if isinstance(item, dict):
            yield item
            continue
        texts = _joined([column for _, column in item])
        ids, offsets = _core.encode_utf8(
            job.tokenizer, texts.data, texts.offsets, special=None,
            prepend=job.values["bos"], append=job.values["eos"], threads=threads,
        )  # fmt: skip
        starts = np.cumsum([0, *(len(column) for _, column in item[:-1])])
        ids = ids.astype(job.dtype, copy=False)
        encoded = EncodedRows(ids, offsets, texts.offsets, starts, [place for place, _ in item])
        del item, texts, ids  # free them before the next ones are read
        yield encoded
        del encoded


def _joined(columns: list[Column]) -> Column:
    if len(columns) == 1:
        return columns[0]
    data = [column.data[column.offsets[0] : column.offsets[-1]] for column in columns]
    lengths = [np.diff(column.offsets) for column in columns]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return Column(np.concatenate(data), offsets, columns[0].name)
