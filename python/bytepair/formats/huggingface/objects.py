"""Tokenizer objects of `tokenizers` and `transformers`, read as the files that they would write."""

from __future__ import annotations

from typing import Any

from bytepair.formats.huggingface import companions
from bytepair.formats.huggingface.folder import parse
from bytepair.formats.parts import LoadOptions, Parts


def is_object(value: Any) -> bool:
    """Whether this is a tokenizer of `tokenizers`, of our wrapper of it, or of `transformers`."""
    return hasattr(value, "backend_tokenizer") or hasattr(value, "to_str")


def of_object(value: Any, options: LoadOptions) -> Parts:
    """Read a tokenizer object through the `tokenizer.json` that it would write."""
    inner = getattr(value, "backend_tokenizer", value)
    parts = parse(inner.to_str().encode(), options)
    parts.notes.update(companions.object_notes(value, parts))
    return parts
