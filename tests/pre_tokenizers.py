"""The pattern that the pre-tokenizer of a `tokenizer.json` becomes."""

from __future__ import annotations

import json
from typing import Any

from bytepair import _core
from bytepair._core import to_characters


def pattern_of(node: Any) -> str | tuple[str, ...]:
    """The pattern of a byte-level tokenizer with this pre-tokenizer."""
    document = {
        "pre_tokenizer": node,
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {to_characters(bytes([byte])): byte for byte in range(256)},
            "merges": [],
        },
    }
    model = _core.Model.from_tokenizer_json(json.dumps(document).encode(), lossy=False)
    return _core.Tokenizer(model).pattern


def steps_of(pattern: str | tuple[str, ...]) -> tuple[str, ...]:
    """The regular expressions of a pattern."""
    return (pattern,) if isinstance(pattern, str) else pattern
