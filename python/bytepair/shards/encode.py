"""A column of documents in, their ids end to end out: all that shards know of the encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bytepair import _core, arrow
from bytepair.tokenizer import Tokenizer

if TYPE_CHECKING:
    import pyarrow as pa


def encode(
    tokenizer: Tokenizer,
    texts: pa.Array,
    dtype: np.dtype[Any],
    *,
    bos: int | None = None,
    eos: int | None = None,
    threads: int | None = None,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Encode documents; special tokens in their text are text.

    Args:
        tokenizer: the tokenizer.
        texts: strings, without nulls.
        dtype: of the ids; every id of the tokenizer fits.
        bos: the id to begin each document with.
        eos: the id to end each document with.
        threads: how many threads to use at most; None means all.

    Returns:
        The ids of all documents, and where each begins (int64), with the end of the last.

    Example:
        >>> import bytepair, numpy, pyarrow
        >>> from bytepair.shards.encode import encode
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> texts = pyarrow.array(["hello", "he"])
        >>> ids, offsets = encode(tok, texts, numpy.dtype("uint16"), bos=260)
        >>> ids.tolist(), offsets.tolist()
        ([260, 259, 260, 104, 101], [0, 2, 5])
    """
    ids, offsets = _core.encode_utf8(
        tokenizer, arrow.data(texts), arrow.offsets(texts),
        special=None, prepend=bos, append=eos, threads=threads,
    )  # fmt: skip
    return ids.astype(dtype, copy=False), offsets
