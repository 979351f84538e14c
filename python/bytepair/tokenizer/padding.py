"""Lists of ids in, what a model takes out: rows of equal width, tensors, ids of another type.

The core calls `encode_rows` for the options of `encode_batch` that give rows, and `of_type` for
`dtype=`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from bytepair import _core
from bytepair._internal.arguments import checked, refuse
from bytepair.errors import ArgumentError, Option, WayOut
from bytepair.properties import roles
from bytepair.tokenizer.batch import Affix, SpecialMode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PaddingSide: TypeAlias = Literal["right", "left"]
Tensors: TypeAlias = Literal["np", "pt"]
#: The options `max_tokens`, `pad_to`, `padding_side` and `return_tensors` of `encode_batch`.
Shape: TypeAlias = (
    "tuple[int | None, int | Literal['longest'] | None, PaddingSide | None, Tensors | None]"
)


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
        >>> batch = tok.encode_batch(["hello!", "hello"], pad_to="longest", return_tensors="np")
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


def encode_rows(
    tokenizer: _core.Tokenizer,
    texts: Iterable[str],
    special: SpecialMode,
    prepend: Affix,
    append: Affix,
    add_special_tokens: bool | None,
    shape: Shape,
    threads: int | None,
) -> list[list[int]] | PaddedBatch:
    """Implement `Tokenizer.encode_batch` with the options of `Shape`."""
    max_tokens, pad_to, padding_side, return_tensors = shape
    _check(max_tokens=max_tokens, pad_to=pad_to, padding_side=padding_side,
           return_tensors=return_tensors)  # fmt: skip
    if padding_side is not None and pad_to is None:
        raise ArgumentError(
            Option("padding_side"),
            "would be ignored",
            WayOut.passing("pad_to", "longest", "or a number"),
        )
    begin, end = tokenizer.rules.around if add_special_tokens else ([], [])
    before = tokenizer.encode("", prepend=prepend) + begin
    after = end + tokenizer.encode("", append=append)
    room = None if max_tokens is None else max_tokens - len(before) - len(after)
    if room is not None and room < 0:
        raise ArgumentError(
            Option("max_tokens"), f"is {max_tokens}, too small for prepend and append"
        )
    encoded = tokenizer.encode_batch(texts, special=special, threads=threads)
    rows = [[*before, *ids[:room], *after] for ids in encoded]
    if pad_to is None and return_tensors is None:
        return rows
    return _tensors(_padded(tokenizer, rows, pad_to, padding_side or "right"), return_tensors)


@checked
def _check(
    *,
    max_tokens: int | None,
    pad_to: int | Literal["longest"] | None,
    padding_side: PaddingSide | None,
    return_tensors: Tensors | None,
) -> None:
    """Check the options, which the core passes on as they are."""


def _padded(
    tokenizer: _core.Tokenizer,
    rows: list[list[int]],
    pad_to: int | Literal["longest"] | None,
    side: PaddingSide,
) -> PaddedBatch:
    """Pad lists of ids to rows of equal width."""
    import numpy as np

    lengths = np.array([len(row) for row in rows], np.int64)
    longest = int(lengths.max(initial=0))
    width = pad_to if isinstance(pad_to, int) else longest
    if width < longest:
        raise ArgumentError(
            f"text {int(lengths.argmax())} has {longest} ids, more than the row width {width} (",
            Option("pad_to"),
            ")",
            WayOut.passing("max_tokens", width, "to truncate it"),
        )
    if pad_to is None and (lengths < longest).any():
        raise ArgumentError(
            f"texts have {int(lengths.min())} to {longest} ids, which is no tensor",
            WayOut.passing("pad_to", "longest"),
        )
    places = np.arange(width) if side == "right" else np.arange(width)[::-1]
    mask = places < lengths[:, None]
    filler = 0 if mask.all() else roles.id_of(tokenizer, "pad")
    ids = np.full((len(rows), width), filler, np.int32)
    ids[mask] = np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum()))
    return PaddedBatch(ids, mask.astype(np.uint8))


def _tensors(batch: PaddedBatch, kind: Tensors | None) -> PaddedBatch:
    """The batch as arrays of int64, or as tensors; None leaves it as it is."""
    import numpy as np

    if kind is None:
        return batch
    wide = PaddedBatch(*(rows.astype(np.int64) for rows in batch))
    if kind == "np":
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
