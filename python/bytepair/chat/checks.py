"""A rendered conversation in, what is wrong with training on it out.

Two mistakes are silent elsewhere: a template leaves out what a message says, such as reasoning or
tool calls; and the token that ends the assistant's turn is not trained on, or is not one at which
the model stops, so that a trained model never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.chat.disguise import Rendering
from bytepair.errors import ConversationError, SpecialTokenError
from bytepair.formats import roles

#: Puts marks into a text; the place says which text it is.
_Mark: TypeAlias = Callable[[str, str], str]

#: The fields of a message that may hold reasoning, as in `transformers`; the first counts.
REASONING: Final = ("reasoning_content", "thinking", "reasoning")


_TOOLS: Final = "the tools that are offered"


# ---------------------------------------------------------------------------- what is left out


def dropped(rendering: Rendering) -> Iterator[str]:
    """Tell what messages say and the template leaves out.

    A private character is put into each text, and the conversation rendered again: what is left out
    is where the character does not turn up. A template that fails at such a text tells nothing.
    """
    places: dict[str, str] = {}  # the place of each mark

    def mark(text: str, place: str) -> str:
        for at in reversed(_middles(text)):
            character = next(rendering.disguise.free)
            places[character] = place
            text = text[:at] + character + text[at:]
        return text

    messages = [_marked(m, f"message {i}", mark) for i, m in enumerate(rendering.messages)]
    tools = _texts(rendering.tools, _TOOLS, mark)
    try:
        found = set(rendering.run(messages, tools=tools))
    except ConversationError:
        return
    left_out = dict.fromkeys(place for mark, place in places.items() if mark not in found)
    if any(places[mark] == _TOOLS for mark in found & places.keys()):
        left_out.pop(_TOOLS, None)  # parts of a schema may be left out
    if left_out:
        yield (
            f"it leaves out {', '.join(left_out)}; take a template that writes it, or remove it "
            "from the conversation"
        )


def _middles(text: str) -> list[int]:
    """Where marks are put: inside, because templates look at the ends; and in a thought, too."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    thought = text.find("</think>")
    if start >= end:
        return []
    if thought < 0:
        return [(start + end + 1) // 2]
    after = thought + len("</think>")
    return [thought] if not text[after:].strip() else [thought, (after + end + 1) // 2]


def _marked(message: Any, place: str, mark: _Mark) -> Any:
    """A message with marks in its content, its reasoning and its tool calls."""
    if not isinstance(message, Mapping):
        return message
    made = dict(message)
    reasoning = next((name for name in REASONING if message.get(name) is not None), None)
    for name in filter(None, ("content", reasoning)):
        if name in made:
            made[name] = _said(made[name], f"the {name} of {place}", mark)
    calls = made.get("tool_calls")
    if isinstance(calls, list):
        made["tool_calls"] = [_marked_call(call, f"a tool call of {place}", mark) for call in calls]
    return made


def _said(content: Any, place: str, mark: _Mark) -> Any:
    """A content with marks in its text; of parts, only those that are text have some."""
    if not isinstance(content, list):
        return _texts(content, place, mark)
    return [
        {**part, "text": _texts(part["text"], place, mark)}
        if isinstance(part, Mapping) and "text" in part
        else part
        for part in content
    ]


def _marked_call(call: Any, place: str, mark: _Mark) -> Any:
    if not isinstance(call, Mapping):
        return call
    if isinstance(call.get("function"), Mapping):
        return {**call, "function": _marked_call(call["function"], place, mark)}
    named = {name: call[name] for name in ("name", "arguments") if name in call}
    return {**call, **{name: _texts(value, place, mark) for name, value in named.items()}}


def _texts(value: Any, place: str, mark: _Mark) -> Any:
    """The value with marks in its texts, but not in those that are types."""
    if isinstance(value, str):
        return mark(value, place)
    if isinstance(value, Mapping):
        return {k: v if k == "type" else _texts(v, place, mark) for k, v in value.items()}
    if isinstance(value, list):
        return [_texts(item, place, mark) for item in value]
    return value


# ---------------------------------------------------------------------------- the end of a turn


def stops(tokenizer: _core.Tokenizer, named: Sequence[str] | None) -> dict[int, str]:
    """The ids that may end a turn, and their names; none if nothing is known of them."""
    special, known = tokenizer.special_tokens, roles.roles(tokenizer)
    if named is None:
        named = [known[role] for role in ("eos", "end_of_turn") if role in known]
    for name in named:
        if name not in special:
            raise SpecialTokenError(
                f"stop names {name!r}, which is no special token of the tokenizer; it has "
                f"{' '.join(special) or 'none'}"
            )
    return {special[name]: name for name in named}


def endless(
    segments: Iterable[tuple[str | int | None, int]],
    stops: Mapping[int, str],
    special: Mapping[str, int],
) -> Iterator[str]:
    """Tell whether what is trained on last is not a token at which a model stops.

    White space after the token, as the line break in ChatML, may be trained on or not.

    Args:
        segments: those of one conversation, and for each of them whether it is trained on.
        stops: the ids that may end a turn; empty if any special token may.
        special: the special tokens.
    """
    learned = [
        item
        for item, used in segments
        if used and not (item is None or (isinstance(item, str) and not item.strip()))
    ]
    if not learned:
        return
    last = learned[-1]
    if isinstance(last, str):
        yield (
            f"what it trains on ends with the text {last[-20:]!r}, not with a special token, so a "
            "model would not learn where its turn ends; have the template write the token that "
            "ends the turn of the assistant, within its {% generation %} block if it has one"
        )
    elif stops and last not in stops:
        name = next(name for name, id in special.items() if id == last)
        yield (
            f"what it trains on ends with {name!r}, but a model stops at "
            f"{' and '.join(stops.values())}; give the token that ends a turn the role with "
            f"tok.with_roles(end_of_turn={name!r}), or pass stop=({name!r},) to the template"
        )
