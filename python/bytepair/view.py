"""Tokens in, something to look at out: how a text falls into tokens, on a terminal.

A token need not be whole characters. Bytes that are not are shown as their hexadecimal number in
angle brackets, and control characters as the picture that Unicode has for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

# Backgrounds that stay readable under black text, in turn.
COLORS = ("48;5;153", "48;5;194", "48;5;223", "48;5;218", "48;5;189")


def readable(token: bytes) -> str:
    r"""Show the bytes of one token as text.

    Example:
        >>> readable(b"caf\xc3\xa9\n"), readable(b"\xe4\xbd")
        ('café␊', '<E4><BD>')
    """
    text = token.decode("utf-8", "surrogateescape")
    return "".join(_character(c) for c in text)


def _character(c: str) -> str:
    code = ord(c)
    if 0xDC80 <= code <= 0xDCFF:
        return f"<{code - 0xDC00:02X}>"
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return c


def terminal(tokens: Iterable[bytes], *, color: bool | None = None) -> str:
    """Show tokens side by side: on backgrounds in turn, or divided by `|` without colours.

    A token that ends a line is followed by the end of the line, so that text keeps its shape.
    """
    if color is None:
        color = not os.environ.get("NO_COLOR")
    shown = []
    for i, token in enumerate(tokens):
        text = readable(token)
        mark = f"\x1b[30;{COLORS[i % len(COLORS)]}m{text}\x1b[0m" if color else text
        shown.append(mark + ("\n" if color and token.endswith(b"\n") else ""))
    return ("" if color else "|").join(shown)
