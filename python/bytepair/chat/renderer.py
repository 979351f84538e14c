"""A conversation and a template in, segments out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from bytepair import _core
from bytepair.chat.segments import Conversation, Segments, messages_of
from bytepair.chat.template import Part, Piece, Role, Special, Template
from bytepair.errors import ConversationError, SpecialTokenError

if TYPE_CHECKING:
    from bytepair.chat.jinja import JinjaTemplate

#: Consecutive segments of a template, ready to be appended: the items and their mask.
_Frame: TypeAlias = "tuple[list[str | int | None], bytes]"


class TemplateWriter:
    """A template whose special tokens are ids of one tokenizer; it turns messages into segments."""

    def __init__(self, tokenizer: _core.Tokenizer, template: Template) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.join = template.join
        self._special = tokenizer.special_tokens
        self._begin = self._frame(template.begin)
        self._roles = {name: _Role(self, role) for name, role in template.roles.items()}

    def _frame(self, pieces: Sequence[Piece]) -> _Frame:
        items: list[str | int | None] = [
            self._id(piece.name) if isinstance(piece, Special) else piece for piece in pieces
        ]
        return items, bytes(isinstance(p, Special) and p.trained for p in pieces)

    def _id(self, name: str) -> int:
        if name not in self._special:
            raise SpecialTokenError(
                f"the template {self.template.name!r} needs the special token {name!r}, which this "
                f"tokenizer does not have; it has {' '.join(self._special) or 'none'}"
            )
        return self._special[name]

    def frames(self, part: Part | Role) -> tuple[_Frame, _Frame]:
        """What comes before and after a part or a message."""
        return self._frame(part.open), self._frame(part.close)

    def write(self, conversation: Conversation, out: Segments) -> None:
        """Append a conversation. The error names the message and the rule."""
        messages = self._merged(messages_of(conversation))
        out.items += self._begin[0]
        out.trained += self._begin[1]
        for place, (index, message) in enumerate(messages):
            role = self._role(index, place, message)
            role.write(index, message.get("content"), out, self.template.strip)
        out.ends.append(len(out.items))

    def prompt(self, conversation: Conversation, out: Segments) -> None:
        """Append a conversation, and open the turn of the role that is prompted."""
        self.write(conversation, out)
        items, trained = self._roles[self.template.prompted].open
        out.items += items
        out.trained += trained
        out.ends[-1] = len(out.items)

    def _merged(self, messages: list[Any]) -> list[tuple[int, Any]]:
        """The messages with their indices, a leading system message joined to the next one."""
        numbered = list(enumerate(messages))
        separator = self.template.merge_system
        if separator is None or role_of(0, messages[0]) != "system":
            return numbered
        first = self.template.alternate[0] if self.template.alternate else "user"
        if len(messages) < 2 or role_of(1, messages[1]) != first:
            raise ConversationError(
                f"message 0 is a system message, so message 1 must be from {first!r}: it is "
                f"{'missing' if len(messages) < 2 else 'from ' + repr(messages[1]['role'])}"
            )
        system, then = (_text(i, messages[i].get("content")) for i in (0, 1))
        return [(1, {"role": first, "content": system + separator + then}), *numbered[2:]]

    def _role(self, index: int, place: int, message: Any) -> _Role:
        name = role_of(index, message)
        turns = self.template.alternate
        if turns and name != turns[place % len(turns)]:
            raise ConversationError(
                f"message {index} is from {name!r} but must be from "
                f"{turns[place % len(turns)]!r}: roles take turns, {', '.join(turns)}"
            )
        if name not in self._roles:
            raise ConversationError(
                f"message {index} is from {name!r}, which the template {self.template.name!r} does "
                f"not know; it knows {', '.join(self._roles)}"
            )
        if name == "system" and index:
            raise ConversationError(f"message {index} is a system message; only message 0 may be")
        return self._roles[name]


class _Role:
    """One role of a template, its special tokens resolved."""

    def __init__(self, writer: TemplateWriter, role: Role) -> None:
        self.open, self.close = writer.frames(role)
        self.trained = role.trained
        self.parts = {
            name: (*writer.frames(part), part.trained) for name, part in role.parts.items()
        }

    def write(self, index: int, content: object, out: Segments, strip: bool) -> None:
        out.items += self.open[0]
        out.trained += self.open[1]
        if isinstance(content, str):
            out.items.append(content.strip() if strip else content)
            out.trained.append(self.trained)
        else:
            self._write_parts(index, content, out)
        out.items += self.close[0]
        out.items.append(None)
        out.trained += self.close[1]
        out.trained.append(0)

    def _write_parts(self, index: int, content: object, out: Segments) -> None:
        if not self.parts or not isinstance(content, list | Sequence) or isinstance(content, bytes):
            expected = "a string or a list of parts" if self.parts else "a string"
            raise ConversationError(
                f"the content of message {index} is {type(content).__name__}; it must be {expected}"
            )
        for number, part in enumerate(content):
            (items, mask), (after, after_mask), trained = self._part(index, number, part)
            out.items += items
            out.items.append(part["text"])
            out.items += after
            out.trained += mask
            out.trained.append(trained)
            out.trained += after_mask

    def _part(self, index: int, number: int, part: Any) -> tuple[_Frame, _Frame, bool]:
        place = f"part {number} of message {index}"
        if not isinstance(part, dict | Mapping) or not isinstance(part.get("text"), str):
            raise ConversationError(f'{place} must be a mapping with "type" and a string "text"')
        kind = part.get("type")
        if kind not in self.parts:
            raise ConversationError(
                f"{place} has the type {kind!r}; it must be one of {', '.join(self.parts)}"
            )
        return self.parts[kind]


def role_of(index: int, message: Any) -> str:
    """The role of a message, which is a string."""
    role = message.get("role") if isinstance(message, dict | Mapping) else None
    if not isinstance(role, str):
        raise ConversationError(f'message {index} must be a mapping with a string under "role"')
    return role


def _text(index: int, content: object) -> str:
    if not isinstance(content, str):
        raise ConversationError(
            f"the content of message {index} is {type(content).__name__}; where a system "
            "message is merged it must be a string"
        )
    return content


def writer(tokenizer: _core.Tokenizer, template: Template | JinjaTemplate) -> Any:
    """What turns conversations into segments under a template: a `TemplateWriter` or its like."""
    global _last
    if not isinstance(template, Template):
        return template.writer(tokenizer)
    last = _last
    if last is None or last.tokenizer is not tokenizer or last.template is not template:
        _last = last = TemplateWriter(tokenizer, template)
    return last


#: The writer that was used last: rendering in a loop makes one, not one for each conversation.
_last: TemplateWriter | None = None


def nothing_to_learn(trained: int, length: int, max_tokens: int | None) -> str:
    """Why a mask that is all 0 or all 1 is an error."""
    if trained:
        return (
            "the mask is all 1: the template trains on everything, the user's text too; say in the "
            'template what is trained on, or pass on_untrained="keep"'
        )
    cut = max_tokens is not None and length >= max_tokens
    why = f"max_tokens={max_tokens} cut off what would be" if cut else "no message has text that is"
    return (
        f"the mask is all 0: {why} trained on; give the conversation a reply within the limit, or "
        'pass on_untrained="keep" to have it all the same'
    )
