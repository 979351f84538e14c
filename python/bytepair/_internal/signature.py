"""A function with many keywords in, the same function with a signature of one line out, for `help`.

`help` prints the signature in one line before anything else. For a function with twenty keywords,
which its documentation explains, that line is several hundred characters of types and defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class ShortSignature(inspect.Signature):
    """A signature whose text has the positional parameters alone; its parameters are complete."""

    def __str__(self) -> str:
        """The positional parameters with their defaults, without types."""
        positional = [
            p.replace(annotation=p.empty)
            for p in self.parameters.values()
            if p.kind is p.POSITIONAL_OR_KEYWORD
        ]
        short = str(inspect.Signature(positional))
        return f"{short[:-1]}, *, ...)" if positional else "(...)"

    def format(self, **_options: Any) -> str:
        """The same text, for newer versions of Python."""
        return str(self)


def short_help(function: Function) -> Function:
    """Give a function a signature that `help` prints in one line.

    Example:
        >>> import inspect
        >>> @short_help
        ... def cut(text: str, size: int = 4, *, strict: bool = False, ends: str = "") -> str:
        ...     return text[:size]
        >>> str(inspect.signature(cut)), list(inspect.signature(cut).parameters)
        ('(text, size=4, *, ...)', ['text', 'size', 'strict', 'ends'])
    """
    signature = inspect.signature(function)
    short = ShortSignature(
        list(signature.parameters.values()), return_annotation=signature.return_annotation
    )
    function.__signature__ = short  # type: ignore[attr-defined]
    return function
