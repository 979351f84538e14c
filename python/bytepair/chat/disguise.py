"""Texts in, the same texts without anything that could be taken for a special token out.

A character with which a special token could begin or go on is replaced by a private one, which
occurs nowhere, and is put back afterwards. What looks like a special token in a string that was
rendered from disguised texts was then written by the template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bytepair.chat.environment import START, STOP

#: Private characters of Unicode, free to stand for something.
_PRIVATE: Final = range(0x100000, 0x10FFFE)


class Disguise:
    """Replaces characters of special tokens by private ones, and back.

    Those are `everywhere` all with which a special token begins, or else those where one stands, or
    may begin at the end of the text; and the first one if a token may have begun before the text.
    """

    def __init__(self, special: Iterable[str], used: set[str], *, everywhere: bool) -> None:
        self._special, self._everywhere = list(special), everywhere
        characters = sorted({START, STOP, *(c for name in self._special for c in name)})
        #: Private characters that nothing stands for yet.
        self.free: Iterator[str] = (chr(code) for code in _PRIVATE if chr(code) not in used)
        self._on = dict(zip(characters, self.free, strict=False))
        self._off = {ord(mask): c for c, mask in self._on.items()}
        first = {START, STOP, *(name[0] for name in self._special if everywhere)}
        self._first = {ord(c): self._on[c] for c in first}
        self._tails = tuple({name[i:] for name in self._special for i in range(1, len(name))})

    def put_on(self, text: str) -> str:
        """Disguise a text."""
        start = len(text) - len(text.lstrip())
        places = {start} if text.startswith(self._tails, start) else set()
        if not self._everywhere:
            body = text.rstrip()
            places |= {
                i
                for name in self._special
                for i in range(len(body))
                if body.startswith(name, i) or name.startswith(body[i:])
            }
        if places:
            text = "".join(self._on[c] if i in places else c for i, c in enumerate(text))
        return text.translate(self._first)

    def take_off(self, text: str) -> str:
        """The text as it was, in a string that was rendered from it."""
        return text.translate(self._off)


@dataclass(frozen=True)
class Rendering:
    """A conversation as one string, in which only the template wrote special tokens.

    Attributes:
        string: what the template wrote.
        disguise: what the texts in it are disguised with.
        messages: the messages, disguised.
        tools: the tools that are offered, disguised.
        run: renders other messages, or with other tools, in the same disguise.
    """

    string: str
    disguise: Disguise
    messages: list[Any]
    tools: Any
    run: Callable[..., str]


def deep(value: Any, change: Callable[[str], str], key: object = None) -> Any:
    """Change every text in a value but keys and roles."""
    if isinstance(value, str):
        return value if key == "role" else change(value)
    if isinstance(value, Mapping):
        return {name: deep(item, change, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [deep(item, change) for item in value]
    return value
