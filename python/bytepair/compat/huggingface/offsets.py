"""The places of tokens in a text, in characters, as `tokenizers` has them after post-processing.

Post-processors such as ByteLevel may take the spaces at the ends of a token off its place.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bytepair.tokenizer import Tokenizer


def trims_of(post_processor: bytes | None) -> list[bool]:
    """What a post-processor takes off, for each of its steps that does.

    Args:
        post_processor: its state, as JSON.

    Returns:
        Whether the first space of a text is left alone (`add_prefix_space`), for each.
    """
    return [] if post_processor is None else _trims(json.loads(post_processor))


def _trims(node: dict[str, Any]) -> list[bool]:
    if node["type"] == "Sequence":
        return [trim for child in node["processors"] for trim in _trims(child)]
    if node["type"] in {"ByteLevel", "RobertaProcessing"} and node["trim_offsets"]:
        return [node["add_prefix_space"]]
    return []


def trimmed(
    tokenizer: Tokenizer, ids: list[int], places: NDArray[np.int64], keep_first: bool
) -> NDArray[np.int64]:
    """Places without the spaces at either end of their tokens.

    Args:
        tokenizer: what the ids are of.
        ids: the ids.
        places: for each the start and the end of its characters.
        keep_first: whether one space at the beginning of the text is left alone.
    """
    each, where = np.unique(np.array(ids, np.int64), return_inverse=True)
    spaces = np.array([_spaces(tokenizer.token_bytes(int(id))) for id in each], np.int64)
    before, after = spaces.reshape(-1, 2)[where].T
    start, end = places.T
    if keep_first:
        first = start == 0
        first[:1] = True
        before = before - (first & (before > 0))
    start = np.minimum(start + before, end)
    fits = (after > 0) & (end >= after)
    return np.stack([start, np.where(fits, np.maximum(end - after, start), end)], axis=1)


@lru_cache(maxsize=1 << 16)
def _spaces(token: bytes) -> tuple[int, int]:
    """How many spaces a token begins and ends with."""
    return len(token) - len(token.lstrip(b" ")), len(token) - len(token.rstrip(b" "))
