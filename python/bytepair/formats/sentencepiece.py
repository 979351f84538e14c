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
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.files.safe import MAX_VOCAB_SIZE, read_file
from bytepair.formats import pieces as scored
from bytepair.formats.parts import LoadOptions
from bytepair.formats.pieces import CONTROL, NORMAL, UNKNOWN, ScoredPiece

#: Types of models.
_MODELS: Final = {1: "unigram", 2: "BPE", 3: "word", 4: "char"}
_BPE: Final = 2

#: The fields that are read, by their numbers: names and types.
_KnownFields: TypeAlias = dict[int, tuple[str, type]]
_PIECE: Final[_KnownFields] = {1: ("piece", str), 2: ("score", float), 3: ("type", int)}
_TRAINING: Final[_KnownFields] = {
    3: ("model_type", int), 24: ("treat_whitespace_as_suffix", int), 40: ("unk_token", int),
    41: ("bos_token", int), 42: ("eos_token", int), 43: ("pad_token", int),
}  # fmt: skip
_NORMALIZATION: Final[_KnownFields] = {
    1: ("name", str), 2: ("precompiled_charsmap", bytes), 3: ("add_dummy_prefix", int),
    4: ("remove_extra_whitespaces", int), 5: ("escape_whitespaces", int),
}  # fmt: skip

#: The ids of tokens where the training section does not give them; that of padding has none.
_ROLES: Final = {"unk_token": 0, "bos_token": 1, "eos_token": 2, "pad_token": -1}


def is_one(head: bytes) -> bool:
    """Whether a file begins as a model does: with a piece, which begins with its text."""
    return re.match(rb"\x0a[\x01-\x7f]\x0a|\x0a[\x80-\xff][\x01-\x7f]\x0a", head) is not None


def read(path: Path, options: LoadOptions) -> _core.Model:
    """Read a model."""
    return parse(read_file(path), options)


def parse(data: bytes, options: LoadOptions) -> _core.Model:
    """The values in the bytes of a model; see `read`."""
    pieces: list[ScoredPiece] = []
    training: dict[str, Any] = {}
    normalization: dict[str, Any] = {}
    for number, value in fields(data, "the file"):
        if number == 1:
            if len(pieces) >= MAX_VOCAB_SIZE:
                raise FormatError("pieces", f"there are more than {MAX_VOCAB_SIZE}")
            piece = _message(value, _PIECE, f"pieces[{len(pieces)}]")
            values = piece.get("piece", ""), piece.get("score", 0.0), piece.get("type", NORMAL)
            pieces.append(ScoredPiece(*values))
        elif number == 2:
            training |= _message(value, _TRAINING, "trainer_spec")
        elif number == 3:
            normalization |= _message(value, _NORMALIZATION, "normalizer_spec")
    _check_training(training)
    _check_normalization(normalization, options)
    form = "spaces always" if normalization.get("add_dummy_prefix", 1) else "spaces"
    notes = {}
    for role, default in _ROLES.items():
        id = training.get(role, default)
        is_known = 0 <= id < len(pieces)
        if is_known and (role == "pad_token" or pieces[id].kind in {CONTROL, UNKNOWN}):
            notes[role] = pieces[id].text
    return scored.model(dict(enumerate(pieces)), form, notes, "pieces")


def _check_training(training: dict[str, Any]) -> None:
    kind = training.get("model_type", 1)
    if kind != _BPE:
        raise UnsupportedError(
            "trainer_spec.model_type",
            f"{_MODELS.get(kind, kind)} is not BPE, and only BPE merges",
            hint="train a model with --model_type=bpe --byte_fallback, or use the library "
            "sentencepiece",
        )
    if training.get("treat_whitespace_as_suffix"):
        raise UnsupportedError(
            "trainer_spec.treat_whitespace_as_suffix", "spaces are put after texts"
        )


def _check_normalization(spec: dict[str, Any], options: LoadOptions) -> None:
    """Refuse a normalization that changes more than spaces."""
    wrong = None
    if spec.get("precompiled_charsmap"):
        rule = spec.get("name", "")
        wrong = ("precompiled_charsmap", f"the rule {rule!r} exchanges characters of texts")
    elif spec.get("remove_extra_whitespaces", 1):
        wrong = ("remove_extra_whitespaces", "spaces of texts are dropped")
    elif not spec.get("escape_whitespaces", 1):
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


#: The bytes of a number of each fixed size, by its type in the file.
_FIXED: Final = {1: 8, 5: 4}
#: A number has at most 64 bits, in groups of 7.
_MOST_GROUPS: Final = 10


def _message(data: int | bytes, known: _KnownFields, place: str) -> dict[str, Any]:
    """The values of the known fields of a message, by their names."""
    if not isinstance(data, bytes):
        raise FormatError(place, "it is a number")
    values: dict[str, Any] = {}
    for number, value in fields(data, place):
        name, kind = known.get(number, ("", bytes))
        if not name:
            continue
        if isinstance(value, int) != (kind is int) or (kind is float and len(value) != 4):  # type: ignore[arg-type]
            raise FormatError(f"{place}.{name}", f"it is not of the type {kind.__name__}")
        try:
            values[name] = _DECODED[kind](value)
        except UnicodeDecodeError:
            raise FormatError(f"{place}.{name}", "it is not UTF-8") from None
    return values


#: How the value of a field is read, by its type; numbers have 32 bits.
_DECODED: Final[dict[type, Any]] = {
    int: lambda number: ((number & 0xFFFFFFFF) ^ (1 << 31)) - (1 << 31),
    float: lambda data: struct.unpack("<f", data)[0],
    str: bytes.decode,
    bytes: bytes,
}


def fields(data: bytes, place: str) -> Iterator[tuple[int, int | bytes]]:
    r"""The fields of a message: their numbers and values.

    A value is a number, or the bytes of a number of fixed size, a string or a message.

    Example:
        >>> list(fields(b"\x08\x96\x01\x12\x02ab", "an example"))
        [(1, 150), (2, b'ab')]
    """
    at = 0
    while at < len(data):
        key, at = _number(data, at, place)
        kind, number = key & 7, key >> 3
        size, after = (_FIXED[kind], at) if kind in _FIXED else _number(data, at, place)
        if kind == 0:
            yield number, size
            at = after
        elif kind in {1, 2, 5}:
            at = after + size
            if at > len(data):
                left = len(data) - after
                raise FormatError(place, f"field {number} has {size} bytes, and {left} are left")
            yield number, data[after:at]
        else:
            raise FormatError(place, f"field {number} is of the kind {kind}")


def _number(data: bytes, at: int, place: str) -> tuple[int, int]:
    """A number of groups of 7 bits, and where it ends."""
    value = 0
    for group, byte in enumerate(data[at : at + _MOST_GROUPS]):
        value |= (byte & 0x7F) << 7 * group
        if byte < 0x80:
            return value & (1 << 64) - 1, at + group + 1
    raise FormatError(place, f"a number at byte {at} is cut off, or too long")
