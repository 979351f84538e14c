"""Training: texts to counts, counts to merges, and what comes after.

    >>> import bytepair
    >>> counts = bytepair.count(["low low low"])
    >>> bytepair.train(counts, vocab_size=268).encode("low low")
    [257, 258]

The files: `counting` (texts to counts), `counts` (what they are), `trainer` (counts to a
tokenizer), `grow` (resume, extend, and verify merges).
"""

from bytepair.training.counting import count
from bytepair.training.counts import Counts
from bytepair.training.trainer import NANOCHAT_SPECIAL_TOKENS, ExhaustedWarning, train

__all__ = ["NANOCHAT_SPECIAL_TOKENS", "Counts", "ExhaustedWarning", "count", "train"]
