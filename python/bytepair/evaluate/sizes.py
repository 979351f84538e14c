"""One trained tokenizer in, what every smaller vocabulary would have given out.

Training counts, merge by merge, by how many tokens its text gets shorter, so the bytes per token of
every size are known from one run. A larger vocabulary shortens text and so the work of a model, and
costs a row of its embeddings for each id. The *knee* is where the curve lies highest above the
straight line between its ends. It depends on where the curve ends, so it is a place to look at and
not a verdict.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bytepair.errors import VocabularyError
from bytepair.formats.files import write_whole
from bytepair.tokenizer import Tokenizer


@dataclass(frozen=True)
class Sweep:
    """Bytes per token of every size of a vocabulary.

    Attributes:
        sizes: the sizes, in ids, special tokens included.
        tokens: how many tokens the training text has at each.
        text_bytes: how long the training text is in UTF-8.
        width: how many numbers the embedding of an id has.
        heldout: bytes per token of other text, at some of the sizes.
    """

    sizes: NDArray[np.int64]
    tokens: NDArray[np.int64]
    text_bytes: int
    width: int
    heldout: dict[int, float] = field(default_factory=dict)

    @property
    def bytes_per_token(self) -> NDArray[np.float64]:
        """Bytes per token of the training text at each size."""
        return self.text_bytes / np.maximum(self.tokens, 1)

    @property
    def embedding_parameters(self) -> NDArray[np.int64]:
        """The numbers in one table of embeddings; models that do not tie them have two."""
        return self.sizes * self.width

    @property
    def knee(self) -> int:
        """The size at which the curve lies highest above the line between its ends."""
        x, y = self.sizes, self.bytes_per_token
        if len(x) < 3:
            return int(x[-1])
        line = y[0] + (x - x[0]) * (y[-1] - y[0]) / (x[-1] - x[0])
        return int(x[np.argmax(y - line)])

    def at(self, size: int) -> float:
        """Bytes per token of the training text at one size."""
        return float(self.bytes_per_token[np.searchsorted(self.sizes, size)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write every size as a line of a table: CSV with a head."""
        columns = (self.sizes, self.tokens, self.bytes_per_token, self.embedding_parameters)
        lines = ["size,tokens,bytes_per_token,embedding_parameters"]
        lines += [f"{s},{t},{b:.6f},{e}" for s, t, b, e in zip(*columns, strict=True)]
        write_whole(Path(path), ("\n".join(lines) + "\n").encode())


def sweep(
    tokenizer: Tokenizer, heldout: Sequence[str] = (), *, width: int = 768, points: int = 12
) -> Sweep:
    """Read the curve of a training, and encode other text at some of its sizes.

    Args:
        tokenizer: a tokenizer that `bytepair.train` made.
        heldout: documents that were not trained on; a vocabulary that learns its text by heart is
            good on that text alone.
        width: how many numbers the embedding of an id has.
        points: at how many sizes at most the other text is encoded; each halves the one before.

    Raises:
        VocabularyError: if the tokenizer was not made by training.

    Example:
        >>> import bytepair
        >>> found = sweep(bytepair.train(bytepair.sample.paths(), vocab_size=1000))
        >>> found.sizes[0], found.sizes[-1], round(found.at(1000), 2)
        (np.int64(265), np.int64(1000), 2.04)
    """
    curve = tokenizer.compression_curve()
    if not curve.size:
        raise VocabularyError(
            "compression by size is known only for tokenizers that bytepair trained"
        )
    smallest = tokenizer.vocab_size - (len(curve) - 1)
    sizes = np.arange(smallest, tokenizer.vocab_size + 1, dtype=np.int64)
    shown = [s for n in range(points) if (s := tokenizer.vocab_size >> n) > smallest]
    size = sum(len(text.encode()) for text in heldout)
    measured = {
        s: size / max(int(tokenizer.with_vocab_size(s).count_tokens_batch(heldout).sum()), 1)
        for s in (reversed(shown) if size else ())
    }
    return Sweep(sizes, curve.astype(np.int64), int(curve[0]), width, measured)
