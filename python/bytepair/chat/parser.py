"""Parse ids to a conversation: the inverse of rendering, also during generation.

A `Parser` takes one id at a time and returns events, so that an inference loop can act as soon as a
tool call is complete. `parse` applies it to a complete list of ids.
"""

from __future__ import annotations

import codecs
import copy
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from bytepair import _core
from bytepair.chat import calls
from bytepair.chat.answer import (
    SPECIAL,
    Alphabet,
    AnswerParser,
    Event,
    MessageEnd,
    MessageStart,
    PartEnd,
    PartStart,
    TextDelta,
    ToolCall,
)
from bytepair.chat.renderer import named
from bytepair.chat.segments import structural
from bytepair.chat.template import Part, Role, Special, Template
from bytepair.errors import ConversationError
from bytepair.properties import roles

#: The part for plain text, which is not enclosed in tokens.
_PLAIN: Final = "text"


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

    def split(self, body: str, *, is_whole: bool = True) -> list[str] | None:
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
        parts: its parts, if it is no answer.
        open: the type of the part that is open.
        pending: its text, as long as it may be that of results of tools.
        is_held: whether it begins like results of tools.
    """

    role: str
    answer: AnswerParser | None
    results: _Results | None
    parts: list[dict[str, str]] = field(default_factory=list)
    open: str | None = None
    pending: list[str] = field(default_factory=list)
    is_held: bool = False

    def add(self, text: str) -> list[Event]:
        if self.answer is not None:
            return self.answer.feed(text)
        if self.open is None and (not self.parts or self.parts[-1]["type"] != _PLAIN):
            self.parts.append({"type": _PLAIN, "text": ""})
        self.parts[-1]["text"] += text
        return [TextDelta(text, self.open or _PLAIN)]

    def finished(self) -> dict[str, Any]:
        """The complete message; its content is a string if it consists only of text."""
        if self.answer is not None:
            return {"role": self.role, **self.answer.fields()}
        if all(part["type"] == _PLAIN for part in self.parts):
            return {"role": self.role, "content": "".join(part["text"] for part in self.parts)}
        return {"role": self.role, "content": [dict(part) for part in self.parts]}


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
        ends = self._stops | {self._last(template.roles[template.prompted])}
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
        ended = self.messages and self.messages[-1]["role"] == self._template.prompted
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
        is_answer = name == template.prompted and (template.tools or template.reasoning)
        answer = AnswerParser(template, self._alphabet) if is_answer else None
        self._message = _Message(name, answer, self._results.get(name))
        start: list[Event] = [] if self._message.results else [MessageStart(name)]
        return start + (self._text(text) if text else [])

    # ------------------------------------------------------------------ within a message

    def _text(self, text: str) -> list[Event]:
        """More text; that of the user may turn out to be results of tools."""
        message = self._message
        if message is None:
            self._between += text
            return self._opened()
        if message.results is None:
            return message.add(text)
        message.pending.append(text)
        if not message.is_held:
            begun, opening = "".join(message.pending), message.results.opening
            message.is_held = begun.startswith(opening)
            if not message.is_held and not opening.startswith(begun):
                return self._no_results(message)
        return []

    def _no_results(self, message: _Message) -> list[Event]:
        """A message has no results of tools: begin it."""
        text, message.results = self._alphabet.visible("".join(message.pending)), None
        return [MessageStart(message.role), *(message.add(text) if text else [])]

    def _inside(self, message: _Message, character: str, id: int) -> list[Event]:
        role = self._template.roles[message.role]
        is_answer = message.role == self._template.prompted
        for name, part in role.parts.items():
            if character and self._alphabet.string(part.open).startswith(character):
                message.open = name
                message.parts.append({"type": name, "text": ""})
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
        text, code = message.parts[-1]["text"], self._code
        called = [ToolCall(calls.call_of(code, text))] if code and name == code.call else []
        return [PartEnd(name, text), *called]

    def _end(self, message: _Message) -> list[Event]:
        """The events of the end of a message."""
        events = message.answer.end() if message.answer is not None else []
        if message.results is not None and message.results.split("".join(message.pending)) is None:
            events += self._no_results(message)
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
            text = "".join(message.pending)
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
