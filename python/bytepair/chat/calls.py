"""Renders reasoning, tool definitions, tool calls and tool results of messages.

The result is a list of pieces: texts, and special tokens, which become ids later. The text of a
message is always ordinary text, so a tool result with `</tool_response>` cannot end the message.

nanochat writes a call of Python, its output and the text after it into one turn of the assistant,
as parts of a message. Other formats have a message for each: one of the assistant with a tool call,
one of the tool with the result, and the next one of the assistant. `to_parts` and `to_calls` turn
one into the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from bytepair.chat.kinds import read_json
from bytepair.chat.rows import REASONING, Row, TrainOn, reasoning_of
from bytepair.chat.segments import role_or_none
from bytepair.chat.template import CodeTool, MessageField, Piece, Template, Tools
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


# ----------------------------------------------------------------------- calls as parts of one turn


def to_parts(
    template: Template, messages: Sequence[Numbered], *, goes_on: bool = False
) -> list[Numbered]:
    """Join the messages of each turn to one message with parts, which has the first number.

    Args:
        template: a template with a tool that runs code.
        messages: the messages with their numbers.
        goes_on: whether results at the start belong to a turn of the assistant that is open.

    Raises:
        ConversationError: if a message has several calls, or one that does not run code.
    """
    tool = template.code
    if tool is None or not any(_is_apart(message) for _, message in messages):
        return list(messages)
    turns: list[list[Numbered]] = []
    for index, message in messages:
        if turns and _continues(turns[-1][-1][1], message, template.prompted):
            turns[-1].append((index, message))
        else:
            turns.append([(index, message)])
    are_open = [goes_on, *[False] * (len(turns) - 1)]
    return [
        _joined(template.prompted, tool, turn, is_open=is_open)
        for turn, is_open in zip(turns, are_open, strict=True)
    ]


def of_turns(
    template: Template,
    row: Row,
    trained: Sequence[bool],
    turns: Sequence[Numbered],
    train_on: TrainOn,
) -> list[bool]:
    """For the first message of each turn, whether the turn is trained on.

    Args:
        template: a template with a tool that runs code.
        row: the conversation.
        trained: for each of its messages, whether it is trained on.
        turns: its turns, with the numbers of their first messages.
        train_on: with "last", a turn is trained on if it has the last message.

    Raises:
        ConversationError: if a turn is to be trained on only in part.
    """
    flags = [*trained]
    starts = [index for index, _ in turns]
    for start, end in zip(starts, [*starts[1:], len(trained)], strict=True):
        own = [
            trained[index]
            for index in range(start, end)
            if row.messages[index]["role"] == template.prompted
        ]
        flags[start] = any(own)
        if train_on != "last" and not all(own) and any(own):
            raise ConversationError(
                (
                    f"the messages {start} to {end - 1} are one turn in this template, so all of "
                    "them are trained on, or none"
                ),
                hint="give them the same train or weight",
            )
    return flags


def to_calls(template: Template, message: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that a message with parts stands for: the inverse of `to_parts`."""
    tool, parts = template.code, message["content"]
    if tool is None or isinstance(parts, str):
        return [message]
    calls: list[dict[str, Any]] = []
    is_open = False  # whether the last message may have a call
    for part in parts:
        if part["type"] == tool.result:
            calls.append({"role": "tool", "content": part["text"]})
            is_open = False
            continue
        if not is_open:
            calls.append({"role": template.prompted, "content": ""})
        is_open = part["type"] != tool.call
        if is_open:
            calls[-1]["content"] += part["text"]
        else:
            calls[-1]["tool_calls"] = [call_of(tool, part["text"])]
    return calls


def call_of(tool: CodeTool, text: str) -> dict[str, Any]:
    """The tool call that runs a text of code."""
    return {"type": "function", "function": {"name": tool.name, "arguments": {tool.argument: text}}}


def _is_apart(message: Any) -> bool:
    role = role_or_none(message)
    return role == "tool" or (role is not None and bool(message.get("tool_calls")))


def _continues(before: Any, message: Any, prompted: str) -> bool:
    """Whether a message belongs to the turn of the one before it."""
    role = role_or_none(message)
    return role == "tool" or (role == prompted and _is_apart(before))


def _joined(prompted: str, tool: CodeTool, turn: list[Numbered], *, is_open: bool) -> Numbered:
    index, first = turn[0]
    if len(turn) == 1 and not _is_apart(first):
        return index, first
    role = role_or_none(first)
    if role != prompted and not (is_open and role == "tool"):
        at, _ = next(((i, m) for i, m in turn if role_or_none(m) == "tool"), turn[0])
        raise ConversationError(
            f"message {at} is a result or has a tool call, but is not in a turn of {prompted!r}"
        )
    parts = [part for number, message in turn for part in _parts(tool, number, message)]
    return index, {"role": prompted, "content": parts}


def _parts(tool: CodeTool, index: int, message: Any) -> Iterator[Any]:
    content = message.get("content")
    if message["role"] == "tool":
        yield {"type": tool.result, "text": content}
        return
    if isinstance(content, str) or content is None:
        yield from [{"type": "text", "text": content}] if content else []
    else:
        yield from content
    if calls := message.get("tool_calls"):
        yield {"type": tool.call, "text": _code(tool, index, calls)}


def _code(tool: CodeTool, index: int, calls: Any) -> str:
    """The code that the only call of a message runs."""
    call = calls[0] if isinstance(calls, list | tuple) and len(calls) == 1 else None
    function = call.get("function", call) if isinstance(call, Mapping) else {}
    arguments: Any = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments)
    is_alone = isinstance(arguments, Mapping) and len(arguments) == 1
    text = arguments.get(tool.argument) if is_alone else None
    if function.get("name") != tool.name or not isinstance(text, str):
        raise ConversationError(
            f"message {index} must have one tool call, of {tool.name!r} with a string "
            f"{tool.argument!r}: the template can express no other"
        )
    return text
