"""Keeps texts apart from the special tokens of a Jinja template, and checks what becomes of them.

Before rendering, characters that could be part of a special token are replaced by private-use
characters that occur nowhere else; they are restored afterwards. So everything that looks like a
special token in the rendered string was written by the template.

Three mistakes that would silently harm training are looked for in a rendered conversation:

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
from dataclasses import dataclass
from datetime import date, time
from typing import Any, Final, NamedTuple, TypeAlias

from bytepair import _core
from bytepair.chat.rows import REASONING
from bytepair.chat.sandbox import END_INDEX, INDEX, NO_MARKS, START, STOP
from bytepair.chat.segments import role_or_none, structural
from bytepair.errors import ConversationError, SpecialTokenError
from bytepair.properties import roles

# ---------------------------------------------------------------------------- the disguise


#: Private-use characters of Unicode.
_PRIVATE: Final = range(0x100000, 0x10FFFE)

#: The types of JSON schemas, of tools and of parts.
_TYPES: Final = frozenset(
    ("array", "audio", "boolean", "function", "image", "image_url", "integer", "null", "number",
     "object", "string", "text", "video")
)  # fmt: skip
_WORD: Final = re.compile(r"[\w$][\w .$-]*")


class Disguise:
    """Replaces characters of special tokens by private-use characters, and restores them.

    With `everywhere`, all characters with which a special token begins are replaced. Otherwise only
    the first character of each special token in the text, of a possible one that starts at the end
    of the text, and the first character of the text if a token may have started before it.
    The work is linear in the length of the text.
    """

    def __init__(self, special: Iterable[str], characters: set[str], *, everywhere: bool) -> None:
        names, self._everywhere = [*special], everywhere
        marks = {START, STOP, INDEX, END_INDEX}
        to_mask = sorted(marks | {c for name in names for c in name})
        #: Unused private-use characters.
        self.free: Iterator[str] = (chr(code) for code in _PRIVATE if chr(code) not in characters)
        self._on = dict(zip(to_mask, self.free, strict=False))
        self._off = {ord(mask): c for c, mask in self._on.items()}
        first = marks | {name[0] for name in names if everywhere}
        self._first = {ord(c): self._on[c] for c in first}
        self._names = set(names)
        self._lengths = sorted({*map(len, names)})
        self._heads = {name[:i] for name in names for i in range(1, len(name))}
        self._tails = {name[i:] for name in names for i in range(1, len(name))}
        self._longest = max(self._lengths, default=0)
        self._all = "\0".join(names)
        self._begins = re.compile("|".join({re.escape(name[0]) for name in names}) or r"(?!)")

    def put_on(self, text: str, *, inner: bool = True) -> str:
        """Disguise a text; if `inner`, also one that is a part of the name of a token."""
        start, body = len(text) - len(text.lstrip()), text.rstrip()
        places = set()
        if (inner and body[start:] in self._all) or self._begins_with_tail(text, start):
            places.add(start)
        if not self._everywhere:
            places |= {
                at.start() for at in self._begins.finditer(body) if self._is(body, at.start())
            }
        if places and start < len(text):
            text = "".join(self._on.get(c, c) if i in places else c for i, c in enumerate(text))
        return text.translate(self._first)

    def _begins_with_tail(self, text: str, start: int) -> bool:
        """Whether a token that the template begins may end in the text."""
        return any(
            text[start : start + length] in self._tails for length in range(1, self._longest)
        )

    def _is(self, text: str, at: int) -> bool:
        """Whether a token, or the first part of one at the end of the text, is at a position."""
        rest = text[at : at + self._longest]
        return rest in self._heads or any(rest[:length] in self._names for length in self._lengths)

    def take_off(self, text: str) -> str:
        """Restore the original characters in a rendered string."""
        return text.translate(self._off)


@dataclass(frozen=True)
class Rendering:
    """A conversation rendered to one string, in which only the template wrote special tokens.

    Attributes:
        string: the rendered string.
        starts: by the index of a message, where in the string without marks the template comes to
            it; messages that no loop comes to have none.
        disguise: the disguise of the texts in it.
        messages: the disguised messages.
        tools: the disguised tool definitions.
        run: a function that renders other messages or tools in the same disguise.
    """

    string: str
    starts: Mapping[int, int]
    disguise: Disguise
    messages: list[Any]
    tools: Any
    run: Callable[..., str]


def deep(value: Any, disguise: Disguise, fixed: Collection[str] = (), key: object = None) -> Any:
    """Disguise every string in a value, keys as well.

    A role, a type of JSON, and a key or a type that the template names (`fixed`) are words of the
    format; they are disguised only if there is more in them than letters.
    """
    if isinstance(value, str):
        is_word = key == "role" or (key == "type" and (value in _TYPES or value in fixed))
        return value if is_word and _WORD.fullmatch(value) else disguise.put_on(value)
    if isinstance(value, Mapping):
        return {
            name
            if not isinstance(name, str) or (name in fixed and _WORD.fullmatch(name))
            else disguise.put_on(name): deep(item, disguise, fixed, name)
            for name, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [deep(item, disguise, fixed, key if key == "type" else None) for item in value]
    if value is None or isinstance(value, bool | int | float | date | time) or callable(value):
        return value
    raise ConversationError(f"a conversation contains a {type(value).__name__}, which JSON lacks")


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
