"""Finds the parts of a rendered conversation that are trained on, and the message that wrote each.

With `{% generation %}` blocks, a template says what is trained on. Without them it is derived: to
write message `i`, the model gets a prompt, which is the rendering of the messages before it and the
start of the assistant's turn. The rendering of the messages up to `i` continues this prompt; the
continuation is what the model must write. Each of these strings must be a prefix of the next: a
template that renders a message differently when others follow is rejected, since the training text
would differ from what the model sees in use.

To render every prefix takes a time that grows with the square of the number of messages. So the
template says where each message begins (`Rendering.starts`), and one prefix is rendered, to find
out how a turn is opened. Only where this leaves a doubt are the prefixes of a message rendered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

from bytepair.chat.rows import REASONING, reasoning_of, text_of
from bytepair.chat.sandbox import NO_MARKS, START, STOP
from bytepair.chat.segments import role_or_none
from bytepair.chat.template import MessageField
from bytepair.chat.texts import Rendering
from bytepair.errors import ConversationError

_MARK: Final = re.compile(f"[{START}{STOP}]")

#: The start and the end of a field.
_Span: TypeAlias = "tuple[int, int, MessageField]"

_HINT: Final = (
    "use a template that renders it the same, one with {% generation %} blocks, or pass "
    'mask="none" to the template for ids alone'
)


class Region(NamedTuple):
    """A part of a string that is trained on.

    Attributes:
        owner: the index of the message that it belongs to.
        start: its start.
        end: its end.
    """

    owner: int
    start: int
    end: int


def marked(string: str, regions: Iterable[Region]) -> str:
    """A string without marks, with marks around regions, which are in order.

    Example:
        >>> unmarked(marked("hi yo", [Region(0, 3, 5)]))
        ('hi yo', [(3, 5)])
    """
    end, pieces = 0, []
    for region in regions:
        pieces += [string[end : region.start], START, string[region.start : region.end], STOP]
        end = region.end
    return "".join([*pieces, string[end:]])


def unmarked(string: str) -> tuple[str, list[tuple[int, int]]]:
    """A string without its marks, and the start and end of each region."""
    places = [mark.start() - number for number, mark in enumerate(_MARK.finditer(string))]
    return string.translate(NO_MARKS), list(zip(places[::2], places[1::2], strict=True))


def split(string: str, at: int) -> tuple[str, str]:
    """The two parts of a marked string, before and after a position.

    Example:
        >>> before, after = split(marked("hi yo", [Region(0, 1, 4)]), 3)
        >>> unmarked(before), unmarked(after)
        (('hi ', [(1, 3)]), ('yo', [(0, 1)]))
    """
    plain, places = unmarked(string)
    before = [Region(0, a, min(b, at)) for a, b in places if a < at]
    after = [Region(0, max(a, at) - at, b - at) for a, b in places if b > at]
    return marked(plain[:at], before), marked(plain[at:], after)


# ---------------------------------------------------------------------------- turns by prefixes


def turns(rendering: Rendering, role: str, trained: Sequence[bool] | None) -> list[Region]:
    """The parts of the string that messages of a role added.

    Those of messages that are not `trained` on are empty, and left out where it is unclear how
    their turn is opened; None means that all are trained on.

    Raises:
        ConversationError: if the rendering of a prefix of the conversation is not a prefix of the
            whole rendering.
    """
    own = [i for i, message in enumerate(rendering.messages) if role_or_none(message) == role]
    on = [i for i in own if trained is None or trained[i]]
    opening = _opening(rendering, on or own)
    found = []
    for index in own:
        span = _span_by_start(rendering, index, opening)
        if index in on:
            found.append(Region(index, *(span or _span_by_prefixes(rendering, index))))
        elif span is not None:
            found.append(Region(index, span[0], span[0]))
    return found


def openings(rendering: Rendering, role: str) -> list[Region]:
    """Empty regions where the turns of a role begin in a prompt, as `turns` finds them."""
    with suppress(ConversationError):
        before = rendering.run(rendering.messages)
        if rendering.string.startswith(before):
            return _empty(rendering, role, rendering.string[len(before) :])
    return []


def _empty(rendering: Rendering, role: str, opening: str) -> list[Region]:
    own = [i for i, message in enumerate(rendering.messages) if role_or_none(message) == role]
    spans = {index: _span_by_start(rendering, index, opening) for index in own}
    return [Region(i, span[0], span[0]) for i, span in spans.items() if span is not None]


def _opening(rendering: Rendering, indices: Sequence[int]) -> str:
    """What the template writes to open a turn; empty if that is unclear.

    It is the end of a prompt. The messages before the prompt end with the first of some messages if
    others follow it, since this shows whether it is rendered differently then; else before it.
    """
    if not indices:
        return ""
    last = len(rendering.messages) - 1
    count = indices[0] + (indices[0] < last)
    start = rendering.starts.get(count)
    if start is None:
        return ""
    try:
        prompt = rendering.run(rendering.messages[:count], prompt=True)
    except ConversationError:
        return ""
    return prompt[start:] if prompt.startswith(rendering.string[:start]) else ""


def _span_by_start(rendering: Rendering, index: int, opening: str) -> tuple[int, int] | None:
    """What a message adds after the opening of its turn; None if that is unclear."""
    starts, last = rendering.starts, len(rendering.messages) - 1
    start = starts.get(index)
    end = len(rendering.string) if index == last else starts.get(index + 1)
    if not opening or start is None or end is None:
        return None
    begin = start + len(opening)
    return (begin, end) if begin <= end and rendering.string.startswith(opening, start) else None


def _span_by_prefixes(rendering: Rendering, index: int) -> tuple[int, int]:
    """The span, in the whole string, of what a message of the assistant adds."""
    messages = rendering.messages
    try:
        prompt = rendering.run(messages[:index], prompt=True)
    except ConversationError as error:
        raise ConversationError(
            f"no mask can be derived for message {index}, because the template cannot render the "
            f"messages before it alone ({error})",
            option="mask",
            hint=_HINT,
        ) from error
    last = index + 1 == len(messages)
    through = rendering.string if last else rendering.run(messages[: index + 1])
    check_prefix(
        prompt,
        through,
        f"message {index} does not continue the prompt of the messages before it",
        rendering,
    )
    check_prefix(
        through,
        rendering.string,
        f"the template renders the first {index + 1} messages differently when others follow",
        rendering,
    )
    return len(prompt), len(through)


def check_prefix(
    prefix: str, whole: str, what: str, rendering: Rendering, hint: str = _HINT
) -> None:
    """Reject a rendering that does not begin with that of fewer messages; show the difference."""
    if whole.startswith(prefix):
        return
    at = next(
        (i for i, (a, b) in enumerate(zip(prefix, whole, strict=False)) if a != b),
        min(len(prefix), len(whole)),
    )
    was, now = (rendering.disguise.take_off(s[max(0, at - 20) : at + 20]) for s in (prefix, whole))
    raise ConversationError(
        f"{what}, so the training text would differ from the text in use: at character {at}, "
        f"{was!r} becomes {now!r}",
        option="mask" if hint is _HINT else None,
        hint=hint,
    )


# ---------------------------------------------------------------------------- blocks


def blocks(rendering: Rendering, off: Collection[int], on: Collection[int]) -> list[Region]:
    """The blocks with the messages that wrote them; those of the messages `off` are empty.

    Raises:
        ConversationError: if it cannot be told which message a block belongs to, or a message of
            `on` has no block.
    """
    _, places = unmarked(rendering.string)
    owners = [_owner(rendering, number, *place) for number, place in enumerate(places)]
    for index in on:
        if index not in owners:
            raise ConversationError(
                f"message {index} is to be trained on, but the template has no "
                "{% generation %} block for it"
            )
    found = [Region(owner, *place) for owner, place in zip(owners, places, strict=True)]
    return [part._replace(end=part.start) if part.owner in off else part for part in found]


def _owner(rendering: Rendering, number: int, start: int, end: int) -> int:
    """The message of a block: the last one that begins before it, if none begins within it."""
    starts = rendering.starts
    if any(start < place < end for place in starts.values()):
        raise _unclear(f"block {number} has text of several messages")
    before = [index for index, place in starts.items() if place <= start]
    if not before:
        raise _unclear(f"block {number} has no text of a message")
    return max(before, key=lambda index: (starts[index], index))


def _unclear(why: str) -> ConversationError:
    return ConversationError(
        (
            "some turns are not to be trained on, but it is unclear which {% generation %} "
            f"blocks are theirs: {why}"
        ),
        option="mask",
        hint='pass mask="prefixes" to the template',
    )


# ---------------------------------------------------------------------------- fields of a message


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
    """Finds the fields of one message in the rendered string: reasoning, content, tool calls.

    A template does not say where one ends and the next begins. To find the content, its text is
    replaced by one private-use character, and the conversation is rendered again: what stands
    before and behind the character is the frame of the content, and must stand in the first
    rendering, too. So it is with reasoning. Calls are found by rendering the message without them.

    What stands before the content belongs to the reasoning, and what stands behind it to the calls.
    The end of the turn belongs to the last field.
    """

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
