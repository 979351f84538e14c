"""Counts texts, learns merges from the counts, and grows vocabularies.

    >>> import bytepair
    >>> counts = bytepair.count(["low low low"])
    >>> bytepair.train(counts, vocab_size=268).encode("low low")
    [257, 258]

The modules: `counting` (texts to counts, and checkpoints), `counts` (the class `Counts`), `options`
(`TrainOptions`, groups of sources, and recipes: mixtures, parity-aware BPE, superwords), `trainer`
(counts to a tokenizer; resume, extend and verify), `infer` (the mixture of a vocabulary).
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.extras import lazy as _lazy
from bytepair.training.counting import count
from bytepair.training.counts import Counts, load_counts
from bytepair.training.options import (
    NANOCHAT_SPECIAL_TOKENS,
    Mixture,
    Parity,
    Superwords,
    TrainOptions,
)
from bytepair.training.trainer import extend, resume, train, verify_merges

if _TYPE_CHECKING:
    from bytepair.training.infer import infer_mixture

_lazy(__name__, ["infer"])

__all__ = [
    "NANOCHAT_SPECIAL_TOKENS", "Counts", "Mixture", "Parity", "Superwords", "TrainOptions", "count",
    "extend", "infer_mixture", "load_counts", "resume", "train", "verify_merges",
]  # fmt: skip
