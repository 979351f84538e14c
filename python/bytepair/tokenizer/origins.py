"""A new tokenizer and an old one in, the old ids of which each new token consists out.

A model that gets a larger or another vocabulary needs a row of its embeddings for each new token.
The mean of the rows of its parts is a start (fast vocabulary transfer: Gee et al., arXiv
2402.09977); a token that the old vocabulary has keeps its row, for its only part is itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bytepair import _core

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TokenParts:
    """The old ids of which each token of a new vocabulary consists (see `Tokenizer.parts_in`).

    Attributes:
        offsets: int64, one more than there are new ids: where the parts of each begin in `ids`.
        ids: int64, the old ids of all parts, end to end.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]


def parts_in(new: _core.Tokenizer, old: _core.Tokenizer) -> TokenParts:
    """The parts of each new token; `Tokenizer.parts_in` says it all."""
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
            yield old.encode_pretoken(tokens[id])
        elif id not in names:
            yield []
        elif (known := special.get(names[id])) is not None:
            yield [known]
        else:
            yield old.encode_pretoken(names[id].encode())
