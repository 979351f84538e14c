"""Documents that cannot be read in, one warning with their number and the first of them out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Final

#: At most this many are named.
FIRST: Final = 3


class SkippedWarning(UserWarning):
    """Documents were left out because they cannot be read, as `errors="skip"` says."""


class SkipLog:
    """The documents that were left out so far: how many, and the first of them.

    Args:
        documents: how many there are already.
        first: the first of these, as `state` gives them.

    Example:
        >>> from bytepair.training.skips import SkipLog
        >>> log = SkipLog()
        >>> log.add("a.jsonl", 3, "the line is no JSON")
        >>> str(log)
        'a.jsonl, row 3: the line is no JSON'
    """

    def __init__(self, documents: int = 0, first: Iterable[Iterable[Any]] = ()) -> None:
        self.documents = documents
        self.first = [(source, row, reason) for source, row, reason in first]

    def add(self, source: str, row: int, reason: str) -> None:
        """Note a document of a file or another source, behind those that are known."""
        self.add_all(1, [(source, row, reason)])

    def add_all(self, documents: int, first: Iterable[tuple[str, int, str]]) -> None:
        """Note this many more documents, given the first of them."""
        self.documents += documents
        self.first = [*self.first, *first][:FIRST]

    def state(self) -> tuple[int, list[tuple[str, int, str]]]:
        """What a checkpoint keeps: the arguments of another log."""
        return self.documents, self.first

    def __str__(self) -> str:
        """The first documents, and how many more there are."""
        named = [f"{source}, row {row}: {reason}" for source, row, reason in self.first]
        more = self.documents - len(named)
        return "; ".join([*named, f"and {more:,} more"] if more else named)

    def warn(self, stacklevel: int) -> None:
        """Warn if anything was left out; `stacklevel` is that of the caller."""
        if self.documents:
            what = "1 document" if self.documents == 1 else f"{self.documents:,} documents"
            text = f"{what} cannot be read and not counted: {self}"
            warnings.warn(text, SkippedWarning, stacklevel + 1)
