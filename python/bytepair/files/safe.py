"""Read untrusted files safely.

Reading returns a complete regular file, or parses numbers and strings from its bytes one by one.
Invalid content raises a `FormatError` with its place, such as the offset of a length that exceeds
the file. A name in a file must be the plain name of a regular file in the same folder: nothing in a
file leads out of its folder.
"""

from __future__ import annotations

import json
import math
import mmap
import re
import stat
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from bytepair.errors import FormatError, ShardError

#: The limit for ids, as in the core, so that a damaged count cannot exhaust memory.
MAX_VOCAB_SIZE = (1 << 21) - 2
#: All counts of bytes, tokens, documents and the like in a file are below this.
MAX_COUNT: Final = 1 << 48

_T = TypeVar("_T")


def read_file(path: Path, most: int = -1) -> bytes:
    """Read a regular file, or its beginning; reject pipes and devices, which may never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise FormatError(str(path), "this is not a regular file")
    with path.open("rb") as file:
        return file.read(most)


def parse_json(data: bytes, place: str) -> Any:
    """Parse JSON strictly: UTF-8, no duplicate names in an object, limited nesting depth."""
    try:
        text = data.decode("utf-8")
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=finite, parse_float=finite
        )
    except RecursionError:
        raise FormatError(place, "the JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"{place}, byte {error.start}", "the JSON is not UTF-8") from None
    except ValueError as error:  # also numbers with thousands of digits
        raise FormatError(place, f"invalid JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"duplicate name {twice[:40]!r} in an object")
    return members


def finite(text: str) -> float:
    """A number; refuse `NaN`, `Infinity`, and what would be written so, such as `1e400`."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


def typed(value: Any, kind: type[_T], place: str) -> _T:
    """Check the type of a JSON value; a bool is not an int, and a string must be valid UTF-8."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        actual = type(value).__name__
        raise FormatError(place, f"expected {kind.__name__}, not {actual}")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise FormatError(place, "the string contains an unpaired surrogate") from None
    return cast(_T, value)


def are_counts(*values: object) -> bool:
    """Whether values of JSON are numbers from 0 to `MAX_COUNT`."""
    return all(type(value) is int and 0 <= value < MAX_COUNT for value in values)


def json_note(notes: Mapping[str, str], key: str, kind: type[_T]) -> _T:
    """The value of a note that is JSON; an empty one if there is no such note."""
    text, place = notes.get(key), f"the note {key!r}"
    return typed(parse_json(text.encode(), place), kind, place) if text else kind()


def id_of(value: Any, place: str) -> int:
    """Check that a JSON value is an id."""
    id = typed(value, int, place)
    if not 0 <= id < MAX_VOCAB_SIZE:
        raise FormatError(place, f"id {id} is not in 0 … {MAX_VOCAB_SIZE - 1}")
    return id


def is_plain(name: str) -> bool:
    """Whether this is an ordinary file name on Linux, macOS and Windows, and no path."""
    if not name or name[-1] in ". " or len(name.encode(errors="replace")) > 255:
        return False
    device = re.fullmatch(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])", name.partition(".")[0])
    refused = re.search(r'[\x00-\x1f\x7f-\x9f\ud800-\udfff<>:"/\\|?*]', name)
    return device is None and refused is None


def check_regular(path: Path) -> None:
    """Check that what stands at a path, if anything, is a regular file and no link."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        kind = "symbolic link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "pipe"
        raise ShardError(f"{path} is a {kind}; it must be a regular file, so it is not read")


def check_own_folder(path: Path) -> None:
    """Check that what stands at the path of a folder of bytepair's own is a folder and no link."""
    if path.is_symlink():
        raise ShardError(
            f"{path} is a symbolic link, and its target would be changed", hint="remove the link"
        )
    if path.exists() and not path.is_dir():
        raise ShardError(f"{path} is a file, and a folder is kept there", hint="remove it")


class Cursor:
    """Reads little-endian numbers and strings from bytes, and tracks the offset."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.data, self.at = data, 0

    @property
    def left(self) -> int:
        """The number of remaining bytes."""
        return len(self.data) - self.at

    def take(self, count: int, what: str) -> bytes:
        """The next `count` bytes."""
        if count > self.left:
            raise FormatError(
                f"byte {self.at}", f"{what} needs {count} bytes, but only {self.left} remain"
            )
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, code: str, what: str) -> Any:
        """The next number, with a format code of the module `struct`."""
        layout = struct.Struct("<" + code)
        return layout.unpack(self.take(layout.size, what))[0]

    def u32(self, what: str) -> int:
        """The next number of 4 bytes."""
        return int(self.number("I", what))

    def u64(self, what: str) -> int:
        """The next number of 8 bytes."""
        return int(self.number("Q", what))


def to_json(value: Any, *, indent: int | None = 2) -> bytes:
    """Encode a value as JSON in UTF-8, with escapes only for halves of surrogate pairs."""
    text = json.dumps(value, ensure_ascii=False, indent=indent) + "\n"
    return text.encode(errors="backslashreplace")


#: The maximum number of levels of lists and objects in a value, and of bits of its integers.
MOST_DEPTH: Final = 200
MOST_BITS: Final = 4096


def read_json(text: str) -> Any:
    """A value of JSON, without numbers that JSON cannot hold and without keys that occur twice."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(f"it is nested more than {MOST_DEPTH} levels deep") from None
    if reason := no_json(value):
        raise ValueError(reason)
    return value


def no_json(value: Any) -> str:
    """Why JSON cannot hold a value; empty if it can."""
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        parts: list[Any] = []
        for one in level:
            if isinstance(one, float) and not math.isfinite(one):
                return f"it contains the number {one}"
            if isinstance(one, int) and one.bit_length() > MOST_BITS:
                return f"it contains an integer of {one.bit_length():,} bits"
            if isinstance(one, bytes | bytearray):
                return f"it contains {type(one).__name__}"
            if isinstance(one, Mapping):
                if not all(isinstance(key, str) for key in one):
                    return "it contains a key that is not a string"
                parts += one.values()
            elif isinstance(one, Sequence) and not isinstance(one, str):
                parts += one
        if not parts:
            return ""
        level = parts
    return f"it is nested more than {MOST_DEPTH} levels deep"


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique)
