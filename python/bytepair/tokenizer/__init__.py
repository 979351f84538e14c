"""The class `Tokenizer`, and functions for what few callers ask of one.

    >>> import bytepair
    >>> tok = bytepair.train(["one text, another text"], vocab_size=270)
    >>> tok.decode(tok.encode("another one"))
    'another one'

`tokenizer` has the class, and the other modules the functions behind it: `batch` (many texts),
`session` (growing texts), `show` (terminals and notebooks), `results` (what the core makes);
and what makes tokenizers of tokenizers: `loading`, `vocabulary` (ids), `pruning`, `cover`.
"""

from bytepair._core import (
    added_tokens,
    count_batch,
    ignores_merges,
    is_lossless,
    split_engine,
    text_rules,
    truncate_text,
)
from bytepair.properties.tokens import uncovered
from bytepair.tokenizer.loading import load, pretokenize
from bytepair.tokenizer.results import IdArrays, IdsWithOffsets, Session, register
from bytepair.tokenizer.tokenizer import Tokenizer

register()

__all__ = [
    "IdArrays",
    "IdsWithOffsets",
    "Session",
    "Tokenizer",
    "added_tokens",
    "count_batch",
    "ignores_merges",
    "is_lossless",
    "load",
    "pretokenize",
    "split_engine",
    "text_rules",
    "truncate_text",
    "uncovered",
]
