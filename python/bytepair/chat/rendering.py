"""A conversation rendered with Jinja: what of it is text, who wrote it, and what is trained on.

Before rendering, a `Disguise` replaces characters that could be part of a special token by
private-use characters that occur nowhere else; they are restored afterwards. So everything that
looks like a special token in the rendered string was written by the template. Texts get marks of
such characters as well: if a mark is missing from the rendered string, its text was dropped.

With `{% generation %}` blocks, a template says what is trained on. Without them it is derived: the
rendering of the messages up to `i` continues the prompt of message `i`, and the continuation is
what the model must write. Each of these strings must be a prefix of the next: a template that
renders a message differently when others follow is rejected, since the training text would differ
from what the model sees in use.

Rendering every prefix would take a time that grows with the square of the number of messages. So
the template says where each message begins (`Rendering.starts`), and one prefix is rendered, to
find out how a turn is opened; the others only where this leaves a doubt.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple

from bytepair._internal.sandbox import END_INDEX, INDEX, START, STOP
from bytepair.chat.rows import REASONING
from bytepair.chat.template import ASSISTANT
from bytepair.errors import ConversationError

#: Private-use characters of Unicode.
_PRIVATE: Final = range(0x100000, 0x10FFFE)
#: Finds them: `str.translate` takes a hundred times as long on text that is not ASCII.
_MASKS: Final = re.compile(f"[{chr(_PRIVATE[0])}-{chr(_PRIVATE[-1])}]")

#: The types of JSON schemas, of tools and of parts.
_TYPES: Final = frozenset(
    ("array", "audio", "boolean", "function", "image", "image_url", "integer", "null", "number",
     "object", "string", "text", "video")
)  # fmt: skip
_WORD: Final = re.compile(r"[\w$][\w .$-]*")

#: A private-use character as JSON writes it.
_ESCAPED: Final = re.compile(r"\\udb[c-f][0-9a-f]\\ud[c-f][0-9a-f]{2}")

#: The strings of a template that are left as they are in a text: their number, and their lengths.
_MOST_KEPT: Final = 1 << 10
_MOST_KEPT_CHARS: Final = 1 << 6

#: The fields of a part or a call that are texts of the message.
_TEXTS: Final = ("text", "name", "arguments")

#: The marks of messages and blocks that a template may write: each takes 70 bytes here.
MOST_MARKS: Final = 1 << 20

#: The index of a message, and a mark of a block, in what a template writes.
_INDEX: Final = re.compile(f"{INDEX}([0-9]{{1,9}}){END_INDEX}")
_MARK: Final = re.compile(f"{_INDEX.pattern}|[{START}{STOP}]")

_HINT: Final = (
    "use a template that renders it the same, one with {% generation %} blocks, or pass "
    'mask="none" to the template for ids alone'
)


class MessageText(NamedTuple):
    """Where a text stands: the index of its message, or -1, and a description."""

    message: int
    description: str


_TOOLS: Final = MessageText(-1, "the tool definitions")


class TokenNames:
    """The names of special tokens, to be found in texts, and the strings of a template.

    Args:
        names: the names.
        words: the attributes, keys and other strings of the template.

    Attributes:
        names: the names.
        words: as above.
        first: the characters with which a name begins.
        begins: the regular expression that finds such a character.
    """

    def __init__(self, names: Iterable[str], words: frozenset[str] = frozenset()) -> None:
        self.names, self.words = {*names}, words
        self._lengths = sorted({*map(len, self.names)})
        self._sorted = sorted(self.names)
        self._reversed = sorted(name[::-1] for name in self.names)
        self._last = {name[-1] for name in self.names}
        self._all = "\0".join(self._sorted)
        self.first = {name[0] for name in self.names}
        self.begins = re.compile("|".join(map(re.escape, sorted(self.first))) or r"(?!)")
        short = sorted(word for word in words if len(word) <= _MOST_KEPT_CHARS)
        ends = (word[at.start() :] for word in short for at in self.begins.finditer(word))
        self._kept = {end for end in islice(ends, _MOST_KEPT) if not self._is_token(end)}
        self._kept_lengths = sorted({*map(len, self._kept)})

    def may_continue(self, text: str) -> bool:
        """Whether a token that the template begins may go on with a text, and end in it."""
        head = text[: max(self._lengths, default=0) - 1]
        ends = (at for at, character in enumerate(head, 1) if character in self._last)
        return text.rstrip() in self._all or any(
            _begins_any(head[:end][::-1], self._reversed) for end in ends
        )

    def begun(self, text: str) -> set[int]:
        """Where a token may begin in a text, even if the template removes what is behind it.

        That is not where a string of the template begins that no token begins with.
        """
        found = (token.start() for token in self.begins.finditer(text))
        lengths = self._kept_lengths
        return {at for at in found if all(text[at : at + n] not in self._kept for n in lengths)}

    def _is_token(self, rest: str) -> bool:
        """Whether a text begins with a token, or is the first part of one."""
        return _begins_any(rest, self._sorted) or any(
            rest[:length] in self.names for length in self._lengths
        )


class Disguise:
    """Replaces characters of special tokens by private-use characters, and restores them.

    With `everywhere`, all characters with which a special token begins are replaced. Otherwise
    those stay with which a string of the template begins, so that the template finds this string in
    a text, such as `</think>`; but not if a special token could come of it, also after the template
    has removed something behind it. The first character of a text is replaced if a token may have
    started before it. The work is linear in the length of the text.

    A role, a type of JSON, and a key or a type that the template names are words of the format;
    they are disguised only if there is more in them than letters. So are all keys without `keys`,
    for templates that sort them. With `mark`, texts that the template must write get marks.

    Attributes:
        free: unused private-use characters.
        places: for each mark that is in use, the place of its text.
    """

    def __init__(
        self,
        names: TokenNames,
        characters: set[str],
        *,
        everywhere: bool,
        keys: bool = True,
        mark: bool = False,
    ) -> None:
        self._names, self._types = names, names.words | _TYPES
        self._everywhere, self._keys, self._mark = everywhere, keys, mark
        marks = {START, STOP, INDEX, END_INDEX}
        to_mask = sorted(marks.union(*names.names))
        self.free: Iterator[str] = (chr(code) for code in _PRIVATE if chr(code) not in characters)
        self.places: dict[str, MessageText] = {}
        self._on = dict(zip(to_mask, self.free, strict=False))
        if len(self._on) < len(to_mask):
            raise ConversationError(
                f"the conversation has nearly all of the {len(_PRIVATE):,} private-use characters "
                f"from U+100000 on; {len(to_mask)} must be left to keep its texts apart"
            )
        self._off = {mask: c for c, mask in self._on.items()}
        first = marks | names.first if everywhere else marks
        self._first = re.compile(f"[{re.escape(''.join(first))}]")

    def put_on(self, text: str) -> str:
        """Disguise a text, even if it is a part of the name of a token."""
        start = len(text) - len(text.lstrip())
        places = set() if self._everywhere else self._names.begun(text.rstrip())
        if self._names.may_continue(text[start:]):
            places.add(start)
        if places and start < len(text):
            text = "".join(self._on.get(c, c) if i in places else c for i, c in enumerate(text))
        return self._first.sub(lambda c: self._on[c[0]], text)

    def conversation(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Disguise the messages and the other fields of a conversation."""
        hidden = {"messages": [self._message(*one) for one in enumerate(fields["messages"])]}
        for name, value in fields.items():
            if name != "messages":
                hidden[name] = self._value(value, name, _TOOLS if name == "tools" else None)
        return hidden

    def _message(self, index: int, message: Mapping[str, Any]) -> dict[str, Any]:
        """A message: its content, name, reasoning and calls are texts that must be written."""
        reasoning = next((name for name in REASONING if message.get(name) is not None), None)
        name_of_user = "name" if message["role"] != "tool" else None  # there it is that of the call
        changed = {}
        for name, value in message.items():
            place = None
            if name in ("content", reasoning, name_of_user):
                place = MessageText(index, f"the {name} of message {index}")
            elif name == "tool_calls":
                place = MessageText(index, f"a tool call of message {index}")
            read = self._parts if name in ("content", "tool_calls") else self._value
            changed[self._key(name)] = read(value, name, place)
        return changed

    def _parts(self, value: Any, key: object, place: MessageText | None) -> Any:
        """A content or calls: only some of the fields of parts and of calls are texts."""
        if isinstance(value, list):
            return [self._parts(part, None, place) for part in value]
        if not isinstance(value, Mapping):
            return self._value(value, key, place)
        return {
            self._key(name): self._parts(one, name, place)
            if name == "function"
            else self._value(one, name, place if name in _TEXTS else None)
            for name, one in value.items()
        }

    def _key(self, name: Any) -> Any:
        if not isinstance(name, str):
            return name
        is_word = (name in self._names.words or not self._keys) and _WORD.fullmatch(name)
        return name if is_word else self.put_on(name)

    def _value(self, value: Any, key: object, place: MessageText | None) -> Any:
        """A value under a key; its texts, but for types, get marks if they have a place."""
        if isinstance(value, str):
            is_word = key == "role" or (key == "type" and value in self._types)
            if is_word and _WORD.fullmatch(value):
                return value
            if place is None or key == "type" or not self._mark:
                return self.put_on(value)
            return self._marked(value, place)
        if isinstance(value, Mapping):
            return {self._key(k): self._value(v, k, place) for k, v in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            return [self._value(item, key if key == "type" else None, place) for item in value]
        if value is None or isinstance(value, bool | int | float | date | time) or callable(value):
            return value
        raise ConversationError(
            f"a conversation contains a {type(value).__name__}, which JSON lacks"
        )

    def _marked(self, text: str, place: MessageText) -> str:
        """Disguise a text and insert marks into it."""
        disguised = self.put_on(text)
        for at in reversed(_middles(text)):
            mark = next(self.free, None)  # texts beyond the number of such characters get none
            if mark is not None:
                self.places[mark], self._off[mark] = place, ""
                disguised = disguised[:at] + mark + disguised[at:]
        return disguised

    def take_off(self, text: str) -> str:
        """Restore the original characters in a rendered string."""
        return _MASKS.sub(lambda mask: self._off.get(mask[0], mask[0]), text)

    def dropped(self, string: str) -> list[MessageText]:
        """The places of texts that are not in a rendered string; one of the tools' suffices."""
        missing, visible = set[MessageText](), set[MessageText]()
        written = set(string)
        if not self.places.keys() <= written:
            written |= {*_ESCAPED.findall(string)}
        for mark, place in self.places.items():
            is_there = mark in written or json.dumps(mark)[1:-1] in written
            (visible if is_there else missing).add(place)
        missing -= visible & {_TOOLS}
        return [place for place in dict.fromkeys(self.places.values()) if place in missing]


def _begins_any(text: str, names: list[str]) -> bool:
    """Whether any of the sorted names begins with a text."""
    at = bisect_left(names, text)
    return at < len(names) and names[at].startswith(text)


def _middles(text: str) -> list[int]:
    """The positions of marks: not at the ends, which templates inspect; also within reasoning."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    thought = text.find("</think>")
    if start >= end:
        return []
    if thought < 0:
        return [(start + end + 1) // 2]
    after = thought + len("</think>")
    return [thought] if not text[after:].strip() else [thought, (after + end + 1) // 2]


class Region(NamedTuple):
    """A part of a string that is trained on.

    Attributes:
        start: its start.
        end: its end.
        owner: the index of the message that it belongs to.
    """

    start: int
    end: int
    owner: int = -1


@dataclass(frozen=True)
class Rendering:
    """A conversation rendered to one string, in which only the template wrote special tokens.

    Attributes:
        string: the rendered string.
        starts: by the index of a message, where in the string the template comes to it; messages
            that no loop comes to have none.
        blocks: the blocks of the template that are trained on.
        disguise: the disguise of the texts in it.
        messages: the disguised messages.
        run: a function that renders other messages in the same disguise.
        dropped: the places of texts that the template does not write.
    """

    string: str
    starts: Mapping[int, int]
    blocks: list[Region]
    disguise: Disguise
    messages: list[Any]
    run: Callable[..., Rendering]
    dropped: Sequence[MessageText] = ()

    def turns(self, trained: Sequence[bool]) -> list[Region]:
        """The parts of the string that messages of the assistant added.

        Those of messages that are not `trained` on are empty, and left out where it is unclear how
        their turn is opened.
        """
        own = [i for i, message in enumerate(self.messages) if message["role"] == ASSISTANT]
        opening = self._opening([i for i in own if trained[i]] or own)
        regions = []
        for index in own:
            region = self._by_start(index, opening)
            if trained[index]:
                regions.append(region or self._by_prefixes(index))
            elif region is not None:
                regions.append(region._replace(end=region.start))
        return regions

    def _opening(self, indices: Sequence[int]) -> str:
        """What the template writes to open a turn; empty if that is unclear.

        It is the end of a prompt. The messages before the prompt end with the first of some
        messages if others follow it, since this shows whether it is rendered differently then; else
        before it.
        """
        if not indices:
            return ""
        last = len(self.messages) - 1
        count = indices[0] + (indices[0] < last)
        start = self.starts.get(count)
        if start is None:
            return ""
        with suppress(ConversationError):
            prompt = self.run(self.messages[:count], prompt=True).string
            return prompt[start:] if prompt.startswith(self.string[:start]) else ""
        return ""

    def _by_start(self, index: int, opening: str) -> Region | None:
        """What a message adds after the opening of its turn; None if that is unclear."""
        starts, string = self.starts, self.string
        is_last = index == len(self.messages) - 1
        start, end = starts.get(index), len(string) if is_last else starts.get(index + 1)
        if not opening or start is None or end is None:
            return None
        begin = start + len(opening)
        is_clear = begin <= end and string.startswith(opening, start)
        return Region(begin, end, index) if is_clear else None

    def _by_prefixes(self, index: int) -> Region:
        """What a message of the assistant adds to the rendering of those before it."""
        messages, whole = self.messages, self.string
        try:
            prompt = self.run(messages[:index], prompt=True).string
        except ConversationError as error:
            raise ConversationError(
                f"no mask can be derived for message {index}, because the template cannot render "
                f"the messages before it alone ({error})",
                option="mask",
                hint=_HINT,
            ) from error
        is_last = index + 1 == len(messages)
        through = whole if is_last else self.run(messages[: index + 1]).string
        what = f"message {index} does not continue the prompt of the messages before it"
        self.check_prefix(prompt, through, what)
        what = f"the template renders the first {index + 1} messages differently when others follow"
        self.check_prefix(through, whole, what)
        return Region(len(prompt), len(through), index)

    def check_prefix(self, prefix: str, whole: str, what: str, hint: str = _HINT) -> None:
        """Reject a rendering that does not begin with that of fewer messages."""
        if whole.startswith(prefix):
            return
        prefix, whole = map(self.disguise.take_off, (prefix, whole))
        both = enumerate(zip(prefix, whole, strict=False))
        at = next((i for i, (a, b) in both if a != b), min(len(prefix), len(whole)))
        was, now = (string[max(0, at - 20) : at + 20] for string in (prefix, whole))
        raise ConversationError(
            f"{what}, so the training text would differ from the text in use: at character {at}, "
            f"{was!r} becomes {now!r}",
            option="mask" if hint is _HINT else None,
            hint=hint,
        )

    def blocks_of(self, off: Collection[int], on: Collection[int]) -> list[Region]:
        """The blocks with the messages that wrote them; those of the messages `off` are empty."""
        places = sorted((place, index) for index, place in self.starts.items())
        regions = [
            block._replace(owner=_owner(places, number, block.start, block.end))
            for number, block in enumerate(self.blocks)
        ]
        missing = set(on).difference(region.owner for region in regions)
        if missing:
            raise ConversationError(
                f"message {min(missing)} is to be trained on, but the template has no "
                "{% generation %} block for it"
            )
        return [one._replace(end=one.start) if one.owner in off else one for one in regions]


def _owner(places: Sequence[tuple[int, int]], number: int, start: int, end: int) -> int:
    """The message of a block: the last one that begins before it, if none begins within it.

    The places where messages begin are in order, each with the index of its message.
    """
    before = bisect_right(places, start, key=itemgetter(0))
    several = before < len(places) and places[before][0] < end
    if several or not before:
        why = "text of several messages" if several else "no text of a message"
        raise ConversationError(
            "some turns are not to be trained on, but it is unclear which {% generation %} blocks "
            f"are theirs: block {number} has {why}",
            option="mask",
            hint='pass mask="prefixes" to the template',
        )
    return places[before - 1][1]


def unmarked(marked: str, has_blocks: bool) -> tuple[str, dict[int, int], list[Region]]:
    """A string without marks, where each message begins, and the blocks that are trained on."""
    starts: dict[int, int] = {}
    blocks: list[Region] = []
    pieces, length, end, start = [], 0, 0, -1
    for number, mark in enumerate(_MARK.finditer(marked)):
        if number == MOST_MARKS:
            raise ConversationError(
                f"the template comes to messages and blocks more than {MOST_MARKS:,} times"
            )
        pieces.append(marked[end : mark.start()])
        length, end = length + len(pieces[-1]), mark.end()
        if mark[1]:
            starts[int(mark[1])] = length
        elif has_blocks and mark[0] == START:
            start = length
        elif has_blocks and start >= 0:
            blocks.append(Region(start, length))
            start = -1
    return "".join([*pieces, marked[end:]]), starts, blocks


def without_indices(marked: str) -> str:
    """A string without the indices of messages."""
    return _INDEX.sub("", marked)
