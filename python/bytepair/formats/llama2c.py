"""`tokenizer.bin` of llama2.c and `.tokenizer` of the qwen3 engines: tokens with scores.

The file has a header of 4-byte integers (the length of the longest token; for qwen3 also the BOS
and EOS ids), then for each id a score, a length and the bytes. The engines merge the neighbours
whose joined bytes have the highest score, so the score of a token is -ln(rank + 1) of the merge
that produces it, and -1e6 if there is none. The file contains neither the split pattern nor which
tokens are special.

Merging the bytes of a pretoken by score produces bytepair's ids. The engines start with characters
instead, and do not split text; `losses` reports where this produces other ids. The original `run.c`
also assumes fixed ids of the bytes and of BOS: `bytepair.engines.with_sentencepiece_ids` makes a
vocabulary with these.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from bytepair import _core
from bytepair.errors import FormatError, LossError, UnsupportedError
from bytepair.files.safe import MAX_VOCAB_SIZE, Cursor, read_file
from bytepair.formats.parts import LoadOptions, build
from bytepair.formats.pieces import within_limit
from bytepair.properties.metadata import engine_tokens
from bytepair.properties.roles import giving, roles
from bytepair.properties.tokens import all_pairs, all_tokens

#: The id of the first byte in `run.c`.
FIRST_BYTE_ID: Final = 3

#: The score of a token that no merge produces.
NO_MERGE_SCORE: Final = -1e6

#: The roles of the ids in the header of each format, behind the length of the longest token.
LLAMA2C: Final[tuple[str, ...]] = ()
QWEN3: Final[tuple[str, ...]] = ("bos", "eos")

#: What an id of the header is for.
_WHAT: Final = {"bos": "begin", "eos": "end"}


def is_one(data: bytes, layout: tuple[str, ...]) -> bool:
    """Whether the bytes are a complete file with this header."""
    try:
        _entries(data, layout)
    except FormatError:
        return False
    return True


def read(path: Path, options: LoadOptions, layout: tuple[str, ...] = LLAMA2C) -> _core.Model:
    """Read a file, with the pattern and the special tokens passed by the caller."""
    entries, header = _entries(read_file(path), layout)
    pattern = options.named_pattern()
    ids = ids_of(token for _, token in entries)
    if missing := [byte for byte in range(256) if bytes([byte]) not in ids]:
        raise UnsupportedError(
            "tokens", f"the byte {missing[0]:#04x} has no token, so this is not byte-level BPE"
        )
    scores = {token: entries[id][0] for token, id in ids.items()}
    special = _special(ids, scores, options)
    names = {id: name for name, id in special.items()}
    tokens = {token: id for token, id in ids.items() if id not in names}
    notes = {f"{role}_token": names[id] for role, id in header.items() if id in names}
    return build(tokens, pattern, special, _merges(tokens, scores), notes=notes)


def ids_of(tokens: Iterable[bytes]) -> dict[bytes, int]:
    """The ids of tokens in a list, except placeholders for unused ids."""
    ids: dict[bytes, int] = {}
    for id, token in enumerate(tokens):
        if token and token != _hole(id) and ids.setdefault(token, id) != id:
            raise FormatError(f"id {id}", f"the token {token!r} also has the id {ids[token]}")
    return ids


def _entries(
    data: bytes, layout: tuple[str, ...]
) -> tuple[list[tuple[float, bytes]], dict[str, int]]:
    """The score and the bytes of each id, and the ids of the header by their roles."""
    cursor = Cursor(data)
    longest = cursor.u32("the length of the longest token")
    header = {role: cursor.u32(f"the id that is to {_WHAT[role]} a text") for role in layout}
    entries: list[tuple[float, bytes]] = []
    while cursor.left:
        place = f"byte {cursor.at}"
        if len(entries) == MAX_VOCAB_SIZE:
            raise FormatError(place, f"there are more than {MAX_VOCAB_SIZE} tokens")
        score: float = cursor.number("f", "a score")
        length = cursor.u32("a length")
        if length > longest:
            raise FormatError(place, f"a token has {length} bytes, the longest has {longest}")
        if not math.isfinite(score):
            raise FormatError(place, f"{score} is not a score")
        entries.append((score, cursor.take(length, "a token")))
    for role, id in header.items():
        if id >= len(entries):
            raise FormatError("byte 4", f"the id {id} to {_WHAT[role]} a text is not in the file")
    if not entries:
        raise FormatError(f"byte {cursor.at}", "there are no tokens")
    return entries, header


def _special(
    ids: dict[bytes, int], scores: dict[bytes, float], options: LoadOptions
) -> dict[str, int]:
    """Check the special tokens passed by the caller; without any, there must be no candidates."""
    for name, id in (options.special_tokens or {}).items():
        if ids.get(name.encode()) != id:
            raise FormatError(
                f"id {id}", f"it is not {name!r}, as in special_tokens", option="special_tokens"
            )
    unmade = [token for token in ids if scores[token] <= NO_MERGE_SCORE and len(token) > 1]
    if options.special_tokens is None and unmade:
        raise FormatError(
            "special tokens",
            f"the file does not mark special tokens, and {len(unmade)} tokens are not the result "
            f"of a merge, such as {unmade[0]!r}",
            option="special_tokens",
            hint="pass special_tokens=, or {} if there are none",
        )
    return dict(options.special_tokens or {})


def _merges(
    tokens: dict[bytes, int], scores: dict[bytes, float]
) -> list[tuple[bytes, bytes]] | None:
    """None if the ids are in the order of the scores, so that they are ranks; else the merges."""
    scored = [token for token in tokens if scores[token] > NO_MERGE_SCORE and len(token) > 1]
    if not scored and any(len(token) > 1 for token in tokens):
        raise UnsupportedError("scores", "no token has one, so the order of merges is unknown")
    by_score = sorted(scored, key=lambda token: -scores[token])
    for one, other in pairwise(by_score):
        if scores[one] == scores[other]:
            raise UnsupportedError(
                "scores", f"{one!r} and {other!r} have the same score {scores[one]}"
            )
    if by_score == sorted(scored, key=tokens.__getitem__):
        return None
    order = {token: rank for rank, token in enumerate(by_score)}
    pairs = within_limit(all_pairs(tokens), tokens, "the file")
    return sorted(pairs, key=lambda pair: order.get(pair[0] + pair[1], len(order)))


def losses(tokenizer: _core.Tokenizer, layout: tuple[str, ...] = LLAMA2C) -> list[str]:
    """What the file cannot represent, and what the engines do differently."""
    ids = tokenizer.mergeable_ranks()
    lost = _unknown_values(tokenizer, layout)
    lost.append("the borders of pretokens: the engines also merge across them")
    lengths = {len(token) for token in ids}
    names = map(str.encode, tokenizer.special_tokens)
    if made := [name.decode() for name in names if _is_made(name, ids, lengths)]:
        lost.append(f"protection of special tokens: the engines merge text to {made[0]!r}")
    if not layout:
        lost += _in_run_c(tokenizer)
    else:
        lost.append("characters without a token: qwen3-rs drops them")
    if across := [token for token in ids if _crosses_character(token)]:
        lost.append(
            f"{len(across)} tokens with a part of a character, such as {across[0]!r}: the engines "
            "start with complete characters, so non-ASCII text may get other ids"
        )
    return lost


def _in_run_c(tokenizer: _core.Tokenizer) -> list[str]:
    lost = ["the start of a text: run.c prepends a space"]
    if not _are_bytes_in_place(tokenizer):
        how = f"run.c uses the values of their bytes plus {FIRST_BYTE_ID} as ids"
        lost.append(f"characters without a token: {how}")
    if not _are_ends_in_place(tokenizer):
        how = "run.c uses id 1 as BOS, at which it also stops, and id 2 as the end of a turn"
        lost.append(f"BOS and EOS: {how}")
    tokens = tokenizer.mergeable_ranks()
    if zero := next((token for token in tokens if len(token) > 1 and 0 in token), None):
        lost.append(f"tokens with the byte 0, which ends a token in run.c, such as {zero!r}")
    return lost


def _are_bytes_in_place(tokenizer: _core.Tokenizer) -> bool:
    ids = tokenizer.mergeable_ranks()
    return all(ids.get(bytes([byte])) == byte + FIRST_BYTE_ID for byte in range(256))


def _are_ends_in_place(tokenizer: _core.Tokenizer) -> bool:
    special = tokenizer.special_tokens
    return special.get(roles(tokenizer).get("bos", "")) == 1 and 2 in special.values()


def hints(tokenizer: _core.Tokenizer, layout: tuple[str, ...] = LLAMA2C) -> list[str]:
    """How a file loses less."""
    ends = _ends(tokenizer)
    ways = [giving(role) for role in layout if role not in ends]
    in_place = _are_bytes_in_place(tokenizer) and _are_ends_in_place(tokenizer)
    if not layout and not in_place:
        ways.append("renumber the ids for run.c with bytepair.engines.with_sentencepiece_ids()")
    return ways


def _is_made(name: bytes, ids: dict[bytes, int], lengths: set[int]) -> bool:
    cuts = (at for at in range(1, len(name)) if {at, len(name) - at} <= lengths)  # long names
    return any(name[:at] in ids and name[at:] in ids for at in cuts)


def _crosses_character(token: bytes) -> bool:
    """Whether a token contains a part of one character beside another character."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return any(byte & 0xC0 != 0x80 for byte in token[1:]) or token[0] < 0x80
    return False


def scores(tokenizer: _core.Tokenizer) -> dict[bytes, float]:
    """The score of each token that a merge produces: -ln(rank + 1), rounded to 4 bytes."""
    tokens = list(dict.fromkeys(left + right for left, right in tokenizer.merges()))
    values = -np.log(np.arange(1, len(tokens) + 1)).astype(np.float32)
    if (np.diff(values) >= 0).any():
        raise LossError("llama2c", ["the order of merges: there are so many that scores are equal"])
    return dict(zip(tokens, values.tolist(), strict=True))


def _hole(id: int) -> bytes:
    """The placeholder for an unused id: ids are implicit, so each needs an entry."""
    return b"<|hole_%d|>" % id


def files(
    tokenizer: _core.Tokenizer, path: Path, layout: tuple[str, ...] = LLAMA2C
) -> dict[Path, bytes]:
    """The content of a file; an error if a value of the header is unknown."""
    if unknown := _unknown_values(tokenizer, layout):
        raise LossError("qwen3", unknown, hint=", or ".join(hints(tokenizer, layout)))
    tokens, by_token, ends = all_tokens(tokenizer), scores(tokenizer), _ends(tokenizer)
    special, longest, content = set(tokenizer.special_tokens.values()), 0, bytearray()
    for id, token in enumerate(tokens):
        token = token or _hole(id)
        score = NO_MERGE_SCORE if id in special else by_token.get(token, NO_MERGE_SCORE)
        longest = max(longest, len(token))
        content += struct.pack("<fI", score, len(token)) + token
    header = [longest, *(ends[role] for role in layout)]
    return {path: struct.pack(f"<{len(header)}I", *header) + content}


def _ends(tokenizer: _core.Tokenizer) -> dict[str, int]:
    """The ids of BOS and EOS; for chat engines, EOS is the end of a turn."""
    special, by_role = tokenizer.special_tokens, roles(tokenizer)
    ends = (engine_tokens(tokenizer).get("eos_token"), by_role.get("end_of_turn"))
    if end := next((name for name in ends if name in special), None):
        by_role["eos"] = end
    return {role: special[by_role[role]] for role in QWEN3 if role in by_role}


def _unknown_values(tokenizer: _core.Tokenizer, layout: tuple[str, ...]) -> list[str]:
    ends = _ends(tokenizer)
    return [
        f"the token to {_WHAT[role]} a text, since no token has the role {role}"
        for role in layout
        if role not in ends
    ]
