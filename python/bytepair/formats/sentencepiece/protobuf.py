"""The wire format of protocol buffers: bytes in, fields out.

A message is a sequence of fields, each with a number, a type and a value. The reader of a format
interprets the numbers. The input is not trusted: a length beyond the end is a `FormatError` with
the offset of the field in the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, TypeAlias

from bytepair.errors import FormatError

#: The number of a field, its value, and its offset in the file. A value is a number, eight or four
#: raw bytes, or the bytes of a string or of a message, with their offset.
Field: TypeAlias = tuple[int, int | bytes, int]

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
#: A number has at most 64 bits, in groups of 7.
_MOST_GROUPS: Final = 10


def fields(data: bytes, start: int = 0) -> Iterator[Field]:
    r"""The fields of a message.

    Args:
        data: the message.
        start: its offset in the file, for errors.

    Raises:
        FormatError: if a field is cut off, or of a kind that is no longer in use.

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
