"""The class `Tokenizer`, and functions that few callers need.

    >>> import bytepair
    >>> tok = bytepair.train(["one text, another text"], vocab_size=270)
    >>> tok.decode(tok.encode("another one"))
    'another one'

`tokenizer` has the class, and the other modules the functions behind it: `results` (what the core
returns, files, and growing texts); and those that load or change tokenizers: `loading`,
`vocabulary` (ids), `pruning`, `cover`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._core import (
    UNICODE_VERSION,
    added_tokens,
    count_batch,
    ignores_merges,
    is_lossless,
    split_engine,
    text_rules,
    truncate_text,
)
from bytepair._internal.extras import lazy as _lazy
from bytepair.properties.tokens import uncovered
from bytepair.tokenizer.loading import load, pretokenize
from bytepair.tokenizer.results import IdArrays, IdsWithOffsets, Session
from bytepair.tokenizer.tokenizer import Tokenizer

if _TYPE_CHECKING:
    from bytepair._internal.drawing import readable
    from bytepair.tokenizer.vocabulary import parts_in

_lazy(__name__, ["._internal.drawing", "vocabulary"])

__all__ = [
    "UNICODE_VERSION", "IdArrays", "IdsWithOffsets", "Session", "Tokenizer", "added_tokens",
    "count_batch", "ignores_merges", "is_lossless", "load", "parts_in",
    "pretokenize", "readable", "split_engine", "text_rules", "truncate_text", "uncovered",
]  # fmt: skip
