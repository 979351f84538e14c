"""`tokenizer.bin` of llama2.c and `.tokenizer` of the qwen3 engines: ids by order, with scores.

A header of numbers of 4 bytes (the length of the longest token; for qwen3 also the ids that begin
and end a text), then for each id a score, a length and the bytes. The engines merge the neighbours
whose joined bytes have the highest score, so the score of a token is -ln(rank + 1) of the merge
that makes it, and -1e6 where there is none. Neither the split pattern is in the file nor which
tokens are special.

Merging the bytes of a pretoken by score gives our ids. The engines begin with characters instead,
and do not split text; `losses` says where that gives other ids. The real `run.c` also takes for
granted which ids the bytes have, and which begins a text: `renumber` makes such a vocabulary.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from bytepair import _core
from bytepair.errors import FormatError, LossError, UnsupportedError
from bytepair.formats.files import MAX_VOCAB_SIZE, Cursor, read_file, write_whole
from bytepair.formats.parts import Asked, Parts, all_pairs, all_tokens
from bytepair.formats.renumber import FIRST_BYTE
from bytepair.formats.roles import roles

#: The score of a token that no merge makes.
NO_MERGE: Final = -1e6


@dataclass(frozen=True)
class _Layout:
    """What the header has after the length of the longest token."""

    name: str
    fields: tuple[str, ...]


_ROLES: Final = {"begin": "bos", "end": "eos"}

LLAMA2C: Final = _Layout("llama2c", ())
QWEN3: Final = _Layout("qwen3", ("begin", "end"))


# ---------------------------------------------------------------------------- reading


def is_one(data: bytes, layout: _Layout) -> bool:
    """Whether the bytes are a whole file of this layout."""
    try:
        _entries(data, layout)
    except FormatError:
        return False
    return True


def read(path: Path, asked: Asked, layout: _Layout = LLAMA2C) -> Parts:
    """Read a file, with the pattern and the special tokens that the caller names."""
    entries, header = _entries(read_file(path), layout)
    pattern = asked.named_pattern()
    ids = ids_of(token for _, token in entries)
    missing = [byte for byte in range(256) if bytes([byte]) not in ids]
    if missing:
        raise UnsupportedError(
            "tokens", f"the byte {missing[0]:#04x} has none, so this is no vocabulary of bytes"
        )
    scores = {token: entries[id][0] for token, id in ids.items()}
    special = _special(ids, scores, asked)
    named = {id: name for name, id in special.items()}
    tokens = {token: id for token, id in ids.items() if id not in named}
    notes = {f"{_ROLES[field]}_token": named[id] for field, id in header.items() if id in named}
    return Parts(tokens, pattern, special, _merges(tokens, scores), notes=notes)


def ids_of(tokens: Iterable[bytes]) -> dict[bytes, int]:
    """The ids of tokens that are listed in their order, but for those that stand for no token."""
    ids: dict[bytes, int] = {}
    for id, token in enumerate(tokens):
        if token and token != _hole(id) and ids.setdefault(token, id) != id:
            raise FormatError(f"id {id}", f"the token {token!r} has the id {ids[token]} too")
    return ids


def _entries(data: bytes, layout: _Layout) -> tuple[list[tuple[float, bytes]], dict[str, int]]:
    """The score and the bytes of each id, and the header."""
    cursor = Cursor(data)
    longest = cursor.u32("the length of the longest token")
    header = {field: cursor.u32(f"the id that is to {field} a text") for field in layout.fields}
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
            raise FormatError(place, f"{score} is no score")
        entries.append((score, cursor.take(length, "a token")))
    for field, id in header.items():
        if id >= len(entries):
            raise FormatError("byte 4", f"the id {id} to {field} a text is not in the file")
    if not entries:
        raise FormatError(f"byte {cursor.at}", "there are no tokens")
    return entries, header


def _special(ids: dict[bytes, int], scores: dict[bytes, float], asked: Asked) -> dict[str, int]:
    """The special tokens that the caller names, checked; none where there can be none."""
    if asked.special_tokens is None:
        unmade = [token for token, score in scores.items() if score <= NO_MERGE and len(token) > 1]
        if unmade:
            raise FormatError(
                "special tokens",
                f"the file does not say which tokens are special, and no merge makes "
                f"{len(unmade)} of them, such as {unmade[0]!r}; pass special_tokens=, {{}} if none",
            )
        return {}
    asked.check_special(ids)
    return dict(asked.special_tokens)


def _merges(
    tokens: dict[bytes, int], scores: dict[bytes, float]
) -> list[tuple[bytes, bytes]] | None:
    """None if the ids stand in the order of the scores, so that they are ranks; else the merges."""
    scored = [token for token in tokens if scores[token] > NO_MERGE and len(token) > 1]
    if not scored and any(len(token) > 1 for token in tokens):
        raise UnsupportedError(
            "scores", "no token has one, so nothing says which merge comes first"
        )
    by_score = sorted(scored, key=lambda token: -scores[token])
    for one, other in pairwise(by_score):
        if scores[one] == scores[other]:
            raise UnsupportedError("scores", f"{one!r} and {other!r} have the same, {scores[one]}")
    if by_score == sorted(scored, key=tokens.__getitem__):
        return None
    order = {token: rank for rank, token in enumerate(by_score)}
    return sorted(all_pairs(tokens), key=lambda pair: order.get(pair[0] + pair[1], len(order)))


# ---------------------------------------------------------------------------- writing


def losses(tokenizer: _core.Tokenizer, layout: _Layout = LLAMA2C) -> list[str]:
    """What the file cannot hold, and what the engines do in another way."""
    lost = _unsaid(tokenizer, layout)
    lost.append("the split pattern: the engines merge across pretokens too")
    if tokenizer.special_tokens:
        lost.append("which tokens are special")
    if made := [name for name in tokenizer.special_tokens if _is_made(name, tokenizer)]:
        lost.append(f"special tokens that text cannot forge: the engines merge {made[0]!r} from it")
    if tokenizer.merge_rule == "merges":
        lost.append("the list of merges: any two neighbours merge that make a token")
    lost += _in_run_c(tokenizer) if layout is LLAMA2C else [_DROPPED]
    if across := [token for token in tokenizer.mergeable_ranks() if _is_across(token)]:
        lost.append(
            f"{len(across)} tokens that hold a part of one character beside another, such as "
            f"{across[0]!r}: the engines begin with whole characters, so text beyond ASCII may get "
            "other ids"
        )
    return lost


#: What the engines after qwen3.c do with text beyond the vocabulary.
_DROPPED: Final = (
    "characters that are no token: qwen3-rs begins with the characters of a text, and leaves out "
    "those that no token is"
)


def _in_run_c(tokenizer: _core.Tokenizer) -> list[str]:
    """What `run.c` of llama2.c takes for granted and is not so."""
    remedy = "Tokenizer.with_sentencepiece_ids() (--sentencepiece-ids) makes a vocabulary for it"
    lost = ["how a text begins: run.c puts a space before it"]
    ids, known = tokenizer.mergeable_ranks(), tokenizer.special_tokens
    if any(ids.get(bytes([byte])) != byte + FIRST_BYTE for byte in range(256)):
        lost.append(
            "characters that are no token: run.c takes the values of their bytes plus "
            f"{FIRST_BYTE} for ids, which are "
            f"{_shown(tokenizer, *(byte + FIRST_BYTE for byte in 'é'.encode()))} for 'é'; {remedy}"
        )
    if known.get(roles(tokenizer).get("bos", "")) != 1 or 2 not in known.values():
        lost.append(
            "what begins and ends a text: run.c takes id 1 for the first, where it also stops, "
            f"and id 2 for the end of a turn, which are {_shown(tokenizer, 1, 2)}; {remedy}"
        )
    cut = [token for token in ids if len(token) > 1 and 0 in token]
    if cut:
        lost.append(f"tokens with the byte 0, where run.c takes them to end, such as {cut[0]!r}")
    return lost


def _shown(tokenizer: _core.Tokenizer, *ids: int) -> str:
    """The tokens that `run.c` takes, by their ids."""
    there = [id for id in ids if id < tokenizer.vocab_size]
    return " ".join(repr(tokenizer.token_bytes(id)) for id in there) or "no tokens"


def _is_made(name: str, tokenizer: _core.Tokenizer) -> bool:
    """Whether two tokens make the text of a special one, which the engines do not tell apart."""
    data, ids = name.encode(), tokenizer.mergeable_ranks()
    return any(data[:at] in ids and data[at:] in ids for at in range(1, len(data)))


def _is_across(token: bytes) -> bool:
    """Whether a token has a part of a character, and does not lie within one."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return any(byte & 0xC0 != 0x80 for byte in token[1:]) or token[0] < 0x80
    return False


def scores(tokenizer: _core.Tokenizer) -> dict[bytes, float]:
    """The score of each token that a merge makes: -ln(rank + 1), rounded to 4 bytes.

    Raises:
        LossError: if there are so many that two have the same.
    """
    made = list(dict.fromkeys(left + right for left, right in tokenizer.merges()))
    values = -np.log(np.arange(1, len(made) + 1)).astype(np.float32)
    if (np.diff(values) >= 0).any():
        raise LossError("llama2c", ["the order of so many merges: two scores are the same"])
    return dict(zip(made, values.tolist(), strict=True))


def _hole(id: int) -> bytes:
    """What stands for an id that has no token: ids are counted, so each needs an entry."""
    return b"<|hole_%d|>" % id


def entries_of(tokenizer: _core.Tokenizer) -> list[bytes]:
    """What is written for each id."""
    return [token or _hole(id) for id, token in enumerate(all_tokens(tokenizer))]


def write(tokenizer: _core.Tokenizer, path: Path, layout: _Layout = LLAMA2C) -> None:
    """Write a file, if all is named that the header asks for."""
    if unsaid := _unsaid(tokenizer, layout):
        raise LossError(layout.name, unsaid)
    entries, by_token = entries_of(tokenizer), scores(tokenizer)
    ids, ends = tokenizer.special_tokens, _ends(tokenizer)
    header = [max(map(len, entries), default=0), *(ids[ends[field]] for field in layout.fields)]
    parts = [struct.pack(f"<{len(header)}I", *header)]
    special = set(ids.values())
    for id, token in enumerate(entries):
        score = NO_MERGE if id in special else by_token.get(token, NO_MERGE)
        parts += [struct.pack("<fI", score, len(token)), token]
    write_whole(path, b"".join(parts))


def _ends(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The special tokens that begin and end a text; engines for conversations end with a turn."""
    known = roles(tokenizer)
    if not tokenizer.notes.get("eos_token") and "end_of_turn" in known:
        known["eos"] = known["end_of_turn"]
    return {field: known[role] for field, role in _ROLES.items() if role in known}


def _unsaid(tokenizer: _core.Tokenizer, layout: _Layout) -> list[str]:
    """What the header asks for and nobody said."""
    return [
        f"which token is to {field} a text: name it with --{_ROLES[field]}-token or "
        f"Tokenizer.with_roles({_ROLES[field]}=...)"
        for field in layout.fields
        if field not in _ends(tokenizer)
    ]
