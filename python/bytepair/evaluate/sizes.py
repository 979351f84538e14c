"""Numbers of a tokenizer for models: bytes per token of every size, and bits per byte of a loss.

Training records for each merge how many tokens it saves, so one run determines the bytes per token
of every smaller vocabulary. Losses are summed and divided by the bytes of the text, since a model
with longer tokens has a larger loss per token.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_many, refuse
from bytepair._internal.drawing import html_table
from bytepair.errors import ArgumentError, VocabularyError
from bytepair.files.outputs import write_whole
from bytepair.properties.tokens import token_lengths
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

    def _repr_html_(self) -> str:
        """At most forty sizes, for a notebook."""
        columns = (self.sizes, self.tokens, np.round(self.bytes_per_token, 3))
        return html_table(["ids", "tokens", "bytes per token"], list(zip(*columns, strict=True)))

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
    check_many("heldout", heldout)
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


def nats_and_bytes(losses: Any, targets: Any, token_bytes: Any) -> tuple[float, int]:
    """Add up the losses and the bytes of one batch.

    With several batches or machines, sum the results and divide once at the end.

    Args:
        losses: the loss of each target in nats, any shape.
        targets: the ids to predict, of the same shape; negative ones are ignored.
        token_bytes: the number of bytes of each id; see `token_lengths`.

    Returns:
        The sum of the losses of targets that have bytes, and the number of these bytes.

    Raises:
        ValueError: if the numbers of losses and targets differ.

    Example:
        >>> import numpy as np
        >>> losses, targets = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 1, -1, 2])
        >>> nats_and_bytes(losses, targets, np.array([1, 3, 0]))  # id 2 is special
        (3.0, 4)
    """
    for name, value in (("losses", losses), ("targets", targets), ("token_bytes", token_bytes)):
        if not hasattr(value, "reshape") or isinstance(value, np.generic):
            raise refuse(name, value, "an array or a tensor")
    losses, targets = losses.reshape(-1), targets.reshape(-1)
    if losses.shape != targets.shape:
        raise ArgumentError(f"there are {losses.shape[0]} losses but {targets.shape[0]} targets")
    real = targets >= 0
    lengths = token_bytes[targets[real]]
    nats = losses[real][lengths > 0]
    # Sums in 32 bits or fewer lose precision.
    nats = nats.double() if hasattr(nats, "double") else nats.astype(np.float64)
    return float(nats.sum()), int(lengths.sum())


def bits_per_byte(losses: Any, targets: Any, token_bytes: Any) -> float:
    """The number of bits that a model needs per byte of the text.

    Args:
        losses: the loss of each target in nats, any shape.
        targets: the ids to predict, of the same shape; negative ones are ignored.
        token_bytes: the number of bytes of each id; see `token_lengths`.

    Returns:
        Bits per byte; infinity if no target has bytes.

    Example:
        >>> import numpy as np
        >>> losses = np.log(2) * np.array([8.0, 16.0, 99.0])
        >>> bits_per_byte(losses, np.array([0, 1, -1]), np.array([1, 2]))
        8.0
    """
    nats, size = nats_and_bytes(losses, targets, token_bytes)
    return nats / (math.log(2) * size) if size else math.inf


def save_token_bytes(
    tokenizer: Tokenizer, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write the number of bytes of each id, atomically.

    Args:
        tokenizer: the tokenizer.
        path: the file: `.npy` for numpy, or `.pt` for torch, which must be installed.
        overwrite: whether a file that exists is replaced.

    Raises:
        ArgumentError: if the file has another suffix.
        ImportError: if torch is needed and not installed.
        OverwriteError: if the file exists, and `overwrite` is false.

    Example:
        >>> import bytepair, numpy, tempfile
        >>> tok = bytepair.train(["hello"], vocab_size=265)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.load(save_token_bytes(tok, f"{folder}/token_bytes.npy")).sum()
        np.int64(256)
    """
    path, data, lengths = Path(path), io.BytesIO(), token_lengths(tokenizer)
    if path.suffix == ".npy":
        np.save(data, lengths)
    elif path.suffix == ".pt":
        try:
            import torch  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            raise ImportError(
                f"to write {path.name}, install torch: pip install 'bytepair[torch]'; a .npy file "
                "needs only numpy"
            ) from error
        torch.save(torch.from_numpy(lengths), data)
    else:
        raise ArgumentError(f"{path.name} must end in .npy or .pt")
    write_whole(path, data.getvalue(), overwrite=overwrite)
    return path
