"""What a command writes to standard error: errors, warnings, hints, and what is read.

As in ruff and uv, the word is in lower case and coloured on a terminal only, the message follows
it, and what to do about it stands on lines of its own.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Final, Literal

import click

from bytepair.errors import shortened

_COLORS: Final = {"error": "red", "warning": "yellow", "hint": "cyan"}


class ErrorWithHints(click.ClickException):
    """An error of a command: what is wrong, and hints that say what to do.

    Args:
        message: what is wrong.
        hints: what to do, each on a line of its own; empty ones are left out.
        place: arguments of the class of click.
    """

    def __init__(self, message: str, *hints: str, **place: Any) -> None:
        super().__init__(message, **place)
        self.hints = tuple(filter(None, hints))

    @property
    def problem(self) -> str:
        """What is wrong, without the hints."""
        return super().format_message()

    def format_message(self) -> str:
        """The message that click itself would show."""
        return "; ".join([self.problem, *self.hints])


class Failure(ErrorWithHints):
    """A command fails."""


class CannotCompareError(Failure):
    """A command fails whose exit code 1 is a result."""

    exit_code = 2


class Misuse(ErrorWithHints, click.UsageError):
    """A command is used in a way that is not allowed."""


class BadValue(ErrorWithHints, click.BadParameter):
    """An option has a value that is not allowed."""


def tell(kind: Literal["error", "warning", "hint"], message: str, *hints: str) -> None:
    """Write a message, and a line for each hint that is not empty."""
    _line(kind, shortened(message))
    for hint in filter(None, hints):
        _line("hint", hint)


def tell_of(error: click.ClickException) -> None:
    """Write an error of click or of a command, and its hints.

    Example:
        >>> import contextlib, io
        >>> with contextlib.redirect_stderr(io.StringIO()) as written:
        ...     tell_of(Failure("a.txt is not UTF-8", "repair it"))
        >>> print(written.getvalue(), end="")
        error: a.txt is not UTF-8
        hint: repair it
    """
    hints = [*error.hints] if isinstance(error, ErrorWithHints) else []
    text = error.problem if isinstance(error, ErrorWithHints) else error.format_message()
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        text = error.message
        hints.append(f"did you mean {' or '.join(sorted(error.possibilities))}?")
    if isinstance(error, click.UsageError):
        text = text[:1].lower() + text[1:].removesuffix(".")
        hints.append(f"see {error.ctx.command_path if error.ctx else 'bytepair'} --help")
    tell("error", text, *hints)


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
