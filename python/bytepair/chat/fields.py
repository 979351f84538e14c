"""Regions of a rendered conversation in; out, those of the fields that are trained on.

What a message of the assistant adds to a rendered string is reasoning, content and tool calls, in
this order. A template does not say where one ends and the next begins. To find the content, its
text is replaced by one private-use character, and the conversation is rendered again: what stands
before and behind the character is the frame of the content, and must stand in the first rendering,
too. So it is with reasoning. Calls are found by rendering the message without them.

What stands before the content belongs to the reasoning, and what stands behind it to the calls. The
end of the turn belongs to the last field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from bytepair.chat.disguise import Rendering
from bytepair.chat.environment import NO_MARKS
from bytepair.chat.regions import Region
from bytepair.chat.rows import REASONING, reasoning_of, text_of
from bytepair.chat.template import MessageField
from bytepair.errors import ConversationError

#: The start and the end of a field.
_Span: TypeAlias = "tuple[int, int, MessageField]"


def limited(
    rendering: Rendering,
    regions: Sequence[Region],
    names: Collection[MessageField],
    special: re.Pattern[str],
) -> Iterator[Region]:
    """The parts of regions that belong to the fields that are trained on.

    Args:
        rendering: the rendered conversation.
        regions: what is trained on of its messages.
        names: the names of the fields.
        special: finds special tokens in a rendered string.

    Raises:
        ConversationError: if the template does not write the fields apart and in order.
    """
    spans: dict[int, list[_Span]] = {}
    for region in regions:
        if region.owner not in spans:
            own = [one for one in regions if one.owner == region.owner]
            finder = _Finder(rendering, region.owner, special)
            spans[region.owner] = finder.spans(own[0].start, own[-1].end)
        for start, end, field in spans[region.owner]:
            start, end = max(start, region.start), min(end, region.end)
            if field in names and start < end:
                yield Region(region.owner, start, end)


class _Finder:
    """Finds the fields of one message in the rendered string."""

    def __init__(self, rendering: Rendering, index: int, special: re.Pattern[str]) -> None:
        self._rendering, self._index, self._special = rendering, index, special
        self._message: Mapping[str, Any] = rendering.messages[index]
        self._string = rendering.string.translate(NO_MARKS)

    def spans(self, start: int, end: int) -> list[_Span]:
        """The fields of the message, which has written what stands between two positions."""
        thought, has_calls = reasoning_of(self._message), bool(self._message.get("tool_calls"))
        reasoning = self._place("reasoning") if str(thought or "").strip() else (start, start)
        content = self._place("content") if self._has_text() else None
        if content is None and not has_calls:
            return [(start, end, "reasoning" if thought else "content")]
        calls = self._start_of_calls(content) if has_calls else end
        first, last = content or (calls, calls)
        if not start <= reasoning[0] <= reasoning[1] <= first <= last <= calls <= end:
            raise self._unclear("it does not write reasoning, content and tool calls in this order")
        return [(start, first, "reasoning"), (first, calls, "content"), (calls, end, "tool_calls")]

    def _has_text(self) -> bool:
        content = self._message.get("content")
        return bool((content if isinstance(content, str) else text_of(content) or "").strip())

    def _place(self, field: str) -> tuple[int, int]:
        """The start and the end of the text of a field."""
        character = next(self._rendering.disguise.free)
        if field == "reasoning":
            name = next(name for name in REASONING if self._message.get(name) is not None)
            changed = {k: v for k, v in self._message.items() if k not in REASONING}
            changed[name] = character
        else:
            is_text = isinstance(self._message["content"], str)
            text = [{"type": "text", "text": character}]
            changed = {**self._message, "content": character if is_text else text}
        before, _, after = self._rendered(changed, len(self._rendering.messages)).partition(
            character
        )
        whole = self._string
        if not (whole.startswith(before) and whole.endswith(after) and character not in after):
            raise self._unclear(f"what it writes around the {field} depends on the {field}")
        return len(before), len(whole) - len(after)

    def _start_of_calls(self, content: tuple[int, int] | None) -> int:
        """The first position that differs when the message has no calls."""
        changed = {k: v for k, v in self._message.items() if k != "tool_calls"}
        changed["content"] = changed.get("content") or ""
        without = self._rendered(changed, self._index + 1)
        both = zip(self._string, without, strict=False)
        end = min(len(self._string), len(without))
        at = next((at for at, (one, other) in enumerate(both) if one != other), end)
        for string in (self._string, without):  # the names of two tokens may begin alike
            for token in self._special.finditer(string):
                if token.start() >= at:
                    break
                at = min(at, token.start()) if token.end() > at else at
        return at if content is None else min(at, content[1])

    def _rendered(self, changed: Mapping[str, Any], count: int) -> str:
        """The first messages, with one that is changed, rendered without marks."""
        messages = [*self._rendering.messages]
        messages[self._index] = changed
        return self._rendering.run(messages[:count]).translate(NO_MARKS)

    def _unclear(self, why: str) -> ConversationError:
        return ConversationError(
            (
                f"train_fields leaves out fields of message {self._index}, but the template does "
                f"not write them apart: {why}"
            ),
            option="train_fields",
            hint="train on all fields, or put reasoning and calls into fields of their own",
        )
