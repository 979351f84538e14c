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
from typing import Any, TypeAlias

from bytepair.chat.rows import REASONING, Row, TrainOn, is_list, parsed_json, reasoning_of
from bytepair.chat.template import ASSISTANT, CodeTool, MessageField, Piece, Template, Tools
from bytepair.errors import ConversationError
from bytepair.files.safe import read_json

#: A message with its index in the conversation.
Numbered: TypeAlias = "tuple[int, Any]"


class Body(tuple[tuple[MessageField, Sequence[Piece]], ...]):
    """The rendered fields of a message, in order: for each its name, and texts and tokens."""


# ---------------------------------------------------------------------------- definitions of tools


def offered(
    template: Template, messages: list[Numbered], fields: Mapping[str, Any]
) -> list[Numbered]:
    """The messages, with the tool definitions inserted into one of them."""
    definitions, tools = fields.get("tools"), template.tools
    if not definitions:
        return _with_system(template, messages, "", [])
    if tools is None:
        raise ConversationError(
            f"the conversation has tools, which the template {template.name!r} does not support"
        )
    offer = _offer(tools, definitions)
    if tools.where == "user":
        messages, offer = _with_user(template, messages, offer), []
    return _with_system(template, messages, tools.note, offer)


def _offer(tools: Tools, definitions: Any) -> list[Piece]:
    if not isinstance(definitions, list | tuple):
        raise ConversationError(f"tools must be a list, not {type(definitions).__name__}")
    pieces: list[Piece] = []
    for number, tool in enumerate(definitions):
        text = _json(tool, f"tool {number}", tools.indent)
        pieces += [*tools.tool.open, text, *tools.tool.close]
    return [*tools.offer.open, *pieces, *tools.offer.close]


def _with_system(
    template: Template, messages: list[Numbered], note: str, offer: list[Piece]
) -> list[Numbered]:
    """The messages, with a system message that includes the tool definitions."""
    has = bool(messages) and messages[0][1]["role"] == "system"
    adds = note or offer or template.preamble
    if not adds and (has or template.default_system is None):
        return messages
    text = messages[0][1].get("content") if has else template.default_system or ""
    text = _text(0, text, template.strip)
    between = "\n\n" if text and offer else ""
    pieces = [piece for piece in (note, template.preamble, text, between, *offer) if piece]
    system = {"role": "system", "content": Body((("content", pieces),))}
    return [(0, system), *messages[1 if has else 0 :]]


def _with_user(template: Template, messages: list[Numbered], offer: list[Piece]) -> list[Numbered]:
    """The messages, with the tool definitions before the text of the first user message."""
    at = int(bool(messages) and messages[0][1]["role"] == "system")
    if len(messages) <= at or messages[at][1]["role"] != "user":
        raise ConversationError(
            f"the template {template.name!r} puts tools into a user message, so message {at} must "
            "be from 'user'"
        )
    index, message = messages[at]
    text = _text(index, message.get("content"), template.strip)
    user = (index, {**message, "content": Body((("content", [*offer, text]),))})
    return [*messages[:at], user, *messages[at + 1 :]]


# ---------------------------------------------------------------------------- fields of a message


def body(template: Template, index: int, message: Any) -> Any:
    """Render a message with reasoning, tool calls or tool results; else, return its content."""
    content, role, thinks = message.get("content"), message["role"], template.reasoning
    thought, called = reasoning_of(message), message.get("tool_calls")
    is_answer = role == ASSISTANT
    if thought and not (is_answer and thinks):
        name = next(name for name in REASONING if message.get(name))
        raise ConversationError(
            f"message {index} has {name}, which the template {template.name!r} does not support "
            f"for {role!r}",
            hint="use a template that does, or remove it",
        )
    if called and not (is_answer and template.tools):
        raise ConversationError(
            f"message {index} has tool calls, which the template {template.name!r} does not "
            f"support for {role!r}"
        )
    if called or thought or (is_answer and thinks and thinks.always):
        return _answer(template, index, message, thought or "")
    if role == "tool" and template.tools and template.tools.json_results:
        return Body((("content", [_json(content, f"the content of message {index}", None)]),))
    return content


def _answer(template: Template, index: int, message: Mapping[str, Any], thought: Any) -> Body:
    """Render reasoning, text and tool calls, in this order."""
    content, tools, thinks = message.get("content"), template.tools, template.reasoning
    text = _text(index, content, template.strip) if content else ""
    called: list[Piece] = []
    if tools and message.get("tool_calls"):
        called = _called(template, tools, index, message["tool_calls"], text)
    before: list[Piece] = []
    if thinks and (thought or thinks.always):
        reasoning = _text(index, thought, template.strip, "reasoning").strip(thinks.strip)
        before = [*thinks.open, reasoning, *thinks.close]
        text = text.lstrip(thinks.strip)
    if not (thought or text or called):  # without anything to say, the frame is all there is
        return Body((("content", before),))
    spans: list[tuple[MessageField, Sequence[Piece]]] = [
        ("reasoning", before), ("content", [text] if text else []), ("tool_calls", called)
    ]  # fmt: skip
    return Body(span for span in spans if span[1])


def _called(template: Template, tools: Tools, index: int, calls: Any, text: str) -> list[Piece]:
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
        pieces += _call(tools, f"tool call {number} of message {index}", call)
    return pieces


def _call(tools: Tools, place: str, call: Any) -> Sequence[Piece]:
    call = call.get("function", call) if isinstance(call, Mapping) else call
    name = call.get("name") if isinstance(call, Mapping) else None
    if not isinstance(name, str) or json.dumps(name, ensure_ascii=False) != f'"{name}"':
        raise ConversationError(f"{place} must have a name that needs no escape in JSON: {name!r}")
    arguments = call.get("arguments")
    if isinstance(arguments, str):  # as servers return them, without arguments an empty text
        arguments = parsed_json(arguments or "{}", f"the arguments of {place}")
    if not isinstance(arguments, Mapping):
        raise ConversationError(
            f"the arguments of {place} must be an object or a JSON string of one, not "
            f"{type(arguments).__name__}"
        )
    text = f'{{"name": "{name}", "{tools.arguments}": {_json(arguments, place, None)}}}'
    return (*tools.call.open, text, *tools.call.close)


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

    With `goes_on`, results at the start belong to a turn of the assistant that is open.
    """
    tool = template.code
    if tool is None or not any(_is_apart(message) for _, message in messages):
        return list(messages)
    turns: list[list[Numbered]] = []
    for index, message in messages:
        last = turns[-1][-1][1] if turns else None
        if last and (
            message["role"] == "tool" or (message["role"] == ASSISTANT and _is_apart(last))
        ):
            turns[-1].append((index, message))
        else:
            turns.append([(index, message)])
    return [_joined(tool, turn, goes_on and turn is turns[0]) for turn in turns]


def of_turns(
    row: Row, trained: Sequence[bool], turns: Sequence[Numbered], train_on: TrainOn
) -> list[bool]:
    """For the first message of each turn, whether the turn is trained on."""
    flags = [*trained]
    starts = [index for index, _ in turns]
    for start, end in zip(starts, [*starts[1:], len(trained)], strict=True):
        own = [trained[at] for at in range(start, end) if row.messages[at]["role"] == ASSISTANT]
        flags[start] = any(own)
        if train_on != "last" and flags[start] and not all(own):
            raise ConversationError(
                f"the messages {start} to {end - 1} are one turn in this template, so all of "
                "them are trained on, or none",
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
            calls.append({"role": ASSISTANT, "content": ""})
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
    return message["role"] == "tool" or bool(message.get("tool_calls"))


def _joined(tool: CodeTool, turn: list[Numbered], is_open: bool) -> Numbered:
    index, first = turn[0]
    if len(turn) == 1 and not _is_apart(first):
        return index, first
    if first["role"] != ASSISTANT and not (is_open and first["role"] == "tool"):
        at = next((number for number, one in turn if one["role"] == "tool"), index)
        raise ConversationError(
            f"message {at} is a result or has a tool call, but is not in a turn of {ASSISTANT!r}"
        )
    parts = [part for number, message in turn for part in _parts(tool, number, message)]
    return index, {"role": ASSISTANT, "content": parts}


def _parts(tool: CodeTool, index: int, message: Any) -> Iterator[Any]:
    content = message.get("content")
    if message["role"] == "tool":
        yield {"type": tool.result, "text": content}
    elif isinstance(content, str):
        yield from [{"type": "text", "text": content}] if content else []
    elif content:
        if not is_list(content):
            raise ConversationError(
                f"the content of message {index} must be a string or a list of parts, not "
                f"{type(content).__name__}"
            )
        yield from content
    if calls := message.get("tool_calls"):
        yield {"type": tool.call, "text": _code(tool, index, calls)}


def _code(tool: CodeTool, index: int, calls: Any) -> str:
    call = calls[0] if isinstance(calls, list | tuple) and len(calls) == 1 else None
    function = call.get("function", call) if isinstance(call, Mapping) else None
    function = function if isinstance(function, Mapping) else {}
    arguments: Any = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = read_json(arguments)
    is_alone = isinstance(arguments, Mapping) and arguments.keys() == {tool.argument}
    text = arguments[tool.argument] if is_alone else None
    if function.get("name") != tool.name or not isinstance(text, str):
        raise ConversationError(
            f"message {index} must have one tool call, of {tool.name!r} with a string "
            f"{tool.argument!r}: the template can express no other"
        )
    return text
