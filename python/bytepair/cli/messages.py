"""What a command writes to standard error: errors, warnings, hints, and what is read.

As in ruff and uv, the word is in lower case and coloured on a terminal only, the message follows
it, and what to do about it is on separate lines.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
from io import TextIOWrapper
from typing import Any, Final, Literal, TextIO

import click

from bytepair.errors import BytepairError, BytepairWarning, shortened

_COLORS: Final = {"error": "red", "warning": "yellow", "hint": "cyan"}


class Failure(click.ClickException):
    """A command fails: what is wrong, and hints that say what to do."""

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


class CannotCompareError(Failure):
    """A command fails whose exit code 1 is a result."""

    exit_code = 2


class Misuse(Failure, click.UsageError):
    """A command is used in a way that is not allowed."""


class BadValue(Failure, click.BadParameter):
    """An option has a value that is not allowed."""


def tell(kind: Literal["error", "warning", "hint"], message: str, *hints: str) -> None:
    """Write a message, and a line for each hint that is not empty."""
    color = False if os.environ.get("NO_COLOR") else None  # None is on a terminal only
    for line, text in [(kind, message), *(("hint", hint) for hint in hints if hint)]:
        word = click.style(f"{line}:", fg=_COLORS[line], bold=True)
        click.echo(f"{word} {_in_one_line(text)}", err=True, color=color)


def tell_of(error: click.ClickException) -> None:
    """Write an error of click or of a command, and its hints."""
    hints = [*error.hints] if isinstance(error, Failure) else []
    text = error.problem if isinstance(error, Failure) else error.format_message()
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        text, alike = error.message, sorted(error.possibilities)
        longer = [name for name in alike if name.startswith(error.option_name)]
        hints.append(f"did you mean {' or '.join(longer or alike)}?")
    if isinstance(error, click.UsageError):
        text = text[:1].lower() + text[1:].removesuffix(".")
        hints.append(f"see {error.ctx.command_path if error.ctx else 'bytepair'} --help")
    tell("error", text, *hints)


def _in_one_line(text: str) -> str:
    return " ".join(shortened(text).split())


class ReadingLog(logging.Handler):
    """Writes what the package logs, such as what is read, to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        click.echo(_in_one_line(record.getMessage()), err=True)


def show_log() -> None:
    """Write what the package logs to standard error."""
    log = logging.getLogger("bytepair")
    log.setLevel(logging.INFO)
    log.handlers = [ReadingLog()]
    log.propagate = False


#: An argument in a text: its name, and perhaps its value.
_ARGUMENT: Final = re.compile(
    r"""(?<![\w.-])(?P<name>[a-z]+(?:_[a-z]+)*)\b(?:=(?P<quote>["']?)(?P<value>[\w.+-]*)(?P=quote))?"""
)
#: A role in a call, `Tokenizer.replace(roles={"eos": ...})`: a command has an option for it.
_ROLE: Final = re.compile(r"""[\w.]+\(roles=\{["'](\w+)["']: \.\.\.\}\)""")


def in_words(message: Exception | Warning | str, command: click.Command | None = None) -> list[str]:
    """What is wrong, and what to do about it if it says so.

    Arguments of Python that the command, by default the running one, has as options are written as
    these.

    Example:
        >>> from bytepair.errors import CorpusError
        >>> count = click.Command("count", params=[click.Option(["--errors"])])
        >>> in_words(CorpusError("it is not UTF-8", hint='pass errors="skip"'), count)
        ['it is not UTF-8', 'pass --errors skip']
    """
    if not isinstance(message, BytepairError | BytepairWarning):
        return [str(message)]
    texts = map(shortened, filter(None, (message.message, message.hint)))
    return [with_options(text, command) for text in texts]


def with_options(text: str, command: click.Command | None = None) -> str:
    """A text with the arguments in it as options of a command, by default of the running one."""
    command = command or _running()
    options = {
        one.name: one for one in (command.params if command else ()) if one.opts[0][0] == "-"
    }

    def worded(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        option = options.get(name)
        if option is None or (value is None and "_" not in name):
            return found[0]
        if value == "False":
            return next(iter(option.secondary_opts), found[0])
        flag = max(option.opts, key=len)
        return f"{flag} {value}" if value and value != "True" else flag

    return _ARGUMENT.sub(worded, _ROLE.sub(r"\1_token=", text))


def _running() -> click.Command | None:
    ctx = click.get_current_context(silent=True)
    if ctx is not None and isinstance(ctx.command, click.Group):
        return ctx.command.get_command(ctx, ctx.invoked_subcommand or "")
    return ctx.command if ctx else None


def is_closed_pipe(error: OSError) -> bool:
    """Whether writing failed because the reader closed the pipe (EINVAL on Windows)."""
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
