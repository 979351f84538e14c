"""Mistral's `tekken.json`: ranks in base64, a split pattern, and special tokens before them.

Only the first of the listed tokens are used, as many as `default_vocab_size` without the special
tokens. The id of a token is its rank plus the number of special tokens.
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.files.safe import id_of, parse_json, read_file, typed
from bytepair.formats.parts import LoadOptions, build

FILE: Final = "tekken.json"

_WITHOUT_LIST: Final = ("v1", "v2", "v3", "v7")
#: Published files have 1,000; those without an entry get names, so a number alone makes tokens.
_MOST_SPECIAL: Final = 10_000

#: The special tokens of the first versions, whose files need not list them: ids 0 to 19.
_FIRST: Final = [
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]",
    "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
]  # fmt: skip


def is_one(head: bytes) -> bool:
    """Whether a JSON file begins like this format."""
    return bool(re.match(rb'\s*\{\s*"config"\s*:', head)) and b'"default_vocab_size"' in head


def read(path: Path, options: LoadOptions) -> _core.Model:
    """Read a `tekken.json`, or the one in a folder; its merge rule is that of ranks."""
    file = path / FILE if path.is_dir() else path
    document = typed(parse_json(read_file(file), FILE), dict, FILE)
    config = typed(document.get("config"), dict, "config")
    size = id_of(config.get("default_vocab_size"), "config.default_vocab_size")
    first = id_of(config.get("default_num_special_tokens"), "config.default_num_special_tokens")
    pattern = typed(config.get("pattern"), str, "config.pattern")
    entries = typed(document.get("vocab"), list, "vocab")
    if not first < size <= first + len(entries) or first > _MOST_SPECIAL:
        raise FormatError(
            "config.default_vocab_size",
            f"{size} ids are not {first} special tokens and some of {len(entries)} others",
        )
    tokens: dict[bytes, int] = {}
    for rank, entry in enumerate(entries[: size - first]):
        token = _token(typed(entry, dict, f"vocab[{rank}]"), rank)
        if token in tokens:
            raise FormatError(f"vocab[{rank}]", f"the token {token!r} is listed twice")
        tokens[token] = rank + first
    if not document.get("special_tokens") and config.get("version") not in _WITHOUT_LIST:
        raise FormatError("special_tokens", f"files of version {config.get('version')!r} list them")
    special = _special(document.get("special_tokens"), first)
    return build(tokens, pattern, special, notes={"bos_token": "<s>", "eos_token": "</s>"})


def _token(entry: dict[str, Any], rank: int) -> bytes:
    place = f"vocab[{rank}]"
    if id_of(entry.get("rank"), f"{place}.rank") != rank:
        raise UnsupportedError(f"{place}.rank", f"it is {entry['rank']}: the list is not in order")
    text = typed(entry.get("token_bytes"), str, f"{place}.token_bytes")
    try:
        return base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError(f"{place}.token_bytes", f"it is not base64: {error}") from None


def _special(entries: Any, first: int) -> dict[str, int]:
    """The special tokens: the listed ones, and others with a numbered name."""
    names: list[str] = [] if entries else _FIRST[:first]
    for number, entry in enumerate(typed(entries or [], list, "special_tokens")):
        place = f"special_tokens[{number}]"
        entry = typed(entry, dict, place)
        id = id_of(entry.get("rank"), f"{place}.rank")
        if id != number or id >= first:
            raise UnsupportedError(f"{place}.rank", f"{id} is not {number}, or not below {first}")
        names.append(typed(entry.get("token_str"), str, f"{place}.token_str"))
    names += [f"<SPECIAL_{id}>" for id in range(len(names), first)]
    every = {name: id for id, name in enumerate(names)}
    if len(every) < first:
        raise FormatError("special_tokens", "a name is given twice")
    return every
