"""Training: texts to counts, counts to merges, and growing a vocabulary.

    >>> import bytepair
    >>> counts = bytepair.count(["low low low"])
    >>> bytepair.train(counts, vocab_size=268).encode("low low")
    [257, 258]

The modules: `counting` (texts to counts), `checkpoint` (of a count that can be resumed), `counts`
(the class `Counts`) and `counts_file` (its files), `sources` (sources, counts or named groups to
counts), `options` (`TrainOptions`), `recipes` (mixtures, parity-aware BPE, superwords), `trainer`
(counts to a tokenizer), `grow` (resume, extend and verify merges), `infer` (the mixture of a
vocabulary).
"""

from bytepair.training.counting import count
from bytepair.training.counts import Counts, load_counts
from bytepair.training.options import NANOCHAT_SPECIAL_TOKENS, TrainOptions
from bytepair.training.recipes import Mixture, Parity, Superwords
from bytepair.training.trainer import train

__all__ = [
    "NANOCHAT_SPECIAL_TOKENS",
    "Counts",
    "Mixture",
    "Parity",
    "Superwords",
    "TrainOptions",
    "count",
    "load_counts",
    "train",
]
