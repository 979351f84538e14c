r"""Chat templates as values that define the tokens around messages.

A template has no code. Five are defined here; a custom one is a few lines:

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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from bytepair.errors import ArgumentError

#: The role that is prompted, and trained on.
ASSISTANT: Final = "assistant"


@dataclass(frozen=True, slots=True)
class Special:
    """A special token in a template.

    Attributes:
        name: its text, as in `Tokenizer.special_tokens`.
        trained: whether the model learns to produce it.
        optional: whether it becomes text if the tokenizer has no such token; then it is trained on
            like the text around it.
    """

    name: str
    trained: bool = False
    optional: bool = False


#: An element of a template: a special token, or fixed text (which is never trained on).
Piece: TypeAlias = "Special | str"


@dataclass(frozen=True, slots=True)
class Part:
    """The frame of one kind of message part, such as a tool call.

    Attributes:
        open: the elements before the text of the part.
        close: the elements after it.
        trained: whether the model learns to produce the text.
    """

    open: tuple[Piece, ...] = ()
    close: tuple[Piece, ...] = ()
    trained: bool = False


@dataclass(frozen=True, slots=True)
class Role:
    """The frame of the messages of one role.

    Attributes:
        open: the elements before the content.
        close: the elements after it.
        trained: whether the model learns to produce the content, if it is a string.
        parts: the kinds of parts, if the content may be a list of parts; if empty, the content must
            be a string.
        each: if given, consecutive messages of this role share one turn, and each has this frame.
    """

    open: tuple[Piece, ...]
    close: tuple[Piece, ...] = ()
    trained: bool = False
    parts: Mapping[str, Part] = field(default_factory=dict)
    each: Part | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))


@dataclass(frozen=True, slots=True)
class Tools:
    """The format of tool definitions and tool calls.

    A conversation defines tools in `tools`, a list of JSON schemas. A message of the assistant
    calls them in `tool_calls`: `[{"function": {"name": ..., "arguments": {...}}}]`. Each call is
    rendered in lines of its own as `{"name": "...", "arguments": {...}}`, and trained on. Results
    are messages of a role of the template.

    Attributes:
        offer: the elements around all tool definitions, at the end of the system message.
        tool: the elements around the JSON of each definition.
        call: the elements around each call.
    """

    offer: Part
    tool: Part
    call: Part


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The format of reasoning, which stands before the content of the assistant's messages.

    Attributes:
        open: the elements before the reasoning.
        close: the elements after it.
        always: whether a message without reasoning has these elements, too.
        strip: the characters that are stripped around the reasoning and before the content.
    """

    open: tuple[Piece, ...]
    close: tuple[Piece, ...]
    always: bool = False
    strip: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """A chat template.

    Attributes:
        name: the name of the template in error messages.
        begin: the elements before the first message.
        roles: the roles that messages may have.
        alternate: the order in which roles must alternate, from the first message on; empty means
            any order.
        merge_system: if it is a string, a first system message is merged into the next message,
            with this string between them. If it is None, system messages are rendered like other
            messages, but are allowed only at the start.
        join: whether adjacent texts are encoded as one text, as in a rendered string. An id that
            covers trained and untrained text is then trained on.
        strip: whether to strip white space around the content of messages.
        tools: the format of tools; None if the template does not support them.
        reasoning: the format of reasoning; None if the template does not support it.
        default_system: the system message of conversations without one; None means none.
        pad: the special token that pads rows; None means the first special token of `begin`.
    """

    name: str
    begin: tuple[Piece, ...]
    roles: Mapping[str, Role]
    alternate: tuple[str, ...] = ()
    merge_system: str | None = None
    join: bool = False
    strip: bool = False
    pad: str | None = None
    tools: Tools | None = None
    reasoning: Reasoning | None = None
    default_system: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", MappingProxyType(dict(self.roles)))
        for role in (*self.alternate, ASSISTANT):
            if role not in self.roles:
                raise ArgumentError(
                    f"template {self.name!r} uses the role {role!r}, but has no such role"
                )

    def inner(self) -> set[str]:
        """The names of special tokens that may occur within a message: around calls, reasoning."""
        tools = self.tools and (self.tools.offer, self.tools.tool, self.tools.call)
        return _names((self.reasoning, *(tools or ()), *(one.each for one in self.roles.values())))

    def names(self) -> set[str]:
        """The names of all special tokens of messages, and of the beginning."""
        parts = (part for role in self.roles.values() for part in role.parts.values())
        return self.inner() | _names((Part(self.begin), *self.roles.values(), *parts))

    def padding(self) -> str | None:
        """The name of the special token that pads rows, or None."""
        special = [piece.name for piece in self.begin if isinstance(piece, Special)]
        return self.pad or next(iter(special), None)


def _names(frames: Iterable[Role | Part | Reasoning | None]) -> set[str]:
    pieces = (piece for frame in frames if frame for piece in (*frame.open, *frame.close))
    return {piece.name for piece in pieces if isinstance(piece, Special)}


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
"""nanochat: system messages are merged, roles alternate, calls of Python are parts."""


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
"""ChatML, as used by many open models, with the tool calls of Hermes and Qwen."""

QWEN25: Final = replace(
    CHATML,
    name="qwen2.5",
    default_system="You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
)
"""ChatML with the default system message of Qwen2.5."""

QWEN3: Final = replace(
    CHATML,
    name="qwen3",
    reasoning=Reasoning(
        open=(_tag("<think>"), "\n"),
        close=("\n", _tag("</think>"), "\n\n"),
        always=True,
        strip="\n",
    ),
)
"""ChatML with the reasoning of Qwen3, of every turn: the template of its training."""


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
