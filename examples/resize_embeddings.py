"""A small language model gets a larger vocabulary: new rows as means of old ones, or at random.

    python examples/resize_embeddings.py

Needs torch. The model is trained for a minute at most on the first part of a text. Then the
tokenizer is extended on that text, and the embeddings and the output layer get their new rows. What
is shown is the loss on another part, per byte, so that tokenizers can be compared: of the old
model, and of the larger one before a single step of training.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, embedding_bag

import bytepair

WIDTH, LENGTH, STEPS = 64, 32, 600


class Model(nn.Module):
    """Embeddings, one recurrent layer, and an output layer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, WIDTH)
        self.layer = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.output = nn.Linear(WIDTH, size)

    def loss(self, ids: torch.Tensor) -> torch.Tensor:
        """The mean loss of all ids but the first of each row."""
        hidden, _ = self.layer(self.embedding(ids[:, :-1]))
        return cross_entropy(self.output(hidden).flatten(0, 1), ids[:, 1:].flatten())


def rows_of(tok: bytepair.Tokenizer, text: str) -> torch.Tensor:
    """The ids of a text in rows of one length."""
    ids = tok.encode_batch_to_numpy([text]).ids.astype(np.int64)
    return torch.from_numpy(ids[: len(ids) // LENGTH * LENGTH]).view(-1, LENGTH)


def trained(tok: bytepair.Tokenizer, text: str, steps: int) -> Model:
    """A model after some steps on a text."""
    model, rows = Model(tok.vocab_size), rows_of(tok, text)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        model.loss(rows[torch.randint(len(rows), (32,))]).backward()
        optimizer.step()
    return model


def means(weight: torch.Tensor, parts: bytepair.tokenizer.TokenParts) -> torch.Tensor:
    """For each new id the mean of the rows of its parts."""
    ids, offsets = torch.from_numpy(parts.ids), torch.from_numpy(parts.offsets)
    return embedding_bag(ids, weight, offsets, mode="mean", include_last_offset=True)


def at_random(weight: torch.Tensor, parts: bytepair.tokenizer.TokenParts) -> torch.Tensor:
    """The old rows of tokens that are still one, and for the others random ones as large."""
    rows, kept = means(weight, parts), torch.from_numpy(np.diff(parts.offsets)) == 1
    rows[~kept] = torch.randn_like(rows[~kept]) * weight.std()
    return rows


def resized(model: Model, parts: bytepair.tokenizer.TokenParts, rows_from=means) -> Model:  # type: ignore[no-untyped-def]
    """The model with rows for a new vocabulary."""
    new = Model(len(parts.offsets) - 1)
    new.layer.load_state_dict(model.layer.state_dict())
    with torch.no_grad():
        new.embedding.weight.copy_(rows_from(model.embedding.weight, parts))
        new.output.weight.copy_(rows_from(model.output.weight, parts))
        new.output.bias.copy_(rows_from(model.output.bias[:, None], parts)[:, 0])
    return new


@torch.no_grad()
def bits_per_byte(model: Model, tok: bytepair.Tokenizer, text: str) -> float:
    """The loss on a text, per byte, so that it does not depend on how many tokens there are."""
    rows = rows_of(tok, text)
    size = bytepair.evaluate.token_lengths(tok)[rows[:, 1:].numpy()].sum()
    return float(model.loss(rows)) * rows[:, 1:].numel() / math.log(2) / size


def main(steps: int = STEPS) -> dict[str, float]:
    """Train, extend, resize, and say the losses."""
    torch.manual_seed(0)
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")
    before, after = text[:400_000], text[400_000:420_000]
    old = bytepair.train([before], 512)
    new = bytepair.extend(old, [before], 256)
    model = trained(old, before, steps)
    parts = bytepair.tokenizer.parts_in(new, old)
    losses = {
        "the old model": bits_per_byte(model, old, after),
        "means of parts": bits_per_byte(resized(model, parts), new, after),
        "random rows": bits_per_byte(resized(model, parts, at_random), new, after),
    }
    for name, loss in losses.items():
        print(f"{name:>15}: {loss:.3f} bits per byte")
    return losses


if __name__ == "__main__":
    main()
