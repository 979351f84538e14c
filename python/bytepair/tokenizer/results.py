"""Results of encoding that are more than a list of ids, and the session of a growing text.

`docs/encode.md` has the table of the types of ids: what each method returns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from bytepair import _core
from bytepair._internal.checks import refuse
from bytepair._internal.hints import unknown_keyword

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


#: How special tokens in a text are encoded; see `Tokenizer.encode`.
SpecialMode: TypeAlias = Literal["text", "all", "none", "error"] | Collection[str] | None
Ids: TypeAlias = "NDArray[np.uint16 | np.uint32]"

#: A special token by name, or any id.
Affix: TypeAlias = str | int | None


class IdArrays(NamedTuple):
    """The ids of many texts.

    Attributes:
        ids: the ids of all texts, one after the other.
        offsets: where each text begins in `ids`, and the end of the last one.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=260, special_tokens=())
        >>> arrays = tok.encode_batch_to_numpy(["hello", "hell"])
        >>> arrays.ids[arrays.offsets[1] : arrays.offsets[2]].tolist() == tok.encode("hell")
        True
    """

    ids: NDArray[np.uint16 | np.uint32]
    offsets: NDArray[np.int64]


class IdsWithOffsets(NamedTuple):
    """The ids of a text, and where each stands in it.

    Attributes:
        ids: the ids.
        bytes: for each id, the start and the end of its text in bytes of UTF-8; shape (n, 2).
        chars: the same in characters.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=260, special_tokens=())
        >>> tok.encode_offsets("é hello").chars[-1].tolist()
        [2, 7]
    """

    ids: list[int]
    bytes: NDArray[np.int64]
    chars: NDArray[np.int64]


def _texts(column: Any) -> Iterable[str]:
    from bytepair.corpus.arrow import texts

    return texts(column)


def of_type(ids: NDArray[Any], dtype: Any, vocab_size: int) -> NDArray[Any]:
    """An array of ids in another type of numpy."""
    import numpy as np

    allowed = f"an integer type of numpy with room for ids below {vocab_size}"
    try:
        new_type = np.dtype(dtype)
    except (TypeError, ValueError):
        raise refuse("dtype", dtype, allowed) from None
    if new_type.kind not in "iu" or np.iinfo(new_type).max < vocab_size - 1:
        raise refuse("dtype", dtype, allowed)
    return ids.astype(new_type, copy=False)


def register() -> None:
    """Tell the core what to call for keywords of other libraries, columns and types of numpy."""
    _core.register(
        unknown_keyword=unknown_keyword,
        texts=_texts,
        of_type=of_type,
        id_arrays=IdArrays,
        ids_with_offsets=IdsWithOffsets,
    )


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
