"""Training: texts to counts, counts to merges, and what comes after.

    >>> import bytepair
    >>> counts = bytepair.count(["low low low"])
    >>> bytepair.train(counts, vocab_size=268).encode("low low")
    [257, 258]

The files: `counting` (texts to counts), `skips` (documents that were left out), `counts` (what
counts are), `sources` (sources, counts or named groups to counts), `options` (what training does),
`superwords` (the rules of tokens that cross spaces), `parity` (groups that take turns), `trainer`
(counts to a tokenizer), `grow` (resume, extend and verify merges).
"""

from bytepair.training.counting import count
from bytepair.training.counts import Counts, load_counts
from bytepair.training.options import NANOCHAT_SPECIAL_TOKENS, TrainOptions
from bytepair.training.parity import Parity
from bytepair.training.skips import SkippedWarning
from bytepair.training.superwords import Superwords
from bytepair.training.trainer import ExhaustedWarning, train

__all__ = [
    "NANOCHAT_SPECIAL_TOKENS",
    "Counts",
    "ExhaustedWarning",
    "Parity",
    "SkippedWarning",
    "Superwords",
    "TrainOptions",
    "count",
    "load_counts",
    "train",
]
