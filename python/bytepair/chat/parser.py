"""Parse ids to a conversation: the inverse of rendering, also during generation.

A `Parser` takes one id at a time and returns events, so that an inference loop can act as soon as a
tool call is complete. `parse` applies it to a complete list of ids.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair._internal.arguments import checked
from bytepair.chat.segments import structural
from bytepair.chat.template import NANOCHAT, Part, Role, Special, Template
from bytepair.errors import ConversationError


@dataclass(frozen=True, slots=True)
class MessageStart:
    """A message begins."""

    role: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the current message or part, in complete characters."""

    text: str


@dataclass(frozen=True, slots=True)
class PartStart:
    """A part with its own special tokens begins, such as a tool call."""

    type: str


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A part is complete.

    Attributes:
        type: its type, such as "python".
        text: its complete text.
    """

    type: str
    text: str


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """A message is complete.

    Attributes:
        message: the message, as in a conversation.
    """

    message: dict[str, Any]


Event: TypeAlias = "MessageStart | TextDelta | PartStart | PartEnd | MessageEnd"

#: An element of a frame of a template: a special token or text.
_Piece: TypeAlias = "int | str"

#: The part for plain text, which is not enclosed in tokens.
_PLAIN: Final = "text"


@dataclass(slots=True)
class _Message:
    """An incomplete message."""

    role: str
    parts: list[dict[str, str]] = field(default_factory=list)
    open: str | None = None

    def add(self, text: str) -> None:
        if self.open is None and (not self.parts or self.parts[-1]["type"] != _PLAIN):
            self.parts.append({"type": _PLAIN, "text": ""})
        self.parts[-1]["text"] += text

    def finished(self) -> dict[str, Any]:
        """The complete message; its content is a string if it consists only of text."""
        if all(part["type"] == _PLAIN for part in self.parts):
            return {"role": self.role, "content": "".join(part["text"] for part in self.parts)}
        return {"role": self.role, "content": [dict(part) for part in self.parts]}


class Parser:
    """Takes one id at a time and returns the resulting events.

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

    @checked
    def __init__(self, tokenizer: _core.Tokenizer, template: Template = NANOCHAT) -> None:
        """Prepare to parse ids of `tokenizer` that were rendered with `template`."""
        self._tokenizer = tokenizer
        self._special = structural(tokenizer)
        self._names = {id: name for name, id in self._special.items()}
        self._frames = {
            name: self._frame(role.open)
            for name, role in template.roles.items()
            if role.each is None  # these cannot be distinguished from messages of another role
        }
        self._template = template
        self._inner = {self._special[n] for n in template.inner() if n in self._special}
        self._stops = {self._special[n] for n in template.stop if n in self._special}
        self._begin = set(self._frame(template.begin))
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._between: list[_Piece] = []
        self._message: _Message | None = None
        self._place = 0
        self.messages: list[dict[str, Any]] = []

    def _frame(self, pieces: Sequence[Special | str]) -> list[_Piece]:
        return [self._special.get(p.name, -1) if isinstance(p, Special) else p for p in pieces]

    @property
    def conversation(self) -> dict[str, Any]:
        """The conversation so far, including an incomplete message."""
        unfinished = [] if self._message is None else [self._message.finished()]
        return {"messages": [*self.messages, *unfinished]}

    @property
    def is_open(self) -> bool:
        """Whether a message has begun and not ended."""
        return self._message is not None

    @checked
    def feed(self, id: int) -> list[Event]:
        """Process one id and return the resulting events, in order.

        Args:
            id: the next id.

        Raises:
            UnknownIdError: if the id is not in the vocabulary.
            ConversationError: if a special token occurs where the template does not allow it.
        """
        token = self._tokenizer.token_bytes(id)
        self._place += 1
        if id not in self._names or (id in self._inner and self._message is not None):
            text = self._decoder.decode(token)
            return self._text(text) if text else []
        return self.finish() + self._special_token(id)

    def finish(self) -> list[Event]:
        """Return the events of the last bytes, if the ids end within a character."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return self._text(rest) if rest else []

    def _text(self, text: str) -> list[Event]:
        if self._message is not None:
            self._message.add(text)
            return [TextDelta(text)]
        if self._between and isinstance(self._between[-1], str):
            self._between[-1] += text
        else:
            self._between.append(text)
        return self._opened()

    def _special_token(self, id: int) -> list[Event]:
        if self._message is None:
            if id in self._begin and not any(id in frame for frame in self._frames.values()):
                self._between = []
                return []
            self._between.append(id)
            return self._opened()
        if self._message.open is not None:
            return self._part_end(self._message, id)
        return self._inside(self._message, id)

    def _opened(self) -> list[Event]:
        """Check whether the tokens after a message open the next one."""
        partly = False
        for name, frame in self._frames.items():
            follows, rest = _compared(frame, self._between)
            if rest is not None:
                self._message, self._between = _Message(name), []
                return [MessageStart(name), *(self._text(rest) if rest else [])]
            partly = partly or follows
        if partly or not any(isinstance(piece, int) for piece in self._between):
            return []  # text between messages belongs to the end of the previous one
        if isinstance(self._between[0], str):
            self._between.pop(0)
            return self._opened()
        raise self._error("does not open a message")

    def _inside(self, message: _Message, id: int) -> list[Event]:
        role = self._template.roles[message.role]
        for name, part in role.parts.items():
            if self._frame(part.open)[:1] == [id]:
                message.open = name
                message.parts.append({"type": name, "text": ""})
                return [PartStart(name)]
        prompted = message.role == self._template.prompted
        if id != self._last(role) and not (prompted and id in self._stops):
            raise self._error(f"cannot occur in a message from {message.role!r}", id)
        self._message = None
        finished = message.finished()
        self.messages.append(finished)
        return [MessageEnd(finished)]

    def _part_end(self, message: _Message, id: int) -> list[Event]:
        name = message.open or _PLAIN
        if id != self._last(self._template.roles[message.role].parts[name]):
            raise self._error(f"cannot occur in a part of type {name!r}", id)
        message.open = None
        return [PartEnd(name, message.parts[-1]["text"])]

    def _last(self, around: Part | Role) -> _Piece | None:
        """The special token that closes a message or a part."""
        return next((piece for piece in self._frame(around.close) if isinstance(piece, int)), None)

    def _error(self, what: str, id: int | None = None) -> ConversationError:
        last = next((p for p in reversed(self._between) if isinstance(p, int)), -1)
        name = self._names.get(last if id is None else id)
        return ConversationError(
            f"id {self._place - 1} of the conversation is {name!r}, which {what} in the template "
            f"{self._template.name!r}"
        )


def _compared(frame: list[_Piece], found: list[_Piece]) -> tuple[bool, str | None]:
    """Whether the frame can still be completed; and the text after it, if it is complete."""
    count = len(found)
    if not 0 < count <= len(frame) or found[:-1] != frame[: count - 1]:
        return False, None
    wanted, last = frame[count - 1], found[-1]
    if isinstance(wanted, str) and isinstance(last, str):
        rest = last[len(wanted) :] if last.startswith(wanted) else None
        return wanted.startswith(last), rest if count == len(frame) else None
    return wanted == last, "" if wanted == last and count == len(frame) else None
