"""Describe how two ways to split a text differ.

The differences are found by splitting all short texts made of characters of every class. Everything
that a rule distinguishes (classes, case, contractions, the length of numbers, neighbours of
white space) is visible in a few adjacent characters.
"""

from __future__ import annotations

import itertools
import re  # noqa: F401 - for the examples
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

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

#: The pretokens of a text.
SplitText: TypeAlias = Callable[[str], list[str]]
#: The ids of a pretoken.
EncodeText: TypeAlias = Callable[[str], Sequence[object]]
#: The symbols of a text.
_Parts: TypeAlias = tuple[str, ...]


def nearest(split: SplitText, others: Mapping[str, SplitText], ids: EncodeText) -> list[str]:
    r"""The names of the ways to split with which the fewest texts get other ids.

    ASCII texts count first, then all; among equals, the texts with other pretokens in this order.

    Example:
        >>> regexes = {"own": r"\d{1,2}|\D+", "words": r"\w+|\W+", "threes": r"\d{1,3}|\D+"}
        >>> splits = {name: re.compile(regex).findall for name, regex in regexes.items()}
        >>> nearest(splits.pop("own"), splits, lambda pretoken: [pretoken])
        ['threes']
    """

    def distance(other: SplitText) -> tuple[int, int, int, int]:
        (ascii_ids, ascii_pretokens), (every_id, every_pretoken) = (
            _differences(own, [other(text) for text in texts], ids) for texts, own in samples
        )
        return ascii_ids, every_id, ascii_pretokens, every_pretoken

    texts = [["".join(parts) for parts in _texts(list(symbols))] for symbols in (_ASCII, _NAMES)]
    samples = [(each, [split(text) for text in each]) for each in texts]
    distances = {name: distance(other) for name, other in others.items()}
    return [name for name in others if distances[name] == min(distances.values())]


def _differences(
    own: Iterable[list[str]], other: Iterable[list[str]], ids: EncodeText
) -> tuple[int, int]:
    """How many texts get other ids, and how many other pretokens."""
    pairs = [(one, two) for one, two in zip(own, other, strict=True) if one != two]

    def all_ids(pretokens: list[str]) -> list[object]:
        return [id for pretoken in pretokens for id in ids(pretoken)]

    return sum(1 for one, two in pairs if all_ids(one) != all_ids(two)), len(pairs)


def described(split: SplitText, other: SplitText) -> str:
    r"""The kinds of characters that are split differently, each with the shortest example.

    Example:
        >>> described(re.compile(r"\d{1,2}|\D+").findall, re.compile(r"\d{1,3}|\D+").findall)
        "numbers ('111' becomes '111', not '11' '1')"
    """
    descriptions: dict[frozenset[str], str] = {}
    for parts in differing(split, other, _NAMES):
        kinds = dict.fromkeys(_NAMES[part] for part in parts)
        alike = kinds.keys() | {kind.removesuffix(_OUTSIDE) for kind in kinds}
        if not any(kinds_before <= alike for kinds_before in descriptions):
            text = "".join(parts)
            here, there = (" ".join(map(repr, one(text))) for one in (split, other))
            example = f"{text!r} becomes {there}, not {here}"
            descriptions[frozenset(kinds)] = f"{' next to '.join(kinds)} ({example})"
    more = len(descriptions) - _MOST_KINDS
    lines = [
        *list(descriptions.values())[:_MOST_KINDS],
        *([f"and {more} more kinds"] if more > 0 else []),
    ]
    return ", ".join(lines) or "no difference on short texts"


def differing(split: SplitText, other: SplitText, symbols: Iterable[str]) -> Iterator[_Parts]:
    """The texts of some symbols, shortest first, that are split differently."""
    return (
        parts for parts in _texts(list(symbols)) if split("".join(parts)) != other("".join(parts))
    )


def _texts(symbols: list[str]) -> Iterator[_Parts]:
    for length in range(1, _MOST_SYMBOLS + 1):
        yield from itertools.product(symbols, repeat=length)
    for times in _REPEATED:
        for symbol in symbols:
            yield (symbol,) * times
            yield from ((symbol,) * times + (behind,) for behind in symbols)
