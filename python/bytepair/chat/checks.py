"""Check a rendered conversation for three mistakes that would silently harm training.

1. The template drops content of a message, such as reasoning or tool calls.
2. The token that ends the assistant's turn is not trained on, or is not a stop token of the model,
   so that the trained model never stops.
3. The template's own blocks mark a last turn that does not continue its prompt, so that the model
   is trained on another text than it sees in use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from bytepair import _core
from bytepair.chat.disguise import Rendering
from bytepair.chat.environment import NO_MARKS
from bytepair.chat.rows import REASONING
from bytepair.chat.segments import role_or_none, structural
from bytepair.errors import ConversationError, SpecialTokenError
from bytepair.properties import roles

#: Inserts a mark into a text; the second argument describes the text.
MarkText: TypeAlias = Callable[[str, str], str]

_TOOLS: Final = "the tool definitions"


# ---------------------------------------------------------------------------- dropped content


class Problem(NamedTuple):
    """What a check of a template found, and what to do about it."""

    message: str
    hint: str


def dropped(
    rendering: Rendering, off: Collection[int], tokens: re.Pattern[str]
) -> Iterator[Problem]:
    """Report content of messages that the template drops.

    If some text is not found where its message is written, a private-use character is inserted
    into each text, and the conversation is rendered again: if the character is missing from the
    result, the text was dropped. If the template fails on such text, nothing is reported. Messages
    `off`, the turns that are not trained on, may lose text, as earlier reasoning does in use.

    Args:
        rendering: the rendered conversation.
        off: the indices of the messages that may lose text.
        tokens: finds special tokens in a rendered string.
    """
    if _has_all(rendering, off, tokens):
        return
    places: dict[str, str] = {}  # the description of the text of each mark

    def mark(text: str, place: str) -> str:
        for at in reversed(middles(text)):
            character = next(rendering.disguise.free)
            places[character] = place
            text = text[:at] + character + text[at:]
        return text

    messages = [
        m if i in off else with_marks(m, f"message {i}", mark)
        for i, m in enumerate(rendering.messages)
    ]
    tools = _texts(rendering.tools, _TOOLS, mark)
    try:
        visible = set(rendering.run(messages, tools=tools))
    except ConversationError:
        return
    left_out = dict.fromkeys(place for mark, place in places.items() if mark not in visible)
    if any(places[mark] == _TOOLS for mark in visible & places.keys()):
        left_out.pop(_TOOLS, None)  # a template may drop parts of a schema
    if left_out:
        yield Problem(
            f"it drops {', '.join(left_out)}",
            "use a template that renders it, or remove it from the conversation",
        )


def _has_all(rendering: Rendering, off: Collection[int], tokens: re.Pattern[str]) -> bool:
    """Whether each text stands where its message is written, and something of the tools does."""
    texts: list[str] = []

    def collect(text: str, _: str) -> str:
        texts.append(text.strip())
        return text

    whole, starts = rendering.string.translate(NO_MARKS), rendering.starts
    for index, message in enumerate(rendering.messages):
        if index not in off:
            texts.clear()
            with_marks(message, "", collect)
            end = starts.get(index + 1, len(whole)) if index in starts else len(whole)
            begin = starts.get(index, 0) if index else 0  # a system message may be before the loop
            written = whole[begin:end]
            written = tokens.sub("", written).replace(str(role_or_none(message)), "")
            if not _stand_in(texts, written):
                return False
    texts.clear()
    _texts(rendering.tools, _TOOLS, collect)
    longest = max(texts, key=len, default="")  # a shorter one may stand there by chance
    return not longest or (_stand_in([longest], whole) and longest not in str(rendering.messages))


def _stand_in(texts: Iterable[str], written: str) -> bool:
    """Whether all texts stand in another one at places of their own, perhaps as JSON."""
    for text in sorted(texts, key=len, reverse=True):
        as_json = json.dumps(text, ensure_ascii=False)[1:-1]
        form = text if text in written else as_json
        if form not in written:
            return False
        written = written.replace(form, "\0", 1)
    return True


def middles(text: str) -> list[int]:
    """The positions of marks: not at the ends, which templates inspect; also within reasoning."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    thought = text.find("</think>")
    if start >= end:
        return []
    if thought < 0:
        return [(start + end + 1) // 2]
    after = thought + len("</think>")
    return [thought] if not text[after:].strip() else [thought, (after + end + 1) // 2]


def with_marks(message: Any, place: str, mark: MarkText) -> Any:
    """A message with marks in its content, its name, its reasoning and its tool calls."""
    if not isinstance(message, Mapping):
        return message
    copy = dict(message)
    reasoning = next((name for name in REASONING if message.get(name) is not None), None)
    name_field = "name" if message.get("role") != "tool" else None  # there it is that of the call
    for name in filter(None, ("content", name_field, reasoning)):
        if name in copy:
            copy[name] = _with_mark(copy[name], f"the {name} of {place}", mark)
    calls = copy.get("tool_calls")
    if isinstance(calls, list):
        copy["tool_calls"] = [_marked_call(call, f"a tool call of {place}", mark) for call in calls]
    return copy


def _with_mark(content: Any, place: str, mark: MarkText) -> Any:
    """Content with marks in its text; in a list of parts, only in text parts."""
    if not isinstance(content, list):
        return _texts(content, place, mark)
    return [
        {**part, "text": _texts(part["text"], place, mark)}
        if isinstance(part, Mapping) and "text" in part
        else part
        for part in content
    ]


def _marked_call(call: Any, place: str, mark: MarkText) -> Any:
    if not isinstance(call, Mapping):
        return call
    if isinstance(call.get("function"), Mapping):
        return {**call, "function": _marked_call(call["function"], place, mark)}
    texts = {name: call[name] for name in ("name", "arguments") if name in call}
    return {**call, **{name: _texts(value, place, mark) for name, value in texts.items()}}


def _texts(value: Any, place: str, mark: MarkText) -> Any:
    """A value with marks in its strings, except in types."""
    if isinstance(value, str):
        return mark(value, place)
    if isinstance(value, Mapping):
        return {k: v if k == "type" else _texts(v, place, mark) for k, v in value.items()}
    if isinstance(value, list):
        return [_texts(item, place, mark) for item in value]
    return value


# ---------------------------------------------------------------------------- the last turn


def unprompted(
    prompt: Sequence[str | int | None],
    whole: Sequence[str | int | None],
    encode: Callable[[str], Sequence[int]],
) -> Iterator[Problem]:
    """Report if the ids of a conversation do not begin with those of the prompt of its last turn.

    Args:
        prompt: the segments of the prompt.
        whole: those of the conversation.
        encode: gives the ids of a text.
    """
    *before, last = prompt or [None]
    next_one = whole[len(before)] if len(before) < len(whole) else None
    begins = list(whole[: len(before)]) == before and last in (next_one, None)
    if not begins and isinstance(last, str) and isinstance(next_one, str):
        ids = encode(last)
        begins = list(whole[: len(before)]) == before and encode(next_one)[: len(ids)] == ids
    if not begins:
        yield Problem(
            "its last turn does not continue its prompt, so the model would be trained on other "
            "ids than it sees in use",
            "pass the variables of the prompt, such as enable_thinking, or give the turn what its "
            "prompt begins, such as reasoning",
        )


def stops(tokenizer: _core.Tokenizer, names: Sequence[str] | None) -> dict[int, str]:
    """The ids that may end a turn, and their names; empty if unknown."""
    special, by_role = structural(tokenizer), roles.roles(tokenizer)
    if names is None:
        names = [by_role[role] for role in ("eos", "end_of_turn") if role in by_role]
    for name in names:
        if name not in special:
            raise SpecialTokenError(
                f"stop contains {name!r}, which is not a special token of the tokenizer; it has "
                f"{' '.join(special) or 'none'}"
            )
    return {special[name]: name for name in names}


def endless(
    segments: Iterable[tuple[str | int | None, int]],
    stops: Mapping[int, str],
    special: Mapping[str, int],
) -> Iterator[Problem]:
    """Report if the last trained token is not a stop token.

    White space after the token, such as the line break in ChatML, may be trained on or not.

    Args:
        segments: the segments of one conversation, and whether each is trained on.
        stops: the ids that may end a turn; empty if any special token may.
        special: the special tokens.
    """
    trained = [
        item
        for item, is_trained in segments
        if is_trained and not (item is None or (isinstance(item, str) and not item.strip()))
    ]
    if not trained:
        return
    last = trained[-1]
    if isinstance(last, str):
        yield Problem(
            f"the trained part ends with the text {last[-20:]!r}, not with a special token, so a "
            "model would not learn to end its turn",
            "add the token that ends the assistant's turn to the template (inside the "
            "{% generation %} block, if there is one)",
        )
    elif stops and last not in stops:
        name = next(name for name, id in special.items() if id == last)
        yield Problem(
            f"the trained part ends with {name!r}, but the stop tokens are "
            f"{' and '.join(stops.values())}",
            f"set the role with tok.replace(roles=dict(end_of_turn={name!r})), or pass "
            f"stop=({name!r},) to the template",
        )
