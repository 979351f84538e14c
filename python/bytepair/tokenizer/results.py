"""The types of ids: what each method returns, and what its arguments for special tokens may be.

| result | type |
| --- | --- |
| ids of one text (`encode`, `render_conversation`, sessions) | `list[int]` |
| ids of many texts (`encode_batch`) | `list[list[int]]` |
| arrays (`encode_to_numpy`, `encode_file`, ...) | uint16 or uint32, by size; offsets int64 |
| rows for a model (`pad`, `render_batch`, loaders of shards) | int32, or int64 as tensors |
| ids as rows of a table (`parts_in`) | int64 |
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

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
