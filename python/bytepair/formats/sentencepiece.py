"""SentencePiece: `tokenizer.model` of the type BPE, read without the library.

The file is a protocol buffer: *pieces* with a score and a type, in order of id, and what training
and normalization were told. Encoding starts with the characters of a text. It merges, again and
again, the two neighbours whose joined text is the piece of the highest score, the leftmost of
equals; then a character that is not a piece becomes its bytes.

That is a list of merges: of each piece all pairs that make it, in order of score. Of these pairs
only one ever occurs, for the reason that `bytepair.formats.huggingface` gives for ranks, so the
order among them does not matter. It needs that the characters of each piece are pieces, and that no
two pieces that can be merged have one score, but for runs of one character (Mistral's of spaces):

1. Say that all runs of the character have the score, and that a run of two or more merges with
   nothing but such runs. Then these merges go on by themselves where single characters are left
   side by side, whatever stands around them.
2. There the leftmost pair merges, so a first part grows while it can, then the next, which follows
   the same path and so never outgrows the one before. So lengths never rise from left to right, and
   the leftmost pair is that of the longest left part, and of these that of the longest right one.
3. So in this order the pairs of such runs are listed.

User-defined pieces are found in a text before anything is merged: from left to right, the longest
first, in the text whose spaces are U+2581. No merge makes or uses one: where its text begins, it
would have been found. So they are in no pair, and the pattern has a mark that names them.

Control pieces and the unknown piece become special tokens. SentencePiece never finds them in a
text, as `special="text"` does here. Whatever else a model asks for is refused by its name.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from bytepair.errors import FormatError, UnsupportedError
from bytepair.formats import characters
from bytepair.formats.files import MAX_VOCAB_SIZE, read_file
from bytepair.formats.parts import Asked, Parts
from bytepair.formats.protobuf import Field, as_bytes, as_float, as_int, as_text, fields

#: Types of pieces.
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)

#: Types of models.
_MODELS: Final = {1: "unigram", 2: "BPE", 3: "word", 4: "char"}
_BPE: Final = 2

#: The trainer makes no longer pieces (in characters).
_LONGEST: Final = 512

#: The fields of a training that name a token by its id, and their defaults.
_ROLES: Final = {"unk_token": (40, 0), "bos_token": (41, 1), "eos_token": (42, 2)}


@dataclass(frozen=True)
class _ModelPiece:
    text: str
    score: float
    kind: int


def is_one(head: bytes) -> bool:
    """Whether a file begins as a model does: with a piece, which begins with its text."""
    return re.match(rb"\x0a[\x01-\x7f]\x0a|\x0a[\x80-\xff][\x01-\x7f]\x0a", head) is not None


def read(path: Path, asked: Asked) -> Parts:
    """Read a model.

    Raises:
        FormatError: if the file breaks a rule.
        UnsupportedError: if it asks for what is not done exactly.
    """
    return parse(read_file(path), asked)


def parse(data: bytes, asked: Asked) -> Parts:
    """The values in the bytes of a model; see `read`."""
    pieces: list[_ModelPiece] = []
    training: dict[int, Field] = {}
    normalization: dict[int, Field] = {}
    for field in fields(data):
        if field[0] == 1:
            pieces.append(_piece(field, len(pieces)))
        elif field[0] in {2, 3}:
            inner = training if field[0] == 2 else normalization
            inner |= {one[0]: one for one in fields(as_bytes(field, "a specification"), field[2])}
    _check_training(training)
    prefix = _check_normalization(normalization, asked)
    _check_pieces(pieces)
    special = {p.text: id for id, p in enumerate(pieces) if p.kind in {_CONTROL, _UNKNOWN}}
    ids = {p.text: id for id, p in enumerate(pieces) if p.text not in special}
    user_defined = [p.text for p in pieces if p.kind == _USER_DEFINED]
    around: characters.Around = ("spaces always" if prefix else "spaces", {}, None)
    merges, notes = _merges(pieces), _roles(training, pieces)
    return characters.parts(ids, merges, around, special, notes, "pieces", user_defined)


def _piece(field: Field, number: int) -> _ModelPiece:
    if number >= MAX_VOCAB_SIZE:
        raise FormatError("pieces", f"there are more than {MAX_VOCAB_SIZE}")
    place = f"pieces[{number}]"
    text, score, kind = "", 0.0, _NORMAL
    for inner in fields(as_bytes(field, place), field[2]):
        if inner[0] == 1:
            text = as_text(inner, f"{place}.piece")
        elif inner[0] == 2:
            score = as_float(inner, f"{place}.score")
        elif inner[0] == 3:
            kind = as_int(inner, f"{place}.type")
    return _ModelPiece(text, score, kind)


def _check_training(training: dict[int, Field]) -> None:
    kind = as_int(training[3], "model_type") if 3 in training else 1
    if kind != _BPE:
        raise UnsupportedError(
            "trainer_spec.model_type",
            f"{_MODELS.get(kind, kind)} is not BPE, and only BPE merges; train a model with "
            "--model_type=bpe --byte_fallback, or keep to the library sentencepiece",
        )
    if 24 in training and as_int(training[24], "treat_whitespace_as_suffix"):
        raise UnsupportedError(
            "trainer_spec.treat_whitespace_as_suffix", "spaces are put behind texts; we do not"
        )


def _check_normalization(spec: dict[int, Field], asked: Asked) -> bool:
    """Refuse a normalization that changes more than spaces; says whether one is put first."""

    def is_set(number: int, name: str) -> bool:
        return bool(as_int(spec[number], name)) if number in spec else True

    rule = as_text(spec[1], "normalizer_spec.name") if 1 in spec else ""
    wrong = None
    if 2 in spec and as_bytes(spec[2], "precompiled_charsmap"):
        wrong = ("precompiled_charsmap", f"the rule {rule!r} exchanges characters of texts")
    elif is_set(4, "remove_extra_whitespaces"):
        wrong = ("remove_extra_whitespaces", "spaces of texts are dropped")
    elif not is_set(5, "escape_whitespaces"):
        wrong = ("escape_whitespaces", "it is off, so spaces are no U+2581")
    if wrong and not asked.lossy:
        raise UnsupportedError(
            f"normalizer_spec.{wrong[0]}",
            f"{wrong[1]}, and we take texts as they are; normalize them yourself and pass "
            "lossy=True to read the rest, or train with --normalization_rule_name=identity "
            "--remove_extra_whitespaces=false",
        )
    return is_set(3, "add_dummy_prefix")


def _check_pieces(pieces: list[_ModelPiece]) -> None:
    numbers: dict[str, int] = {}
    single = {p.text for p in pieces if p.kind in {_NORMAL, _USER_DEFINED} and len(p.text) == 1}
    for number, piece in enumerate(pieces):
        place, text = f"pieces[{number}]", piece.text
        if not text:
            raise FormatError(place, "the piece is empty")
        if numbers.setdefault(text, number) != number:
            raise FormatError(place, f"{text!r} is also piece {numbers[text]}")
        if piece.kind == _UNUSED:
            raise UnsupportedError(place, f"{text!r} is unused, so it is taken apart after merging")
        if piece.kind == _USER_DEFINED and (text in characters.BYTES or " " in text):
            why = "has a space, and texts have U+2581 there" if " " in text else "names a byte"
            raise UnsupportedError(place, f"the user-defined piece {text!r} {why}")
        if piece.kind == _BYTE and text not in characters.BYTES:
            raise FormatError(place, f"{text!r} is not a byte, such as <0x0A>")
        if piece.kind in {_CONTROL, _UNKNOWN} and len(text) == 1:
            raise UnsupportedError(place, f"{text!r} is a control piece that a text may have")
        if not _NORMAL <= piece.kind <= _BYTE:
            raise FormatError(place, f"the type {piece.kind} of {text!r} is not in 1 … 6")
        if piece.kind == _NORMAL:
            _check_normal(piece, place, single)


def _check_normal(piece: _ModelPiece, place: str, single: set[str]) -> None:
    text = piece.text
    if len(text) > _LONGEST:
        raise UnsupportedError(place, f"it has {len(text)} characters; {_LONGEST} are the most")
    if text in characters.BYTES:
        raise UnsupportedError(place, f"{text!r} is the name of a byte, and not of its type")
    if not math.isfinite(piece.score):
        raise FormatError(f"{place}.score", f"{piece.score} is not a score to merge by")
    if missing := set(text) - single:
        raise UnsupportedError(
            place,
            f"{text!r} has the character {min(missing)!r}, which is not a piece, so it would "
            "be merged although it is unknown",
        )


def _merges(pieces: list[_ModelPiece]) -> list[tuple[str, str]]:
    """All pairs of pieces that make a piece, that of the highest score first."""
    scores = {p.text: p.score for p in pieces if p.kind == _NORMAL}
    pairs = [
        (text[:at], text[at:])
        for text in scores
        for at in range(1, len(text))
        if text[:at] in scores and text[at:] in scores
    ]
    pairs.sort(key=lambda pair: (-scores["".join(pair)], -len(pair[0]), -len(pair[1])))
    made = list(dict.fromkeys(map("".join, pairs)))
    for text, following in pairwise(sorted(made, key=scores.__getitem__)):
        if scores[text] == scores[following] and not _are_runs(text, following, scores, pairs):
            raise UnsupportedError(
                "pieces",
                f"{text!r} and {following!r} have the same score {scores[text]}, so that the "
                "leftmost goes first; give each piece that is merged a score of its own",
            )
    return pairs


def _are_runs(one: str, other: str, scores: dict[str, float], pairs: list[tuple[str, str]]) -> bool:
    """Whether two pieces are runs of a character that merge among themselves, with one score."""
    character = one[0]

    def is_run(text: str) -> bool:
        return len(text) > 1 and text == character * len(text)

    if not (is_run(one) and is_run(other)):
        return False
    alone = all(is_run(a + b) for a, b in pairs if is_run(a) or is_run(b))
    return alone and all(scores[a + b] == scores[one] for a, b in pairs if is_run(a + b))


def _roles(training: dict[int, Field], pieces: list[_ModelPiece]) -> dict[str, str]:
    """Notes of the tokens that have a role."""
    notes = {}
    for role, (number, default) in _ROLES.items():
        id = as_int(training[number], role) if number in training else default
        if 0 <= id < len(pieces) and pieces[id].kind in {_CONTROL, _UNKNOWN}:
            notes[role] = pieces[id].text
    if 43 in training and 0 <= (pad := as_int(training[43], "pad_id")) < len(pieces):
        notes["pad_token"] = pieces[pad].text
    return notes
