"""The mapping of bytes to printable characters that GPT-2 introduced; the core has the table.

`vocab.json`, `merges.txt`, `tokenizer.json` and GGUF store tokens in this form: a space is `Ġ` and
a line break `Ċ`.
"""

from __future__ import annotations

from bytepair import _core
from bytepair._core import to_bytes, to_characters

__all__ = ["lookalikes", "lost_twins", "to_bytes", "to_characters"]


def lookalikes(tokenizer: _core.Tokenizer) -> list[str]:
    """The special tokens whose name equals an ordinary token, written as characters."""
    ranks = tokenizer.mergeable_ranks()
    special = tokenizer.special_tokens.items()
    return [name for name, id in special if ranks.get(to_bytes(name) or b"", id) != id]


def lost_twins(tokenizer: _core.Tokenizer) -> list[str]:
    """The entry of `Tokenizer.export_losses` for such special tokens, if there are any."""
    twins = lookalikes(tokenizer)
    return [f"special tokens equal to ordinary tokens, such as {twins[0]!r}"] if twins else []
