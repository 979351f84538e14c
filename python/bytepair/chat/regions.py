"""The regions of a rendered conversation that are trained on, each with the message that owns it.

In a rendered string, a region stands between two marks. Positions are those in the string without
marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from bytepair.chat.environment import NO_MARKS, START, STOP

_MARK: Final = re.compile(f"[{START}{STOP}]")


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
