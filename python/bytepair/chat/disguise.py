"""Disguise texts so that nothing in them can be mistaken for a special token.

Characters that could be part of a special token are replaced by private-use characters that occur
nowhere else, and restored after rendering. So everything that looks like a special token in the
rendered string was written by the template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bytepair.chat.environment import START, STOP

#: Private-use characters of Unicode.
_PRIVATE: Final = range(0x100000, 0x10FFFE)


class Disguise:
    """Replaces characters of special tokens by private-use characters, and restores them.

    With `everywhere`, all characters with which a special token begins are replaced. Otherwise only
    the first character of each special token in the text, of a possible one that starts at the end
    of the text, and the first character of the text if a token may have started before it.
    """

    def __init__(self, special: Iterable[str], characters: set[str], *, everywhere: bool) -> None:
        self._special, self._everywhere = list(special), everywhere
        to_mask = sorted({START, STOP, *(c for name in self._special for c in name)})
        #: Unused private-use characters.
        self.free: Iterator[str] = (chr(code) for code in _PRIVATE if chr(code) not in characters)
        self._on = dict(zip(to_mask, self.free, strict=False))
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
        """Restore the original characters in a rendered string."""
        return text.translate(self._off)


@dataclass(frozen=True)
class Rendering:
    """A conversation rendered to one string, in which only the template wrote special tokens.

    Attributes:
        string: the rendered string.
        disguise: the disguise of the texts in it.
        messages: the disguised messages.
        tools: the disguised tool definitions.
        run: a function that renders other messages or tools in the same disguise.
    """

    string: str
    disguise: Disguise
    messages: list[Any]
    tools: Any
    run: Callable[..., str]


def deep(value: Any, change: Callable[[str], str], key: object = None) -> Any:
    """Apply a function to every string in a value, except keys and roles."""
    if isinstance(value, str):
        return value if key == "role" else change(value)
    if isinstance(value, Mapping):
        return {name: deep(item, change, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [deep(item, change) for item in value]
    return value
