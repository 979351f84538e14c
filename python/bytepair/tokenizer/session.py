"""Incremental encoding of a growing text, such as a prompt."""

from __future__ import annotations

from typing import NamedTuple, Self

from bytepair import _core
from bytepair.tokenizer.results import Affix, SpecialMode


class Change(NamedTuple):
    """The change of the ids after appending text.

    Attributes:
        removed: the number of ids removed at the end.
        ids: the ids to append after the remaining ones.

    Example:
        >>> import bytepair
        >>> session = bytepair.tokenizer.Session(bytepair.train(["hello hello"], 269))
        >>> session.append("hell"), session.append("o")
        (Change(removed=0, ids=[257, 108]), Change(removed=2, ids=[259]))
    """

    removed: int
    ids: list[int]


class Session:
    """A growing text and its ids, which always equal those of encoding the whole text.

    Only new text is encoded: appending encodes the new text, and the text after the last safe
    split point (where no continuation changes an id), usually a few words. A text without such
    points is encoded again from the last one each time: a very long run of letters or white space,
    or the whole text if `bytepair.tokenizer.split_engine(tok)` is "regex", or contains such a step.

    Memory: 4 bytes per id, the text after the stable ids, and some kilobytes. Sessions share only
    the common part of forks and the caches of the tokenizer. A session may be used by one thread at
    a time.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> session = bytepair.tokenizer.Session(tok, prepend="<|bos|>")
        >>> session.append("hello hell")
        Change(removed=0, ids=[259, 32, 257, 108])
        >>> other = session.fork()
        >>> other.append("o")
        Change(removed=2, ids=[259])
        >>> session.ids, other.ids, len(other)
        ([260, 259, 32, 257, 108], [260, 259, 32, 259], 4)
    """

    __slots__ = ("_core",)

    def __init__(
        self, tokenizer: _core.Tokenizer, *, special: SpecialMode = None, prepend: Affix = None
    ) -> None:
        """Start with an empty text.

        Args:
            tokenizer: the tokenizer.
            special: as in `Tokenizer.encode`; a special token that arrives in pieces becomes its id
                when its name is complete.
            prepend: as in `Tokenizer.encode`; the id is present from the start.

        Raises:
            SpecialTokenError: if a named special token is unknown.
        """
        self._core = _core.Session(tokenizer, special=special, prepend=prepend)

    def append(self, text: str) -> Change:
        """Append text.

        Args:
            text: the new text; it may end anywhere, even within a word, a special token or a pair
                of surrogates.

        Returns:
            The change of the ids: remove the last `removed` ids, then append `ids`.

        Raises:
            SpecialTokenError: as in `encode` for the whole text.
            SplitError: as in `encode`. The session is then unchanged.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> session, ids = bytepair.tokenizer.Session(tok, special="all"), []
            >>> for piece in ["hello<|b", "os|", ">"]:
            ...     change = session.append(piece)
            ...     ids[len(ids) - change.removed :] = change.ids
            >>> ids == session.ids == tok.encode("hello<|bos|>", special="all")
            True
        """
        return Change(*self._core.append(text))

    @property
    def ids(self) -> list[int]:
        """All ids, as a new list."""
        return self._core.ids

    @property
    def stable(self) -> int:
        """The number of first ids that are final, whatever is appended.

        It never decreases. It is a lower bound: only ids that are certain to be final are counted.

        Example:
            >>> import bytepair
            >>> session = bytepair.tokenizer.Session(bytepair.train(["hello hello"], 269))
            >>> _ = session.append("hello hell")
            >>> session.ids[: session.stable]
            [259]
        """
        return self._core.stable

    @property
    def rest(self) -> str:
        """The text after the stable ids, which the next `append` encodes again."""
        return self._core.rest

    def fork(self) -> Self:
        """An independent session with the same text.

        It takes constant time, because both share the stable ids. The first `append` to a fork
        copies at most 4096 ids, and the text and ids that are not stable.
        """
        new = object.__new__(type(self))
        new._core = self._core.fork()
        return new

    def __len__(self) -> int:
        """The number of ids."""
        return len(self._core)

    def __repr__(self) -> str:
        """The numbers of ids."""
        return f"<bytepair.Session: {len(self):,} ids, {self.stable:,} of them stable>"
