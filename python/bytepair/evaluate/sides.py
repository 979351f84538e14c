"""Two tokenizers to compare, whatever they are kept in: each encodes by the library it comes from.

In goes what `bytepair.load` takes. A `tiktoken.Encoding` and a tokenizer of `tokenizers` or
`transformers` encode themselves, so that it is their ids that are compared; what they consist of is
known from loading them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from bytepair.formats import tiktoken
from bytepair.formats.huggingface import folder
from bytepair.tokenizer import Tokenizer, load

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Whether special tokens in a text are encoded as their ids or as ordinary text.
SpecialOrText: TypeAlias = Literal["all", "text"]

#: A function that encodes texts.
Encode: TypeAlias = "Callable[[list[str]], list[NDArray[np.int64]]]"


@dataclass(frozen=True)
class Side:
    """One of two tokenizers.

    Attributes:
        name: what it is called in messages.
        own: its values, loaded.
        encode: gives the ids of texts, by its own library.
        library: the name of that library; None if it is this one.
    """

    name: str
    own: Tokenizer
    encode: Encode
    library: str | None = None


def side_of(
    source: Any, name: str, special: SpecialOrText, pattern: str | Sequence[str] | None = None
) -> Side:
    """What `source` is, and how it encodes."""
    if isinstance(source, Tokenizer):
        return Side(name, source, _ours(source, special))
    own = load(source, pattern=pattern)
    if isinstance(source, str | os.PathLike):
        return Side(name, own, _ours(own, special))
    if tiktoken.is_encoding(source):
        return Side(name, own, _tiktokens(source, special), "tiktoken")
    assert folder.is_object(source)
    inner = getattr(source, "backend_tokenizer", source)
    return Side(name, own, _huggingfaces(inner, special), "tokenizers")


def _ours(tok: Tokenizer, special: SpecialOrText) -> Encode:
    def encode(texts: list[str]) -> list[NDArray[np.int64]]:
        ids, offsets = tok.encode_batch_to_numpy(texts, special=special)
        return np.split(ids.astype(np.int64), offsets[1:-1]) if texts else []

    return encode


def _tiktokens(encoding: Any, special: SpecialOrText) -> Encode:
    if special == "all":
        return lambda texts: _arrays(encoding.encode_batch(texts, allowed_special="all"))
    return lambda texts: _arrays(encoding.encode_ordinary_batch(texts))


def _huggingfaces(inner: Any, special: SpecialOrText) -> Encode:
    if special == "text":  # changes a copy: the object belongs to the caller
        inner = type(inner).from_str(inner.to_str())
        inner.encode_special_tokens = True

    def encode(texts: list[str]) -> list[NDArray[np.int64]]:
        encoded = inner.encode_batch(texts, add_special_tokens=False)
        return _arrays([one.ids for one in encoded])

    return encode


def _arrays(rows: list[list[int]]) -> list[NDArray[np.int64]]:
    return [np.array(row, np.int64) for row in rows]
