"""The pattern that the pre-tokenizer of a `tokenizer.json` becomes, and the other way round."""

from __future__ import annotations

import json
import re
from functools import lru_cache
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


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}


def split(regex: str, **changes: Any) -> dict[str, Any]:
    """A step that splits by an expression for Oniguruma."""
    step = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    return {**step, **changes}


def from_oniguruma(regex: str) -> str:
    """The expression that one for Oniguruma is read as; it must not match the empty text."""
    pattern = pattern_of({"type": "Sequence", "pretokenizers": [split(regex), BYTE_LEVEL]})
    assert isinstance(pattern, str)
    return pattern


def tokenizer_of(pattern: str | tuple[str, ...]) -> _core.Tokenizer:
    """A tokenizer of bytes alone."""
    tokens = {bytes([byte]): byte for byte in range(256)}
    return _core.Tokenizer(_core.Model.from_parts(tokens, pattern, {}))


@lru_cache
def to_oniguruma(pattern: str) -> str:
    """The expression that is written for Oniguruma."""
    node = json.loads(_core.tokenizer_json(tokenizer_of(pattern)))["pre_tokenizer"]
    written = [step["pattern"] for step in node.get("pretokenizers", [node]) if "pattern" in step]
    if not written:  # `ByteLevel` with the pattern of GPT-2
        return pattern.replace("$", r"\z")
    (one,) = written
    regex: str = one["Regex"] if "Regex" in one else re.escape(one["String"]).replace("\\ ", " ")
    return regex


@lru_cache
def may_match_nothing(pattern: str) -> bool:
    """Whether a match may have no characters."""
    losses = _core.tokenizer_json_losses(tokenizer_of(pattern))
    return any("matches of no characters" in loss for loss in losses)
