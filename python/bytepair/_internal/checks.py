"""Checks of arguments, for the places where an argument is used.

Each returns the value that it checked, or raises an `ArgumentError` that names the argument.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bytepair import _core
from bytepair.errors import ArgumentError

if TYPE_CHECKING:
    from fractions import Fraction

T = TypeVar("T")

#: The default maximum size of a document; each document is held in memory completely.
DOCUMENT_BYTES: Final = 128_000_000

#: The largest number that the core takes.
MOST: Final = 2**63 - 1


def refuse(name: str, value: object, allowed: str, hint: str = "") -> ArgumentError:
    """The error for a value that an argument cannot have."""
    message = f"{name} is {_core.shown(value)}; it must be {allowed}"
    return ArgumentError(message, option=name, value=value, hint=hint)


def check_whole(name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """An integer within limits, as an `int`."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    number = operator.index(value) if is_whole else least - 1
    if least <= number <= most:
        return number
    limits = f" of at least {least}" if least > -MOST else ""
    limits += f" and at most {most}" if number > most else ""
    raise refuse(name, value, f"an integer{limits}")


def check_choice(name: str, value: T, choices: Collection[T]) -> T:
    """A value that is one of a few."""
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return value
    *others, last = map(repr, choices)
    raise refuse(name, value, f"{', '.join(others)} or {last}" if others else last)


def check_kind(name: str, value: Any, kind: type[T], hint: str = "") -> T:
    """A value of a class."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise refuse(name, value, f"{article} {kind.__name__}", hint)
    return value


def check_mapping(name: str, value: Any, hint: str) -> Mapping[Any, Any]:
    """A mapping."""
    if not isinstance(value, Mapping):
        raise refuse(name, value, "a mapping", hint)
    return value


def check_many(name: str, values: Any, items: str = "str") -> Iterable[Any]:
    """An iterable of texts or other values; a text or a mapping, whose keys it gives, is none."""
    is_table = isinstance(values, Mapping) or hasattr(values, "columns")
    is_text = isinstance(values, str | bytes | bytearray | memoryview)
    if is_table or is_text or not isinstance(values, Iterable):
        hint = "pass [text]" if is_text and items == "str" else ""
        hint = "pass one of its columns" if is_table else hint
        raise refuse(name, values, f"an iterable of {items}", hint)
    return values


def integers(name: str, values: Any) -> list[int]:
    """The integers of a list, an array or any iterable."""
    try:
        return [operator.index(value) for value in check_many(name, values, "integers")]
    except TypeError:
        raise refuse(name, values, "a list, an array or an iterable of integers") from None


def place_of(item: str, index: Any, count: int) -> int:
    """The place of one of `count` items, from 0; a negative index counts from the end."""
    number = check_whole(f"the index of a {item}", index, -MOST)
    if not -count <= number < count:
        raise IndexError(f"there is no {item} {number}; there are {count}")
    return number % count


def exact_fraction(number: float | Fraction) -> Fraction:
    """Convert a number to a fraction; a float means its decimal notation."""
    from fractions import Fraction  # which is not needed to encode

    return Fraction(str(float(number)) if isinstance(number, float) else number)
