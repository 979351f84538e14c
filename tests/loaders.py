"""Loaders with the fields of their options as keywords, for tests that try many options."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from bytepair import shards


def text_batches(
    files: Any, tok: Any, batch_size: int, length: int, **options: Any
) -> shards.TextBatches:
    """`TextBatches`."""
    how = _taken(shards.TextOptions, options)
    return shards.TextBatches(files, tok, batch_size, length, how, **options)


def conversation_batches(
    talks: Any, tok: Any, batch_size: int, length: int, **options: Any
) -> shards.ConversationBatches:
    """`ConversationBatches`."""
    how = _taken(shards.ConversationOptions, options)
    return shards.ConversationBatches(talks, tok, batch_size, length, how, **options)


def _taken(kind: Any, options: dict[str, Any]) -> Any:
    """Take the fields of an options value from keywords."""
    names = {field.name for field in fields(kind)} & set(options)
    return kind(**{name: options.pop(name) for name in names})
