"""Documents in memory, in the layout of Arrow; those that are skipped; and all limits of memory.

Files are untrusted: a few megabytes may decompress to a document of terabytes. So files are read in
blocks, a document is abandoned as soon as it exceeds the limit, and a file with an extreme
compression ratio causes a warning.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from bytepair.errors import CorpusError, SkippedWarning, warn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The minimum limit for the size of a parquet page, even if the limit for documents is lower.
PAGE_BYTES: Final = 192_000_000
#: The size of the block that a thread reads at a time.
BLOCK_BYTES: Final = 1 << 20
#: The compression ratio above which a file causes a warning,
MOST_EXPANSION: Final = 1000
#: unless its decompressed size is at most this.
HARMLESS_BYTES: Final = 1 << 26


class ExpansionWarning(UserWarning):
    """A file has an extreme compression ratio."""


@dataclass(frozen=True)
class ReadBounds:
    """The limits of the core while it reads a file."""

    document_bytes: int
    block_bytes: int = BLOCK_BYTES

    @property
    def page_bytes(self) -> int:
        """The maximum size of a parquet page."""
        return max(PAGE_BYTES, self.document_bytes * 3 // 2)


class Expansion:
    """Warns once if a file has an extreme compression ratio."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size, self._read = name, max(size, 1), 0
        self._most = max(MOST_EXPANSION * self._size, HARMLESS_BYTES)

    def add(self, size: int) -> None:
        """Add to the number of decompressed bytes."""
        self.reach(self._read + size)

    def reach(self, total: int) -> None:
        """Set the number of bytes decompressed so far."""
        before, self._read = self._read, total
        if before <= self._most < total:
            warn(
                ExpansionWarning(
                    f"{self._name}: {self._size:,} bytes decompressed to {total:,} so far, more "
                    f"than {MOST_EXPANSION:,} times as many; if this is unexpected, exclude the "
                    "file"
                )
            )


#: What to do with an invalid document: raise an error; replace invalid UTF-8 and lone surrogates by
#: U+FFFD and raise an error in other cases; or skip it.
Errors: TypeAlias = Literal["strict", "replace", "skip"]


@dataclass(frozen=True)
class Column:
    """Consecutive documents."""

    data: NDArray[np.uint8]  # the UTF-8 of all documents, concatenated
    offsets: NDArray[np.int32 | np.int64]  # the start of each document, and the end of the last
    name: str  # of the source, for messages
    first: int = 0  # the row of the first document in its file, if there is one
    unit: int = 0  # the index of the row group, or of the block of lines

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, documents: slice) -> Column:
        """A range of the documents."""
        start, stop, _ = documents.indices(len(self))
        offsets = self.offsets[start : max(start, stop) + 1]
        return replace(self, offsets=offsets, first=self.first + start)

    @property
    def place(self) -> str:
        """The source and row of the documents, for messages."""
        return f"{self.name}, from row {self.first} on"

    @property
    def text_bytes(self) -> int:
        """The total number of bytes of the documents."""
        return int(self.offsets[-1] - self.offsets[0])

    def chars(self) -> NDArray[np.int64]:
        """The number of characters of each document."""
        import numpy as np

        if not len(self):
            return np.zeros(0, np.int64)
        end = int(self.offsets[-1])
        begins = np.append((self.data[:end] & 0xC0) != 0x80, False)  # for an empty last document
        counts = np.add.reduceat(begins, self.offsets[:-1], dtype=np.int64)
        return np.where(np.diff(self.offsets) == 0, 0, counts)


#: A batch of documents.
TextBatch: TypeAlias = "list[str] | Column"


#: What to do about a document that is not UTF-8, as in the core.
REPAIR: Final = (
    'repair it, or pass errors="replace" to read U+FFFD instead, or errors="skip" to leave the '
    "document out"
)


class Skip(NamedTuple):
    """Skipped documents, at their place among the others; a value that JSON can hold."""

    input: str  # the name of the file or other source
    first: int  # the row of the first one
    rows: int | None  # how many; None means the rest of the input
    reason: str
    hint: str = ""  # what to do about it, where `errors="skip"` is not the answer

    def __str__(self) -> str:
        return f"{self.input}, row {self.first}: {self.reason}"


#: Called for each skip, in order.
OnSkip: TypeAlias = Callable[[Skip], object]

#: The maximum number of skips that the warning names.
MOST_NAMED: Final = 3


@dataclass
class SkipLog:
    """The skips so far: their number, and the first of them."""

    documents: int = 0
    first: list[Skip] = field(default_factory=list)

    def add(self, *skips: Skip, documents: int | None = None) -> None:
        """Append skips; the first of `documents` ones, if there are more."""
        self.documents += len(skips) if documents is None else documents
        self.first = [*self.first, *skips][:MOST_NAMED]

    def warn(self) -> None:
        """Warn if any document was skipped."""
        if not self.documents:
            return
        what = "1 document" if self.documents == 1 else f"{self.documents:,} documents"
        hints = dict.fromkeys(skip.hint for skip in self.first if skip.hint)
        text = f"{what} skipped as invalid: {listed(map(str, self.first), self.documents)}"
        warn(SkippedWarning(text, hint=", or ".join(hints)))


def listed(first: Iterable[str], count: int) -> str:
    """The first of so many things, and how many more there are."""
    lines = [*first]
    more = count - len(lines)
    return "; ".join([*lines, *([f"and {more:,} more"] if more else [])])


def no_column(place: str, column: str, names: Iterable[Any], what: str = "column") -> CorpusError:
    """The error of a table or a row without a column."""
    return CorpusError(
        f"{place} has no {what} {column!r}; it has {', '.join(map(str, names)) or 'none'}",
        option="column",
        hint="pass column= to read one of these",
    )


def strings(batch: TextBatch, errors: Literal["strict", "replace"] = "strict") -> list[str]:
    """Convert documents to Python strings."""
    if isinstance(batch, list):
        return batch
    data, texts = batch.data.tobytes(), []
    for index, (start, end) in enumerate(itertools.pairwise(batch.offsets.tolist())):
        try:
            texts.append(data[start:end].decode(errors=errors))
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{batch.place}: document {index} is not UTF-8 at byte {error.start}",
                option="errors",
                hint=REPAIR,
            ) from None
    return texts


Batch = TypeVar("Batch", "list[str]", Column, TextBatch, "TextBatch | Skip")


def until(
    stream: Iterator[Batch], max_chars: int | None, on_share: Callable[[float], None] | None = None
) -> Iterator[Batch]:
    """Yield documents until their total exceeds this many characters; None means all documents.

    `on_share` is called with the fraction of this number that has been read.
    """
    if max_chars is None:
        yield from stream
        return
    total = 0
    for batch in stream:
        if isinstance(batch, Skip):
            yield batch
            continue
        sizes = batch.chars() if isinstance(batch, Column) else [len(text) for text in batch]
        for index, size in enumerate(sizes):
            total += int(size)
            if total > max_chars:
                yield batch[: index + 1]
                return
        if on_share is not None:
            on_share(total / max_chars)
        yield batch
