"""Losses per token in, bits per byte out: a loss that is comparable across tokenizers.

With longer tokens, the same model of text has a larger loss per token. So losses are summed and
divided by the bytes of the text. The bytes of an id are those of its token: 0 for special tokens,
which are no text, and for unused ids. Targets that are negative (masked) or have no bytes are
ignored, with their losses.

The functions accept numpy arrays and torch tensors. torch is imported only to write a `.pt` file.
"""

from __future__ import annotations

import io
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from bytepair._internal.checks import refuse
from bytepair.errors import ArgumentError
from bytepair.files.safe import write_whole
from bytepair.properties.tokens import token_lengths
from bytepair.tokenizer import Tokenizer


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
        OverwriteError: if the file exists, and `overwrite` is false.
        ImportError: if torch is needed and not installed.

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
