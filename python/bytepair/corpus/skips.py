"""Collect skipped documents for one warning, with their number and the places of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Self, TypeAlias

from bytepair.errors import SkippedWarning, warn

#: The maximum number of documents that the warning names.
MOST_NAMED: Final = 3


#: Called for a skipped document, with its source, its row, the reason, and what to do about it.
OnSkip: TypeAlias = Callable[[str, int, str, str], object]


class SkippedPlace(NamedTuple):
    """A skipped document: a value that JSON can hold.

    Attributes:
        source: the name of the file or other source.
        row: its row there.
        reason: why it was skipped.
        hint: what to do about it; may be empty.
    """

    source: str
    row: int
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        """The place and the reason."""
        return f"{self.source}, row {self.row}: {self.reason}"

    @classmethod
    def of(cls, source: Any, row: Any, reason: Any, hint: Any) -> Self:
        """The place with these values, which may come from JSON."""
        return cls(str(source), int(row), str(reason), str(hint))


class SkipState(NamedTuple):
    """What a checkpoint saves of a log.

    Attributes:
        documents: the number of skipped documents.
        first: the first of them.
    """

    documents: int
    first: list[SkippedPlace]


class SkipLog:
    """The documents skipped so far: their number, and the places of the first.

    Args:
        documents: the initial number of skipped documents.
        first: the first of these, as returned by `state`.

    Example:
        >>> from bytepair.corpus.skips import SkipLog
        >>> log = SkipLog()
        >>> log.add("a.jsonl", 3, "the line is not JSON")
        >>> str(log)
        'a.jsonl, row 3: the line is not JSON'
    """

    def __init__(self, documents: int = 0, first: Iterable[Iterable[Any]] = ()) -> None:
        self.documents = documents
        self.first = [SkippedPlace.of(*place) for place in first]

    def add(self, source: str, row: int, reason: str, hint: str = "") -> None:
        """Append a document of a file or another source."""
        self.add_all(1, [SkippedPlace(source, row, reason, hint)])

    def add_all(self, documents: int, first: Iterable[SkippedPlace]) -> None:
        """Append this many documents, given the first of them."""
        self.documents += documents
        self.first = [*self.first, *first][:MOST_NAMED]

    def state(self) -> SkipState:
        """The state saved in a checkpoint: the arguments to create an equal log."""
        return SkipState(self.documents, self.first)

    def __str__(self) -> str:
        """The first documents, and the number of further ones."""
        lines = list(map(str, self.first))
        more = self.documents - len(lines)
        return "; ".join([*lines, f"and {more:,} more"] if more else lines)

    def warn(self) -> None:
        """Warn if any document was skipped."""
        if self.documents:
            what = "1 document" if self.documents == 1 else f"{self.documents:,} documents"
            hints = dict.fromkeys(place.hint for place in self.first if place.hint)
            text = f"{what} skipped as invalid: {self}"
            warn(SkippedWarning(text, hint=", or ".join(hints)))
