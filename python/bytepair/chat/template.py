r"""What a chat template is: a value that says which tokens stand around a message.

There are no branches in a template. Three are given here; one of your own is a few lines:

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
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Special:
    """A special token in a template.

    Attributes:
        name: its text, as in `Tokenizer.special_tokens`.
        trained: whether the model learns to produce it.
    """

    name: str
    trained: bool = False


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
    """

    open: tuple[Piece, ...]
    close: tuple[Piece, ...] = ()
    trained: bool = False
    parts: Mapping[str, Part] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", MappingProxyType(dict(self.roles)))
        for role in (*self.alternate, self.prompted):
            if role not in self.roles:
                raise ValueError(f"template {self.name!r} has no role {role!r}, but names it")

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


CHATML: Final = Template(
    name="chatml",
    begin=(),
    roles={name: _chatml(name) for name in ("system", "user", "assistant", "tool")},
    join=True,
    pad="<|im_end|>",
)
"""ChatML, as many open models have it."""


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
"""Llama 3, without its tool calls."""
