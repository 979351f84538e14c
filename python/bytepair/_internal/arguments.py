"""The old names of checks of arguments, which files that are being changed still import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bytepair._core import shown
from bytepair._internal.checks import check_kind as instance
from bytepair._internal.checks import check_whole as whole
from bytepair._internal.checks import integers, place_of, refuse

Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = [
    "check_fields",
    "checked",
    "instance",
    "integers",
    "place_of",
    "refuse",
    "shown",
    "whole",
]


def checked(function: Function) -> Function:
    """The function."""
    return function


def check_fields(_value: Any) -> None:
    """Check nothing."""
