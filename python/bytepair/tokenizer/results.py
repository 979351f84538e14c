"""Results of several arrays that the core makes, and what else it calls in this package.

`docs/encode.md` has the table of the types of ids: what each method returns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

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
    """An array of ids in another type of numpy.

    Raises:
        ArgumentError: if it is no type of integers, or has no room for all ids of the vocabulary.

    Example:
        >>> import numpy
        >>> of_type(numpy.array([3], "uint16"), "int64", 300)
        array([3])
        >>> of_type(numpy.array([3], "uint16"), "int8", 300)
        Traceback (most recent call last):
        bytepair.errors.ArgumentError: dtype is 'int8'; it must be an integer type of numpy with ...
    """
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
