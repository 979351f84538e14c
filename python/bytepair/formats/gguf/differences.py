"""Describe how two split patterns differ.

The differences are found by splitting all short texts made of characters of every class. Everything
that a pattern distinguishes (classes, case, contractions, the length of numbers, neighbours of
white space) is visible in a few adjacent characters.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from bytepair.properties.rules import splitter

#: The symbols that texts are made of, and their descriptions; ASCII first.
_ASCII: Final = {
    "a": "letters", "s": "letters", "A": "letters", "'": "apostrophes", "'ll": "apostrophes",
    "1": "numbers", "!": "punctuation", "_": "punctuation", "/": "punctuation",
    ",": "punctuation", "$": "symbols", "+": "symbols", " ": "spaces", "\t": "spaces",
    "\n": "line breaks", "\r": "line breaks", "\x01": "control characters",
}  # fmt: skip
_OUTSIDE: Final = " outside ASCII"
_OTHERS: Final = {
    "é": "letters" + _OUTSIDE, "É": "letters" + _OUTSIDE, "中": "letters" + _OUTSIDE,
    "ʰ": "letters" + _OUTSIDE, "\u0301": "marks", "\u093f": "marks",
    "\u0663": "numbers" + _OUTSIDE, "²": "numbers" + _OUTSIDE,
    "。": "punctuation" + _OUTSIDE, "😀": "symbols" + _OUTSIDE, "\xa0": "spaces" + _OUTSIDE,
}  # fmt: skip
_NAMES: Final = _ASCII | _OTHERS

#: The maximum number of adjacent symbols, and of repetitions of one.
_MOST_SYMBOLS: Final = 3
_REPEATED: Final = range(_MOST_SYMBOLS + 1, 9)

#: The maximum number of differences to describe.
_MOST_KINDS: Final = 3

#: A regular expression, or several, of which each splits the pieces of the previous one.
Pattern: TypeAlias = str | tuple[str, ...]

#: The symbols of a text.
_Parts: TypeAlias = tuple[str, ...]


@lru_cache
def nearest(pattern: Pattern, others: tuple[tuple[str, Pattern], ...]) -> tuple[str, ...]:
    r"""The names of the patterns that differ least from a given one.

    Differences on ASCII texts are compared first; among equals, differences on all texts.

    Example:
        >>> nearest(r"\d{1,2}|\D+", (("words", r"\w+|\W+"), ("threes", r"\d{1,3}|\D+")))
        ('threes',)
    """
    left = list(others)
    for symbols in (_ASCII, _NAMES):
        counts = [sum(1 for _ in differing(pattern, other, symbols)) for _, other in left]
        left = [one for one, count in zip(left, counts, strict=True) if count == min(counts)]
    return tuple(name for name, _ in left)


@lru_cache
def described(pattern: Pattern, other: Pattern) -> str:
    r"""The kinds of characters that are split differently, each with the shortest example.

    Example:
        >>> described(r"\d{1,2}|\D+", r"\d{1,3}|\D+")
        "numbers ('111' becomes '111', not '11' '1')"
    """
    descriptions: dict[frozenset[str], str] = {}
    for parts in differing(pattern, other, _NAMES):
        kinds = dict.fromkeys(_NAMES[part] for part in parts)
        alike = kinds.keys() | {kind.removesuffix(_OUTSIDE) for kind in kinds}
        if not any(kinds_before <= alike for kinds_before in descriptions):
            text = "".join(parts)
            here, there = (
                " ".join(map(repr, splitter(regex).pretokenize(text))) for regex in (pattern, other)
            )
            example = f"{text!r} becomes {there}, not {here}"
            descriptions[frozenset(kinds)] = f"{' next to '.join(kinds)} ({example})"
    more = len(descriptions) - _MOST_KINDS
    lines = [
        *list(descriptions.values())[:_MOST_KINDS],
        *([f"and {more} more kinds"] if more > 0 else []),
    ]
    return ", ".join(lines) or "no difference on short texts"


def differing(pattern: Pattern, other: Pattern, symbols: Iterable[str]) -> Iterator[_Parts]:
    """The texts of some symbols, shortest first, that two patterns split differently."""
    one, two = splitter(pattern).pretokenize, splitter(other).pretokenize
    return (parts for parts in _texts(list(symbols)) if one("".join(parts)) != two("".join(parts)))


def _texts(symbols: list[str]) -> Iterator[_Parts]:
    for length in range(1, _MOST_SYMBOLS + 1):
        yield from itertools.product(symbols, repeat=length)
    for times in _REPEATED:
        for symbol in symbols:
            yield (symbol,) * times
            yield from ((symbol,) * times + (behind,) for behind in symbols)
