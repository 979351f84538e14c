"""One trained tokenizer in, the compression of every smaller vocabulary out.

Training records for each merge how many tokens it saves, so one run determines the bytes per token
of every size. A larger vocabulary shortens text, which saves work of a model, and costs one row of
embeddings per id. The *knee* is the point where the curve is highest above the straight line
between its ends. It depends on where the curve ends, so it is a hint, not a recommendation.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair.errors import VocabularyError
from bytepair.files.safe import write_whole
from bytepair.tokenizer import Tokenizer


@dataclass(frozen=True)
class Sweep:
    """The bytes per token of every vocabulary size.

    Attributes:
        sizes: the sizes, in ids, special tokens included.
        tokens: the number of tokens of the training text at each size.
        text_bytes: the number of bytes of the training text in UTF-8.
        width: the number of values in the embedding of an id.
        heldout: the bytes per token of other text, at some of the sizes.
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
        """The number of values in one embedding table; models with untied embeddings have two."""
        return self.sizes * self.width

    @property
    def knee(self) -> int:
        """The size at which the curve is highest above the line between its ends."""
        x, y = self.sizes, self.bytes_per_token
        if len(x) < 3:
            return int(x[-1])
        line = y[0] + (x - x[0]) * (y[-1] - y[0]) / (x[-1] - x[0])
        return int(x[np.argmax(y - line)])

    def at(self, size: int) -> float:
        """Bytes per token of the training text at one size."""
        return float(self.bytes_per_token[np.searchsorted(self.sizes, size)])

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a CSV file with a header and one line per size; replace one only if asked."""
        columns = (self.sizes, self.tokens, self.bytes_per_token, self.embedding_parameters)
        lines = ["size,tokens,bytes_per_token,embedding_parameters"]
        lines += [f"{s},{t},{b:.6f},{e}" for s, t, b, e in zip(*columns, strict=True)]
        write_whole(Path(path), ("\n".join(lines) + "\n").encode(), overwrite=overwrite)


def compression_curve(tokenizer: Tokenizer) -> NDArray[np.uint64]:
    """The number of tokens of the training text before the first merge and after each merge.

    uint64, one more than merges; empty if the tokenizer was not created by training. The number
    of bytes of the text, divided by these, is the bytes per token of each smaller vocabulary.

    Args:
        tokenizer: the tokenizer.

    With superwords, the values up to the end of the first stage are those of its pattern, and
    later ones go on from there. If the second pattern splits tokens of the first stage, all
    later values differ by the same number: for the default pattern it is small (102 of
    868,440 tokens of the sample texts).

    Example:
        >>> import bytepair
        >>> compression_curve(bytepair.train(["hello hello"], 269)).tolist()
        [11, 9, 7, 5, 3]
    """
    size = tokenizer.notes.get("text_bytes")
    counts = _core.merge_counts(tokenizer)
    if size is None or len(counts) != len(tokenizer.merges()):
        return np.empty(0, np.uint64)
    fallen = np.concatenate([np.zeros(1, np.uint64), np.cumsum(counts, dtype=np.uint64)])
    return np.uint64(int(size)) - fallen


def sweep(
    tokenizer: Tokenizer, heldout: Sequence[str] = (), *, width: int = 768, points: int = 12
) -> Sweep:
    """Read the curve of a training, and encode other text at some of its sizes.

    Args:
        tokenizer: a tokenizer trained by `bytepair.train`.
        heldout: documents that were not trained on, to see how well the vocabulary generalizes.
        width: the number of values in the embedding of an id.
        points: the maximum number of sizes at which the other text is encoded; each is half of the
            one before.

    Raises:
        VocabularyError: if the tokenizer was not trained by bytepair.

    Example:
        >>> import bytepair
        >>> sizes = sweep(bytepair.train(bytepair.sample.paths(), vocab_size=1000))
        >>> sizes.sizes[0], sizes.sizes[-1], round(sizes.at(1000), 2)
        (np.int64(265), np.int64(1000), 2.04)
    """
    curve = compression_curve(tokenizer)
    if not curve.size:
        raise VocabularyError(
            "compression by size is known only for tokenizers that bytepair trained"
        )
    smallest = tokenizer.vocab_size - (len(curve) - 1)
    sizes = np.arange(smallest, tokenizer.vocab_size + 1, dtype=np.int64)
    few = [s for n in range(points) if (s := tokenizer.vocab_size >> n) > smallest]
    size = sum(len(text.encode()) for text in heldout)
    measured = {
        s: size / max(int(tokenizer.replace(vocab_size=s).count_batch(heldout).sum()), 1)
        for s in (reversed(few) if size else ())
    }
    return Sweep(sizes, curve.astype(np.int64), int(curve[0]), width, measured)
