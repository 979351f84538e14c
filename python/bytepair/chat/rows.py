"""Reads rows as conversations: what the fields of a row mean, whatever its source.

A row is a mapping, or a list of messages. `read_row` is the only function that reads its fields.
Each is used by the template, decides what is trained on, is listed in `ignore_fields`, or is an
error that names it. A field without a value (null) is absent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from bytepair._internal.checks import check_choice, refuse
from bytepair.chat.segments import Conversation, Truncate, Writer
from bytepair.chat.template import ASSISTANT
from bytepair.corpus.column import Errors
from bytepair.errors import ConversationError
from bytepair.files.safe import no_json, read_json

#: What the fields of a row are: a conversation of messages, or one of three formats of data sets.
RowKind: TypeAlias = Literal["messages", "sharegpt", "alpaca", "completion"]

#: The fields of a row that may contain the messages.
COLUMNS: Final = ("messages", "conversations", "conversation")

#: Which turns of the assistant are trained on: all but those with `"train": false` or
#: `"weight": 0`; the last one; or those with `"train": true` or `"weight": 1`.
TrainOn: TypeAlias = Literal["all", "last", "flagged"]

#: The fields of a message that may contain reasoning, as in `transformers`; the first one is used.
REASONING: Final = ("reasoning_content", "thinking", "reasoning")

#: Reasoning in the content, as models write it: the first tag may stand in their prompt.
_THOUGHT: Final = re.compile(r"\s*+(?:<think>)?(.*?)</think>\n*(.*)", re.DOTALL)

#: The fields of a message that every template takes, or refuses with an error of its own. The last
#: two connect a result with its call, and are checked.
MESSAGE_FIELDS: Final = frozenset(
    {"role", "content", "tool_calls", *REASONING, "tool_call_id", "name"}
)

#: The fields of a tool call, and of the function in it.
CALL_FIELDS: Final = frozenset({"id", "type", "index", "function", "name", "arguments"})

#: The fields of a row that a model is to see; a template must use them. Others may be left out.
_MEANT: Final = ("tools", "documents", "system", "functions", "history")

#: The fields of a message that say whether it is trained on.
FLAGS: Final = ("train", "weight")

_PLAIN: Final = frozenset({"role", "content"})


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How rows are read, which parts of them are trained on, and how they are cut.

    Attributes:
        rows: what the fields of a row are: "messages", or "sharegpt", "alpaca" or "completion",
            formats of data sets.
        ignore_fields: the names of fields, of the row and of its messages, that are not read. Other
            columns beside the messages are left out if the template does not use them; a field
            inside a message that it does not use is an error.
        train_on: which turns of the assistant are trained on: "all", except messages with
            `"train": false` or `"weight": 0`; the "last" one; or the "flagged" ones, with
            `"train": true` or `"weight": 1`.
        reasoning: where the reasoning of the assistant is: in "fields" of its messages; or also in
            "tags", before `</think>` in the content. Tags that are not read are an error if the
            template supports reasoning, which would write them as text.
        truncate: what becomes of a conversation of more than `max_tokens` ids: "tokens" cuts it
            there, as nanochat does; "turns" drops its oldest turns, as few as possible, and keeps
            what is before the first, such as the message of the system.
        errors: what to do with a lone surrogate, half of a character, in a text: "strict" raises an
            error, "replace" replaces it by U+FFFD, as `encode` does. With "skip", batches leave out
            each row that has one or is invalid for another reason, and a `SkippedWarning` says how
            many and names the first.

    Raises:
        ArgumentError: if an option has a value that it cannot have.

    Example:
        >>> ChatOptions(rows="alpaca", ignore_fields=["id"]).ignore_fields
        frozenset({'id'})
    """

    rows: RowKind = "messages"
    ignore_fields: Collection[str] = frozenset()
    train_on: TrainOn = "all"
    reasoning: Literal["fields", "tags"] = "fields"
    truncate: Truncate = "tokens"
    errors: Errors = "strict"

    def __post_init__(self) -> None:
        check_choice("rows", self.rows, get_args(RowKind))
        check_choice("train_on", self.train_on, get_args(TrainOn))
        check_choice("reasoning", self.reasoning, ("fields", "tags"))
        check_choice("truncate", self.truncate, get_args(Truncate))
        check_choice("errors", self.errors, get_args(Errors))
        names = self.ignore_fields
        are_many = isinstance(names, Collection) and not isinstance(names, str | bytes)
        if not are_many or not all(isinstance(name, str) for name in names):
            raise refuse("ignore_fields", names, "a list of names")
        object.__setattr__(self, "ignore_fields", frozenset(names))


@dataclass(slots=True)
class Row:
    """A conversation as templates render it: no field of it is null.

    Attributes:
        messages: the messages. A message without content has some other field.
        fields: the other fields, such as `tools`.
        flags: what messages say about training on them, by their index.
    """

    messages: list[Mapping[str, Any]]
    fields: dict[str, Any]
    flags: dict[int, bool]

    def trained(self, train_on: TrainOn) -> list[bool] | None:
        """For each message, whether it is trained on if it is the assistant's; None if all are."""
        if train_on == "all" and not self.flags:
            return None
        if train_on == "flagged":
            return [self.flags.get(index, False) for index in range(len(self.messages))]
        flags = [self.flags.get(index, True) for index in range(len(self.messages))]
        if train_on == "last":
            own = (i for i, m in enumerate(self.messages) if m["role"] == ASSISTANT)
            last = max(own, default=-1)
            return [on and index == last for index, on in enumerate(flags)]
        return flags


def read_row(
    row: Conversation, writer: Writer, options: ChatOptions, *, empty: bool = False
) -> Row:
    """The conversation of a row; only if `empty`, it may have no messages."""
    is_messages = type(row) is list or (type(row) is not dict and is_list(row))
    fields = {"messages": row} if is_messages else _present(row, options.ignore_fields)
    messages = _READERS[options.rows](fields)
    if not messages and not empty:
        raise ConversationError("a conversation needs at least one message")
    flags: dict[int, bool] = {}
    plain, has_more = _PLAIN.isdisjoint(options.ignore_fields), False
    for index, message in enumerate(messages):
        if (
            plain
            and type(message) is dict
            and len(message) == 2
            and type(message.get("content")) is str
            and type(message.get("role")) is str
            and ("think>" not in message["content"] or message["role"] != "assistant")
        ):
            continue
        messages[index] = _message(index, message, writer, options, flags)
        has_more = True
    if has_more:
        _check_results(messages, writer)
    if fields:
        fields = _other_fields(fields, writer)
    return Row(messages, fields, flags)


def reasoning_of(message: Mapping[str, Any]) -> Any:
    """The reasoning of a message, which may be in one of three fields; None if it has none."""
    return next((message[name] for name in REASONING if message.get(name) is not None), None)


def text_of(parts: Any) -> str | None:
    """The text of a list of text parts; None for any other content."""
    if not isinstance(parts, list | tuple) or not parts:
        return None
    texts = []
    for part in map(_valued, parts):
        is_text = isinstance(part, dict) and part.keys() == {"type", "text"}
        if not is_text or part["type"] != "text" or not isinstance(part["text"], str):
            return None
        texts.append(part["text"])
    return "".join(texts)


# ---------------------------------------------------------------------------- the fields of a row


def _present(fields: Any, ignore: Collection[str]) -> dict[str, Any]:
    """The fields that have a value, without those to be ignored."""
    if not isinstance(fields, dict | Mapping):
        raise _no_conversation(type(fields).__name__)
    if type(fields) is dict and not ignore and None not in fields.values():
        return {**fields}
    return {k: v for k, v in fields.items() if v is not None and k not in ignore}


def _valued(fields: Any) -> Any:
    """A mapping without the fields that have no value; anything else as it is."""
    return _present(fields, ()) if isinstance(fields, Mapping) else fields


def _other_fields(columns: dict[str, Any], writer: Writer) -> dict[str, Any]:
    """The fields besides the messages, without columns such as an id or a score."""
    more = columns.pop("chat_template_kwargs", {})  # as in TRL
    if not isinstance(more, Mapping):
        raise ConversationError(
            f"chat_template_kwargs must be a mapping, not {type(more).__name__}"
        )
    used = {name: value for name, value in columns.items() if name in writer.fields}
    fields: dict[str, Any] = used | _present(more, ())
    unused = [name for name in columns if name in _MEANT and name not in used]
    unused = unused[:1] or [name for name in fields if name not in writer.fields]
    if unused:
        raise _unused("the conversation", unused, writer)
    for name, value in fields.items():
        if reason := no_json(value):
            raise ConversationError(f"the value of {name!r} is not JSON: {reason}")
    tools = fields.get("tools")
    if isinstance(tools, str):
        tools = fields["tools"] = parsed_json(tools, "tools") if tools.strip() else None
    if not tools:
        fields.pop("tools", None)
    return fields


def _unused(what: str, fields: list[str], writer: Writer) -> ConversationError:
    has, them = ("the field", "it") if len(fields) == 1 else ("the fields", "them")
    return ConversationError(
        f"{what} has {has} {', '.join(map(repr, fields))}, which the template {writer.name!r} does "
        "not use",
        option="ignore_fields",
        hint=f"pass ignore_fields={fields!r} to leave {them} out",
    )


# ---------------------------------------------------------------------------- messages


def role_of(index: int, message: Any) -> str:
    """The role of a message, by its index in the conversation."""
    fields = message if isinstance(message, dict | Mapping) else {}
    if not isinstance(role := fields.get("role"), str):
        is_sharegpt = "role" not in fields and {"from", "value"} <= fields.keys()
        raise ConversationError(
            f'message {index} must be a mapping with a string under "role"',
            option="rows" if is_sharegpt else None,
            hint='pass rows="sharegpt"' if is_sharegpt else "",
        )
    return role


def _message(
    index: int, message: Any, writer: Writer, options: ChatOptions, flags: dict[int, bool]
) -> dict[str, Any]:
    """A message without absent fields and flags; what it says about training goes to `flags`."""
    role = role_of(index, message)
    fields = _present(message, options.ignore_fields)
    if reason := no_json(fields):
        raise ConversationError(f"message {index} is not JSON: {reason}")
    flag = _flag(index, role, fields, writer)
    if flag is not None:
        flags[index] = flag
    if calls := _calls(index, fields.pop("tool_calls", None), writer):
        fields["tool_calls"] = calls
    known = MESSAGE_FIELDS if role == "tool" else MESSAGE_FIELDS - {"name", "tool_call_id"}
    if unused := _unread(fields, known, writer):
        raise _unused(f"message {index}", unused, writer)
    if "content" not in fields:
        if fields.keys() <= {"role", "name", "tool_call_id"}:
            raise ConversationError(
                f"message {index} has no content", hint="pass a string or a list of parts"
            )
        fields["content"] = None  # templates test for it
    elif writer.joins_parts(role) and (text := text_of(fields["content"])) is not None:
        fields["content"] = text
    if role == "assistant" and writer.thinks and reasoning_of(fields) is None:
        _read_tags(index, fields, options)
    return fields


def _read_tags(index: int, fields: dict[str, Any], options: ChatOptions) -> None:
    """Move reasoning that stands in tags in the content of a message to a field of its own."""
    content = fields["content"]
    text = (content if isinstance(content, str) else text_of(content)) or ""
    thought = _THOUGHT.fullmatch(text) if options.reasoning == "tags" else None
    tag = re.search("</?think>", text)
    if thought:
        fields[REASONING[0]], fields["content"] = thought[1].strip("\n"), thought[2]
    elif tag:
        raise ConversationError(
            f"the content of message {index} contains {tag[0]!r}, which would be text",
            option="reasoning",
            value=options.reasoning,
            hint='pass reasoning="tags" to read the text between <think> and </think> as '
            f"reasoning, or put it into the field {REASONING[0]}",
        )


def _unread(fields: Mapping[str, Any], known: Collection[str], writer: Writer) -> list[str]:
    """The fields that neither every template knows nor this one."""
    return [name for name in fields if name not in known and name not in writer.message_fields]


def _flag(index: int, role: str, fields: dict[str, Any], writer: Writer) -> bool | None:
    """Remove the flags of a message; return whether they say that it is trained on."""
    flags = {name: fields.pop(name) for name in FLAGS if name in fields}
    if not flags:
        return None
    if [*flags.values()] not in ([0], [1], [0, 0], [1, 1]):
        raise ConversationError(
            f"message {index} has {flags}; train must be true or false, and weight 1 or 0, and "
            "they must not contradict each other"
        )
    flag = any(flags.values())
    if flag and not writer.trains_on(role):
        raise ConversationError(
            f"message {index} is to be trained on, but is from {role!r}, and the template "
            f"{writer.name!r} does not train on this role"
        )
    return flag


def _calls(index: int, calls: Any, writer: Writer) -> Any:
    """Tool calls without absent fields; what is absent in arguments is their own affair."""
    if not is_list(calls):
        return calls
    present = []
    for number, call in enumerate(map(_valued, calls)):
        place = f"tool call {number} of message {index}"
        if isinstance(call, dict):
            if "function" in call:
                call = {**call, "function": _valued(call["function"])}
            for fields in (call, call.get("function")):
                unused = _unread(fields if isinstance(fields, dict) else {}, CALL_FIELDS, writer)
                if unused:
                    raise _unused(place, sorted(unused), writer)
        present.append(call)
    return present


def _check_results(messages: list[Mapping[str, Any]], writer: Writer) -> None:
    """Check that results have the ids of the calls before them, in order unless ids are written."""
    ids: list[str] = []  # of the calls, if all have one
    known: set[str] = set()
    at = 0
    for index, message in enumerate(messages):
        if message["role"] != "tool":
            calls: Any = message.get("tool_calls")
            calls = [call for call in calls if isinstance(call, Mapping)] if is_list(calls) else []
            ids, at = [repr(call.get("id")) for call in calls], 0
            known = {*ids}
            continue
        id = message.get("tool_call_id")
        allowed = known if writer.writes_ids_of_calls else ids[at : at + 1]
        if id is not None and known and "None" not in known and repr(id) not in allowed:
            raise ConversationError(
                f"message {index} has the tool_call_id {id!r}, but is result {at} of the calls "
                f"{', '.join(ids)}",
                hint="put the results in the order of the calls, whose ids the template "
                f"{writer.name!r} {'writes' if writer.writes_ids_of_calls else 'leaves out'}",
            )
        at += 1


# ---------------------------------------------------------------------------- the messages of a row


def is_list(value: Any) -> bool:
    """Whether a value is a list or another sequence, but no text."""
    return isinstance(value, list | Sequence) and not isinstance(value, str | bytes)


def _no_conversation(problem: str) -> ConversationError:
    return ConversationError(
        'a conversation must be a mapping with a list under "messages", or that list; this is '
        f"{problem}",
        hint="name another format with rows=, or pass pairs to render_preferences",
    )


def _of_messages(fields: dict[str, Any]) -> list[Any]:
    """Take the messages out of the fields of a row."""
    name = "messages" if "messages" in fields else next(filter(fields.get, COLUMNS), None)
    messages: Any = fields.pop(name) if name else None
    if type(messages) is not list and not is_list(messages):
        names = ", ".join(map(str, fields)) or "no field"
        kind = f"{type(messages).__name__} there" if name else f"one with {names}"
        raise _no_conversation(kind)
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
    system = fields.pop("system", None)
    messages: list[Any] = [{"role": "system", "content": system}] if system else []
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
    """The messages of a row of Alpaca: `instruction`, `input`, `output` and `system`."""
    names = ("system", "instruction", "input", "output")
    texts = [fields.pop(name, "") for name in names]
    if not all(isinstance(text, str) for text in texts) or not texts[1]:
        raise ConversationError(
            'a row of alpaca must have a string under "instruction", and in its other fields'
        )
    system, instruction, given, answer = texts
    question = "\n".join(filter(None, (instruction, given)))
    turns = {"system": system, "user": question, "assistant": answer}
    return [{"role": role, "content": text} for role, text in turns.items() if text]


def _of_completion(fields: dict[str, Any]) -> list[Any]:
    """The messages of a prompt, which are not trained on, and those of its completion."""
    prompt = messages_of("prompt", fields.pop("prompt", None), "user")
    answer = messages_of("completion", fields.pop("completion", None), ASSISTANT)
    return [*({**message, "train": False} for message in prompt), *answer]


def messages_of(name: str, value: Any, role: str) -> list[Any]:
    """The messages in a field of a row: a list of them, or a text, which is one of the role."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if not is_list(value) or not value or not all(isinstance(one, Mapping) for one in value):
        raise ConversationError(f"the row must have a string or a list of messages under {name!r}")
    return list(value)


#: What removes the fields of the messages from those of a row, and returns the messages.
_READERS: Final = {
    "messages": _of_messages,
    "sharegpt": _of_sharegpt,
    "alpaca": _of_alpaca,
    "completion": _of_completion,
}


def parsed_json(text: str, what: str) -> Any:
    """The value of a field that is a text of JSON."""
    try:
        return read_json(text)
    except ValueError as error:
        raise ConversationError(f"{what} must be JSON: {error}") from None


#: Rows of messages, of which all fields are read and all turns trained on.
DEFAULT: Final = ChatOptions()
