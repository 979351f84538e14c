"""Converts conversations to segments, with a `Template`; and finds the template of a tokenizer.

The files of a tokenizer have Jinja templates: one named `default`, and perhaps others such as
`tool_use` or `rag`. nanochat's is also defined as a value, which is faster and renders the parts of
a message apart, so this value takes its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bytepair import _core
from bytepair._internal.checks import refuse
from bytepair.chat import calls
from bytepair.chat.calls import Body, Numbered
from bytepair.chat.rows import DEFAULT, ChatOptions, Row
from bytepair.chat.segments import BREAK, Items, Segments, Writer, structural
from bytepair.chat.template import ASSISTANT, NANOCHAT, MessageField, Piece, Role, Special, Template
from bytepair.errors import ArgumentError, ConversationError, SpecialTokenError
from bytepair.properties import roles

if TYPE_CHECKING:
    from bytepair.chat.jinja import JinjaTemplate

#: A chat template, the name of one of the tokenizer's, or None for the tokenizer's own.
TemplateOrName: TypeAlias = "Template | JinjaTemplate | str | None"


class TemplateWriter(Writer):
    """Converts messages to segments, with a template and the ids of one tokenizer."""

    fields = ("tools",)  # a template without tools refuses them by name

    def __init__(self, tokenizer: _core.Tokenizer, template: Template) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.name = template.name
        self.join = template.join
        self._special = structural(tokenizer)
        self._begin = self.frame(template.begin)
        self._offers = template.default_system is not None or bool(template.preamble)
        self._json_results = template.tools is not None and template.tools.json_results
        self.thinks = template.reasoning is not None
        always = template.reasoning is not None and template.reasoning.always
        self._adds = self._json_results or always
        self.roles = {name: _Role(self, name, role) for name, role in template.roles.items()}
        self.prompted = self.roles[ASSISTANT]
        self.stops = [self._special[name] for name in template.stop if name in self._special]

    def frame(self, pieces: Sequence[Piece]) -> Items:
        """Pieces of a template as segments, and which of them are trained on."""
        items: list[str | int | None] = [
            self._item(piece) if isinstance(piece, Special) else piece for piece in pieces
        ]
        return items, bytes(isinstance(p, Special) and p.trained for p in pieces)

    def _item(self, piece: Special) -> str | int:
        if piece.name not in self._special:
            if piece.optional:
                return piece.name
            raise SpecialTokenError(
                f"the template {self.name!r} needs the special token {piece.name!r}, which this "
                f"tokenizer does not have; it has {' '.join(self._special) or 'none'}"
            )
        return self._special[piece.name]

    def trains_on(self, role: str) -> bool:
        """Whether the model is trained on messages of a role."""
        return role not in self.roles or self.roles[role].is_trained

    def joins_parts(self, role: str) -> bool:
        """Whether a list of text parts is read as one text; else the role has parts of its own."""
        if role == "tool" and self._json_results:
            return False
        return role not in self.roles or not self.roles[role].parts

    def write(self, row: Row, out: Segments, options: ChatOptions = DEFAULT) -> None:
        """Append a conversation. An error contains the index of the message and the rule."""
        template, trained = self.template, None
        if row.messages[0]["role"] == "developer" and "developer" not in self.roles:
            first = {**row.messages[0], "role": "system"}  # OpenAI calls it the developer's
            row = replace(row, messages=[first, *row.messages[1:]])
        messages: list[Numbered] = list(enumerate(row.messages))
        if template.merge_system is not None and row.messages[0]["role"] == "system":
            messages = self._merged(row.messages)
        if row.flags or options.train_on != "all":
            trained = row.trained(options.train_on)
        if template.code and not row.is_plain:
            messages = calls.to_parts(template, messages)
            if trained is not None:
                trained = calls.of_turns(row, trained, messages, options.train_on)
        if self._offers or row.fields:
            messages = calls.offered(template, messages, row.fields)
        out.items += self._begin[0]
        out.trained += self._begin[1]
        self.append(messages, out, trained=trained, train_fields=options.train_fields)
        out.ends.append(len(out.items))

    def append(
        self,
        messages: list[Numbered],
        out: Segments,
        place: int = 0,
        trained: Sequence[bool] | None = None,
        train_fields: Collection[MessageField] | None = None,
    ) -> None:
        """Append messages, starting at a position in the order of turns.

        What is from a message that is not `trained` on gets the mask 0, and so do the fields that
        are not `train_fields`; None means all are.
        """
        before: _Role | None = None
        turns, known = self.template.alternate, self.roles
        for at, (index, message) in enumerate(messages, place):
            name = message["role"]
            in_turn = not turns or name == turns[at % len(turns)]
            if not in_turn or name not in known or (at and name == "system"):
                self._check_role(index, at, name)
            role = known[name]
            start = len(out.trained)
            content: Any = message.get("content")
            if len(message) > 2 or self._adds:
                content = calls.body(self.template, index, message)
            if train_fields is None and role.each is None and isinstance(content, str):
                text = content.strip() if self.template.strip else content
                out.items += [*role.open[0], text, *role.end[0]]
                out.trained += role.mask_of_text
            else:
                role.write(index, content, out, train_fields, role is before)
            if trained is not None and not trained[index]:
                out.trained[start:] = bytes(len(out.trained) - start)
            before = role

    def prompt(self, row: Row, out: Segments) -> None:
        """Append a conversation, and open the turn of the prompted role."""
        self.write(row, out)
        if self.template.code and row.messages[-1]["role"] == "tool":  # the turn is still open
            end = len(self.prompted.end[0])
            del out.items[-end:], out.trained[-end:]
        else:
            _extend(out, self.prompted.open)
        out.ends[-1] = len(out.items)

    def halves(self, row: Row, count: int, options: ChatOptions) -> tuple[Items, Items]:
        """The segments of the prompt of the first messages, and those of the answer after it."""
        begins = row.messages[count]["role"]
        if begins != ASSISTANT:
            raise ConversationError(
                f"an answer must begin with a message of {ASSISTANT!r}, not {begins!r}"
            )
        whole, prompt = Segments(), Segments()
        self.write(row, whole, options)
        self.prompt(Row(row.messages[:count], row.fields, {}), prompt)
        end = len(prompt.items)
        if whole.items[:end] != prompt.items:
            raise ConversationError("the answer continues a turn of the prompt; it must begin one")
        return (prompt.items, bytes(end)), (whole.items[end:], bytes(whole.trained[end:]))

    def _merged(self, messages: Sequence[Mapping[str, Any]]) -> list[Numbered]:
        """The messages with their indices, with a first system message merged into the next one."""
        first = self.template.alternate[0] if self.template.alternate else "user"
        if len(messages) < 2 or messages[1]["role"] != first:
            raise ConversationError(
                f"message 0 is a system message, so message 1 must be from {first!r}, but it is "
                f"{'missing' if len(messages) < 2 else 'from ' + repr(messages[1]['role'])}"
            )
        for index, content in enumerate(message.get("content") for message in messages[:2]):
            if not isinstance(content, str):
                raise ConversationError(
                    f"the content of message {index} is {type(content).__name__}; to merge a "
                    "system message, it must be a string"
                )
        texts = messages[0]["content"], messages[1]["content"]
        merged = {"role": first, "content": (self.template.merge_system or "").join(texts)}
        return [(1, merged), *enumerate(messages[2:], 2)]

    def _check_role(self, index: int, place: int, name: str) -> None:
        turns = self.template.alternate
        if turns and name != turns[place % len(turns)]:
            raise ConversationError(
                f"message {index} is from {name!r} but must be from "
                f"{turns[place % len(turns)]!r}: roles take turns, {', '.join(turns)}"
            )
        if name not in self.roles:
            raise ConversationError(
                f"message {index} is from {name!r}, but the template {self.name!r} has only the "
                f"roles {', '.join(self.roles)}"
            )
        if name == "system" and place:
            raise ConversationError(f"message {index} is a system message; only message 0 may be")


class _Role:
    """One role of a template, its special tokens resolved."""

    def __init__(self, writer: TemplateWriter, name: str, role: Role) -> None:
        self._writer, self._strip = writer, writer.template.strip
        self.open, self.close = writer.frame(role.open), writer.frame(role.close)
        if writer.join and name == ASSISTANT:
            self.open = [*self.open[0], BREAK], self.open[1] + b"\0"
        self.end = [*self.close[0], None], self.close[1] + b"\0"  # None ends the message
        self._trained = role.trained
        self.is_trained = role.trained or any(part.trained for part in role.parts.values())
        self.mask_of_text = self.open[1] + bytes([role.trained]) + self.end[1]
        self.each = (
            (writer.frame(role.each.open), writer.frame(role.each.close)) if role.each else None
        )
        self.parts = {
            name: (writer.frame(part.open), writer.frame(part.close), part.trained, part.field)
            for name, part in role.parts.items()
        }

    def write(
        self,
        index: int,
        content: object,
        out: Segments,
        train_fields: Collection[MessageField] | None,
        goes_on: bool,
    ) -> None:
        """Append a message; if it goes on, it shares the turn of the one before it."""
        if goes_on and self.each:
            del out.items[-len(self.end[0]) :], out.trained[-len(self.end[0]) :]
        else:
            _extend(out, self.open)
        before, after = self.each or (_NOTHING, _NOTHING)
        _extend(out, before)
        last: MessageField = "content"
        for last, more in self.content(index, content):
            _extend(out, more, train_fields is None or last in train_fields)
        _extend(out, after)
        _extend(out, self.end, train_fields is None or last in train_fields)

    def content(self, index: int, content: object) -> list[tuple[MessageField, Items]]:
        """The segments of each field of a message, in order."""
        if isinstance(content, str):
            text = content.strip() if self._strip else content
            return [("content", ([text], bytes([self._trained])))]
        if isinstance(content, Body):
            frame, trained = self._writer.frame, bytes([self._trained])
            return [(field, (frame(some)[0], trained * len(some))) for field, some in content]
        if self.parts and isinstance(content, list | Sequence) and not isinstance(content, bytes):
            return [self._part(index, number, part) for number, part in enumerate(content)]
        expected = f"a string or a list of {'' if self.parts else 'text '}parts"
        if content is None:
            raise ConversationError(f"message {index} has no content", hint=f"pass {expected}")
        raise ConversationError(
            f"the content of message {index} must be {expected}, not {type(content).__name__}"
        )

    def _part(self, index: int, number: int, part: Any) -> tuple[MessageField, Items]:
        place = f"part {number} of message {index}"
        if not isinstance(part, dict | Mapping) or not isinstance(part.get("text"), str):
            raise ConversationError(f'{place} must be a mapping with "type" and a string "text"')
        if unused := sorted(map(str, part.keys() - {"type", "text"})):
            raise ConversationError(
                f"{place} has the fields {', '.join(unused)}, which the template "
                f"{self._writer.name!r} does not use",
                hint="remove them",
            )
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in self.parts:
            raise ConversationError(
                f"{place} has the type {kind!r}; it must be one of {', '.join(self.parts)}"
            )
        before, after, trained, field = self.parts[kind]
        mask = before[1] + bytes([trained]) + after[1]
        return field, ([*before[0], part["text"], *after[0]], mask)


#: No segments.
_NOTHING: Final[Items] = ([], b"")


def _extend(out: Segments, more: Items, is_learned: bool = True) -> None:
    out.items += more[0]
    out.trained += more[1] if is_learned else bytes(len(more[1]))


def writer(tokenizer: _core.Tokenizer, template: TemplateOrName) -> Any:
    """The object that converts conversations to segments: a `TemplateWriter` or `JinjaWriter`."""
    global _last
    last = _last  # read once: another thread may replace it
    if last is not None and last[0] is tokenizer and last[1] is template:
        return last[2]
    resolved: Any = template
    if template is None or isinstance(template, str):
        resolved = named(tokenizer, template)
    if isinstance(resolved, Template):
        new_writer: Any = TemplateWriter(tokenizer, resolved)
    elif hasattr(resolved, "writer"):
        new_writer = resolved.writer(tokenizer)
    else:
        raise refuse("template", template, "a Template, a JinjaTemplate or a name")
    if resolved is not template or isinstance(resolved, Template):  # variables of others may change
        _last = tokenizer, template, new_writer
    return new_writer


#: The last tokenizer, template and writer: rendering in a loop does not create one every time.
_last: tuple[_core.Tokenizer, TemplateOrName, Any] | None = None


def nothing_to_learn(trained: int, length: int, max_tokens: int | None) -> ConversationError:
    """The error for the mask of a conversation that is all 0 or all 1."""
    keep = 'pass on_untrained="keep" to keep it'
    why = "the mask is all 0: no message has text that is trained on"
    hint = f"add a reply, or render a prompt with render_for_completion, or {keep}"
    if trained:
        why = "the mask is all 1: the template trains on everything, including the user's text"
        hint = 'mark the trained parts in the template, or pass on_untrained="keep"'
    elif max_tokens is not None and length >= max_tokens:
        why = f"the mask is all 0: max_tokens={max_tokens} cut off what would be trained on"
        hint = f"raise max_tokens, or {keep}"
    return ConversationError(why, option="on_untrained", value="error", hint=hint)


# --------------------------------------------------------------------- the templates of a tokenizer


def templates(tokenizer: _core.Tokenizer) -> dict[str, Template | JinjaTemplate]:
    """The chat templates of a tokenizer by name; `default` is the first, if there is one."""
    sources = roles.chat_templates(tokenizer)
    return {name: _template(name, source) for name, source in sources.items()}


def named(tokenizer: _core.Tokenizer, name: str | None) -> Template | JinjaTemplate:
    """The chat template with a name; None means the default one, or nanochat's if there is none."""
    sources = roles.chat_templates(tokenizer)
    if name is None and roles.DEFAULT not in sources:
        if {"<|user_start|>", "<|assistant_start|>"} <= tokenizer.special_tokens.keys():
            return NANOCHAT
        raise ArgumentError(
            "the tokenizer has no chat template of its own",
            option="template",
            hint="pass template=, such as chat.CHATML (chatml in the shell), or "
            "chat.JinjaTemplate(source)",
        )
    name = name or roles.DEFAULT
    if name not in sources:
        raise ArgumentError(
            f"template is {name[:40]!r}, but the tokenizer has "
            f"{'the chat templates ' + ', '.join(sources) if sources else 'no chat template'}",
            hint="pass the name of one, a template of bytepair.chat, such as chat.CHATML, or "
            "chat.JinjaTemplate(source)",
        )
    return _template(name, sources[name])


def _template(name: str, source: str) -> Template | JinjaTemplate:
    from bytepair.chat.jinja import JinjaTemplate

    return NANOCHAT if source == roles.nanochat() else JinjaTemplate(source, name=name)
