"""Collect skipped documents for one warning, with their number and the places of the first."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Final

from bytepair.errors import SkippedWarning

#: The maximum number of documents that the warning names.
MOST_NAMED: Final = 3


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
        self.first = [(source, row, reason) for source, row, reason in first]

    def add(self, source: str, row: int, reason: str) -> None:
        """Append a document of a file or another source."""
        self.add_all(1, [(source, row, reason)])

    def add_all(self, documents: int, first: Iterable[tuple[str, int, str]]) -> None:
        """Append this many documents, given the first of them."""
        self.documents += documents
        self.first = [*self.first, *first][:MOST_NAMED]

    def state(self) -> tuple[int, list[tuple[str, int, str]]]:
        """The state saved in a checkpoint: the arguments to create an equal log."""
        return self.documents, self.first

    def __str__(self) -> str:
        """The first documents, and the number of further ones."""
        lines = [f"{source}, row {row}: {reason}" for source, row, reason in self.first]
        more = self.documents - len(lines)
        return "; ".join([*lines, f"and {more:,} more"] if more else lines)

    def warn(self, stacklevel: int) -> None:
        """Warn if any document was skipped; `stacklevel` is that of the caller."""
        if self.documents:
            what = "1 document" if self.documents == 1 else f"{self.documents:,} documents"
            text = f"{what} skipped as invalid: {self}"
            warnings.warn(text, SkippedWarning, stacklevel + 1)
