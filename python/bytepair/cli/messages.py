"""What a command writes to standard error: errors, warnings, hints, and what is read.

As in ruff and uv, the word is in lower case and coloured on a terminal only, the message follows
it, and what to do about it is on separate lines. Options are written as on the command line:
`errors="skip"` becomes `--errors skip`.
"""

from __future__ import annotations

import ast
import errno
import logging
import os
import re
import shlex
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, Final, Literal, TextIO

import click

from bytepair.errors import BytepairError, BytepairWarning, shortened

_COLORS: Final = {"error": "red", "warning": "yellow", "hint": "cyan"}


class ErrorWithHints(click.ClickException):
    """An error of a command: what is wrong, and hints that say what to do."""

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
    _line(kind, message)
    for hint in filter(None, hints):
        _line("hint", hint)


def tell_of(error: click.ClickException) -> None:
    """Write an error of click or of a command, and its hints."""
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
    click.echo(f"{word} {_in_one_line(text)}", err=True)


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


#: Arguments of Python whose option has a different name.
RENAMED: Final = {
    "max_words": "superword_max_words",
    **{role: f"{role}_token" for role in ("bos", "eos", "pad", "eot")},
}

#: An argument in a text: its name, and perhaps its value.
_ARGUMENT: Final = re.compile(
    r"""(?<![\w.-])(?P<name>[a-z][a-z0-9_]*)=
    (?P<value>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|[\w.+-]*\w)?""",
    re.VERBOSE,
)
#: An argument without a value after a verb, such as `raise max_document_bytes`.
_AFTER_VERB: Final = re.compile(
    r"\b(?:pass|raise|lower|set|give) (?:an? )?(?:[a-z]+ )?(?P<name>[a-z]+(?:_[a-z]+)+)\b(?!=)"
)
#: A role in a call, `Tokenizer.replace(roles={"eos": ...})`: a command has an option for it.
_ROLE: Final = re.compile(r"""[\w.]+\(roles=\{["'](\w+)["']: \.\.\.\}\)""")


def in_words(
    message: Exception | Warning | str, commands: Sequence[click.Command] = ()
) -> list[str]:
    """What is wrong in the words of the running command, and what to do about it if it says so.

    Args:
        message: an exception or a warning.
        commands: the command, and others whose options a hint may name; by default the running one
            and `convert`.

    Example:
        >>> from bytepair.errors import CorpusError
        >>> count = click.Command("count", params=[click.Option(["--errors"])])
        >>> error = CorpusError("a.txt is not UTF-8", hint='repair it, or pass errors="skip"')
        >>> in_words(error, [count])
        ['a.txt is not UTF-8', 'repair it, or pass --errors skip']
        >>> in_words(error, [click.Command("decode")])
        ['a.txt is not UTF-8', 'repair it']
    """
    if not isinstance(message, BytepairError | BytepairWarning):
        return [str(message)]
    commands = commands or _running()
    problem = shortened(message.message)  # which may quote a name of a million characters
    if commands:
        problem = _with_flags(problem, commands) or problem
        if flag := message.option and _flag(message.option, None, commands):
            anywhere = "" if "_" in message.option else "^"
            problem = re.sub(rf"{anywhere}(?<![\w.-]){message.option}\b(?![=.])", flag, problem)
    hint = advice_in_words(shortened(message.hint), commands)
    return [problem, hint] if hint else [problem]


def advice_in_words(hint: str, commands: Sequence[click.Command] = ()) -> str:
    """A hint with the options of the command; the parts that need another option are left out."""
    commands = commands or _running()
    if not commands:
        return hint
    parts: list[str] = []
    for part in hint.split(", or "):
        worded = _with_flags(part, commands)
        if worded is not None:
            is_first = not parts and part[:1].isalpha() and _ARGUMENT.match(part)
            parts.append(f"pass {worded}" if is_first else worded)
    return ", or ".join(parts)


def _running() -> list[click.Command]:
    """The running command, and `convert`, whose options a hint may name."""
    ctx = click.get_current_context(silent=True)
    while ctx is not None and not isinstance(ctx.command, click.Group):
        ctx = ctx.parent
    if ctx is None or not isinstance(ctx.command, click.Group) or ctx.invoked_subcommand is None:
        return []
    names = dict.fromkeys([ctx.invoked_subcommand, "convert"])
    return [one for one in (ctx.command.get_command(ctx, name) for name in names) if one]


def _with_flags(text: str, commands: Sequence[click.Command]) -> str | None:
    """A text with the arguments in it as options; None if the commands lack one of them."""
    missing = False

    def worded(found: re.Match[str]) -> str:
        nonlocal missing
        name, value = found["name"], found.groupdict().get("value")
        flag = _flag(name, value, commands)
        missing = missing or flag is None
        return found[0].replace(f"{name}={value or ''}" if "=" in found[0] else name, flag or "")

    text = _AFTER_VERB.sub(worded, _ARGUMENT.sub(worded, _ROLE.sub(r"\1=", text)))
    return None if missing else text


def _flag(name: str, value: str | None, commands: Sequence[click.Command]) -> str | None:
    """The option for an argument, whose value is a literal; None if there is none for it."""
    for command in commands:
        names = (RENAMED.get(name), name)
        for param in command.params:
            if isinstance(param, click.Option) and param.name in names:
                flag = _with_value(param, value)
                suffix = "" if command is commands[0] else f" of bytepair {command.name}"
                return flag and f"{flag}{suffix}"
    return None


def _with_value(param: click.Option, literal: str | None) -> str | None:
    """An option with a value; None if it cannot have this value."""
    name = max(param.opts, key=len)
    try:
        value = None if literal is None else ast.literal_eval(literal)
    except (SyntaxError, ValueError):  # a word that stands for a value
        return f"{name} {literal}"
    if isinstance(value, bool) and param.is_flag:
        return name if value else next(iter(param.secondary_opts), None)
    if value is None or param.is_flag:
        return name
    values = value if isinstance(value, list) else [value]  # the option is repeated
    if isinstance(param.type, click.Choice) and not set(values) <= set(param.type.choices):
        return None
    return " ".join(f"{name} {shlex.quote(str(one))}" for one in values)


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


def can_write(text: str, stream: TextIO) -> bool:
    """Whether the encoding of a stream can represent all characters of a text."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
