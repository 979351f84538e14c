"""What a command writes to standard error: errors, warnings, hints, and what is read.

As in ruff and uv, the word is in lower case and coloured on a terminal only, the message follows
it, and what to do about it stands on lines of its own.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import Final, Literal

import click

_COLORS: Final = {"error": "red", "warning": "yellow", "hint": "cyan"}

#: Words with which a way out begins.
_ADVICE: Final = re.compile(
    r"(; |\. )(?=(?:then )?(?:ask|change|check|choose|convert|count|create|did you mean|divide|"
    r"download|export|fetch|free|give|install|load|lower|make|mend|name|omit|pass|put|raise|read|"
    r"remove|rename|repair|report|run|see|set|split|start|train|unpack|use|wait|write) )",
    re.IGNORECASE,
)


def tell(kind: Literal["error", "warning", "hint"], message: str) -> None:
    """Write a message, and the ways out that it ends with as hints."""
    text, *hints = parts_of(message)
    _line(kind, text)
    for hint in hints:
        _line("hint", hint)


def parts_of(message: str) -> list[str]:
    """A message, and each way out at its end.

    Example:
        >>> from bytepair.cli.messages import parts_of
        >>> parts_of("a.txt is not UTF-8; repair it, or pass --errors replace")
        ['a.txt is not UTF-8', 'repair it, or pass --errors replace']
        >>> parts_of("there is no format 'foo'; there are bytepair, gguf")
        ["there is no format 'foo'; there are bytepair, gguf"]
    """
    text, *rest = _ADVICE.split(message)
    hints = rest[1::2]
    return [text, *(hint[:1].lower() + hint[1:].removesuffix(".") for hint in hints)]


def _line(kind: str, text: str) -> None:
    word = f"{kind}:"
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        word = click.style(word, fg=_COLORS[kind], bold=True)
    click.echo(f"{word} {text}", err=True)


class ReadingLog(logging.Handler):
    """Writes what the package logs, such as what is read, to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        click.echo(record.getMessage(), err=True)


def show_log() -> None:
    """Write what the package logs to standard error."""
    log = logging.getLogger("bytepair")
    log.setLevel(logging.INFO)
    log.handlers = [ReadingLog()]
    log.propagate = False


def hide_log() -> None:
    """Do not write what is read, and show no progress bar."""
    logging.getLogger("bytepair").setLevel(logging.WARNING)
