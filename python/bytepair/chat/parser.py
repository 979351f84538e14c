"""Parses ids to a conversation: the inverse of rendering, also during generation.

A `Parser` takes one id at a time and returns events, so that an inference loop can act as soon as a
tool call is complete. An `AnswerParser` reads the text of one answer, piece by piece: the template
says how its reasoning and calls are framed. What only may be the beginning of a frame is held back
until the next piece of text. A frame that encloses no well-formed call stays in the content, so no
text is lost.

Special tokens are characters of an `Alphabet`. If `<tool_call>` is a special token, only this token
opens a call, not text that spells it.
"""

from __future__ import annotations

import codecs
import copy
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.chat import calls
from bytepair.chat.renderer import named
from bytepair.chat.segments import structural
from bytepair.chat.template import ASSISTANT, Part, Piece, Role, Special, Template
from bytepair.errors import ConversationError
from bytepair.properties import roles

#: The types of parts in events: what is enclosed in no tokens, reasoning, and a call.
_PLAIN: Final = "text"
_REASONING: Final = "reasoning"
_CALL: Final = "tool_call"


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


# ---------------------------------------------------------------------------- conversations


@dataclass(frozen=True, slots=True)
class _Results:
    """How results of tools stand in a message of another role, such as the user.

    Attributes:
        role: the role of the results.
        opening: what stands before the first result.
        between: what stands between two.
        closing: what stands after the last one.
    """

    role: str
    opening: str
    between: str
    closing: str

    def split(self, body: str, *, is_whole: bool) -> list[str] | None:
        """The results in the body of a message; None if it has none."""
        inner = body.removeprefix(self.opening)
        if inner == body or (is_whole and not inner.endswith(self.closing)):
            return None
        return inner.removesuffix(self.closing).split(self.between)


@dataclass(slots=True)
class _Message:
    """An incomplete message.

    Attributes:
        role: its role.
        answer: what reads it, if it may have reasoning or tool calls.
        results: how it may enclose results of tools; None if it does not.
        parts: its parts, if it is no answer: the type and the pieces of text of each.
        open: the type of the part that is open.
    """

    role: str
    answer: AnswerParser | None
    results: _Results | None
    parts: list[tuple[str, list[str]]] = field(default_factory=list)
    open: str | None = None

    def add(self, text: str) -> list[Event]:
        """More text; if it may be that of results of tools, it is reported at the end."""
        if self.answer is not None:
            return self.answer.feed(text)
        if self.open is None and (not self.parts or self.parts[-1][0] != _PLAIN):
            self.parts.append((_PLAIN, []))
        self.parts[-1][1].append(text)
        return [] if self.results else [TextDelta(text, self.open or _PLAIN)]

    def finished(self) -> dict[str, Any]:
        """The complete message; its content is a string if it consists only of text."""
        if self.answer is not None:
            return {"role": self.role, **self.answer.fields()}
        if all(kind == _PLAIN for kind, _ in self.parts):
            return {"role": self.role, "content": self.text()}
        parts = [{"type": kind, "text": "".join(pieces)} for kind, pieces in self.parts]
        return {"role": self.role, "content": parts}

    def text(self) -> str:
        """The text of all its parts."""
        return "".join("".join(pieces) for _, pieces in self.parts)


class Parser:
    """Takes one id at a time and returns the resulting events.

    Reasoning and tool calls are parts of the types "reasoning" and "tool_call". They end up in
    `reasoning_content` and `tool_calls` of the message. A call that is not well-formed is reported
    as a part, too, but not as a `ToolCall`, and its text stays in the content.

    Example:
        >>> import bytepair
        >>> from bytepair import chat
        >>> tok = bytepair.train(["1+1 is 2"], vocab_size=266)
        >>> prompt = tok.render_for_completion([{"role": "user", "content": "1+1?"}])
        >>> parser = chat.Parser(tok)
        >>> _ = [parser.feed(id) for id in prompt]
        >>> special = tok.special_tokens
        >>> reply = [special["<|python_start|>"], *tok.encode("1+1"), special["<|python_end|>"]]
        >>> for id in reply:
        ...     for event in parser.feed(id):
        ...         if isinstance(event, chat.PartEnd):
        ...             print("run", event.text)
        run 1+1
    """

    def __init__(
        self,
        tokenizer: _core.Tokenizer,
        template: Template | None = None,
        *,
        tool_calls: bool = False,
    ) -> None:
        """Prepare to parse ids of `tokenizer` that were rendered with `template`.

        Args:
            tokenizer: the tokenizer.
            template: the template; None means nanochat's.
            tool_calls: whether parts of nanochat's that are calls of Python become `tool_calls` of
                messages, and their outputs messages of tools, as in other formats.

        Raises:
            ConversationError: if no template is given, and the tokenizer's own is in Jinja.
        """
        self._template = template = _default(tokenizer) if template is None else template
        self._tokenizer = tokenizer
        self._special = structural(tokenizer)
        self._names = {id: name for name, id in self._special.items()}
        own = roles.roles(tokenizer)
        stops = {*template.stop, *(own[role] for role in ("eos", "end_of_turn") if role in own)}
        self._alphabet = letters = Alphabet(self._special, template.names() | stops)
        self._code = template.code if tool_calls else None
        self._frames = {
            name: letters.string(role.open)
            for name, role in template.roles.items()
            if role.each is None and role.open  # others begin like messages of another role
        }
        self._longest = max(map(len, self._frames.values()), default=0) + 1
        opening = set("".join(self._frames.values()))
        self._inner = {*letters.string(map(Special, template.inner()))}
        self._stops = {*letters.string(map(Special, stops))}
        self._begin = {*letters.string(template.begin)} - opening
        ends = self._stops | {self._last(template.roles[ASSISTANT])}
        self._second_ends = ends - opening  # a model may end its turn twice
        self._results = _results(template, letters)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._between = ""
        self._message: _Message | None = None
        self._place = 0
        self.messages: list[dict[str, Any]] = []

    def _last(self, around: Part | Role) -> str:
        """The special token that closes a message or a part; empty if there is none."""
        return "".join(SPECIAL.findall(self._alphabet.string(around.close))[:1])

    @property
    def conversation(self) -> dict[str, Any]:
        """The conversation so far, including an incomplete message."""
        if self._message is None:
            return {"messages": [*self.messages]}
        message = copy.deepcopy(self._message)
        if message.answer is not None:
            message.answer.end()
        return {"messages": [*self.messages, *self._finished(message, is_whole=False)]}

    @property
    def is_open(self) -> bool:
        """Whether a message has begun and not ended."""
        return self._message is not None

    def feed(self, id: int) -> list[Event]:
        """Process one id and return the resulting events, in order.

        Args:
            id: the next id.

        Raises:
            UnknownIdError: if the id is not in the vocabulary.
            ConversationError: if a special token occurs where the template does not allow it.
        """
        token, message = self._tokenizer.token_bytes(id), self._message
        self._place += 1
        if id not in self._names:
            text = self._decoder.decode(token)
            return self._text(text) if text else []
        events, character = self.finish(), self._alphabet.character(id) or ""
        if message is None:
            return events + self._outside(character, id)
        if character and character in self._inner:
            is_read = message.answer is not None or message.results is not None
            return events + self._text(character if is_read else self._names[id])
        if message.open is not None:
            return events + self._part_end(message, message.open, character, id)
        return events + self._inside(message, character, id)

    def finish(self) -> list[Event]:
        """Return the events of the last bytes, if the ids end within a character."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return self._text(rest) if rest else []

    # ------------------------------------------------------------------ between messages

    def _outside(self, character: str, id: int) -> list[Event]:
        """A special token that is not within a message."""
        if character and character in self._begin:
            self._between = ""
            return []
        ended = self.messages and self.messages[-1]["role"] == ASSISTANT
        if ended and character and character in self._second_ends:
            return []
        if not character:
            raise self._error("does not open a message", self._names[id])
        self._between += character
        return self._opened()

    def _opened(self) -> list[Event]:
        """Check whether the tokens after a message open the next one."""
        begun = self._between
        for name, frame in self._frames.items():
            if begun.startswith(frame):
                self._between = ""
                return self._begun(name, begun[len(frame) :])
        special = SPECIAL.search(begun)
        if not special:  # text between messages belongs to the end of the previous one
            self._between = begun[: self._longest]  # more of it decides nothing
            return []
        if any(frame.startswith(begun) for frame in self._frames.values()):
            return []
        if special.start() > 0:
            self._between = begun[special.start() :]
            return self._opened()
        name = self._alphabet.visible(SPECIAL.findall(begun)[-1])
        raise self._error("does not open a message", name)

    def _begun(self, name: str, text: str) -> list[Event]:
        template = self._template
        is_answer = name == ASSISTANT and (template.tools or template.reasoning)
        answer = AnswerParser(template, self._alphabet) if is_answer else None
        self._message = _Message(name, answer, self._results.get(name))
        start: list[Event] = [] if self._message.results else [MessageStart(name)]
        return start + (self._message.add(text) if text else [])

    # ------------------------------------------------------------------ within a message

    def _text(self, text: str) -> list[Event]:
        if self._message is not None:
            return self._message.add(text)
        self._between += text
        return self._opened()

    def _inside(self, message: _Message, character: str, id: int) -> list[Event]:
        role = self._template.roles[message.role]
        is_answer = message.role == ASSISTANT
        for name, part in role.parts.items():
            if character and self._alphabet.string(part.open).startswith(character):
                message.open = name
                message.parts.append((name, []))
                return [PartStart(name)]
        ends = {self._last(role), *(self._stops if is_answer else ())}
        if not character or character not in ends:
            raise self._error(f"cannot occur in a message from {message.role!r}", self._names[id])
        self._message = None
        return self._end(message)

    def _part_end(self, message: _Message, name: str, character: str, id: int) -> list[Event]:
        last = self._last(self._template.roles[message.role].parts[name])
        if not character or character != last:
            raise self._error(f"cannot occur in a part of type {name!r}", self._names[id])
        message.open = None
        text, code = "".join(message.parts[-1][1]), self._code
        called = [ToolCall(calls.call_of(code, text))] if code and name == code.call else []
        return [PartEnd(name, text), *called]

    def _end(self, message: _Message) -> list[Event]:
        events = message.answer.end() if message.answer is not None else []
        finished = self._finished(message, is_whole=True)
        self.messages += finished
        if message.results is None:
            return [*events, *map(MessageEnd, finished)]
        for one in finished:
            text = [TextDelta(one["content"])] if one["content"] else []
            events += [MessageStart(one["role"]), *text, MessageEnd(one)]
        return events

    def _finished(self, message: _Message, *, is_whole: bool) -> list[dict[str, Any]]:
        """The message; or several, if they are results of tools that share its turn."""
        if message.results is not None:
            text = message.text()
            results = message.results.split(text, is_whole=is_whole)
            role = message.role if results is None else message.results.role
            texts = [text] if results is None else results
            return [{"role": role, "content": self._alphabet.visible(one)} for one in texts]
        finished, tools = message.finished(), self._template.tools
        if tools and tools.json_results and message.role == "tool":  # the content is a value
            with suppress(ValueError, RecursionError):
                finished["content"] = json.loads(finished["content"])
        return [finished] if self._code is None else calls.to_calls(self._template, finished)

    def _error(self, what: str, name: str) -> ConversationError:
        return ConversationError(
            f"id {self._place - 1} of the conversation is {name!r}, which {what} in the template "
            f"{self._template.name!r}"
        )


def _default(tokenizer: _core.Tokenizer) -> Template:
    """Nanochat's template, unless the tokenizer has another one."""
    template = named(tokenizer, None)
    if not isinstance(template, Template):
        raise ConversationError(
            "the tokenizer's own chat template is in Jinja, which cannot be parsed",
            option="template",
            hint="pass the template of bytepair.chat that writes the same, such as "
            "template=chat.QWEN3",
        )
    return template


def _results(template: Template, alphabet: Alphabet) -> dict[str, _Results]:
    """By role, how its messages may enclose those of another role, which share a turn."""
    results = {}
    for name, role in template.roles.items():
        if role.each is None:
            continue
        start, opening = alphabet.string(role.open), alphabet.string(role.each.open)
        closing = alphabet.string(role.each.close)
        for other, host in template.roles.items():
            begun = alphabet.string(host.open)
            if host.each is None and (start + opening).startswith(begun):
                rest = (start + opening)[len(begun) :]
                results[other] = _Results(name, rest, closing + opening, closing)
    return results


# ---------------------------------------------------------------------------- answers


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
        self._buffer, self._at = "", 0  # what has not been read begins at `_at`
        self._skipped = ""  # what the frame before the buffer ends with
        self._between = ""  # what was left out between the content and the call that is open
        self._inside = list[str]()  # the text of the call that is open
        self._scan, self._has_strings = _JsonScan(), True
        self._step: Callable[[bool], Iterable[Event]] = self._at_start
        self._content, self._reasoning = list[str](), list[str]()
        self._calls: list[dict[str, Any]] = []

    def feed(self, text: str) -> list[Event]:
        """Process a piece of text."""
        self._buffer, self._at = self._buffer[self._at :] + text, 0
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
            while self._skipped and self._at < len(self._buffer):
                goes_on = self._buffer[self._at] == self._skipped[0]
                self._at += goes_on
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
        begun = self._buffer[self._at :]
        if thinking and begun.startswith(thinking.tag):
            self._take(len(thinking.tag), thinking.rest)
            self._step = self._in_reasoning
            yield PartStart(_REASONING)
        elif any(map(begun.startswith, openings)):
            self._step = self._in_whole
        else:
            openings += [thinking.tag] if thinking else []
            if is_end or not any(one.startswith(begun) for one in openings):
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
            self._between = self._take(rest)
            self._scan = _JsonScan(has_strings=self._has_strings)
            self._take(len(tag))
            self._step = self._in_call
            yield PartStart(_CALL)

    def _in_call(self, is_end: bool) -> Iterable[Event]:
        frame = self._calling
        assert frame
        self._scan.done = self._at
        at = self._scan.find(self._buffer, frame.end_tag, is_end=is_end)
        text = self._take((self._scan.done if at < 0 else at) - self._at)
        self._inside.append(text)
        if text:
            yield TextDelta(self._visible(text), _CALL)
        if at < 0 and not is_end:
            return
        inside, self._inside, self._step = "".join(self._inside), [], self._in_content
        if at >= 0:
            self._take(len(frame.end_tag))
        elif frame.end_tag in inside and _call_of(self._visible(inside)) is None:
            # A string never ends, so it and what follows are read as if there were none.
            inside, _, self._buffer = inside.partition(frame.end_tag)
            at = self._at = 0
            self._has_strings = False
        yield from self._closed(frame, self._visible(inside), is_whole=at >= 0)

    def _closed(self, frame: _Enclosure, inside: str, *, is_whole: bool) -> Iterable[Event]:
        """The end of a call."""
        yield PartEnd(_CALL, inside.strip())
        call = _call_of(inside)
        if call is not None:
            self._calls.append(call)
            yield ToolCall(call)
        else:  # what is not well-formed stays in the content
            around = self._between + frame.tag, frame.end_tag if is_whole else ""
            self._content += [inside.join(map(self._visible, around))]

    def _in_whole(self, is_end: bool) -> Iterable[Event]:
        """The whole answer may be one call: what it is, is known at its end."""
        self._inside.append(self._take(len(self._buffer) - self._at))
        if not is_end:
            return
        text, self._inside, self._step = "".join(self._inside), [], self._in_content
        inside = self._visible(text)
        call = _call_of(inside)
        if call is None:
            self._buffer, self._at = text, 0
        else:
            self._calls.append(call)
            yield PartStart(_CALL)
            yield from (TextDelta(inside, _CALL), PartEnd(_CALL, inside.strip()), ToolCall(call))

    # ------------------------------------------------------------------ parts of states

    def _find(self, tag: str, before: str, is_end: bool) -> tuple[int, int]:
        """The end of the text before a tag or what may be one, and how far behind it the tag is."""
        at = self._buffer.find(tag, self._at) if tag else -1
        if at >= 0:
            count = len(before) if self._buffer.endswith(before, self._at, at) else 0
            return at - self._at - count, count
        rest = self._buffer[self._at :]
        held = 0 if is_end or not tag else max(_held(rest, one) for one in (before + tag, tag))
        return len(rest) - held, -1

    def _take(self, count: int, skipped: str = "") -> str:
        """Take text from the buffer, and skip what is `skipped` after it as soon as it comes."""
        text = self._buffer[self._at : self._at + count]
        self._at += count
        self._skipped = skipped or self._skipped
        return text

    def _text(self, parts: list[str], end: int, part: str) -> Iterable[Event]:
        """Take text from the buffer, and report it."""
        text = self._visible(self._take(end))
        if text:
            parts.append(text)
            yield TextDelta(text, part)


class _JsonScan:
    """Looks for a tag in a text of JSON that grows, but not in the strings of the JSON, if any.

    Attributes:
        done: the number of characters that are not part of a tag.
    """

    def __init__(self, *, has_strings: bool = True) -> None:
        self.done, self._has_strings = 0, has_strings
        self._in_string = self._is_escaped = False

    def find(self, text: str, tag: str, *, is_end: bool) -> int:
        """The position of the tag; -1 if it has not come yet."""
        if SPECIAL.match(tag) or not self._has_strings:  # a token, or all that counts
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
