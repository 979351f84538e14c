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
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from bytepair import _core
from bytepair.errors import FormatError, LossError, UnsupportedError
from bytepair.formats.files import MAX_VOCAB_SIZE, Cursor, read_file, write_whole
from bytepair.formats.parts import Asked, Parts, all_pairs
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
    """Read a file, with the pattern and the special tokens that the caller names.

    Raises:
        FormatError: if the file breaks a rule, or what it does not say is not named.
        UnsupportedError: if it is not a vocabulary of bytes, or its scores are no order.
    """
    entries, header = _entries(read_file(path), layout)
    if asked.pattern is None:
        raise FormatError("split pattern", "the file does not say how text is split; pass pattern=")
    ids: dict[bytes, int] = {}
    for id, (_, token) in enumerate(entries):
        if token and token != hole(id):
            if token in ids:
                raise FormatError(f"id {id}", f"the token {token!r} has the id {ids[token]} too")
            ids[token] = id
    missing = [byte for byte in range(256) if bytes([byte]) not in ids]
    if missing:
        raise UnsupportedError(
            "tokens", f"the byte {missing[0]:#04x} has none, so this is no vocabulary of bytes"
        )
    scores = {token: entries[id][0] for token, id in ids.items()}
    special = _special(ids, scores, asked)
    tokens = {token: id for token, id in ids.items() if special.get(_text(token)) != id}
    notes = {}
    for role, field in (("bos_token", "begin"), ("eos_token", "end")):
        for name, id in special.items():
            if header.get(field) == id:
                notes[role] = name
    merges = _merges(tokens, scores)
    return Parts(tokens, asked.pattern, special, merges, notes=notes)


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
    for name, id in asked.special_tokens.items():
        if ids.get(name.encode()) != id:
            raise FormatError(f"id {id}", f"it is not {name!r}, as special_tokens= says")
    return dict(asked.special_tokens)


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace")


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
    order |= {token: len(order) for token in tokens if token not in order}
    pairs = all_pairs(tokens)
    return sorted(pairs, key=lambda pair: order[pair[0] + pair[1]])


# ---------------------------------------------------------------------------- writing


def losses(tokenizer: _core.Tokenizer, layout: _Layout = LLAMA2C) -> list[str]:
    """What the file cannot hold, and what the engines do in another way."""
    lost = [
        *_unsaid(tokenizer, layout),
        "the split pattern: the engines merge across pretokens too",
    ]
    if tokenizer.special_tokens:
        lost.append("which tokens are special")
    if made := [name for name in tokenizer.special_tokens if _is_made(name, tokenizer)]:
        lost.append(f"special tokens that text cannot forge: the engines merge {made[0]!r} from it")
    if tokenizer.merge_rule == "merges":
        lost.append("the list of merges: any two neighbours merge that make a token")
    lost += _in_run_c(tokenizer) if layout is LLAMA2C else [_DROPPED]
    return lost + _by_characters(tokenizer)


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
            f"{FIRST_BYTE} for ids, which are {_shown(tokenizer, 'é')} for 'é'; {remedy}"
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


def _shown(tokenizer: _core.Tokenizer, *ids: int | str) -> str:
    """The tokens that `run.c` takes, by their ids or for the bytes of a character."""
    wanted = [
        id
        for one in ids
        for id in ([byte + FIRST_BYTE for byte in one.encode()] if isinstance(one, str) else [one])
    ]
    there = [id for id in wanted if id < tokenizer.vocab_size]
    return " ".join(repr(tokenizer.token_bytes(id)) for id in there) or "no tokens"


def _is_made(name: str, tokenizer: _core.Tokenizer) -> bool:
    """Whether two tokens make the text of a special one, which the engines do not tell apart."""
    data, ids = name.encode(), tokenizer.mergeable_ranks()
    return any(data[:at] in ids and data[at:] in ids for at in range(1, len(data)))


def _by_characters(tokenizer: _core.Tokenizer) -> list[str]:
    """Where beginning with whole characters, as the engines do, gives other ids."""
    across = [token for token in tokenizer.mergeable_ranks() if _is_across(token)]
    if not across:
        return []
    return [
        f"{len(across)} tokens that hold a part of one character beside another, such as "
        f"{across[0]!r}: the engines begin with whole characters, so text beyond ASCII may get "
        "other ids"
    ]


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


def hole(id: int) -> bytes:
    """What stands for an id that has no token: ids are counted, so each needs an entry."""
    return b"<|hole_%d|>" % id


def write(tokenizer: _core.Tokenizer, path: Path, layout: _Layout = LLAMA2C) -> None:
    """Write a file.

    Raises:
        LossError: if the header asks for a token that nobody named.
    """
    if unsaid := _unsaid(tokenizer, layout):
        raise LossError(layout.name, unsaid)
    names = {id: name.encode() for name, id in tokenizer.special_tokens.items()}
    tokens = {id: token for token, id in tokenizer.mergeable_ranks().items()} | names
    by_token = scores(tokenizer)
    entries = [tokens.get(id) or hole(id) for id in range(tokenizer.vocab_size)]
    parts = [struct.pack("<I", max(map(len, entries), default=0))]
    special, ends = tokenizer.special_tokens, _ends(tokenizer)
    parts += [struct.pack("<I", special[ends[field]]) for field in layout.fields]
    for id, token in enumerate(entries):
        score = NO_MERGE if id in names else by_token.get(token, NO_MERGE)
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
