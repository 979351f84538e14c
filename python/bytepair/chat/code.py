"""Calls of one tool that runs code: messages with `tool_calls` to parts of one turn, and back.

nanochat writes a call of Python, its output and the text after it into one turn of the assistant,
as parts of a message. Other formats have a message for each: one of the assistant with a tool call,
one of the tool with the result, and the next one of the assistant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from bytepair.chat.rows import Row, TrainOn
from bytepair.chat.segments import role_or_none
from bytepair.chat.template import CodeTool, Template
from bytepair.errors import ConversationError

_Numbered: TypeAlias = "tuple[int, Any]"


def to_parts(
    template: Template, messages: Sequence[_Numbered], *, goes_on: bool = False
) -> list[_Numbered]:
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
    turns: list[list[_Numbered]] = []
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
    turns: Sequence[_Numbered],
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


def _joined(prompted: str, tool: CodeTool, turn: list[_Numbered], *, is_open: bool) -> _Numbered:
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
