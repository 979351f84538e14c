"""Express each token of a new vocabulary by ids of an old one.

A model with a new vocabulary needs an embedding row for each new token. The mean of the rows of its
parts is a good initial value (fast vocabulary transfer: Gee et al., arXiv 2402.09977). A token that
exists in the old vocabulary keeps its row, since its only part is itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bytepair import _core
from bytepair._internal.later import Later

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    NDArray = Later("numpy.typing", "NDArray")
    np = Later("numpy")


@dataclass(frozen=True, eq=False)
class TokenParts:
    """The old ids that make up each token of a new vocabulary (see `Tokenizer.parts_in`).

    Attributes:
        offsets: int64, one more than new ids: the start of the parts of each new id in `ids`.
        ids: int64, the old ids of all parts, concatenated.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]


def parts_in(new: _core.Tokenizer, old: _core.Tokenizer) -> TokenParts:
    """The parts of each new token; see `Tokenizer.parts_in`."""
    import numpy as np

    rows = list(_rows(new, old))
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    ids = np.fromiter((id for row in rows for id in row), np.int64, int(offsets[-1]))
    return TokenParts(offsets, ids)


def _rows(new: _core.Tokenizer, old: _core.Tokenizer) -> Iterator[list[int]]:
    names = {id: name for name, id in new.special_tokens.items()}
    special = old.special_tokens
    tokens = {id: token for token, id in new.mergeable_ranks().items()}
    for id in range(new.vocab_size):
        if id in tokens:
            yield _core.encode_pretoken(old, tokens[id])
        elif id not in names:
            yield []
        elif (old_id := special.get(names[id])) is not None:
            yield [old_id]
        else:
            yield _core.encode_pretoken(old, names[id].encode())
