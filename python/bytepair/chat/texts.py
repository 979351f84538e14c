"""Keeps texts apart from the special tokens of a Jinja template, and finds texts that it drops.

Before rendering, characters that could be part of a special token are replaced by private-use
characters that occur nowhere else; they are restored afterwards. So everything that looks like a
special token in the rendered string was written by the template. Texts get marks of such characters
as well: if a mark is missing from the rendered string, its text was dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from typing import Any, Final, NamedTuple

from bytepair.chat.rows import REASONING
from bytepair.chat.sandbox import END_INDEX, INDEX, START, STOP
from bytepair.errors import ConversationError

#: Private-use characters of Unicode.
_PRIVATE: Final = range(0x100000, 0x10FFFE)
#: Finds them: `str.translate` takes a hundred times as long on text that is not ASCII.
_MASKS: Final = re.compile(f"[{chr(_PRIVATE[0])}-{chr(_PRIVATE[-1])}]")

#: The types of JSON schemas, of tools and of parts.
_TYPES: Final = frozenset(
    ("array", "audio", "boolean", "function", "image", "image_url", "integer", "null", "number",
     "object", "string", "text", "video")
)  # fmt: skip
_WORD: Final = re.compile(r"[\w$][\w .$-]*")

#: The fields of a part or a call that are texts of the message.
_TEXTS: Final = ("text", "name", "arguments")

#: The description of the tools' texts.
_TOOLS: Final = "the tool definitions"


class MessageText(NamedTuple):
    """Where a text stands: the index of its message, or -1, and a description."""

    message: int
    description: str


class Disguise:
    """Replaces characters of special tokens by private-use characters, and restores them.

    With `everywhere`, all characters with which a special token begins are replaced. Otherwise only
    the first character of each special token in the text, of a possible one that starts at the end
    of the text, and the first character of the text if a token may have started before it.
    The work is linear in the length of the text.

    A role, a type of JSON, and a key or a type that the template names (`fixed`) are words of the
    format; they are disguised only if there is more in them than letters. So are all keys without
    `keys`, for templates that sort them. With `mark`, texts that the template must write get marks.

    Attributes:
        free: unused private-use characters.
        places: for each mark that is in use, the place of its text.
    """

    def __init__(
        self,
        special: Iterable[str],
        characters: set[str],
        *,
        everywhere: bool,
        fixed: frozenset[str] = frozenset(),
        keys: bool = True,
        mark: bool = False,
    ) -> None:
        names = [*special]
        self._everywhere, self._keys, self._mark = everywhere, keys, mark
        self._fixed, self._types = fixed, fixed | _TYPES
        marks = {START, STOP, INDEX, END_INDEX}
        to_mask = sorted(marks | {c for name in names for c in name})
        self.free: Iterator[str] = (chr(code) for code in _PRIVATE if chr(code) not in characters)
        self.places: dict[str, MessageText] = {}
        self._on = dict(zip(to_mask, self.free, strict=False))
        self._off = {mask: c for c, mask in self._on.items()}
        first = marks | {name[0] for name in names if everywhere}
        self._first = re.compile(f"[{re.escape(''.join(first))}]")
        self._names = set(names)
        self._lengths = sorted({*map(len, names)})
        self._heads = {name[:i] for name in names for i in range(1, len(name))}
        self._tails = {name[i:] for name in names for i in range(1, len(name))}
        self._longest = max(self._lengths, default=0)
        self._all = "\0".join(names)
        self._begins = re.compile("|".join({re.escape(name[0]) for name in names}) or r"(?!)")

    def put_on(self, text: str) -> str:
        """Disguise a text, even if it is a part of the name of a token."""
        start, body = len(text) - len(text.lstrip()), text.rstrip()
        places = set()
        if body[start:] in self._all or self._begins_with_tail(text, start):
            places.add(start)
        if not self._everywhere:
            places |= {
                at.start() for at in self._begins.finditer(body) if self._is(body, at.start())
            }
        if places and start < len(text):
            text = "".join(self._on.get(c, c) if i in places else c for i, c in enumerate(text))
        return self._first.sub(lambda c: self._on[c[0]], text)

    def _begins_with_tail(self, text: str, start: int) -> bool:
        """Whether a token that the template begins may end in the text."""
        return any(
            text[start : start + length] in self._tails for length in range(1, self._longest)
        )

    def _is(self, text: str, at: int) -> bool:
        """Whether a token, or the first part of one at the end of the text, is at a position."""
        rest = text[at : at + self._longest]
        return rest in self._heads or any(rest[:length] in self._names for length in self._lengths)

    def conversation(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Disguise the messages and the other fields of a conversation."""
        hidden = {"messages": [self._message(*one) for one in enumerate(fields["messages"])]}
        for name, value in fields.items():
            if name != "messages":
                place = MessageText(-1, _TOOLS) if name == "tools" else None
                hidden[name] = self._value(value, name, place)
        return hidden

    def _message(self, index: int, message: Mapping[str, Any]) -> dict[str, Any]:
        """A message: its content, name, reasoning and calls are texts that must be written."""
        reasoning = next((name for name in REASONING if message.get(name) is not None), None)
        name_of_user = "name" if message["role"] != "tool" else None  # there it is that of the call
        changed = {}
        for name, value in message.items():
            place = None
            if name in ("content", reasoning, name_of_user):
                place = MessageText(index, f"the {name} of message {index}")
            elif name == "tool_calls":
                place = MessageText(index, f"a tool call of message {index}")
            has_parts = isinstance(value, list) and name in ("content", "tool_calls")
            changed[self._key(name)] = (
                [self._part(part, place) for part in value]
                if has_parts
                else self._value(value, name, place)
            )
        return changed

    def _part(self, part: Any, place: MessageText | None) -> Any:
        """A part of a content, or a call: only some of its fields are texts."""
        if not isinstance(part, Mapping):
            return self._value(part, None, None)
        return {
            self._key(name): self._part(value, place)
            if name == "function"
            else self._value(value, name, place if name in _TEXTS else None)
            for name, value in part.items()
        }

    def _key(self, name: Any) -> Any:
        if not isinstance(name, str):
            return name
        is_word = (name in self._fixed or not self._keys) and _WORD.fullmatch(name)
        return name if is_word else self.put_on(name)

    def _value(self, value: Any, key: object, place: MessageText | None) -> Any:
        """A value under a key; its texts, but for types, get marks if they have a place."""
        if isinstance(value, str):
            is_word = key == "role" or (key == "type" and value in self._types)
            if is_word and _WORD.fullmatch(value):
                return value
            if place is None or key == "type" or not self._mark:
                return self.put_on(value)
            return self._marked(value, place)
        if isinstance(value, Mapping):
            return {self._key(k): self._value(v, k, place) for k, v in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            return [self._value(item, key if key == "type" else None, place) for item in value]
        if value is None or isinstance(value, bool | int | float | date | time) or callable(value):
            return value
        raise ConversationError(
            f"a conversation contains a {type(value).__name__}, which JSON lacks"
        )

    def _marked(self, text: str, place: MessageText) -> str:
        """Disguise a text and insert marks into it."""
        disguised = self.put_on(text)
        for at in reversed(_middles(text)):
            mark = next(self.free)
            self.places[mark], self._off[mark] = place, ""
            disguised = disguised[:at] + mark + disguised[at:]
        return disguised

    def take_off(self, text: str) -> str:
        """Restore the original characters in a rendered string."""
        return _MASKS.sub(lambda mask: self._off.get(mask[0], mask[0]), text)

    def dropped(self, string: str) -> list[MessageText]:
        """The places of texts that are not in a rendered string; one of the tools' suffices."""
        missing, visible = set[MessageText](), set[MessageText]()
        written = set(string)
        for mark, place in self.places.items():
            is_there = mark in written or json.dumps(mark)[1:-1] in string
            (visible if is_there else missing).add(place)
        missing -= {place for place in visible if place.description == _TOOLS}
        return [place for place in dict.fromkeys(self.places.values()) if place in missing]


def _middles(text: str) -> list[int]:
    """The positions of marks: not at the ends, which templates inspect; also within reasoning."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    thought = text.find("</think>")
    if start >= end:
        return []
    if thought < 0:
        return [(start + end + 1) // 2]
    after = thought + len("</think>")
    return [thought] if not text[after:].strip() else [thought, (after + end + 1) // 2]
