"""Standard output: it may be a closed pipe, or have an encoding that lacks some characters."""

from __future__ import annotations

import errno
import sys
from io import TextIOWrapper
from typing import TextIO


def is_closed_pipe(error: OSError) -> bool:
    """Whether writing failed because the reader closed the pipe (EINVAL on Windows).

    Args:
        error: what writing to standard output raised.
    """
    if sys.platform == "win32" and error.errno == errno.EINVAL and error.filename is None:
        return True
    return isinstance(error, BrokenPipeError)


def use_output(stream: TextIO | None) -> None:
    r"""Let a stream write any character, and end lines with a newline on every system.

    A pipe on Windows may use an 8-bit encoding; characters it lacks are written as `\u2588`.
    """
    if isinstance(stream, TextIOWrapper):
        errors = "backslashreplace" if stream.errors == "strict" else stream.errors
        stream.reconfigure(errors=errors, newline="\n")


def can_write(text: str, stream: TextIO) -> bool:
    """Whether the encoding of a stream can represent all characters of a text.

    Example:
        >>> import io
        >>> from bytepair.cli.output import can_write
        >>> can_write("█", io.TextIOWrapper(io.BytesIO(), "cp1252"))
        False
    """
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
