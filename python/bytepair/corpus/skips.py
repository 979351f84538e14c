"""Collect skipped documents for one warning, with their number and the places of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Self, TypeAlias

from bytepair.errors import SkippedWarning, WayOut, message, warn

#: The maximum number of documents that the warning names.
MOST_NAMED: Final = 3


#: Called for a skipped document, with its source, its row, the reason, and what to do about it.
OnSkip: TypeAlias = Callable[[str, int, str, Sequence[WayOut]], object]


class SkippedPlace(NamedTuple):
    """A skipped document: a value that JSON can hold.

    Attributes:
        source: the name of the file or other source.
        row: its row there.
        reason: why it was skipped.
        ways_out: what to do about it, each as `WayOut.parts`.
    """

    source: str
    row: int
    reason: str
    ways_out: tuple[tuple[Any, ...], ...] = ()

    def __str__(self) -> str:
        """The place and the reason, with what to do about it if that needs no option."""
        ways_out = [WayOut.of_parts(*parts) for parts in self.ways_out]
        advice = [] if any(one.option for one in ways_out) else ways_out
        return message([f"{self.source}, row {self.row}: {self.reason}", *advice])

    @classmethod
    def of(cls, source: Any, row: Any, reason: Any, ways_out: Iterable[Iterable[Any]]) -> Self:
        """The place with these values, which may come from JSON."""
        return cls(str(source), int(row), str(reason), tuple(tuple(parts) for parts in ways_out))


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
        >>> log.add("a.jsonl", 3, "the line is not JSON", [])
        >>> str(log)
        'a.jsonl, row 3: the line is not JSON'
    """

    def __init__(self, documents: int = 0, first: Iterable[Iterable[Any]] = ()) -> None:
        self.documents = documents
        self.first = [SkippedPlace.of(*place) for place in first]

    def add(self, source: str, row: int, reason: str, ways_out: Iterable[WayOut]) -> None:
        """Append a document of a file or another source."""
        parts = tuple(way_out.parts for way_out in ways_out)
        self.add_all(1, [SkippedPlace(source, row, reason, parts)])

    def add_all(self, documents: int, first: Iterable[SkippedPlace]) -> None:
        """Append this many documents, given the first of them."""
        self.documents += documents
        self.first = [*self.first, *first][:MOST_NAMED]

    def state(self) -> SkipState:
        """The state saved in a checkpoint: the arguments to create an equal log."""
        return SkipState(self.documents, self.first)

    @property
    def ways_out(self) -> list[WayOut]:
        """The options with which the first documents would be read, besides `errors`."""
        parts = dict.fromkeys(parts for place in self.first for parts in place.ways_out)
        ways_out = [WayOut.of_parts(*one) for one in parts]
        return [one for one in ways_out if one.option and one.option.name != "errors"]

    def __str__(self) -> str:
        """The first documents, and the number of further ones."""
        lines = list(map(str, self.first))
        more = self.documents - len(lines)
        return "; ".join([*lines, f"and {more:,} more"] if more else lines)

    def warn(self) -> None:
        """Warn if any document was skipped."""
        if self.documents:
            what = "1 document" if self.documents == 1 else f"{self.documents:,} documents"
            warning = SkippedWarning(f"{what} skipped as invalid: {self}", *self.ways_out)
            warn(warning)
