"""Extracts messages from rows of data sets, whose fields are of several kinds; reads their JSON.

Each function of `KINDS` removes the fields that it reads from those of a row, and returns messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from bytepair.errors import ConversationError
from bytepair.files.safe import read_json

#: What the fields of a row are: a conversation of messages, or one of three formats of data sets.
RowKind: TypeAlias = Literal["messages", "sharegpt", "alpaca", "completion"]

#: The kind of rows that are preference pairs, which `preferences` reads.
PAIRS: Final = "preference"

#: The fields of a row that may contain the messages.
COLUMNS: Final = ("messages", "conversations", "conversation")

#: Fields by which an error message recognizes what a row may be.
_SIGNS: Final = {"alpaca": {"instruction", "output"}, "completion": {"prompt", "completion"}}


def is_list(value: Any) -> bool:
    """Whether a value is a list or another sequence, but no text."""
    return isinstance(value, list | Sequence) and not isinstance(value, str | bytes)


def no_conversation(problem: str, hint: str = "") -> ConversationError:
    """The error for a row that is no conversation."""
    return ConversationError(
        'a conversation must be a mapping with a list under "messages", or that list; this is '
        f"{problem}",
        hint=hint,
    )


def _of_messages(fields: dict[str, Any]) -> list[Any]:
    """Take the messages out of the fields of a row."""
    name = "messages" if "messages" in fields else next(filter(fields.get, COLUMNS), None)
    if name is None:
        if {"chosen", "rejected"} <= fields.keys():
            return _of_pairs(fields)
        kinds = [kind for kind, names in _SIGNS.items() if names <= fields.keys()]
        hint = f'if it is a row of {kinds[0]}, pass rows="{kinds[0]}"' if kinds else ""
        raise no_conversation("a mapping without it", hint)
    messages = fields.pop(name)
    if type(messages) is not list and not is_list(messages):
        raise no_conversation(f"a mapping with {type(messages).__name__}")
    first = messages[0] if messages else None
    if isinstance(first, dict) and "role" not in first and {"from", "value"} <= first.keys():
        raise ConversationError(
            'message 0 must be a mapping with a string under "role", but it has "from" and "value"',
            option="rows",
            hint='pass rows="sharegpt"',
        )
    return list(messages)


#: The roles of ShareGPT by what stands under "from".
_SPEAKERS: Final = {
    "system": "system", "human": "user", "user": "user", "gpt": "assistant",
    "assistant": "assistant", "function_call": "assistant", "observation": "tool", "tool": "tool",
}  # fmt: skip


def _of_sharegpt(fields: dict[str, Any]) -> list[Any]:
    """The messages of a row of ShareGPT: `conversations` with `from` and `value`, and `system`."""
    name = next((name for name in ("conversations", "conversation") if name in fields), None)
    turns: Any = fields.pop(name) if name else None
    if not is_list(turns) or not turns:
        raise ConversationError('a row of sharegpt must have a list under "conversations"')
    messages: list[Any] = _system(fields)
    for number, turn in enumerate(turns):
        speaker = turn.get("from") if isinstance(turn, Mapping) else None
        if not isinstance(speaker, str) or speaker not in _SPEAKERS or "value" not in turn:
            raise ConversationError(
                f'turn {number} must have "value", and under "from" one of {", ".join(_SPEAKERS)}'
            )
        rest = {k: v for k, v in turn.items() if k not in ("from", "value")}
        content: dict[str, Any] = {"content": turn["value"]}
        if speaker == "function_call":
            calls = parsed_json(str(turn["value"]), f"the call in turn {number}")
            content = {"content": None, "tool_calls": calls if isinstance(calls, list) else [calls]}
        messages.append({"role": _SPEAKERS[speaker], **content, **rest})
    return messages


def _of_alpaca(fields: dict[str, Any]) -> list[Any]:
    """The messages of a row of Alpaca: `instruction`, `input`, `output`, `system`, `history`."""
    messages = _system(fields)
    pairs = fields.pop("history", [])
    if not is_list(pairs) or not all(is_list(pair) and len(pair) == 2 for pair in pairs):
        raise ConversationError("history must be a list of pairs of a question and an answer")
    for earlier, answer in pairs:
        messages += [
            {"role": "user", "content": earlier},
            {"role": "assistant", "content": answer},
        ]
    texts = {name: fields.pop(name, "") for name in ("instruction", "input", "output")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ConversationError(f"{name} must be a string, not {type(text).__name__}")
    if not texts["instruction"]:
        raise ConversationError('a row of alpaca must have a string under "instruction"')
    question = "\n".join(filter(None, (texts["instruction"], texts["input"])))
    messages.append({"role": "user", "content": question})
    if texts["output"]:
        messages.append({"role": "assistant", "content": texts["output"]})
    return messages


def _of_completion(fields: dict[str, Any]) -> list[Any]:
    """The messages of a prompt, which are not trained on, and those of its completion."""
    return [
        *({**m, "train": False} for m in _side(fields, "prompt", "user")),
        *_side(fields, "completion", "assistant"),
    ]


def _of_pairs(_fields: dict[str, Any]) -> list[Any]:
    raise no_conversation(
        "a mapping without it", "preference pairs are rendered by render_preferences"
    )


def _side(fields: dict[str, Any], name: str, role: str) -> list[Any]:
    """A prompt or a completion: a text, or a list of messages."""
    value = fields.pop(name, None)
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if not is_list(value) or not value:
        raise ConversationError(
            f'a row of completion must have a string or a list of messages under "{name}"'
        )
    if not all(isinstance(message, Mapping) for message in value):
        raise ConversationError(f"{name} must be a string or a list of messages")
    return list(value)


def _system(fields: dict[str, Any]) -> list[Any]:
    text = fields.pop("system", None)
    return [{"role": "system", "content": text}] if text else []


KINDS: Final = {
    "messages": _of_messages,
    "sharegpt": _of_sharegpt,
    "alpaca": _of_alpaca,
    "completion": _of_completion,
    PAIRS: _of_pairs,
}


# ---------------------------------------------------------------------------- JSON


def parsed_json(text: str, what: str) -> Any:
    """The value of a field that is a text of JSON."""
    try:
        return read_json(text)
    except ValueError as error:
        raise ConversationError(f"{what} must be JSON: {error}") from None
