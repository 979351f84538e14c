"""Word the options that messages name as options of the command line.

An error of the Python API in, its message out: `pass errors="replace"` becomes `pass --errors
replace`. A way out that needs an option which no command has is left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

import click

from bytepair.errors import Option, Worded, Wording, words

#: Arguments of Python whose option has a different name.
RENAMED: Final = {
    "special_tokens": "special_token",
    "initial_tokens": "initial_token",
    "max_words": "superword_max_words",
    "train_fields": "train_field",
    "ignore_fields": "ignore_field",
}


def wording(ctx: click.Context | None = None) -> Wording:
    """The words of the running command, with options of `convert` where it has none."""
    ctx = ctx or click.get_current_context(silent=True)
    while ctx is not None and not isinstance(ctx.command, click.Group):
        ctx = ctx.parent
    if ctx is None or not isinstance(ctx.command, click.Group) or ctx.invoked_subcommand is None:
        return str
    names = dict.fromkeys([ctx.invoked_subcommand, "convert"])
    commands = [ctx.command.get_command(ctx, name) for name in names]
    return wording_of([command for command in commands if command])


def in_words(message: Exception | str) -> list[str]:
    """What is wrong in the words of the running command, and what to do about it if it says so.

    Example:
        >>> from bytepair.errors import CorpusError, WayOut
        >>> in_words(CorpusError("a.txt is not UTF-8", WayOut("repair it")))
        ['a.txt is not UTF-8', 'repair it']
        >>> in_words(OSError("the disk is full"))
        ['the disk is full']
    """
    if not isinstance(message, Worded):
        return [str(message)]
    problem, advice = words(message.phrases, wording())
    return [problem, advice] if advice else [problem]


def wording_of(commands: Sequence[click.Command]) -> Wording:
    """The words of the running command for an option; None for one that no command has.

    Args:
        commands: the running command, and further commands whose options may be suggested.

    Example:
        >>> import click
        >>> from bytepair.cli.words import wording_of
        >>> from bytepair.errors import Option, WayOut, message
        >>> flag = click.Option(["--lossy"], is_flag=True)
        >>> modes = click.Option(["--errors"], type=click.Choice(["strict", "skip"]))
        >>> train = click.Command("train", params=[modes])
        >>> wording = wording_of([train, click.Command("read", params=[flag])])
        >>> wording(Option("errors", "skip")), wording(Option("lossy", True))
        ('--errors skip', '--lossy of bytepair read')
        >>> wording(Option("vocab_size", 300)), wording(Option("errors", "replace"))
        (None, None)
        >>> ways_out = WayOut("repair it"), WayOut.passing("errors", "replace")
        >>> message(["it is bad", *ways_out], wording)
        'it is bad; repair it'
    """
    params: dict[str, tuple[click.Option, str]] = {}
    for command in reversed(commands):
        suffix = "" if command is commands[0] else f" of bytepair {command.name}"
        for param in command.params:
            if isinstance(param, click.Option) and param.name is not None:
                params[param.name] = param, suffix

    def word(option: Option) -> str | None:
        entry = params.get(RENAMED.get(option.name, "")) or params.get(option.name)
        words = entry and _worded(entry[0], option.value)
        return f"{words}{entry[1]}" if entry and words else None

    return word


def _worded(param: click.Option, value: Any) -> str | None:
    """An option with a value; None if it cannot have this value."""
    name = max(param.opts, key=len)
    if not isinstance(value, str | bool | int | float | list | tuple):  # no value, or any
        return name
    if isinstance(value, bool) and param.is_flag:
        return name if value else next(iter(param.secondary_opts), None)
    values = value if isinstance(value, list | tuple) else [value]  # the option is repeated
    if isinstance(param.type, click.Choice) and not set(values) <= set(param.type.choices):
        return None
    return " ".join(f"{name} {shlex.quote(str(one))}" for one in values)
