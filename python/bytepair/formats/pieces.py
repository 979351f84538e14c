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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.formats.parts import Parts

#: Types of pieces.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

#: The maximum length of a piece in SentencePiece's trainer, in characters.
_MOST_CHARS: Final = 512
#: To find them costs the square of their number before the first text; Gemma 3 has 6,000.
_MOST_USER_DEFINED: Final = 32_768


@dataclass(frozen=True)
class ScoredPiece:
    """A piece: its text with U+2581 for spaces, its score, and its type."""

    text: str
    score: float
    kind: int


def parts(pieces: Mapping[int, ScoredPiece], form: str, notes: dict[str, str], place: str) -> Parts:
    """The tokenizer with these pieces, which stand at a place of the file.

    The name of a normalizer, such as "spaces always", says where spaces are put.
    """
    _check(pieces, place)
    control = {CONTROL, UNKNOWN}
    special = {piece.text: id for id, piece in pieces.items() if piece.kind in control}
    ids = {piece.text: id for id, piece in pieces.items() if piece.kind not in control}
    user_defined = [piece.text for piece in pieces.values() if piece.kind == USER_DEFINED]
    if len(user_defined) > _MOST_USER_DEFINED:
        reason = f"{len(user_defined)} pieces are user-defined; {_MOST_USER_DEFINED} are the most"
        raise UnsupportedError(place, reason)
    merges = merges_of(pieces.values(), place)
    return of_characters(ids, merges, form, special, notes, place, user_defined)


def _check(pieces: Mapping[int, ScoredPiece], list_name: str) -> None:
    numbers: dict[str, int] = {}
    single = {
        p.text for p in pieces.values() if p.kind in {NORMAL, USER_DEFINED} and len(p.text) == 1
    }
    for number, piece in pieces.items():
        place, text = f"{list_name}[{number}]", piece.text
        if not text:
            raise FormatError(place, "the piece is empty")
        if numbers.setdefault(text, number) != number:
            raise FormatError(place, f"{text!r} is also piece {numbers[text]}")
        if piece.kind == UNUSED:
            raise UnsupportedError(place, f"{text!r} is unused, so it is taken apart after merging")
        if piece.kind == USER_DEFINED and (text in BYTES or " " in text):
            why = "has a space, and texts have U+2581 there" if " " in text else "names a byte"
            raise UnsupportedError(place, f"the user-defined piece {text!r} {why}")
        if piece.kind == BYTE and text not in BYTES:
            raise FormatError(place, f"{text!r} is not a byte, such as <0x0A>")
        if piece.kind in {CONTROL, UNKNOWN} and len(text) == 1:
            raise UnsupportedError(place, f"{text!r} is a control piece that a text may have")
        if not NORMAL <= piece.kind <= BYTE:
            raise FormatError(place, f"the type {piece.kind} of {text!r} is not in 1 … 6")
        if piece.kind == NORMAL:
            _check_normal(piece, place, single)


def _check_normal(piece: ScoredPiece, place: str, single: set[str]) -> None:
    text = piece.text
    if len(text) > _MOST_CHARS:
        raise UnsupportedError(place, f"it has {len(text)} characters; {_MOST_CHARS} are the most")
    if text in BYTES:
        raise UnsupportedError(place, f"{text!r} is the name of a byte, and not of its type")
    if not math.isfinite(piece.score):
        raise FormatError(f"{place}.score", f"{piece.score} is not a score to merge by")
    if missing := set(text) - single:
        raise UnsupportedError(
            place,
            f"{text!r} has the character {min(missing)!r}, which is not a piece, so it would "
            "be merged although it is unknown",
        )


def merges_of(pieces: Iterable[ScoredPiece], place: str) -> list[tuple[str, str]]:
    """All pairs of pieces that make a piece, that of the highest score first."""
    scores = {p.text: p.score for p in pieces if p.kind == NORMAL}
    pairs = [
        (text[:at], text[at:])
        for text in scores
        for at in range(1, len(text))
        if text[:at] in scores and text[at:] in scores
    ]
    pairs.sort(key=lambda pair: (-scores["".join(pair)], -len(pair[0]), -len(pair[1])))
    texts = list(dict.fromkeys(map("".join, pairs)))
    alone = _alone(pairs, scores)
    for text, following in pairwise(sorted(texts, key=scores.__getitem__)):
        if scores[text] == scores[following] and not _run(text) == _run(following) in alone:
            raise UnsupportedError(
                place,
                f"{text!r} and {following!r} have the same score {scores[text]}, so that the "
                "leftmost goes first",
                hint="give each piece that is merged a score of its own",
            )
    return pairs


def _alone(pairs: list[tuple[str, str]], scores: dict[str, float]) -> set[str]:
    """The characters whose runs merge among themselves, with one score."""
    by_run: dict[str, set[float]] = {}
    others = set[str]()
    for pair in pairs:
        if run := _run(text := "".join(pair)):
            by_run.setdefault(run, set()).add(scores[text])
        else:
            others.update(map(_run, pair))
    return {run for run, found in by_run.items() if len(found) == 1} - others


def _run(text: str) -> str:
    """The character of which a text of several is a run, or an empty text."""
    return text[0] if len(text) > 1 and text == text[0] * len(text) else ""


# ---------------------------------------------------------------------------- characters

# Vocabularies of characters with byte fallback, independent of their file format: their tokens are
# texts with U+2581 for a space, and a token for each byte, named `<0x00>` to `<0xFF>`, used for
# characters without a token. Here tokens are bytes, with spaces for U+2581. A byte that is a
# character with a token as well has two ids: encoding gives that of the character, and the other,
# its *twin*, is only decoded. A byte of ASCII needs no token of that name if its character is a
# token.
#
# Such a tokenizer does not split text. Splitting between two characters that are adjacent in no
# token changes no id, since no merge crosses that place, and then pretokens repeat and can be
# cached. `_core.harmless_pattern` chooses such places.

#: The character that represents a space in the names of tokens.
META: Final = "\u2581"
#: The names of the tokens of single bytes.
BYTES: Final = [f"<0x{byte:02X}>" for byte in range(256)]


def of_characters(
    ids: Mapping[str, int],
    merges: Iterable[tuple[str, str]],
    form: str,
    special: Mapping[str, int],
    notes: dict[str, str],
    place: str,
    user_defined: Iterable[str] = (),
) -> Parts:
    """Put a tokenizer together, from names of tokens, those of bytes included."""
    has_byte = [name in ids or (byte < 128 and chr(byte) in ids) for byte, name in enumerate(BYTES)]
    if missing := [name for name, has in zip(BYTES, has_byte, strict=True) if not has]:
        raise UnsupportedError(
            place,
            f"the token {missing[0]!r} is missing, so a character without a token could not be "
            "encoded; only vocabularies with tokens for all 256 bytes are supported",
        )
    if spaced := [name for name in ids if " " in name]:
        raise UnsupportedError(
            place, f"{spaced[0]!r} contains a space instead of U+2581, so it is never used"
        )
    names = set(BYTES)
    tokens = {_token(name): id for name, id in ids.items() if name not in names}
    twins = {}
    for byte, name in enumerate(BYTES):
        if name in ids and tokens.setdefault(bytes([byte]), ids[name]) != ids[name]:
            twins[ids[name]] = bytes([byte])
    pairs = [(_token(left), _token(right)) for left, right in merges]
    rules = _core.TextRules(
        _core.harmless_pattern(list(tokens)),
        normalizer=[form],
        user_defined=[ids[name] for name in user_defined],
    )
    return Parts(tokens, rules, dict(special), pairs, notes=notes, twins=twins)


def _token(name: str) -> bytes:
    return name.replace(META, " ").encode()
