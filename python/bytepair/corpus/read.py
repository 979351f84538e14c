"""Read any source of text as batches of documents.

A source is a list of texts, a file, a list of files, a folder, a glob, or Arrow data. A batch is a
few megabytes, so that a corpus of any size can be streamed. Files and Arrow data are kept as
columns: their bytes reach Rust without conversion to Python strings.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from bytepair import _core
from bytepair._internal.progress import ShareRead
from bytepair.corpus import arrow
from bytepair.corpus.arrow import is_arrow
from bytepair.corpus.column import (
    REPAIR,
    Column,
    Errors,
    OnSkip,
    Skip,
    SkipLog,
    TextBatch,
    no_column,
    strings,
    until,
)
from bytepair.corpus.documents import DocumentSelection, ahead, read
from bytepair.corpus.files import LOG, Files, Input, kind_of
from bytepair.corpus.source import Reading, ResolvedSource, Source, Texts, announce_column, resolve
from bytepair.errors import CorpusError

BATCH_CHARS: Final = 1 << 22
BATCH_TEXTS: Final = 1 << 13
BATCH_ROWS: Final = 1 << 10
BATCH_BYTES: Final = 1 << 22

#: The name of texts in memory, for messages.
MEMORY: Final = "the source"


def read_batches(
    source: Source | ResolvedSource,
    reading: Reading = Reading(),
    *,
    share: ShareRead | None = None,
    on_skip: OnSkip = lambda *_: None,
) -> Iterator[TextBatch]:
    """Read a source as batches of documents, in order.

    What is invalid raises an error at the latest in the consumer of the documents; the limits of
    counting do not matter here. `share` is updated with the fraction of the files that has been
    read, and `on_skip` is called for each skip.
    """
    share = share or ShareRead()
    resolved = resolve(source)
    announce_column(resolved, reading.column)
    stream = _open(resolved, reading, share)
    return _without_skips(until(stream, reading.max_chars, share.limit), on_skip)


def _without_skips(stream: Iterator[TextBatch | Skip], on_skip: OnSkip) -> Iterator[TextBatch]:
    for item in stream:
        if isinstance(item, Skip):
            on_skip(item)
        else:
            yield item


def batch_size(batch: TextBatch) -> int:
    """The number of bytes of the documents of a batch."""
    if isinstance(batch, Column):
        return batch.text_bytes
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in batch)


def _open(
    resolved: ResolvedSource, reading: Reading, share: ShareRead
) -> Iterator[TextBatch | Skip]:
    if isinstance(resolved, Files):
        return ahead(_read_files(resolved.files, reading, share))
    column = reading.column
    batches: Iterator[TextBatch]
    if isinstance(resolved, Texts):
        batches = _read_texts(resolved.texts)
    elif resolved.kind == "rows":
        batches = _read_texts(_fields(resolved.data, column))
    elif resolved.kind == "datasets":
        batches = _read_columns(_tables(resolved.data, column), column)
    elif is_arrow(resolved.data):
        batches = _read_arrow(resolved.data, column, "the Arrow data")
    else:
        batches = _read_columns(resolved.data, column)
    return _capped(_checked(batches, reading.errors), reading.doc_cap)


def _read_files(
    files: list[Input], reading: Reading, share: ShareRead
) -> Iterator[TextBatch | Skip]:
    for file in files:
        share.enter(file.size)
        for piece in read(file, reading, share=share, batch_bytes=BATCH_BYTES):
            is_table = kind_of(file.path) in ("parquet", "arrow")
            if isinstance(piece, Skip) and piece.rows != 1 and is_table:
                # the file is invalid, not a single document
                text = f"{file.name}, row {piece.first}: {piece.reason}"
                raise CorpusError(text, hint=piece.hint)
            yield piece


def _fields(rows: Iterable[Any], column: str) -> Iterator[Any]:
    """The text of each row; as in a table, None is an empty document."""
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise CorpusError(
                f"row {index} of the source is of type {type(row).__name__}, not a mapping"
            )
        if column not in row:
            raise no_column(f"row {index} of the source", column, row, "field")
        yield "" if row[column] is None else row[column]


def _read_texts(texts: Iterable[Any]) -> Iterator[list[str]]:
    batch: list[str] = []
    chars = 0
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise CorpusError(
                f"text {index} of the source is of type {type(text).__name__}, not str"
            )
        batch.append(text)
        chars += len(text)
        if chars >= BATCH_CHARS or len(batch) >= BATCH_TEXTS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _tables(data: Any, column: str) -> Iterator[Any]:
    names = data.column_names  # None for some that are streamed
    if names is not None and column not in names:
        raise no_column("the data set", column, names)
    yield from data.select_columns([column]).with_format("arrow").iter(BATCH_ROWS)


def _read_columns(columns: Iterable[Any], column: str) -> Iterator[Column]:
    for index, data in enumerate(columns):
        if not is_arrow(data):
            raise CorpusError(
                f"item {index} of the source is of type {type(data).__name__}, not Arrow data"
            )
        yield from _read_arrow(data, column, f"item {index} of the source")


def _read_arrow(source: Any, column: str, name: str) -> Iterator[Column]:
    from bytepair._internal.extras import pyarrow as pa

    source = arrow.import_data(source)
    if isinstance(source, pa.Array | pa.ChunkedArray):
        for chunk in [source] if isinstance(source, pa.Array) else source.chunks:
            yield arrow.column(chunk, name)
        return
    arrow.check_column(column, source.schema, name)
    for batch in source:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield arrow.column(batch.slice(start, BATCH_ROWS).column(column), name)


def _checked(batches: Iterable[TextBatch], errors: Errors) -> Iterator[TextBatch | Skip]:
    """Refuse, replace or skip lone surrogates and invalid UTF-8, as `errors` says.

    The consumer refuses invalid UTF-8, which it finds anyway.
    """
    rows: Counter[str] = Counter()
    for batch in batches:
        if isinstance(batch, list):
            name, wrong = MEMORY, _core.lone_surrogates(batch)
        else:
            name = batch.name
            wrong = [] if errors == "strict" else _core.not_utf8(batch.data, batch.offsets)
        first, start = rows[name], 0
        rows[name] += len(batch)
        if wrong and errors == "replace":
            yield _replaced(batch)
            continue
        for document in wrong:
            if errors == "strict":
                place = f"text {first + document.index} of the source"
                raise CorpusError(f"{place}: {document.reason}", option="errors", hint=REPAIR)
            yield batch[start : document.index]
            yield Skip(name, first + document.index, 1, document.reason)
            start = document.index + 1
        yield batch[start:] if wrong else batch


def _replaced(batch: TextBatch) -> list[str]:
    """Documents with U+FFFD in place of what is invalid; surrogates that are a pair are one."""
    if isinstance(batch, Column):
        return strings(batch, "replace")
    return [t.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for t in batch]


def _capped(stream: Iterator[TextBatch | Skip], doc_cap: int | None) -> Iterator[TextBatch | Skip]:
    for batch in stream:
        if doc_cap is None or isinstance(batch, Skip):
            yield batch
        else:
            yield [text[:doc_cap] for text in strings(batch)]


#: About how many bytes of files are read for a sample; of a source in memory, how many characters.
READ_BYTES: Final = 1 << 28
#: Longer documents are sampled in pieces, so that few of them do not fill a sample: of this size,
#: or of this share of a small sample.
PIECE_CHARS: Final = 1 << 16
PIECES: Final = 100


class Sample(list[str]):
    """The documents of a sample, in the order of the source; of a long one perhaps only pieces.

    Attributes:
        chars: the number of characters of the sample.
        chars_read: the number of characters from which it was drawn.
        files: the number of files from which it was drawn; 0 for a source in memory.
        is_whole: whether it is all text of the source.
    """

    def __init__(self, texts: list[str], chars_read: int, files: int, is_all_read: bool) -> None:
        super().__init__(texts)
        self.chars, self.chars_read, self.files = sum(map(len, texts)), chars_read, files
        self.is_whole = is_all_read and self.chars == chars_read

    def __str__(self) -> str:
        """The size of the sample in words."""
        if self.is_whole:
            return f"all {self.chars:,} characters"
        place = f"spread over {self.files:,} file{'s'[: self.files != 1]}"
        place = place if self.files else "drawn"
        return f"a sample of {self.chars:,} characters, {place} ({self.chars_read:,} read)"


def sample(source: Source, reading: Reading = Reading(), *, seed: int = 0) -> Sample:
    """Draw documents from all files of a source, whatever their split.

    The sample has at most `max_chars` characters of `reading`, if it says so. The same seed draws
    the same sample.
    """
    skips, most = SkipLog(), reading.max_chars
    resolved = resolve(source, split="all")
    draw, step = _Draw(most, seed), 1
    reading = replace(reading, max_chars=most and max(READ_BYTES, most))
    if isinstance(resolved, Files) and most is not None:
        step = max(1, resolved.size // READ_BYTES)
        for file in resolved.files:
            for batch in _blocks(file, reading, step, draw.random, skips):
                draw.add(batch)
    else:
        for batch in read_batches(resolved, reading, on_skip=skips.add):
            draw.add(batch)
    skips.warn()
    number = len(resolved.files) if isinstance(resolved, Files) else 0
    result = Sample(draw.texts(), draw.chars_read, number, step == 1)
    if not result.is_whole:
        LOG.info("measuring %s", result)
    return result


def _blocks(
    file: Input, reading: Reading, step: int, rng: random.Random, skips: SkipLog
) -> Iterator[TextBatch]:
    for start in dict.fromkeys((rng.randrange(step), 0)):
        is_empty = True
        if kind_of(file.path) == "text":
            start, step = 0, 1  # such a file is one document
        selection = DocumentSelection(start=start, step=step)
        for piece in read(file, reading, selection, batch_bytes=BATCH_BYTES):
            is_empty = False
            if isinstance(piece, Skip):
                skips.add(piece)
            else:
                yield piece
        if not is_empty:
            return


class _Draw:
    """The pieces with the smallest random keys, up to a number of characters."""

    def __init__(self, max_chars: int | None, seed: int) -> None:
        self.random, self.chars_read = random.Random(seed), 0
        self._max_chars, self._chars, self._documents = max_chars, 0, 0
        most = PIECE_CHARS if max_chars is None else max_chars // PIECES
        self._piece_chars = min(PIECE_CHARS, max(most, 1000))
        self._pieces: list[tuple[float, int, int, str]] = []  # a heap, the largest key first

    def add(self, batch: TextBatch) -> None:
        for text in strings(batch):
            for start in range(0, max(len(text), 1), self._piece_chars):  # also of an empty one
                self._add(start, text[start : start + self._piece_chars])
            self.chars_read += len(text)
            self._documents += 1

    def _add(self, start: int, piece: str) -> None:
        if self._max_chars is not None:
            piece = piece[: self._max_chars]
        heapq.heappush(self._pieces, (-self.random.random(), self._documents, start, piece))
        self._chars += len(piece)
        while self._max_chars is not None and self._chars > self._max_chars:
            self._chars -= len(heapq.heappop(self._pieces)[3])

    def texts(self) -> list[str]:
        """The documents in order; neighbouring pieces are put together again."""
        texts: list[str] = []
        ends = (-1, 0)  # the document and the place at which the last text ends
        for _, document, start, piece in sorted(self._pieces, key=lambda one: one[1:3]):
            if (document, start) == ends and start:
                texts[-1] += piece
            else:
                texts.append(piece)
            ends = (document, start + len(piece))
        return texts
