"""SentencePiece: `tokenizer.model` of the type BPE, read without the library.

The file is a protocol buffer: *pieces* with a score and a type, in order of id (`pieces`), and the
settings of training and normalization. SentencePiece never finds control pieces in a text, like
`special="text"` here. Other features of a model are refused by name.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from bytepair.errors import FormatError, UnsupportedError
from bytepair.files.safe import MAX_VOCAB_SIZE, read_file
from bytepair.formats import pieces as scored
from bytepair.formats.parts import LoadOptions, Parts
from bytepair.formats.pieces import CONTROL, NORMAL, UNKNOWN, ScoredPiece

#: Types of models.
_MODELS: Final = {1: "unigram", 2: "BPE", 3: "word", 4: "char"}
_BPE: Final = 2

#: The fields of the training section that give the id of a token, and their defaults.
_ROLES: Final = {"unk_token": (40, 0), "bos_token": (41, 1), "eos_token": (42, 2)}


def is_one(head: bytes) -> bool:
    """Whether a file begins as a model does: with a piece, which begins with its text."""
    return re.match(rb"\x0a[\x01-\x7f]\x0a|\x0a[\x80-\xff][\x01-\x7f]\x0a", head) is not None


def read(path: Path, options: LoadOptions) -> Parts:
    """Read a model."""
    return parse(read_file(path), options)


def parse(data: bytes, options: LoadOptions) -> Parts:
    """The values in the bytes of a model; see `read`."""
    pieces: list[ScoredPiece] = []
    training: dict[int, Field] = {}
    normalization: dict[int, Field] = {}
    for field in fields(data):
        if field[0] == 1:
            pieces.append(_piece(field, len(pieces)))
        elif field[0] in {2, 3}:
            inner = training if field[0] == 2 else normalization
            inner |= {one[0]: one for one in fields(as_bytes(field, "a specification"), field[2])}
    _check_training(training)
    prefix = _check_normalization(normalization, options)
    form = "spaces always" if prefix else "spaces"
    return scored.parts(dict(enumerate(pieces)), form, _roles(training, pieces), "pieces")


def _piece(field: Field, number: int) -> ScoredPiece:
    if number >= MAX_VOCAB_SIZE:
        raise FormatError("pieces", f"there are more than {MAX_VOCAB_SIZE}")
    place = f"pieces[{number}]"
    text, score, kind = "", 0.0, NORMAL
    for inner in fields(as_bytes(field, place), field[2]):
        if inner[0] == 1:
            text = as_text(inner, f"{place}.piece")
        elif inner[0] == 2:
            score = as_float(inner, f"{place}.score")
        elif inner[0] == 3:
            kind = as_int(inner, f"{place}.type")
    return ScoredPiece(text, score, kind)


def _check_training(training: dict[int, Field]) -> None:
    kind = as_int(training[3], "model_type") if 3 in training else 1
    if kind != _BPE:
        raise UnsupportedError(
            "trainer_spec.model_type",
            f"{_MODELS.get(kind, kind)} is not BPE, and only BPE merges",
            hint="train a model with --model_type=bpe --byte_fallback, or use the library "
            "sentencepiece",
        )
    if 24 in training and as_int(training[24], "treat_whitespace_as_suffix"):
        raise UnsupportedError(
            "trainer_spec.treat_whitespace_as_suffix", "spaces are put after texts"
        )


def _check_normalization(spec: dict[int, Field], options: LoadOptions) -> bool:
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
        wrong = ("escape_whitespaces", "it is off, so spaces do not become U+2581")
    if wrong and not options.lossy:
        raise UnsupportedError(
            f"normalizer_spec.{wrong[0]}",
            f"{wrong[1]}, and bytepair does not change texts",
            option="lossy",
            value=False,
            hint="normalize them yourself and pass lossy=True to read the rest, or train with "
            "--normalization_rule_name=identity --remove_extra_whitespaces=false",
        )
    return is_set(3, "add_dummy_prefix")


def _roles(training: dict[int, Field], pieces: list[ScoredPiece]) -> dict[str, str]:
    """Notes of the tokens that have a role."""
    notes = {}
    for role, (number, default) in _ROLES.items():
        id = as_int(training[number], role) if number in training else default
        if 0 <= id < len(pieces) and pieces[id].kind in {CONTROL, UNKNOWN}:
            notes[role] = pieces[id].text
    if 43 in training and 0 <= (pad := as_int(training[43], "pad_id")) < len(pieces):
        notes["pad_token"] = pieces[pad].text
    return notes


#: The number of a field, its value, and its offset in the file. A value is a number, eight or four
#: raw bytes, or the bytes of a string or of a message, with their offset.
Field: TypeAlias = tuple[int, int | bytes, int]

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
#: A number has at most 64 bits, in groups of 7.
_MOST_GROUPS: Final = 10


def fields(data: bytes, start: int = 0) -> Iterator[Field]:
    r"""The fields of a message, whose offset in the file is `start`.

    Example:
        >>> list(fields(b"\x08\x96\x01\x12\x02ab"))
        [(1, 150, 1), (2, b'ab', 5)]
    """
    at = 0
    while at < len(data):
        begin = at
        key, at = _number(data, at, start)
        kind, number = key & 7, key >> 3
        value: int | bytes
        if kind == _VARINT:
            place = at
            value, at = _number(data, at, start)
        elif kind in {_EIGHT, _BYTES, _FOUR}:
            length = {_EIGHT: 8, _FOUR: 4}.get(kind)
            if length is None:
                length, at = _number(data, at, start)
            place, value, at = at, data[at : at + length], at + length
            if at > len(data):
                left = len(data) - place
                raise FormatError(
                    f"byte {start + begin}",
                    f"field {number} has {length} bytes, and there are {left} more",
                )
        else:
            raise FormatError(f"byte {start + begin}", f"field {number} is of the kind {kind}")
        yield number, value, start + place


def _number(data: bytes, at: int, start: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = 0
    for group in range(_MOST_GROUPS):
        if at + group >= len(data):
            raise FormatError(f"byte {start + at}", "a number is cut off")
        byte = data[at + group]
        value |= (byte & 0x7F) << 7 * group
        if byte < 0x80:
            return value & (1 << 64) - 1, at + group + 1
    raise FormatError(f"byte {start + at}", f"a number has more than {_MOST_GROUPS} bytes")


def as_bytes(field: Field, what: str) -> bytes:
    """The value of a field that must be a string, a message or a number of fixed length."""
    if not isinstance(field[1], bytes):
        raise FormatError(f"byte {field[2]}", f"{what} is a number")
    return field[1]


def as_text(field: Field, what: str) -> str:
    """The value of a field that must be a text in UTF-8."""
    try:
        return as_bytes(field, what).decode()
    except UnicodeDecodeError:
        raise FormatError(f"byte {field[2]}", f"{what} is not UTF-8") from None


def as_int(field: Field, what: str) -> int:
    """The value of a field that must be a number of 32 bits with a sign."""
    if isinstance(field[1], bytes):
        raise FormatError(f"byte {field[2]}", f"{what} is not a number")
    low = field[1] & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def as_float(field: Field, what: str) -> float:
    """The value of a field that must be a fraction of 32 bits."""
    data = as_bytes(field, what)
    if len(data) != 4:
        raise FormatError(f"byte {field[2]}", f"{what} has {len(data)} bytes, not 4")
    return float(struct.unpack("<f", data)[0])
