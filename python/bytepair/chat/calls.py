"""Render messages with reasoning, tool definitions, tool calls and tool results.

The result is a list of pieces: texts, and special tokens, which become ids later. The text of a
message is always ordinary text, so a tool result with `</tool_response>` cannot end the message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from bytepair.chat.rows import REASONING, read_json, reasoning_of
from bytepair.chat.segments import role_or_none
from bytepair.chat.template import MessageField, Piece, Template, Tools
from bytepair.errors import ConversationError

#: A message with its index in the conversation.
Numbered: TypeAlias = "tuple[int, Any]"

#: The number of consecutive pieces that belong to a field of a message.
FieldSpan: TypeAlias = "tuple[int, MessageField]"


@dataclass(frozen=True, slots=True)
class Body:
    """The rendered fields of a message.

    Attributes:
        pieces: texts and special tokens.
        close: the end of the message if it differs from the usual end of its role, or None.
        spans: how many of the pieces belong to each field, in order; the rest is content.
    """

    pieces: tuple[Piece, ...]
    close: tuple[Piece, ...] | None = None
    spans: tuple[FieldSpan, ...] = ()


def offered(
    template: Template, messages: list[Numbered], fields: Mapping[str, Any]
) -> list[Numbered]:
    """The messages, with the tool definitions inserted into one of them.

    Raises:
        ConversationError: if the template does not support tools.
    """
    definitions, builtin = fields.get("tools"), _builtin(fields)
    tools = template.tools
    if (definitions or builtin is not None) and tools is None:
        raise ConversationError(
            f"the conversation has tools, which the template {template.name!r} does not support"
        )
    offer = _offer(tools, definitions) if tools and definitions else ()
    note = _note(tools, builtin) if tools and (definitions or builtin is not None) else ""
    if tools and tools.where == "user":
        return _with_system(template, _with_user(template, messages, offer), note, ())
    return _with_system(template, messages, note, offer)


def _builtin(fields: Mapping[str, Any]) -> Sequence[str] | None:
    names: Sequence[str] | None = fields.get("builtin_tools")
    return names


def _offer(tools: Tools, definitions: Any) -> tuple[Piece, ...]:
    if not isinstance(definitions, list | tuple):
        raise ConversationError(f"tools must be a list, not {type(definitions).__name__}")
    pieces = [*tools.offer.open]
    for number, tool in enumerate(definitions):
        text = _json(tool, f"tool {number}", tools.indent)
        pieces += [*tools.tool.open, text, *tools.tool.close]
    return (*pieces, *tools.offer.close)


def _note(tools: Tools, names: Sequence[str] | None) -> str:
    if names is None:
        return tools.note
    if tools.builtin is None or not all(isinstance(name, str) for name in names):
        raise ConversationError(
            "builtin_tools must be a list of names, and the template must support built-in tools"
        )
    tools_of_note = [name for name in names if name not in tools.builtin.unnamed]
    return f"{tools.note}{tools.builtin.note}{', '.join(tools_of_note)}\n\n"


def _with_system(
    template: Template, messages: list[Numbered], note: str, offer: tuple[Piece, ...]
) -> list[Numbered]:
    """The messages, with a system message that includes the tool definitions."""
    has = bool(messages) and role_or_none(messages[0][1]) == "system"
    adds = note or offer or template.preamble
    if not adds and (has or template.default_system is None):
        return messages
    text = messages[0][1].get("content") if has else template.default_system or ""
    text = _text(0, text, template.strip)
    between = ("\n\n",) if text and offer else ()
    pieces = tuple(filter(None, (note, template.preamble, text, *between, *offer)))
    system = {"role": "system", "content": Body(pieces)}
    return [(0, system), *messages[1 if has else 0 :]]


def _with_user(
    template: Template, messages: list[Numbered], offer: tuple[Piece, ...]
) -> list[Numbered]:
    """The messages, with the tool definitions before the text of the first user message."""
    if not offer:
        return messages
    at = int(bool(messages) and role_or_none(messages[0][1]) == "system")
    if len(messages) <= at or role_or_none(messages[at][1]) != "user":
        raise ConversationError(
            f"the template {template.name!r} puts tools into a user message, so message {at} must "
            "be from 'user'"
        )
    index, message = messages[at]
    text = _text(index, message.get("content"), template.strip)
    user = (index, {**message, "content": Body((*offer, text))})
    return [*messages[:at], user, *messages[at + 1 :]]


def body(template: Template, index: int, message: Any, fields: Mapping[str, Any]) -> Any:
    """Render a message with reasoning, tool calls or tool results.

    Raises:
        ConversationError: if the message has a field that the template does not support.
    """
    tools, content, role = template.tools, message.get("content"), role_or_none(message)
    thought, called = reasoning_of(message), bool(message.get("tool_calls"))
    has_no_place = role != template.prompted
    if thought and (has_no_place or template.reasoning is None):
        name = next(name for name in REASONING if message.get(name))
        raise ConversationError(
            (
                f"message {index} has {name}, which the template {template.name!r} does not "
                f"support for {role!r}"
            ),
            hint="use a template that does, or remove it",
        )
    if called and (has_no_place or tools is None):
        raise ConversationError(
            f"message {index} has tool calls, which the template {template.name!r} does not "
            f"support for {role!r}"
        )
    if template.reasoning and not (thought or has_no_place) and isinstance(content, str):
        tag = next((tag for tag in ("<think>", "</think>") if tag in content), None)
        if tag:
            raise ConversationError(
                f"the content of message {index} contains {tag!r}, which would be trained on as "
                "text",
                hint="put the reasoning into the field reasoning_content of the message",
            )
    thinks = thought or (template.reasoning and template.reasoning.always and not has_no_place)
    if thinks or called:
        return _answer(template, index, message, thought or "", _builtin(fields))
    if tools and tools.json_results and role == "tool":
        return Body((_json(content, f"the content of message {index}", None),))
    return content


def _answer(
    template: Template,
    index: int,
    message: Mapping[str, Any],
    thought: Any,
    builtin_names: Sequence[str] | None,
) -> Body:
    """Render reasoning, text and tool calls, in this order."""
    content = message.get("content")
    text = _text(index, content, template.strip) if content else ""
    called = (
        _called(template, index, message, text, builtin_names) if message.get("tool_calls") else ()
    )
    before: list[Piece] = []
    thinks = template.reasoning
    if thinks and (thought or thinks.always):
        reasoning = _text(index, thought, template.strip, "reasoning").strip(thinks.strip)
        before = [*thinks.open, reasoning, *thinks.close]
        text = text.lstrip(thinks.strip)
    pieces = (*before, *([text] if text else []), *called)
    spans: list[FieldSpan] = [
        (len(before), "reasoning"),
        (int(bool(text)), "content"),
        (len(called), "tool_calls"),
    ]
    if not (thought or text or called):  # without anything to say, the frame is all there is
        spans = []
    builtin = (
        template.tools.builtin if template.tools and called and builtin_names is not None else None
    )
    filled = tuple((count, field) for count, field in spans if count)
    return Body(pieces, builtin.close if builtin else None, filled)


def _called(
    template: Template,
    index: int,
    message: Mapping[str, Any],
    text: str,
    builtin_names: Sequence[str] | None,
) -> list[Piece]:
    """Render the tool calls of a message, with what separates them from its text."""
    tools, calls = template.tools, message["tool_calls"]
    assert tools
    if not isinstance(calls, list | tuple):
        raise ConversationError(f"the tool_calls of message {index} must be a list")
    if tools.single and (len(calls) > 1 or text):
        raise ConversationError(
            f"message {index} has {len(calls)} tool calls and {'some' if text else 'no'} text; the "
            f"template {template.name!r} supports a single call without text"
        )
    pieces: list[Piece] = []
    for number, call in enumerate(calls):
        pieces += [tools.between] if text or number else []
        pieces += _call(tools, f"tool call {number} of message {index}", call, builtin_names)
    return pieces


def _call(
    tools: Tools, place: str, call: Any, builtin_names: Sequence[str] | None
) -> Iterator[Piece]:
    call = call.get("function", call) if isinstance(call, Mapping) else call
    name = call.get("name") if isinstance(call, Mapping) else None
    if not isinstance(name, str) or json.dumps(name, ensure_ascii=False) != f'"{name}"':
        raise ConversationError(f"{place} must have a name that needs no escape in JSON: {name!r}")
    arguments = _arguments(call.get("arguments"), place)
    if tools.builtin and builtin_names and name in builtin_names:
        yield from (*tools.builtin.open, _written(name, arguments, place))
        return
    text = f'{{"name": "{name}", "{tools.arguments}": {_json(arguments, place, None)}}}'
    yield from (*tools.call.open, text, *tools.call.close)


def _arguments(value: Any, place: str) -> Any:
    """The arguments of a call, which may be a JSON string, as servers return them."""
    if isinstance(value, str):
        try:
            value = read_json(value)
        except ValueError as error:
            raise ConversationError(f"the arguments of {place} are not JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise ConversationError(
            f"the arguments of {place} must be an object or a JSON string of one, not "
            f"{type(value).__name__}"
        )
    return value


def _written(name: str, arguments: Mapping[str, Any], place: str) -> str:
    """Render a call of a built-in tool."""
    if not all(isinstance(value, str) for value in arguments.values()):
        raise ConversationError(f"the arguments of {place}, a built-in tool, must be strings")
    values = ", ".join(f'{key}="{value}"' for key, value in arguments.items())
    return f"{name}.call({values})"


def _json(value: Any, place: str, indent: int | None) -> str:
    """JSON as written by Hugging Face templates."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConversationError(f"{place} cannot be written as JSON: {error}") from None


def _text(index: int, content: Any, strip: bool, name: str = "content") -> str:
    if not isinstance(content, str):
        raise ConversationError(
            f"the {name} of message {index} must be a string, not {type(content).__name__}"
        )
    return content.strip() if strip else content
