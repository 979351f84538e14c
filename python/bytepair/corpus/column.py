"""Documents on their way to the core: their bytes end to end, as Arrow lays out strings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from bytepair.errors import CorpusError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: What to do with a document that cannot be read: fail, read U+FFFD for what is not UTF-8 and fail
#: for another reason, or leave it out.
Errors: TypeAlias = Literal["strict", "replace", "skip"]


@dataclass(frozen=True)
class Column:
    """Documents that follow each other.

    Attributes:
        data: uint8, the UTF-8 of all documents, end to end.
        offsets: int32 or int64, where each document starts in `data`, and the end of the last.
        name: where the documents come from, for messages.
        first: the row of the first, if they come from a file.
        unit: the number of its row group, or of its block of lines.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int32 | np.int64]
    name: str
    first: int = 0
    unit: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, documents: slice) -> Column:
        """Some documents that stand together."""
        start, stop, _ = documents.indices(len(self))
        offsets = self.offsets[start : max(start, stop) + 1]
        return replace(self, offsets=offsets, first=self.first + start)

    @property
    def place(self) -> str:
        """Where the documents are, for messages."""
        return f"{self.name}, from row {self.first} on"

    @property
    def text_bytes(self) -> int:
        """How many bytes the documents have."""
        return int(self.offsets[-1] - self.offsets[0])

    def chars(self) -> NDArray[np.int64]:
        """How many characters each document has.

        Example:
            >>> import numpy as np
            >>> data = np.frombuffer("oneé".encode(), np.uint8)
            >>> Column(data, np.array([0, 3, 3, 5, 5]), "texts").chars().tolist()
            [3, 0, 1, 0]
        """
        import numpy as np

        if not len(self):
            return np.zeros(0, np.int64)
        end = int(self.offsets[-1])
        begins = np.append((self.data[:end] & 0xC0) != 0x80, False)  # for an empty last document
        found = np.add.reduceat(begins, self.offsets[:-1], dtype=np.int64)
        return np.where(np.diff(self.offsets) == 0, 0, found)


#: Documents on their way to be counted.
TextBatch: TypeAlias = "list[str] | Column"


@dataclass(frozen=True)
class Skip:
    """Documents that cannot be read, in their place among the others.

    Attributes:
        input: the file, or what else they come from.
        first: the row of the first.
        rows: how many there are; None means the rest of the input.
        reason: what is wrong.
    """

    input: str
    first: int
    rows: int | None
    reason: str


def strings(batch: TextBatch, errors: Literal["strict", "replace"] = "strict") -> list[str]:
    """Documents as Python strings.

    Raises:
        CorpusError: if a document is not UTF-8 and `errors` is `"strict"`.

    Example:
        >>> import numpy as np
        >>> data = np.frombuffer(b"onetwo", np.uint8)
        >>> strings(Column(data, np.array([0, 3, 6]), "texts"))
        ['one', 'two']
    """
    if isinstance(batch, list):
        return batch
    data, texts = batch.data.tobytes(), []
    for index, (start, end) in enumerate(itertools.pairwise(batch.offsets.tolist())):
        try:
            texts.append(data[start:end].decode(errors=errors))
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{batch.place}: document {index} is not UTF-8 at its byte {error.start}"
            ) from None
    return texts


Batch = TypeVar("Batch", "list[str]", Column, TextBatch, "TextBatch | Skip")


def until(
    stream: Iterator[Batch], max_chars: int | None, on_share: Callable[[float], None] | None = None
) -> Iterator[Batch]:
    """The documents up to the one that takes the total above this many characters; None means all.

    `on_share` is told which share of the characters has been read.

    Example:
        >>> list(until(iter([["one", "two", "three"]]), 5))
        [['one', 'two']]
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
