"""What a parser of ids reports while it reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class MessageStart:
    """A message begins."""

    role: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the current message or part, in complete characters.

    Attributes:
        text: the text.
        part: the type of the part that it belongs to; "text" for the content of the message.
    """

    text: str
    part: str = "text"


@dataclass(frozen=True, slots=True)
class PartStart:
    """A part with its own tokens begins: reasoning, a tool call, or the output of a tool."""

    type: str


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A part is complete.

    Attributes:
        type: its type: "reasoning", "tool_call", or one that the template names, such as "python".
        text: its complete text.
    """

    type: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call is complete and well-formed.

    Attributes:
        call: the call, as in `tool_calls` of a message; its arguments are an object.
    """

    call: dict[str, Any]


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """A message is complete.

    Attributes:
        message: the message, as in a conversation.
    """

    message: dict[str, Any]


Event: TypeAlias = "MessageStart | TextDelta | PartStart | PartEnd | ToolCall | MessageEnd"
