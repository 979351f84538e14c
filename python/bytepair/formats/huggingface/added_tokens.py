"""The added tokens of a `tokenizer.json`, as the files beside it list them, with their flags."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.formats.huggingface.charmap import lookalikes

FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")
#: The note with the tokens whose flag `normalized` changes nothing.
_NORMALIZED: Final = "huggingface.normalized"

#: The id of a token, and its flags.
Token: TypeAlias = dict[str, Any]


def _normalized(tokenizer: _core.Tokenizer) -> set[str]:
    """The tokens that a file calls `normalized` although that changes nothing."""
    return set(json.loads(tokenizer.notes.get(_NORMALIZED, "[]")))


def written(tokenizer: _core.Tokenizer) -> list[Token]:
    """The added tokens in the form of a `tokenizer.json`, in the order of their ids."""
    left_out, normalized = set(lookalikes(tokenizer)), _normalized(tokenizer)
    return [
        {
            "id": token.id,
            "content": token.content,
            **{flag: getattr(token, flag) for flag in FLAGS},
            "normalized": token.normalized or token.content in normalized,
        }
        for token in tokenizer.added_tokens
        if token.content not in left_out
    ]
