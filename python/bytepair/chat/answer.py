"""Reads the text of an answer, piece by piece: its reasoning, content and tool calls.

An answer is what the assistant writes between the opening and the closing token of its turn. The
template says how reasoning and calls are framed. What only may be the beginning of a frame is held
back until the next piece of text. A frame that encloses no well-formed call stays in the content,
so no text is lost.

Special tokens are characters of an `Alphabet`. If `<tool_call>` is a special token, only this token
opens a call, not text that spells it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bytepair.chat.template import Piece, Special, Template


@dataclass(frozen=True, slots=True)
class MessageStart:
    """A message begins."""

    role: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the current message or part, in complete characters.

    Attributes:
        text: the text.
        part: the type of the part that it belongs to; "text" for the content of the message.
    """

    text: str
    part: str = "text"


@dataclass(frozen=True, slots=True)
class PartStart:
    """A part with its own tokens begins: reasoning, a tool call, or the output of a tool."""

    type: str


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A part is complete.

    Attributes:
        type: its type: "reasoning", "tool_call", or one that the template names, such as "python".
        text: its complete text.
    """

    type: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call is complete and well-formed.

    Attributes:
        call: the call, as in `tool_calls` of a message; its arguments are an object.
    """

    call: dict[str, Any]


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """A message is complete.

    Attributes:
        message: the message, as in a conversation.
    """

    message: dict[str, Any]


Event: TypeAlias = "MessageStart | TextDelta | PartStart | PartEnd | ToolCall | MessageEnd"


#: The first character that stands for a special token: a surrogate, which no text has.
_FIRST_CODE_POINT: Final = 0xD800
#: Finds such a character.
SPECIAL: Final = re.compile("[\ud800-\udfff]")


class Alphabet:
    """The characters of some special tokens."""

    def __init__(self, special: Mapping[str, int], names: Iterable[str]) -> None:
        tokens = sorted(special.keys() & set(names))
        self._characters = {name: chr(_FIRST_CODE_POINT + at) for at, name in enumerate(tokens)}
        self._of_id = {special[name]: character for name, character in self._characters.items()}
        self._names = {ord(character): name for name, character in self._characters.items()}

    def character(self, id: int) -> str | None:
        """The character of an id; None if it has none."""
        return self._of_id.get(id)

    def string(self, pieces: Iterable[Piece]) -> str:
        """The elements of a template as a string."""
        return "".join(
            self._characters.get(piece.name, piece.name) if isinstance(piece, Special) else piece
            for piece in pieces
        )

    def visible(self, string: str) -> str:
        """A string with the names of the tokens."""
        return string.translate(self._names)


#: The types of parts in events.
_REASONING: Final = "reasoning"
_CALL: Final = "tool_call"


class _Enclosure:
    """What encloses a part of an answer, as strings.

    Its tags are its text without the white space around it, which may be missing.
    """

    def __init__(self, alphabet: Alphabet, opening: Sequence[Piece], closing: Sequence[Piece]):
        before, after = alphabet.string(opening), alphabet.string(closing)
        self.tag, self.end_tag = before.strip(), after.strip()
        self.rest = before[len(before.rstrip()) :]
        self.before_end = after[: len(after) - len(after.lstrip())]
        self.after_end = after[len(after.rstrip()) :]


class AnswerParser:
    """Takes the text of one answer and returns the resulting events."""

    def __init__(self, template: Template, alphabet: Alphabet) -> None:
        thinks, tools = template.reasoning, template.tools
        self._visible = alphabet.visible
        self._thinking = _Enclosure(alphabet, thinks.open, thinks.close) if thinks else None
        self._calling = _Enclosure(alphabet, tools.call.open, tools.call.close) if tools else None
        self._before_call = tools.between if tools else ""
        self._buffer = ""
        self._skipped = ""  # what the frame before the buffer ends with
        self._between = ""  # what was left out between the content and the call that is open
        self._inside = ""  # the text of the call that is open
        self._scan = _JsonScan()
        self._step: Callable[[bool], Iterable[Event]] = self._at_start
        self._content, self._reasoning = list[str](), list[str]()
        self._calls: list[dict[str, Any]] = []

    def feed(self, text: str) -> list[Event]:
        """Process a piece of text."""
        self._buffer += text
        return self._run(is_end=False)

    def end(self) -> list[Event]:
        """Process what was held back: nothing follows."""
        return self._run(is_end=True)

    def fields(self) -> dict[str, Any]:
        """The fields of the message so far, without text that is held back."""
        fields: dict[str, Any] = {"content": "".join(self._content)}
        if thought := "".join(self._reasoning):
            fields["reasoning_content"] = thought
        if self._calls:
            fields["tool_calls"] = [*self._calls]
        return fields

    def _run(self, *, is_end: bool) -> list[Event]:
        events: list[Event] = []
        while True:
            step = self._step
            while self._skipped and self._buffer:
                goes_on = self._buffer[0] == self._skipped[0]
                self._buffer = self._buffer[goes_on:]
                self._skipped = self._skipped[1:] if goes_on else ""
            events += step(is_end)
            if self._step == step:
                return events

    # ------------------------------------------------------------------ states

    def _at_start(self, is_end: bool) -> Iterable[Event]:
        """Nothing is known about the answer."""
        thinking, openings = self._thinking, list[str]()
        if self._calling and not self._calling.tag:  # calls have no frame: the answer is one
            openings = ["{"]
        if thinking and self._buffer.startswith(thinking.tag):
            self._take(len(thinking.tag), thinking.rest)
            self._step = self._in_reasoning
            yield PartStart(_REASONING)
        elif any(map(self._buffer.startswith, openings)):
            self._step = self._in_whole
        else:
            openings += [thinking.tag] if thinking else []
            if is_end or not any(one.startswith(self._buffer) for one in openings):
                self._step = self._in_content

    def _in_reasoning(self, is_end: bool) -> Iterable[Event]:
        frame = self._thinking
        assert frame
        found = self._find(frame.end_tag, frame.before_end, is_end)
        yield from self._text(self._reasoning, found[0], _REASONING)
        if is_closed := found[1] >= 0:
            self._take(found[1] + len(frame.end_tag), frame.after_end)
            self._step = self._in_content
        if is_closed or is_end:
            yield PartEnd(_REASONING, "".join(self._reasoning))

    def _in_content(self, is_end: bool) -> Iterable[Event]:
        tag = self._calling.tag if self._calling else ""
        end, rest = self._find(tag, self._before_call, is_end)
        yield from self._text(self._content, end, "text")
        if rest >= 0:
            self._between, self._scan = self._buffer[:rest], _JsonScan()
            self._take(rest + len(tag))
            self._step = self._in_call
            yield PartStart(_CALL)

    def _in_call(self, is_end: bool) -> Iterable[Event]:
        frame = self._calling
        assert frame
        at = self._scan.find(self._buffer, frame.end_tag, is_end=is_end)
        text = self._buffer[: self._scan.done if at < 0 else at]
        self._inside += text
        self._take(len(text) + (len(frame.end_tag) if at >= 0 else 0))
        self._scan.done = 0
        if text:
            yield TextDelta(self._visible(text), _CALL)
        inside = self._inside
        if (
            at < 0
            and is_end
            and _call_of(self._visible(inside)) is None
            and frame.end_tag in inside
        ):
            inside, _, self._buffer = inside.partition(frame.end_tag)  # a string never ends
            at = len(inside)
        if at >= 0 or is_end:
            inside, self._inside, self._step = self._visible(inside), "", self._in_content
            yield PartEnd(_CALL, inside.strip())
            call = _call_of(inside)
            if call is not None:
                self._calls.append(call)
                yield ToolCall(call)
            else:  # what is not well-formed stays in the content
                around = self._between + frame.tag, frame.end_tag if at >= 0 else ""
                self._content += [inside.join(map(self._visible, around))]

    def _in_whole(self, is_end: bool) -> Iterable[Event]:
        """The whole answer may be one call: what it is, is known at its end."""
        if not is_end:
            return
        inside, self._step = self._visible(self._buffer), self._in_content
        call = _call_of(inside)
        if call is not None:
            self._calls.append(call)
            self._buffer = ""
            yield PartStart(_CALL)
            yield from (TextDelta(inside, _CALL), PartEnd(_CALL, inside.strip()), ToolCall(call))

    # ------------------------------------------------------------------ parts of states

    def _find(self, tag: str, before: str, is_end: bool) -> tuple[int, int]:
        """The end of the text before a tag or what may be one, and how far behind it the tag is."""
        at = self._buffer.find(tag) if tag else -1
        if at >= 0:
            count = len(before) if self._buffer.endswith(before, 0, at) else 0
            return at - count, count
        held = (
            0 if is_end or not tag else max(_held(self._buffer, one) for one in (before + tag, tag))
        )
        return len(self._buffer) - held, -1

    def _take(self, count: int, skipped: str = "") -> None:
        """Remove text from the buffer, and what is `skipped` after it as soon as it comes."""
        self._buffer = self._buffer[count:]
        self._skipped = skipped or self._skipped

    def _text(self, parts: list[str], end: int, part: str) -> Iterable[Event]:
        """Take text from the buffer, and report it."""
        text = self._visible(self._buffer[:end])
        self._take(end)
        if text:
            parts.append(text)
            yield TextDelta(text, part)


class _JsonScan:
    """Looks for a tag in a text of JSON that grows, but not in the strings of the JSON.

    Attributes:
        done: the number of characters that are not part of a tag.
    """

    def __init__(self) -> None:
        self.done = 0
        self._in_string = self._is_escaped = False

    def find(self, text: str, tag: str, *, is_end: bool) -> int:
        """The position of the tag; -1 if it has not come yet."""
        if SPECIAL.match(tag):  # no text spells it
            at = text.find(tag, self.done)
            self.done = len(text)
            return at
        while self.done < len(text):
            character = text[self.done]
            if not self._in_string and character == tag[0]:
                if text.startswith(tag, self.done):
                    return self.done
                if not is_end and tag.startswith(text[self.done :]):
                    return -1
            self.done += 1
            if self._is_escaped or (self._in_string and character == "\\"):
                self._is_escaped = not self._is_escaped
            elif character == '"':
                self._in_string = not self._in_string
        return -1


def _held(text: str, opening: str) -> int:
    """The length of the longest end of a text with which something begins.

    Example:
        >>> _held("a <tool", "<tool_call>")
        5
    """
    longest = range(min(len(text), len(opening) - 1), 0, -1)
    return next((count for count in longest if text.endswith(opening[:count])), 0)


def _call_of(text: str) -> dict[str, Any] | None:
    """The call in a text of JSON, whose arguments have one of two keys; None if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    keys = [*value] if isinstance(value, dict) else []
    if sorted(keys) not in (["arguments", "name"], ["name", "parameters"]):
        return None
    name, arguments = value["name"], value.get("arguments", value.get("parameters"))
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return {"type": "function", "function": {"name": name, "arguments": arguments}}
