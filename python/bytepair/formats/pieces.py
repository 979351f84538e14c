"""Pieces with scores: the vocabulary of a SentencePiece model, and of GGUF's tokenizers `llama`.

Encoding starts with the characters of a text. It merges, again and again, the two neighbours whose
joined text is the piece of the highest score, the leftmost of equals; then a character that is not
a piece becomes its bytes.

That is a list of merges: of each piece all pairs that make it, in order of score. Of these pairs
only one ever occurs, for the reason that `docs/formats/tokenizer-json.md` gives for ranks, so the
order among them does not matter. This requires that the characters of each piece are pieces, and
that no two pieces that can be merged have the same score. Runs of one character, such as Mistral's
runs of spaces, are an exception:

1. Assume that all runs of the character have one score, and that a run of two or more merges with
   nothing but such runs. Then these merges depend only on the single characters that are left
   side by side, whatever is around them.
2. The leftmost pair merges first, so the first part grows as long as it can, then the next one,
   which follows the same path and never outgrows the one before. So lengths never increase from
   left to right, and the leftmost pair is the one with the longest left part and, among those,
   the longest right part.
3. So the pairs of such runs are listed in this order.

User-defined pieces are found in a text before anything is merged: from left to right, the longest
first, in the text whose spaces are U+2581. No merge makes or uses one: where its text begins, it
would have been found. So they are in no pair, and the pattern has a mark that names them.

Control pieces and the unknown piece become special tokens.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import AnyStr, Final, NamedTuple

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.formats.parts import build
from bytepair.properties.tokens import AddedToken

#: Types of pieces.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

#: The maximum length of a piece in SentencePiece's trainer, in characters. To look for the parts
#: of a piece takes the square of it.
MOST_CHARS: Final = 512
#: The characters that all merges may have, for each character of all pieces, and beside these:
#: published models have fewer than three for each.
_MERGE_CHARS: Final = 64
_MORE_MERGE_CHARS: Final = 1 << 20


class ScoredPiece(NamedTuple):
    """A piece: its text with U+2581 for spaces, its score, and its type."""

    text: str
    score: float
    kind: int


#: The character that represents a space in the names of tokens.
META: Final = "\u2581"
#: The names of the tokens of single bytes.
BYTES: Final = {f"<0x{byte:02X}>": byte for byte in range(256)}


def model(
    pieces: Mapping[int, ScoredPiece],
    form: str,
    notes: dict[str, str],
    place: str,
    ordinary: Collection[int] = (),
) -> _core.Model:
    """The tokenizer with these pieces, which stand at a place of the file.

    Of the control pieces, those with `ordinary` ids are found in every text. The name of a
    normalizer, such as "spaces always", says where spaces are put. Tokens are bytes
    here, with spaces for U+2581. A byte that is a character with a token as well has two ids:
    encoding gives that of the character, and the other, its *twin*, is only decoded.

    Such a tokenizer does not split text. Splitting between two characters that are adjacent in no
    token changes no id, since no merge crosses that place, and then pretokens repeat and can be
    cached. `_core.harmless_pattern` chooses such places.
    """
    _check(pieces, place)
    control = {CONTROL, UNKNOWN}
    added = [
        AddedToken(piece.text, id, special=id not in ordinary)
        for id, piece in pieces.items()
        if piece.kind in control
    ]
    ids = {piece.text: id for id, piece in pieces.items() if piece.kind not in control}
    # A byte of ASCII needs no token of that name if its character is a token.
    has = (name in ids or (byte < 128 and chr(byte) in ids) for name, byte in BYTES.items())
    if not all(has):
        raise UnsupportedError(
            place,
            "not all 256 bytes have a token, such as <0x0A>, so a character without a token could "
            "not be encoded",
        )
    merges = merges_of(pieces.values(), place)
    tokens = {_token(name): id for name, id in ids.items() if name not in BYTES}
    twins = {}
    for name, byte in BYTES.items():
        if name in ids and tokens.setdefault(bytes([byte]), ids[name]) != ids[name]:
            twins[ids[name]] = bytes([byte])
    rules = _core.TextRules(
        _core.harmless_pattern(list(tokens)),
        normalizer=[form],
        user_defined=[id for id, piece in pieces.items() if piece.kind == USER_DEFINED],
    )
    pairs = [(_token(left), _token(right)) for left, right in merges]
    return build(tokens, rules, added, pairs, notes=notes, twins=twins)


def _token(name: str) -> bytes:
    return name.replace(META, " ").encode()


def _check(pieces: Mapping[int, ScoredPiece], list_name: str) -> None:
    numbers: dict[str, int] = {}
    single = {
        p.text for p in pieces.values() if p.kind in {NORMAL, USER_DEFINED} and len(p.text) == 1
    }
    for number, piece in pieces.items():
        place, text, kind = f"{list_name}[{number}]", piece.text, piece.kind
        if not text:
            raise FormatError(place, "the piece is empty")
        if numbers.setdefault(text, number) != number:
            raise FormatError(place, f"{text!r} is also piece {numbers[text]}")
        if not NORMAL <= kind <= BYTE or (kind == BYTE and text not in BYTES):
            raise FormatError(place, f"{text!r} is not of the type {kind}")
        if kind == NORMAL and not math.isfinite(piece.score):
            raise FormatError(f"{place}.score", f"{piece.score} is not a score to merge by")
        if reason := _unsupported(piece, single):
            raise UnsupportedError(place, f"{text[:40]!r} {reason}")


def _unsupported(piece: ScoredPiece, single: set[str]) -> str:
    """Why a piece cannot be reproduced exactly; empty if it can."""
    text, kind = piece.text, piece.kind
    if kind == UNUSED:
        return "is unused, so it is taken apart after merging"
    if kind in {NORMAL, USER_DEFINED} and text in BYTES:
        return "is the name of a byte, and not of its type"
    if kind in {NORMAL, USER_DEFINED} and " " in text:
        return "has a space, and texts have U+2581 there"
    if kind in {CONTROL, UNKNOWN} and len(text) == 1:
        return "is a control piece that a text may have"
    if kind == NORMAL and len(text) > MOST_CHARS:
        return f"has {len(text)} characters; {MOST_CHARS} are the most"
    if kind == NORMAL and (missing := set(text) - single):
        unknown = f"the character {min(missing)!r}, which is not a piece"
        return f"has {unknown}, so it would be merged although it is unknown"
    return ""


def merges_of(pieces: Iterable[ScoredPiece], place: str) -> list[tuple[str, str]]:
    """All pairs of pieces that make a piece, that of the highest score first."""
    scores = {p.text: p.score for p in pieces if p.kind == NORMAL}
    pairs = within_limit(
        (
            (text[:at], text[at:])
            for text in scores
            for at in range(1, len(text))
            if text[:at] in scores and text[at:] in scores
        ),
        scores,
        place,
    )
    pairs.sort(key=lambda pair: (-scores["".join(pair)], -len(pair[0]), -len(pair[1])))
    texts = list(dict.fromkeys(map("".join, pairs)))
    alone = _alone(pairs, scores)
    for text, following in pairwise(sorted(texts, key=scores.__getitem__)):
        if scores[text] == scores[following] and not run_of(text) == run_of(following) in alone:
            raise UnsupportedError(
                place,
                f"{text!r} and {following!r} have the same score {scores[text]}, so that the "
                "leftmost goes first",
                hint="give each piece that is merged a score of its own",
            )
    return pairs


def within_limit(
    pairs: Iterable[tuple[AnyStr, AnyStr]], tokens: Collection[AnyStr], place: str
) -> list[tuple[AnyStr, AnyStr]]:
    """The pairs, unless they are too long for their tokens: a few tokens may have very many."""
    left = _MERGE_CHARS * sum(map(len, tokens)) + _MORE_MERGE_CHARS
    kept = []
    for pair in pairs:
        left -= len(pair[0]) + len(pair[1])
        if left < 0:
            raise UnsupportedError(
                place,
                f"its merges have more than {_MERGE_CHARS} times the characters of its tokens",
            )
        kept.append(pair)
    return kept


def _alone(pairs: list[tuple[str, str]], scores: dict[str, float]) -> set[str]:
    """The characters whose runs merge among themselves, with one score."""
    by_run: dict[str, set[float]] = {}
    others = set[str]()
    for pair in pairs:
        if run := run_of(text := "".join(pair)):
            by_run.setdefault(run, set()).add(scores[text])
        else:
            others.update(map(run_of, pair))
    return {run for run, found in by_run.items() if len(found) == 1} - others


def run_of(text: str) -> str:
    """The character of which a text of several is a run, or an empty text.

    Example:
        >>> run_of("---"), run_of("--a"), run_of("-")
        ('-', '', '')
    """
    return text[0] if len(text) > 1 and text == text[0] * len(text) else ""
