"""The results that consist of several arrays, and the types of arguments for special tokens.

`docs/encode.md` has the table of the types of ids: what each method returns.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

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
