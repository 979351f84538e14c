"""Lists of ids in, what a model takes out: rows of equal width, tensors, ids of another type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from bytepair import _core
from bytepair._internal.checks import check_choice, check_many, check_whole, integers, refuse
from bytepair.errors import ArgumentError
from bytepair.properties import roles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PaddingSide: TypeAlias = Literal["right", "left"]
Tensors: TypeAlias = Literal["np", "pt"]


class PaddedBatch(NamedTuple):
    """Texts as rows of equal width.

    A model of `transformers` takes it as `model(**batch)`, since names are keys as well.

    Attributes:
        input_ids: one row per text, its ids and padding tokens: int32, or int64 if tensors were
            asked for.
        attention_mask: 1 for ids of the text, 0 for padding: uint8, or int64 if tensors were asked
            for.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> batch = tok.pad(tok.encode_batch(["hello!", "hello"]), tensors="np")
        >>> {name: rows.tolist() for name, rows in dict(batch).items()}
        {'input_ids': [[259, 33], [259, 260]], 'attention_mask': [[1, 1], [1, 0]]}
    """

    input_ids: NDArray[np.integer]
    attention_mask: NDArray[np.integer]

    def keys(self) -> list[str]:
        """The names of the fields, so that `**batch` and `dict(batch)` work."""
        return list(self._fields)

    def __getitem__(self, key: Any) -> Any:
        """A field by its name or number."""
        return getattr(self, key) if isinstance(key, str) else tuple.__getitem__(self, key)


def pad(
    tokenizer: _core.Tokenizer,
    rows: Iterable[Sequence[int]],
    width: int | Literal["longest"],
    side: PaddingSide,
    tensors: Tensors | None,
) -> PaddedBatch:
    """Lists of ids as rows of equal width; see `Tokenizer.pad`."""
    import numpy as np

    check_choice("side", side, ("right", "left"))
    rows = [integers("rows", row) for row in check_many("rows", rows, "lists of ids")]
    lengths = np.array([len(row) for row in rows], np.int64)
    longest = int(lengths.max(initial=0))
    width = longest if width == "longest" else check_whole("width", width)
    if width < longest:
        raise ArgumentError(
            f"list {int(lengths.argmax())} has {longest} ids, more than width={width}",
            option="width",
            value=width,
            hint=f"cut the lists: [ids[:{width}] for ids in rows]",
        )
    places = np.arange(width) if side == "right" else np.arange(width)[::-1]
    mask = places < lengths[:, None]
    filler = 0 if mask.all() else roles.id_of(tokenizer, "pad")
    ids = np.full((len(rows), width), filler, np.int32)
    ids[mask] = np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum()))
    if tensors is None:
        return PaddedBatch(ids, mask.astype(np.uint8))
    wide = PaddedBatch(ids.astype(np.int64), mask.astype(np.int64))
    if check_choice("tensors", tensors, ("np", "pt")) == "np":
        return wide
    from bytepair._internal.extras import torch

    return PaddedBatch(*map(torch.from_numpy, wide))


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
