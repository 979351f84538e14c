"""Reads values of JSON strictly: what another program would read otherwise is an error."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

#: The maximum number of levels of lists and objects in a value, and of bits of its integers.
MOST_DEPTH: Final = 200
MOST_BITS: Final = 4096


def read_json(text: str) -> Any:
    """A value of JSON, without numbers that JSON cannot hold and without keys that occur twice.

    Raises:
        ValueError: if the text is not JSON, with the reason.

    Example:
        >>> read_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
        ...
        ValueError: the key 'a' occurs twice in an object
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(f"it is nested more than {MOST_DEPTH} levels deep") from None
    reason = no_json(value)
    if reason:
        raise ValueError(reason)
    return value


def no_json(value: Any) -> str:
    """Why JSON cannot hold a value; empty if it can.

    Example:
        >>> no_json({"a": [float("nan")]}), no_json({"a": None})
        ('it contains the number nan', '')
    """
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        parts: list[Any] = []
        for one in level:
            if isinstance(one, float) and not math.isfinite(one):
                return f"it contains the number {one}"
            if isinstance(one, int) and one.bit_length() > MOST_BITS:
                return f"it contains an integer of {one.bit_length():,} bits"
            if isinstance(one, bytes | bytearray):
                return f"it contains {type(one).__name__}"
            if isinstance(one, Mapping):
                if not all(isinstance(key, str) for key in one):
                    return "it contains a key that is not a string"
                parts += one.values()
            elif isinstance(one, Sequence) and not isinstance(one, str):
                parts += one
        if not parts:
            return ""
        level = parts
    return f"it is nested more than {MOST_DEPTH} levels deep"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {twice[:40]!r} occurs twice in an object")
    return fields


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)
