r"""What a chat template is: a value that says which tokens stand around a message.

There are no branches in a template. Five are given here; one of your own is a few lines:

    >>> from bytepair.chat import Role, Special, Template
    >>> Template(
    ...     name="question and answer",
    ...     begin=(Special("<|bos|>"),),
    ...     roles={
    ...         "user": Role(open=("Q: ",), close=("\n",)),
    ...         "assistant": Role(("A: ",), (Special("<|bos|>", trained=True),), trained=True),
    ...     },
    ... ).name
    'question and answer'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Special:
    """A special token in a template.

    Attributes:
        name: its text, as in `Tokenizer.special_tokens`.
        trained: whether the model learns to produce it.
        optional: whether it is text where the tokenizer has no such token; then it is trained on
            with the text around it.
    """

    name: str
    trained: bool = False
    optional: bool = False


#: What a template puts around text: special tokens, and text of its own (never trained on).
Piece: TypeAlias = "Special | str"


@dataclass(frozen=True, slots=True)
class Part:
    """What stands around one kind of part of a message, for instance a tool call.

    Attributes:
        open: what comes before the text of the part.
        close: what comes after it.
        trained: whether the model learns to produce the text.
    """

    open: tuple[Piece, ...] = ()
    close: tuple[Piece, ...] = ()
    trained: bool = False


@dataclass(frozen=True, slots=True)
class Role:
    """What stands around the messages of one role.

    Attributes:
        open: what comes before the content.
        close: what comes after it.
        trained: whether the model learns to produce the content, if it is a string.
        parts: the kinds of parts that the content may be a list of; if there are none, the content
            is a string.
        each: if given, messages of this role in a row share one turn, and this stands around each.
    """

    open: tuple[Piece, ...]
    close: tuple[Piece, ...] = ()
    trained: bool = False
    parts: Mapping[str, Part] = field(default_factory=dict)
    each: Part | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))


@dataclass(frozen=True, slots=True)
class Builtin:
    """How tools are called that the model knows by name.

    Such a call is written `name.call(key="value")`, and a message with any call ends otherwise.

    Attributes:
        open: what comes before the call.
        close: what ends a message with calls, where the conversation has `builtin_tools`.
        note: what stands before the names in the system message.
        unnamed: the tools that are not named there.
    """

    open: tuple[Piece, ...]
    close: tuple[Piece, ...]
    note: str
    unnamed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Tools:
    """How tools are offered, called and answered.

    A conversation offers them under `tools`, a list of JSON schemas. A message of the assistant
    calls them under `tool_calls`: `[{"function": {"name": ..., "arguments": {...}}}]`. A call is
    written as `{"name": "...", "arguments": {...}}`, and trained on. The role of results is one of
    the template's.

    Attributes:
        offer: what stands around the tools that are offered.
        tool: what stands around the JSON of each of them.
        where: the message that offers them: the system message, after its text, or the first user
            message, before its text.
        call: what stands around each call.
        between: what stands between the text and the calls of a message, and between calls.
        arguments: what the arguments are called in a call.
        single: whether a message may have only one call, and no text beside it.
        indent: how far the JSON of tools is indented; None means that it stands in one line.
        note: what the system message begins with where tools are offered.
        json_results: whether the content of results is written as JSON.
        builtin: how tools are called that the model knows by name, if it does.
    """

    offer: Part
    tool: Part
    call: Part = field(default_factory=Part)
    where: Literal["system", "user"] = "system"
    between: str = "\n"
    arguments: str = "arguments"
    single: bool = False
    indent: int | None = None
    note: str = ""
    json_results: bool = False
    builtin: Builtin | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """How a conversation is written.

    Attributes:
        name: for messages of errors.
        begin: what comes before the first message.
        roles: the roles that messages may have.
        alternate: the roles that take turns, from the first message on; empty if any may
            follow any.
        merge_system: if it is a string, a system message that comes first is joined to the first
            message after it, with this string between them. If it is None, system messages are
            written like those of other roles, and come first if at all.
        join: whether texts that touch are encoded as one text, as a string that is rendered as a
            whole would be. An id that covers trained and untrained text is then trained on.
        strip: whether white space around the content of messages is dropped.
        prompted: the role whose turn it is in `render_for_completion`.
        tools: how tools are offered and called; None if the template has none.
        default_system: the text of the system message of conversations that have none; None if
            there is then no such message.
        preamble: what stands before the text of the system message.
        stop: the special tokens that may end a turn of the prompted role, beside the one that
            closes it; `render_turn` keeps them as they were sampled.
        pad: the special token that fills rows; None means the first special token of `begin`.
    """

    name: str
    begin: tuple[Piece, ...]
    roles: Mapping[str, Role]
    alternate: tuple[str, ...] = ()
    merge_system: str | None = None
    join: bool = False
    strip: bool = False
    prompted: str = "assistant"
    pad: str | None = None
    tools: Tools | None = None
    default_system: str | None = None
    preamble: str = ""
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", MappingProxyType(dict(self.roles)))
        for role in (*self.alternate, self.prompted):
            if role not in self.roles:
                raise ValueError(f"template {self.name!r} has no role {role!r}, but names it")

    def inner(self) -> set[str]:
        """Name the special tokens that may stand within a message, around tools and calls."""
        parts = [role.each for role in self.roles.values() if role.each is not None]
        if self.tools:
            parts += [self.tools.offer, self.tools.tool, self.tools.call]
            parts += [Part(self.tools.builtin.open)] if self.tools.builtin else []
        pieces = [piece for part in parts for piece in (*part.open, *part.close)]
        return {piece.name for piece in pieces if isinstance(piece, Special)}

    def padding(self) -> str | None:
        """Name the special token that fills rows, or None if the template has no such."""
        special = [piece.name for piece in self.begin if isinstance(piece, Special)]
        return self.pad or next(iter(special), None)


NANOCHAT: Final = Template(
    name="nanochat",
    begin=(Special("<|bos|>"),),
    roles={
        "user": Role(open=(Special("<|user_start|>"),), close=(Special("<|user_end|>"),)),
        "assistant": Role(
            open=(Special("<|assistant_start|>"),),
            close=(Special("<|assistant_end|>", trained=True),),
            trained=True,
            parts={
                "text": Part(trained=True),
                "python": Part(
                    open=(Special("<|python_start|>", trained=True),),
                    close=(Special("<|python_end|>", trained=True),),
                    trained=True,
                ),
                "python_output": Part(
                    open=(Special("<|output_start|>"),), close=(Special("<|output_end|>"),)
                ),
            },
        ),
    },
    alternate=("user", "assistant"),
    merge_system="\n\n",
)
"""nanochat: system messages are merged, roles alternate, tool calls are parts."""


def _chatml(role: str) -> Role:
    trained = role == "assistant"
    end = Special("<|im_end|>", trained=trained)
    return Role(open=(Special("<|im_start|>"), f"{role}\n"), close=(end, "\n"), trained=trained)


def _tag(name: str) -> Special:
    return Special(name, optional=True)


_HERMES: Final = Tools(
    offer=Part(
        open=(
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n<tools>",
        ),
        close=(
            "\n</tools>\n\nFor each function call, return a json object with function name and "
            "arguments within ", _tag("<tool_call>"), _tag("</tool_call>"), " XML tags:\n",
            _tag("<tool_call>"),
            '\n{"name": <function-name>, "arguments": <args-json-object>}\n',
            _tag("</tool_call>"),
        ),
    ),
    tool=Part(open=("\n",)),
    call=Part(open=(_tag("<tool_call>"), "\n"), close=("\n", _tag("</tool_call>"))),
)  # fmt: skip

CHATML: Final = Template(
    name="chatml",
    begin=(),
    roles={
        **{name: _chatml(name) for name in ("system", "user", "assistant")},
        "tool": Role(
            open=(Special("<|im_start|>"), "user"),
            close=(Special("<|im_end|>"), "\n"),
            each=Part(
                open=("\n", _tag("<tool_response>"), "\n"),
                close=("\n", _tag("</tool_response>")),
            ),
        ),
    },
    join=True,
    pad="<|im_end|>",
    tools=_HERMES,
)
"""ChatML, as many open models have it, with the tool calls of Hermes and Qwen."""

QWEN25: Final = replace(
    CHATML,
    name="qwen2.5",
    default_system="You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
)
"""ChatML with the system message of Qwen2.5 where there is none."""


def _llama3(role: str) -> Role:
    trained = role == "assistant"
    header = (Special("<|start_header_id|>"), role, Special("<|end_header_id|>"), "\n\n")
    return Role(open=header, close=(Special("<|eot_id|>", trained=trained),), trained=trained)


LLAMA3: Final = Template(
    name="llama3",
    begin=(Special("<|begin_of_text|>"),),
    roles={
        "system": _llama3("system"),
        "user": _llama3("user"),
        "assistant": _llama3("assistant"),
        "tool": _llama3("ipython"),
    },
    join=True,
    strip=True,
    pad="<|eot_id|>",
)
"""Llama 3, without tool calls."""

LLAMA31: Final = replace(
    LLAMA3,
    name="llama3.1",
    default_system="",
    preamble="Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
    tools=Tools(
        offer=Part(
            open=(
                "Given the following functions, please respond with a JSON for a function call "
                "with its proper arguments that best answers the given prompt.\n\n"
                'Respond in the format {"name": function name, "parameters": dictionary of '
                "argument name and its value}.Do not use variables.\n\n",
            )
        ),
        tool=Part(close=("\n\n",)),
        where="user",
        arguments="parameters",
        single=True,
        indent=4,
        note="Environment: ipython\n",
        json_results=True,
        builtin=Builtin(
            open=(Special("<|python_tag|>"),),
            close=(Special("<|eom_id|>", trained=True),),
            note="Tools: ",
            unnamed=frozenset({"code_interpreter"}),
        ),
    ),
    stop=("<|eom_id|>",),
)
"""Llama 3.1 to 3.3, with tool calls; the preamble has the date of their own template."""
