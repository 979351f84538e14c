"""Counts texts, learns merges from the counts, and grows vocabularies.

    >>> import bytepair
    >>> counts = bytepair.count(["low low low"])
    >>> bytepair.train(counts, vocab_size=268).encode("low low")
    [257, 258]

The modules: `counting` (texts to counts), `checkpoint` (of a count that can be resumed), `counts`
(the class `Counts`), `options` (`TrainOptions`, and the counts of sources or named groups),
`recipes` (mixtures, parity-aware BPE, superwords), `trainer` (counts to a tokenizer), `grow`
(resume, extend and verify merges), `infer` (the mixture of a vocabulary).
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.extras import lazy as _lazy
from bytepair.training.counting import count
from bytepair.training.counts import Counts, load_counts
from bytepair.training.options import NANOCHAT_SPECIAL_TOKENS, TrainOptions
from bytepair.training.recipes import Mixture, Parity, Superwords
from bytepair.training.trainer import train

if _TYPE_CHECKING:
    from bytepair.training.grow import extend, resume, verify_merges
    from bytepair.training.infer import infer_mixture

_lazy(__name__, {"grow": ("extend", "resume", "verify_merges"), "infer": ("infer_mixture",)})

__all__ = [
    "NANOCHAT_SPECIAL_TOKENS", "Counts", "Mixture", "Parity", "Superwords", "TrainOptions", "count",
    "extend", "infer_mixture", "load_counts", "resume", "train", "verify_merges",
]  # fmt: skip
