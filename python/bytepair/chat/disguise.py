"""Disguise texts so that nothing in them can be mistaken for a special token.

Characters that could be part of a special token are replaced by private-use characters that occur
nowhere else, and restored after rendering. So everything that looks like a special token in the
rendered string was written by the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Any, Final

from bytepair.chat.environment import END_INDEX, INDEX, START, STOP
from bytepair.errors import ConversationError

#: Private-use characters of Unicode.
_PRIVATE: Final = range(0x100000, 0x10FFFE)

#: The types of JSON schemas, of tools and of parts.
_TYPES: Final = frozenset(
    ("array", "audio", "boolean", "function", "image", "image_url", "integer", "null", "number",
     "object", "string", "text", "video")
)  # fmt: skip
_WORD: Final = re.compile(r"[\w$][\w .$-]*")


class Disguise:
    """Replaces characters of special tokens by private-use characters, and restores them.

    With `everywhere`, all characters with which a special token begins are replaced. Otherwise only
    the first character of each special token in the text, of a possible one that starts at the end
    of the text, and the first character of the text if a token may have started before it.
    The work is linear in the length of the text.
    """

    def __init__(self, special: Iterable[str], characters: set[str], *, everywhere: bool) -> None:
        names, self._everywhere = [*special], everywhere
        marks = {START, STOP, INDEX, END_INDEX}
        to_mask = sorted(marks | {c for name in names for c in name})
        #: Unused private-use characters.
        self.free: Iterator[str] = (chr(code) for code in _PRIVATE if chr(code) not in characters)
        self._on = dict(zip(to_mask, self.free, strict=False))
        self._off = {ord(mask): c for c, mask in self._on.items()}
        first = marks | {name[0] for name in names if everywhere}
        self._first = {ord(c): self._on[c] for c in first}
        self._names = set(names)
        self._lengths = sorted({*map(len, names)})
        self._heads = {name[:i] for name in names for i in range(1, len(name))}
        self._tails = {name[i:] for name in names for i in range(1, len(name))}
        self._longest = max(self._lengths, default=0)
        self._all = "\0".join(names)
        self._begins = re.compile("|".join({re.escape(name[0]) for name in names}) or r"(?!)")

    def put_on(self, text: str, *, inner: bool = True) -> str:
        """Disguise a text; if `inner`, also one that is a part of the name of a token."""
        start, body = len(text) - len(text.lstrip()), text.rstrip()
        places = set()
        if (inner and body[start:] in self._all) or self._begins_with_tail(text, start):
            places.add(start)
        if not self._everywhere:
            places |= {
                at.start() for at in self._begins.finditer(body) if self._is(body, at.start())
            }
        if places and start < len(text):
            text = "".join(self._on.get(c, c) if i in places else c for i, c in enumerate(text))
        return text.translate(self._first)

    def _begins_with_tail(self, text: str, start: int) -> bool:
        """Whether a token that the template begins may end in the text."""
        return any(
            text[start : start + length] in self._tails for length in range(1, self._longest)
        )

    def _is(self, text: str, at: int) -> bool:
        """Whether a token, or the first part of one at the end of the text, is at a position."""
        rest = text[at : at + self._longest]
        return rest in self._heads or any(rest[:length] in self._names for length in self._lengths)

    def take_off(self, text: str) -> str:
        """Restore the original characters in a rendered string."""
        return text.translate(self._off)


@dataclass(frozen=True)
class Rendering:
    """A conversation rendered to one string, in which only the template wrote special tokens.

    Attributes:
        string: the rendered string.
        starts: by the index of a message, where in the string without marks the template comes to
            it; messages that no loop comes to have none.
        disguise: the disguise of the texts in it.
        messages: the disguised messages.
        tools: the disguised tool definitions.
        run: a function that renders other messages or tools in the same disguise.
    """

    string: str
    starts: Mapping[int, int]
    disguise: Disguise
    messages: list[Any]
    tools: Any
    run: Callable[..., str]


def deep(value: Any, disguise: Disguise, fixed: Collection[str] = (), key: object = None) -> Any:
    """Disguise every string in a value, keys as well.

    A role, a type of JSON, and a key or a type that the template names (`fixed`) are words of the
    format; they are disguised only if there is more in them than letters.
    """
    if isinstance(value, str):
        is_word = key == "role" or (key == "type" and (value in _TYPES or value in fixed))
        return value if is_word and _WORD.fullmatch(value) else disguise.put_on(value)
    if isinstance(value, Mapping):
        return {
            name
            if not isinstance(name, str) or (name in fixed and _WORD.fullmatch(name))
            else disguise.put_on(name): deep(item, disguise, fixed, name)
            for name, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [deep(item, disguise, fixed, key if key == "type" else None) for item in value]
    if value is None or isinstance(value, bool | int | float | date | time) or callable(value):
        return value
    raise ConversationError(f"a conversation contains a {type(value).__name__}, which JSON lacks")
