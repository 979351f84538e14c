"""A text that grows, such as a prompt, and its ids: what is new is what an addition costs."""

from __future__ import annotations

from typing import NamedTuple, Self

from bytepair import _core
from bytepair.tokenizer.batch import Affix, SpecialMode


class Change(NamedTuple):
    """What an addition did to the ids of a text.

    Attributes:
        removed: how many of the last ids are gone.
        ids: the ids that follow those that are left.

    Example:
        >>> import bytepair
        >>> session = bytepair.train(["hello hello"], 269).session()
        >>> session.append("hell"), session.append("o")
        (Change(removed=0, ids=[257, 108]), Change(removed=2, ids=[259]))
    """

    removed: int
    ids: list[int]


class Session:
    """A text that grows at its end, and its ids, which always equal those of the whole text.

    Made by `Tokenizer.session`. An addition costs what it has of text, and what is encoded again
    before it: the text from the last place on where no continuation changes an id, usually some
    words. Where a text has no such place for long, that part is encoded again as a whole each time:
    one run of letters or of white space without end, and the whole text if `tok.split_engine` is
    "regex", or some of its steps are.

    Memory: 4 bytes an id, the text after the stable ids, and some kilobytes. Sessions share nothing
    but what forks had in common, and the caches of the tokenizer. One thread at a time may use a
    session.

    Example:
        >>> import bytepair
        >>> session = bytepair.train(["hello hello"], 269).session(prepend="<|bos|>")
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
        """See `Tokenizer.session`."""
        self._core = _core.Session(tokenizer, special=special, prepend=prepend)

    def append(self, text: str) -> Change:
        """Add to the end of the text.

        Args:
            text: what is added; it may end anywhere, also within a word, a special token or a pair
                of surrogates.

        Returns:
            How the ids change: `removed` of the last ones go, `ids` follow.

        Raises:
            SpecialTokenError: as `encode` does for the whole text.
            SplitError: the same. The session is then as it was.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], 269)
            >>> session, ids = tok.session(special="all"), []
            >>> for piece in ["hello<|b", "os|", ">"]:
            ...     change = session.append(piece)
            ...     ids[len(ids) - change.removed :] = change.ids
            >>> ids == session.ids == tok.encode("hello<|bos|>", special="all")
            True
        """
        return Change(*self._core.append(text))

    @property
    def ids(self) -> list[int]:
        """All ids, in a new list."""
        return self._core.ids

    @property
    def stable(self) -> int:
        """How many of the first ids no addition will ever change.

        It never falls. There may be a few more: only ids that are certain to stay are counted.

        Example:
            >>> import bytepair
            >>> session = bytepair.train(["hello hello"], 269).session()
            >>> _ = session.append("hello hell")
            >>> session.ids[: session.stable]
            [259]
        """
        return self._core.stable

    @property
    def rest(self) -> str:
        """The text after the stable ids: what the next addition encodes again."""
        return self._core.rest

    def fork(self) -> Self:
        """A session with the same text, which grows on its own.

        It takes the same time whatever the text: both share the stable ids. What a fork copies when
        it first grows are at most 4096 ids, and the text and ids that are not stable.
        """
        new = object.__new__(type(self))
        new._core = self._core.fork()
        return new

    def __len__(self) -> int:
        """The number of ids."""
        return len(self._core)
