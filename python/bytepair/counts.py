"""Text in, counts out: the distinct pretokens of a corpus, and how often each occurs.

Counting is the part of training that reads the corpus, so its result is a value of its own: it can
be saved, added to another, weighted, and trained from again and again. The file is plain parquet
with the columns `pretoken` (binary) and `count` (uint64), so that any other tool can make or filter
one; the pattern and the version of Unicode stand in its metadata.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bytepair import _core, corpus
from bytepair.errors import CorpusError, CountsError
from bytepair.progress import Bar, Callback
from bytepair.tokenizer import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = b"1"
_KEYS: Final = (b"bytepair.counts", b"bytepair.pattern", b"bytepair.unicode")


class Counts:
    """The distinct pretokens of a corpus, in order of first occurrence, and how often each occurs.

    `bytepair.count` and `Counts.load` make them. Counts of one pattern can be added, and multiplied
    by a whole number, which is how corpora are mixed with weights.

    Example:
        >>> import bytepair
        >>> news = bytepair.count(["one two one"])
        >>> code = bytepair.count(["one = 1"])
        >>> mixture = news + code * 3
        >>> mixture.most_common(2)
        [(b'one', 4), (b' =', 3)]
    """

    __slots__ = ("_counts",)

    def __init__(self, core: _core.Counts) -> None:
        self._counts = core

    @property
    def core(self) -> _core.Counts:
        """The counts in Rust."""
        return self._counts

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, pattern: str | None = None) -> Counts:
        """Read counts that `save` wrote, or that another tool made.

        Args:
            path: a parquet file with the columns `pretoken` (binary or string) and `count`
                (integers).
            pattern: the split pattern, needed where the file does not say it.

        Raises:
            CountsError: if the file is no table of counts: columns are missing, a pretoken is empty
                or stands there twice, a count is not positive, the pattern is not known, or the
                version of Unicode or of the format is another one.

        Example:
            >>> import bytepair, tempfile, pathlib
            >>> counts = bytepair.count(["one two one"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = pathlib.Path(folder) / "counts.parquet"
            ...     counts.save(file)
            ...     bytepair.Counts.load(file) == counts
            True
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
        except pa.ArrowInvalid as error:
            raise CountsError(f"{path}: {error}") from error
        try:
            found = _pattern_of(table.schema.metadata or {}, pattern)
            return cls(_from_table(table, found))
        except CountsError as error:
            raise CountsError(f"{path}: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts as parquet, by another name and a rename.

        Args:
            path: the file.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        data, offsets, counts = self.core.columns()
        pretokens = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
        values = (FORMAT, self.pattern.encode(), _core.UNICODE_VERSION.encode())
        schema = pa.schema(
            [("pretoken", pa.large_binary()), ("count", pa.uint64())],
            metadata=dict(zip(_KEYS, values, strict=True)),
        )
        sink = pa.BufferOutputStream()
        table = pa.Table.from_arrays([pretokens, pa.array(counts)], schema=schema)
        pq.write_table(table, sink, compression="zstd")
        write_whole(Path(path), sink.getvalue())

    @property
    def pattern(self) -> str:
        """The split pattern, as a regular expression."""
        return self.core.pattern

    @property
    def total(self) -> int:
        """How many pretokens the corpus has."""
        return self.core.total

    @property
    def text_bytes(self) -> int:
        """How many bytes the corpus has."""
        return self.core.text_bytes

    def items(self) -> list[tuple[bytes, int]]:
        """List the pretokens with their counts, in order of first occurrence."""
        return self.core.items()

    def most_common(self, n: int | None = None) -> list[tuple[bytes, int]]:
        """List the `n` most frequent pretokens, or all; of equal ones the first seen first."""
        ordered = sorted(self.items(), key=lambda item: -item[1])
        return ordered if n is None else ordered[:n]

    def __len__(self) -> int:
        return len(self.core)

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts(self.core.plus(other.core))

    def __mul__(self, times: int) -> Counts:
        if not isinstance(times, int):
            return NotImplemented
        return Counts(self.core.times(times))

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and self.core == other.core

    def __hash__(self) -> int:
        return hash(self.core)

    def __repr__(self) -> str:
        """Say how much was counted."""
        return f"<bytepair.Counts: {len(self):,} distinct pretokens of {self.total:,}>"


def _pattern_of(metadata: dict[bytes, bytes], pattern: str | None) -> str:
    """The pattern that the file says, or else the one that the caller says."""
    version, stored, unicode = (metadata.get(key) for key in _KEYS)
    if stored is None:
        if pattern is None:
            raise CountsError("it does not say its split pattern; pass pattern=")
        return pattern
    if version != FORMAT or unicode != _core.UNICODE_VERSION.encode():
        raise CountsError(
            f"format {version!r} with Unicode {unicode!r}; this bytepair reads format {FORMAT!r} "
            f"with Unicode {_core.UNICODE_VERSION}"
        )
    named = _core.PATTERNS.get(pattern or "", pattern)
    if named not in (None, stored.decode()):
        raise CountsError(f"its pattern is {stored.decode()!r} and not {named!r}")
    return stored.decode()


def _from_table(table: pa.Table, pattern: str) -> _core.Counts:
    import pyarrow as pa

    if not {"pretoken", "count"} <= set(table.column_names):
        raise CountsError(f"it needs the columns pretoken and count; it has {table.column_names}")
    try:
        pretokens = table["pretoken"].cast(pa.large_binary()).combine_chunks()
        counts = table["count"].cast(pa.uint64()).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CountsError(str(error)) from error
    if pretokens.null_count or counts.null_count:
        raise CountsError("a row has no pretoken or no count")
    if not len(counts):
        return _core.Counts.from_items([], pattern)
    _, offsets, data = pretokens.buffers()
    ends = np.frombuffer(offsets, np.int64)[pretokens.offset :][: len(pretokens) + 1]
    used = np.frombuffer(data if data is not None else b"", np.uint8)[ends[0] : ends[-1]]
    return _core.Counts.from_columns(
        used, np.ascontiguousarray(ends - ends[0]), counts.to_numpy(), pattern
    )


def count(
    source: corpus.Source,
    *,
    pattern: str = "nanochat",
    max_chars: int | None = None,
    doc_cap: int | None = None,
    threads: int | None = None,
    progress: bool | Callback | None = None,
    column: str = "text",
    memory_limit: int | None = None,
) -> Counts:
    """Count the pretokens of a source, which streams through.

    Args:
        source: as in `bytepair.train`.
        pattern: the split pattern: a name of `bytepair.PATTERNS` or a regular expression.
        max_chars: reading stops with the document that takes the total above so many characters.
        doc_cap: of each document, so many characters are read.
        threads: how many threads count; None means `RAYON_NUM_THREADS`, or else all.
        progress: as in `bytepair.train`.
        column: the column of a table, or the field of a json object, that holds the text.
        memory_limit: the counts take about so many bytes at most while counting, whatever the
            corpus; what does not fit is put aside in a temporary folder (of `TMPDIR`), and the
            result is the same. The limit does not hold for the batch of text that is being
            read, nor for the result: the bytes of the distinct pretokens, and 16 more for each.
            None means no limit.

    Raises:
        PatternError: if the pattern is not a regular expression; the message shows where.
        CorpusError: if the source cannot be read.
        OSError: if there is a `memory_limit` and the disk is full.
        ValueError: if `memory_limit` is not positive.

    Example:
        >>> import bytepair
        >>> counts = bytepair.count(["hello hello", "hello"])
        >>> counts.items()
        [(b'hello', 2), (b' hello', 1)]
        >>> bytepair.train(counts, vocab_size=269).encode("hello")
        [259]
    """
    with Bar(progress) as bar:
        limits = corpus.Limits(max_chars, doc_cap)
        if memory_limit is None:
            return Counts(count_source(source, pattern, limits, threads, bar, column))
        if memory_limit < 1:
            raise ValueError(
                f"memory_limit is {memory_limit}; it must be a positive number of bytes"
            )
        with tempfile.TemporaryDirectory(prefix="bytepair-") as folder:
            limit = (memory_limit, folder)
            return Counts(count_source(source, pattern, limits, threads, bar, column, limit))


def count_source(
    source: corpus.Source,
    pattern: str,
    limits: corpus.Limits,
    threads: int | None,
    bar: Bar,
    column: str,
    memory_limit: tuple[int, str] | None = None,
) -> _core.Counts:
    """Count a source, and report to a bar that is shown already."""
    counter = _core.Counter(pattern, threads, memory_limit=memory_limit)
    unlimited = limits == corpus.Limits()
    named = pattern in _core.PATTERNS or pattern in _core.PATTERNS.values()
    stream = corpus.batches(
        source,
        column=column,
        limits=None if unlimited else limits,
        may_cut=unlimited and named,
    )
    started = time.monotonic()
    for batch in stream:
        if isinstance(batch, list):
            counter.add(batch)
        else:
            try:
                counter.add_utf8(batch.data, batch.offsets)
            except CorpusError as error:
                raise CorpusError(f"{batch.place}: {error}") from None
        rate = counter.text_bytes / 1e6 / max(time.monotonic() - started, 1e-9)
        note = f"bytes of {counter.texts:,} documents, {rate:,.0f} MB/s"
        bar.update("count", counter.text_bytes, None, note)
    return counter.finish()
