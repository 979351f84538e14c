"""Converts conversations to segments, with a `Template`; and finds the template of a tokenizer.

The text of a message is always ordinary text, so a tool result with `</tool_response>` cannot end
the message: texts and special tokens stay apart until the core encodes the segments.

The files of a tokenizer have Jinja templates: one named `default`, and perhaps others such as
`tool_use` or `rag`. nanochat's is also defined as a value, which is faster and renders the parts of
a message apart, so this value takes its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bytepair import _core
from bytepair._internal.checks import refuse
from bytepair.chat.rows import DEFAULT, REASONING, ChatOptions, Row, is_list, reasoning_of
from bytepair.chat.segments import BREAK, Items, Segments, Writer, structural
from bytepair.chat.template import ASSISTANT, NANOCHAT, Piece, Role, Special, Template, Tools
from bytepair.errors import ArgumentError, ConversationError, SpecialTokenError
from bytepair.files.safe import read_json
from bytepair.properties import roles

if TYPE_CHECKING:
    from bytepair.chat.jinja import JinjaTemplate

#: A chat template, the name of one of the tokenizer's, or None for the tokenizer's own.
TemplateOrName: TypeAlias = "Template | JinjaTemplate | str | None"

#: No segments.
_NOTHING: Final[Items] = ([], b"")


class _WithTools(tuple[Piece, ...]):
    """A content with the definitions of tools: texts and tokens."""


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
        self.thinks = template.reasoning is not None
        self.always_thinks = template.reasoning is not None and template.reasoning.always
        self.roles = {name: _Role(self, name, role) for name, role in template.roles.items()}
        self.prompted = self.roles[ASSISTANT]

    def frame(self, pieces: Sequence[Piece], trained: bool | None = None) -> Items:
        """Pieces as segments; those are trained on that say so, or all or none if that is given."""
        items: list[str | int | None] = [
            self._item(piece) if isinstance(piece, Special) else piece for piece in pieces
        ]
        if trained is not None:
            return items, bytes([trained]) * len(items)
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
        return role not in self.roles or not self.roles[role].parts

    def write(self, row: Row, out: Segments, options: ChatOptions = DEFAULT) -> None:
        """Append a conversation. An error contains the index of the message and the rule."""
        template = self.template
        if row.messages[0]["role"] == "developer" and "developer" not in self.roles:
            first = {**row.messages[0], "role": "system"}  # OpenAI calls it the developer's
            row = replace(row, messages=[first, *row.messages[1:]])
        messages: list[tuple[int, Any]] = list(enumerate(row.messages))
        if template.merge_system is not None and row.messages[0]["role"] == "system":
            messages = self._merged(messages, template.merge_system)
        if template.default_system is not None or row.fields:
            messages = self._offered(messages, row.fields.get("tools"))
        out.items += self._begin[0]
        out.trained += self._begin[1]
        self.append(messages, out, trained=row.trained(options.train_on))
        out.ends.append(len(out.items))

    def append(
        self,
        messages: list[tuple[int, Any]],
        out: Segments,
        place: int = 0,
        trained: Sequence[bool] | None = None,
    ) -> None:
        """Append messages, starting at a position in the order of turns.

        What is from a message that is not `trained` on gets the mask 0; None means all are.
        """
        before: _Role | None = None
        turns, known = self.template.alternate, self.roles
        for at, (index, message) in enumerate(messages, place):
            name = message["role"]
            in_turn = not turns or name == turns[at % len(turns)]
            if not in_turn or name not in known or (at and name == "system"):
                rule = f", but the template {self.name!r} has only the roles {', '.join(known)}, "
                rule += "and a system message only at the start"
                if not in_turn:
                    rule = f" but must be from {turns[at % len(turns)]!r}: roles take turns, "
                    rule += ", ".join(turns)
                raise ConversationError(f"message {index} is from {name!r}{rule}")
            role = known[name]
            start = len(out.trained)
            content: Any = message.get("content")
            is_plain = len(message) == 2 and isinstance(content, str)
            if is_plain and role.each is None and not self.always_thinks:
                text = content.strip() if self.template.strip else content
                out.items += [*role.open[0], text, *role.end[0]]
                out.trained += role.mask_of_text
            else:
                role.write(index, message, out, goes_on=role is before)
            if trained is not None and not trained[index]:
                out.trained[start:] = bytes(len(out.trained) - start)
            before = role

    def prompt(self, row: Row, out: Segments) -> None:
        """Append a conversation, and open the turn of the prompted role."""
        self.write(row, out)
        _extend(out, self.prompted.open)
        out.ends[-1] = len(out.items)

    def write_answer(self, row: Row, count: int, out: Segments, options: ChatOptions) -> None:
        """Append what a conversation adds to the prompt of its first `count` messages."""
        prompt, start = Segments(), len(out.items)
        self.prompt(Row(row.messages[:count], row.fields, {}), prompt)
        self.write(row, out, options)
        end = start + len(prompt.items)
        if out.items[start:end] != prompt.items:
            raise ConversationError(
                "the answer does not continue the prompt", hint="use a template where it does"
            )
        del out.items[start:end], out.trained[start:end]
        out.ends[-1] = len(out.items)

    def _merged(self, messages: list[tuple[int, Any]], between: str) -> list[tuple[int, Any]]:
        """The messages, with a first system message merged into the next one."""
        name = self.template.alternate[0] if self.template.alternate else "user"
        rest = messages[1:]
        if not rest or rest[0][1]["role"] != name:
            raise ConversationError(
                f"message 0 is a system message, so message 1 must be from {name!r}"
            )
        texts = [_text(index, one.get("content"), False) for index, one in messages[:2]]
        return [(1, {"role": name, "content": between.join(texts)}), *rest[1:]]

    def _offered(self, messages: list[tuple[int, Any]], definitions: Any) -> list[tuple[int, Any]]:
        """The messages, with the default system message, and tools at the end of this message."""
        template, tools = self.template, self.template.tools
        has_system = bool(messages) and messages[0][1]["role"] == "system"
        if not definitions and (has_system or template.default_system is None):
            return messages
        text = messages[0][1].get("content") if has_system else template.default_system or ""
        pieces: list[Piece] = list(filter(None, [_text(0, text, template.strip)]))
        if definitions and tools is None:
            raise ConversationError(
                f"the conversation has tools, which the template {self.name!r} does not support"
            )
        if definitions and tools:
            pieces += ["\n\n"] if pieces else []
            pieces += _offer(tools, definitions)
        system = {"role": "system", "content": _WithTools(pieces)}
        return [(0, system), *messages[int(has_system) :]]


def _offer(tools: Tools, definitions: Any) -> list[Piece]:
    if not isinstance(definitions, list | tuple):
        raise ConversationError(f"tools must be a list, not {type(definitions).__name__}")
    pieces: list[Piece] = [*tools.offer.open]
    for number, tool in enumerate(definitions):
        pieces += [*tools.tool.open, _json(tool, f"tool {number}"), *tools.tool.close]
    return [*pieces, *tools.offer.close]


class _Role:
    """One role of a template, its special tokens resolved."""

    def __init__(self, writer: TemplateWriter, name: str, role: Role) -> None:
        self._writer, self._template, self._name = writer, writer.template, name
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
            name: (writer.frame(part.open), writer.frame(part.close), part.trained)
            for name, part in role.parts.items()
        }

    def write(self, index: int, message: Any, out: Segments, *, goes_on: bool) -> None:
        """Append a message; if it goes on, it shares the turn of the one before it."""
        body = self.body(index, message)
        if goes_on and self.each:
            del out.items[-len(self.end[0]) :], out.trained[-len(self.end[0]) :]
        else:
            _extend(out, self.open)
        before, after = self.each or (_NOTHING, _NOTHING)
        for more in (before, body, after, self.end):
            _extend(out, more)

    def body(self, index: int, message: Any) -> Items:
        """The segments of a message, without the frame of the role."""
        content, template = message.get("content"), self._template
        thought, called = reasoning_of(message), message.get("tool_calls")
        is_answer = self._name == ASSISTANT
        for what, supported in ((thought, template.reasoning), (called, template.tools)):
            if what and not (is_answer and supported):
                name = "tool_calls" if what is called else next(filter(message.get, REASONING))
                raise ConversationError(
                    f"message {index} has {name}, which the template {template.name!r} does not "
                    f"support for {self._name!r}",
                    hint="use a template that does, or remove it",
                )
        if thought or called or (is_answer and self._writer.always_thinks):
            return self._writer.frame(self._answer(index, message, thought or ""), self._trained)
        if isinstance(content, _WithTools):
            return self._writer.frame(content, self._trained)
        if self.parts and is_list(content):
            return self._parts(index, content)
        return [_text(index, content, template.strip)], bytes([self._trained])

    def _parts(self, index: int, parts: Sequence[Any]) -> Items:
        items, mask = list[str | int | None](), b""
        for number, part in enumerate(parts):
            is_part = isinstance(part, dict | Mapping) and part.keys() == {"type", "text"}
            kind, text = (part["type"], part["text"]) if is_part else (None, None)
            if not isinstance(text, str) or not isinstance(kind, str) or kind not in self.parts:
                raise ConversationError(
                    f"part {number} of message {index} is {str(part)[:80]}; it must have a string "
                    f'"text", a "type" of {", ".join(self.parts)}, and no other field'
                )
            before, after, trained = self.parts[kind]
            items += [*before[0], text, *after[0]]
            mask += before[1] + bytes([trained]) + after[1]
        return items, mask

    def _answer(self, index: int, message: Mapping[str, Any], thought: Any) -> list[Piece]:
        """Reasoning, text and tool calls, in this order."""
        template, thinks = self._template, self._template.reasoning
        content = message.get("content")
        text = _text(index, content, template.strip) if content else ""
        pieces: list[Piece] = []
        if thinks and (thought or thinks.always):
            reasoning = _text(index, thought, template.strip, "reasoning").strip(thinks.strip)
            pieces += [*thinks.open, reasoning, *thinks.close]
            text = text.lstrip(thinks.strip)
        pieces += [text] if text else []
        if template.tools and message.get("tool_calls"):
            pieces += _called(template.tools, index, message["tool_calls"], bool(text))
        return pieces


def _extend(out: Segments, more: Items) -> None:
    out.items += more[0]
    out.trained += more[1]


def _called(tools: Tools, index: int, calls: Any, has_text: bool) -> list[Piece]:
    """The segments of the calls of a message."""
    if not isinstance(calls, list | tuple):
        raise ConversationError(f"the tool_calls of message {index} must be a list")
    pieces: list[Piece] = []
    for number, call in enumerate(calls):
        pieces += ["\n"] if has_text or number else []
        place = f"tool call {number} of message {index}"
        name, arguments = _function(call)
        if not isinstance(name, str) or json.dumps(name, ensure_ascii=False) != f'"{name}"':
            raise ConversationError(
                f"{place} must have a name that needs no escape in JSON: {name!r}"
            )
        if not isinstance(arguments, Mapping):
            raise ConversationError(
                f"the arguments of {place} are {_core.shown(arguments)}; they must be an object or "
                "a JSON string of one"
            )
        text_of_call = f'{{"name": "{name}", "arguments": {_json(arguments, place)}}}'
        pieces += [*tools.call.open, text_of_call, *tools.call.close]
    return pieces


def _function(call: Any) -> tuple[Any, Any]:
    """The name and the arguments of a call; those in a string, as servers return them, are read."""
    call = call.get("function", call) if isinstance(call, Mapping) else call
    if not isinstance(call, Mapping):
        return None, None
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = read_json(arguments or "{}")
    return call.get("name"), arguments


def _json(value: Any, place: str) -> str:
    """JSON as written by Hugging Face templates."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConversationError(f"{place} cannot be written as JSON: {error}") from None


def _text(index: int, content: Any, strip: bool, name: str = "content") -> str:
    if not isinstance(content, str):
        raise ConversationError(
            f"the {name} of message {index} must be a string or a list of text parts, not "
            f"{type(content).__name__}"
        )
    return content.strip() if strip else content


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
    else:
        from bytepair.chat.jinja import JinjaTemplate, JinjaWriter

        if not isinstance(resolved, JinjaTemplate):
            raise refuse("template", template, "a Template, a JinjaTemplate or a name")
        new_writer = JinjaWriter(tokenizer, resolved)
    if resolved is not template or isinstance(resolved, Template):  # variables of others may change
        _last = tokenizer, template, new_writer
    return new_writer


#: The last tokenizer, template and writer: rendering in a loop does not create one every time.
_last: tuple[_core.Tokenizer, TemplateOrName, Any] | None = None


def nothing_to_learn(trained: int) -> ConversationError:
    """The error for the mask of a conversation that is all 0 or all 1."""
    hint = "add a reply, raise max_tokens, or render a prompt with render_for_completion"
    return ConversationError(
        f"the mask is all {int(trained > 0)}",
        option="on_untrained",
        value="error",
        hint=f"{'mark what is trained on in the template' if trained else hint}, or pass "
        'on_untrained="keep" to keep it',
    )


def named(tokenizer: _core.Tokenizer, name: str | None) -> Template | JinjaTemplate:
    """The chat template with a name; None means the default one, or nanochat's if there is none."""
    sources = roles.chat_templates(tokenizer)
    chosen = name or roles.DEFAULT
    if chosen in sources:
        return _template(chosen, sources[chosen])
    tokens = tokenizer.special_tokens.keys()
    if name is None and {"<|user_start|>", "<|assistant_start|>"} <= tokens:
        return NANOCHAT
    has = f"the chat templates {', '.join(sources)}" if sources else "no chat template"
    raise ArgumentError(
        f"template is {_core.shown(name)}, but the tokenizer has {has}",
        option="template",
        hint="pass template=, such as chat.CHATML (chatml in the shell), or "
        "chat.JinjaTemplate(source)",
    )


def _template(name: str, source: str) -> Template | JinjaTemplate:
    from bytepair.chat.jinja import JinjaTemplate

    return NANOCHAT if source == roles.nanochat() else JinjaTemplate(source, name=name)
