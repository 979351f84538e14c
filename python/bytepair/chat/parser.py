"""Parses ids to a conversation: the inverse of rendering, also during generation.

A `Parser` takes one id at a time and returns events. An `AnswerParser` reads the text of one
answer, piece by piece: what only may be the beginning of a call is held back until the next piece,
and what encloses no well-formed call stays in the content, so no text is lost.

Special tokens are characters of an `Alphabet`. If `<tool_call>` is a special token, only this token
opens a call, not text that spells it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.chat.renderer import named
from bytepair.chat.segments import structural
from bytepair.chat.template import ASSISTANT, Piece, Special, Template
from bytepair.errors import ConversationError
from bytepair.properties import roles


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the current message or part, in complete characters.

    Attributes:
        text: the text.
        part: the type of the part that it belongs to: "text" for the content of the message,
            "reasoning", "tool_call", or one that the template names, such as "python".
    """

    text: str
    part: str = "text"


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


#: What a parser reports.
Event: TypeAlias = "TextDelta | ToolCall | MessageEnd"


@dataclass(slots=True)
class _Message:
    """An incomplete message.

    Attributes:
        role: its role.
        answer: what reads it, if it may have reasoning or tool calls.
        results: how it may enclose results of tools: their role, what stands before, between and
            after them; None if it does not.
        parts: its parts: the type and the pieces of text of each.
        open: the part that is open: its type, and the character that closes it.
    """

    role: str
    answer: AnswerParser | None
    results: tuple[str, str, str, str] | None
    parts: list[tuple[str, list[str]]] = field(default_factory=list)
    open: tuple[str, str] | None = None

    def add(self, text: str) -> list[Event]:
        """More text; if it may be that of results of tools, it is reported at the end."""
        if self.open is None and (not self.parts or self.parts[-1][0] != "text"):
            self.parts.append(("text", []))
        self.parts[-1][1].append(text)
        if self.answer is not None:
            return self.answer.feed(text)
        return [] if self.results else [TextDelta(text, self.open[0] if self.open else "text")]


class Parser:
    """Takes one id at a time and returns the resulting events.

    Reasoning and tool calls are parts of the types "reasoning" and "tool_call". They end up in
    `reasoning_content` and `tool_calls` of the message. A call that is not well-formed is no
    `ToolCall`, and its text stays in the content.

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
        ...         if isinstance(event, chat.ToolCall):
        ...             print("run", event.call["function"]["arguments"])
        run {'code': '1+1'}
    """

    def __init__(self, tokenizer: _core.Tokenizer, template: Template | None = None) -> None:
        """Prepare to parse ids of `tokenizer` that were rendered with `template`.

        Args:
            tokenizer: the tokenizer.
            template: the template; None means nanochat's.

        Raises:
            ConversationError: if no template is given, and the tokenizer's own is in Jinja.
        """
        own_or_given = named(tokenizer, None) if template is None else template
        if not isinstance(own_or_given, Template):
            raise ConversationError(
                "the tokenizer's own chat template is in Jinja, which cannot be parsed",
                option="template",
                hint="pass the template of bytepair.chat that writes the same, such as "
                "template=chat.QWEN3",
            )
        self._template = template = own_or_given
        self._tokenizer = tokenizer
        special, own = structural(tokenizer), roles.roles(tokenizer)
        self._names = {id: name for name, id in special.items()}
        stops = {own[role] for role in ("eos", "end_of_turn") if role in own}
        self._alphabet = letters = Alphabet(special.keys() & (template.names() | stops))
        self._frames = {
            name: letters.string(role.open)
            for name, role in template.roles.items()
            if role.each is None and role.open  # others begin like messages of another role
        }
        self._openings = {frame[0] for frame in self._frames.values()}
        self._parts = {  # by role, the part that each token opens, and the token that closes it
            name: {
                letters.string(part.open)[:1]: (kind, letters.token(part.close))
                for kind, part in role.parts.items()
            }
            for name, role in template.roles.items()
        }
        self._ends = {name: {letters.token(role.close)} for name, role in template.roles.items()}
        self._ends[ASSISTANT].update(letters.string(map(Special, stops)))
        self._inner = {*letters.string(map(Special, template.inner()))}
        self._begin = {*letters.string(template.begin)}
        self._results = {}  # by role, how its messages may enclose those of another role
        for name, role in template.roles.items():
            if role.each is not None:
                opening, closing = letters.string(role.each.open), letters.string(role.each.close)
                start = letters.string(role.open) + opening
                for other, frame in self._frames.items():
                    if start.startswith(frame):
                        between = closing + opening
                        self._results[other] = name, start[len(frame) :], between, closing
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._between = ""
        self._message: _Message | None = None
        self._place = 0
        self.messages: list[dict[str, Any]] = []

    @property
    def conversation(self) -> dict[str, Any]:
        """The conversation so far, including an incomplete message."""
        if self._message is None:
            return {"messages": [*self.messages]}
        return {"messages": [*self.messages, *self._finished(self._message, is_whole=False)]}

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
        if (name := self._names.get(id)) is None:
            text = self._decoder.decode(token)
            return self._text(text) if text else []
        events, character = self.finish(), self._alphabet.characters.get(name)
        if message is None:
            return events + self._outside(character, name)
        if character in self._inner:
            is_read = message.answer is not None or message.results is not None
            return events + self._text(character if character and is_read else name)
        return events + self._inside(message, character, name)

    def finish(self) -> list[Event]:
        """Return the events of the last bytes, if the ids end within a character."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return self._text(rest) if rest else []

    # ------------------------------------------------------------------ between messages

    def _outside(self, character: str | None, name: str) -> list[Event]:
        """A special token that is not within a message."""
        if character and (self._between or character in self._openings):
            return self._opened(character, name)
        ended = self.messages and self.messages[-1]["role"] == ASSISTANT
        if not (character in self._begin or (ended and character in self._ends[ASSISTANT])):
            raise self._error(name)
        return []  # a model may end its turn twice

    def _opened(self, text: str, name: str) -> list[Event]:
        """Check whether what follows a message, and more text or a token, open the next one."""
        self._between += text
        for role, frame in self._frames.items():
            if self._between.startswith(frame):
                begun, self._between = self._between[len(frame) :], ""
                is_answer = role == ASSISTANT and (self._template.tools or self._template.reasoning)
                answer = AnswerParser(self._template, self._alphabet) if is_answer else None
                self._message = _Message(role, answer, self._results.get(role))
                return self._message.add(begun) if begun else []
        if not any(frame.startswith(self._between) for frame in self._frames.values()):
            raise self._error(name)
        return []

    # ------------------------------------------------------------------ within a message

    def _text(self, text: str) -> list[Event]:
        if self._message is not None:
            return self._message.add(text)
        # Other text between messages belongs to the end of the one before it.
        return self._opened(text, self._alphabet.visible(self._between)) if self._between else []

    def _inside(self, message: _Message, character: str | None, name: str) -> list[Event]:
        """A special token that opens a part, or closes a part or the message."""
        if message.open is not None:
            kind, closing = message.open
            if character != closing:
                raise self._error(name)
            message.open = None
            if kind != "python":
                return []
            code = {"code": "".join(message.parts[-1][1])}
            return [ToolCall({"type": "function", "function": {"name": kind, "arguments": code}})]
        opened = self._parts[message.role].get(character or "")
        if character and opened is not None:
            message.open = opened
            message.parts.append((opened[0], []))
            return []
        if character not in self._ends[message.role]:
            raise self._error(name)
        self._message = None
        events = message.answer.end() if message.answer is not None else []
        finished = self._finished(message, is_whole=True)
        self.messages += finished
        for one in finished:
            if message.results and one["content"]:
                events.append(TextDelta(one["content"]))
            events.append(MessageEnd(one))
        return events

    def _finished(self, message: _Message, *, is_whole: bool) -> list[dict[str, Any]]:
        """The message; or several, if they are results of tools that share its turn."""
        text = "".join("".join(pieces) for _, pieces in message.parts)
        if message.results is not None:
            role, opening, between, closing = message.results
            inner = text.removeprefix(opening)
            if inner == text or (is_whole and not inner.endswith(closing)):
                role, results = message.role, [text]
            else:
                results = inner.removesuffix(closing).split(between)
            return [{"role": role, "content": self._alphabet.visible(one)} for one in results]
        if (answer := message.answer) is not None:
            if not is_whole:
                answer = AnswerParser(self._template, self._alphabet)
                answer.feed(text)
                answer.end()
            return [{"role": message.role, **answer.fields()}]
        if all(kind == "text" for kind, _ in message.parts):
            return [{"role": message.role, "content": text}]
        parts = [{"type": kind, "text": "".join(pieces)} for kind, pieces in message.parts]
        return [{"role": message.role, "content": parts}]

    def _error(self, name: str) -> ConversationError:
        return ConversationError(
            f"id {self._place - 1} of the conversation is {name!r}, which cannot stand there in "
            f"the template {self._template.name!r}"
        )


#: The first character that stands for a special token: a surrogate, which no text has.
_FIRST_CODE_POINT: Final = 0xD800
#: Finds such a character.
SPECIAL: Final = re.compile("[\ud800-\udfff]")


class Alphabet:
    """The characters of some special tokens."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(names)
        self.characters = {name: chr(_FIRST_CODE_POINT + n) for n, name in enumerate(self._names)}

    def string(self, pieces: Iterable[Piece]) -> str:
        """The elements of a template as a string."""
        return "".join(
            self.characters.get(piece.name, piece.name) if isinstance(piece, Special) else piece
            for piece in pieces
        )

    def token(self, pieces: Iterable[Piece]) -> str:
        """The first special token of what closes a message or a part; empty if there is none."""
        return "".join(SPECIAL.findall(self.string(pieces))[:1])

    def visible(self, string: str) -> str:
        """A string with the names of the tokens."""
        names = self._names  # this is faster than `translate`
        return SPECIAL.sub(lambda found: names[ord(found[0]) - _FIRST_CODE_POINT], string)


class AnswerParser:
    """Takes the text of one answer and returns the resulting events.

    White space around the tags of reasoning and calls may be missing.
    """

    def __init__(self, template: Template, alphabet: Alphabet) -> None:
        self._template, self._alphabet = template, alphabet
        self._buffer, self._at = "", 0  # what has not been read begins at `_at`
        self._is_end = False
        self._texts: dict[str, list[str]] = {"text": [], "reasoning": [], "tool_call": []}
        self._calls: list[dict[str, Any]] = []
        self._events = self._read()

    def feed(self, text: str) -> list[Event]:
        """Process a piece of text."""
        self._buffer, self._at = self._buffer[self._at :] + text, 0
        return list(iter(partial(next, self._events, None), None))

    def end(self) -> list[Event]:
        """Process what was held back: nothing follows."""
        self._is_end = True
        return self.feed("")

    def fields(self) -> dict[str, Any]:
        """The fields of the message, without text that is held back."""
        content, thought, _ = map("".join, self._texts.values())
        fields: dict[str, Any] = {"content": content}
        if thought:
            fields["reasoning_content"] = thought
        if self._calls:
            fields["tool_calls"] = self._calls
        return fields

    def _read(self) -> Iterator[Event | None]:
        if thinks := self._template.reasoning:
            opening, closing = map(self._alphabet.string, (thinks.open, thinks.close))
            yield from self._reasoning(opening, closing)
        tools, tag, end_tag = self._template.tools, "", ""
        if tools:
            tag = self._alphabet.string(tools.call.open).strip()
            end_tag = self._alphabet.string(tools.call.close).strip()
        while self._at < len(self._buffer) or not self._is_end:
            before = yield from self._until(tag, "\n" if tools else "", "text")
            if before is None:
                return
            self._texts["tool_call"] = []
            closed = yield from self._until(end_tag, "", "tool_call")
            inside = "".join(self._texts["tool_call"])
            if call := _call_of(inside):
                self._calls.append(call)
                yield ToolCall(call)
            else:  # what is not well-formed stays in the content
                whole = before + tag + inside + ("" if closed is None else end_tag)
                self._texts["text"].append(self._alphabet.visible(whole))

    def _reasoning(self, opening: str, closing: str) -> Iterator[Event | None]:
        """Reasoning, if the answer begins with it."""
        tag, end_tag = opening.strip(), closing.strip()
        while tag and not self._is_end and _held(self._buffer, tag) == len(self._buffer):
            yield None
        if self._buffer.startswith(tag):
            self._at = len(tag)
            yield from self._skip(opening[len(opening.rstrip()) :])
            yield from self._until(end_tag, closing[: closing.index(end_tag)], "reasoning")
            yield from self._skip(closing[len(closing.rstrip()) :])

    def _until(self, tag: str, before: str, part: str) -> Generator[Event | None, None, str | None]:
        """Report text up to a tag, without `before`: what of this stood there; None at the end."""
        while True:
            at = self._buffer.find(tag, self._at) if tag else -1
            left_out = before if at >= 0 and self._buffer.endswith(before, self._at, at) else ""
            end = at - len(left_out)
            if at < 0:
                rest = self._buffer[self._at :]
                held = 0 if self._is_end else max(_held(rest, before + tag), _held(rest, tag))
                end = len(self._buffer) - held
            text, self._at = self._alphabet.visible(self._buffer[self._at : end]), end
            if text:
                self._texts[part].append(text)
                yield TextDelta(text, part)
            if at >= 0:
                self._at = at + len(tag)
                return left_out
            if self._is_end:
                return None
            yield None

    def _skip(self, text: str) -> Iterator[Event | None]:
        """Leave out what of a text comes next."""
        for character in text:
            while self._at == len(self._buffer) and not self._is_end:
                yield None
            if not self._buffer.startswith(character, self._at):
                return
            self._at += 1


def _held(text: str, opening: str) -> int:
    """The length of the longest end of a text with which something begins."""
    longest = range(min(len(text), len(opening) - 1), 0, -1)
    return next((count for count in longest if text.endswith(opening[:count])), 0)


def _call_of(text: str) -> dict[str, Any] | None:
    """The call in a text of JSON; None if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or sorted(value) != ["arguments", "name"]:
        return None
    if not isinstance(value["name"], str) or not isinstance(value["arguments"], dict):
        return None
    return {"type": "function", "function": value}
