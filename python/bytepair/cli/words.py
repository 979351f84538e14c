"""Rewrite messages of the Python API for the command line.

Messages name the keyword arguments of Python functions: `pass errors="replace"`. On the command
line this becomes an option: `pass --errors replace`. Advice without a matching option is removed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

import click

#: Python keywords whose option has a different name.
RENAMED: Final = {
    "special_tokens": "special_token",
    "initial_tokens": "initial_token",
    "max_words": "superword_max_words",
    "train_fields": "train_field",
    "ignore_fields": "ignore_field",
}

#: A keyword with a value (`errors="replace"`) or without (`vocab_size`), not quoted or in a path.
_KEYWORD: Final = re.compile(
    r"""(?<![\w./\\'"-])([a-z][a-z_]*)(?:(=)("[^"]*"|'[^']*'|\[[^\]]*\]|[\w+-]*)|(?![\w=/\\'"-]|\.\w))"""
)

#: Advice to pass a keyword with a value, up to the end of the clause.
_ADVICE: Final = re.compile(r"(?:;|, or) pass ([a-z_]+)=[\"']?([\w+-]*)[^;]*")


def in_words_of(commands: Sequence[click.Command], message: str) -> str:
    """Replace Python keywords in a message by command-line options.

    Args:
        commands: the running command, and further commands whose options may be suggested.
        message: the message of a Python function.

    Example:
        >>> import click
        >>> from bytepair.cli.words import in_words_of
        >>> flag = click.Option(["--lossy"], is_flag=True)
        >>> size = click.Option(["--vocab-size"])
        >>> commands = [click.Command("train", params=[size]), click.Command("read", params=[flag])]
        >>> in_words_of(commands, "vocab_size 0 is too small; pass vocab_size=300")
        '--vocab-size 0 is too small; pass --vocab-size 300'
        >>> in_words_of(commands, "it has a space; pass lossy=True to leave it out")
        'it has a space; pass --lossy of bytepair read to leave it out'
        >>> in_words_of(commands, 'it is not UTF-8; repair it, or pass errors="replace" to go on')
        'it is not UTF-8; repair it'
        >>> skip = click.Option(["--errors"], type=click.Choice(["strict", "skip"]))
        >>> commands = [click.Command("shard", params=[skip])]
        >>> in_words_of(commands, 'it is not UTF-8; repair it, or pass errors="replace" to go on')
        'it is not UTF-8; repair it'
    """
    options: dict[str, str] = {}
    negated: dict[str, str] = {}
    choices: dict[str, Sequence[str]] = {}
    for command in reversed(commands):
        suffix = "" if command is commands[0] else f" of bytepair {command.name}"
        for param in command.params:
            if isinstance(param, click.Option) and param.name is not None:
                options[param.name] = max(param.opts, key=len) + suffix
                for name in param.secondary_opts:
                    negated[param.name] = name + suffix
                if isinstance(param.type, click.Choice):
                    choices[param.name] = param.type.choices
    options |= {python: options[name] for python, name in RENAMED.items() if name in options}

    def said(found: re.Match[str]) -> str:
        name, value = found[1], (found[3] or "").strip("'\"")
        if name not in options or not (found[2] or "_" in name):
            return found[0]
        if value == "False" and name in negated:
            return negated[name]
        option, _, where = options[name].partition(" ")
        words = [*_with_value(option, value), where]
        return " ".join(word for word in words if word)

    def advice(found: re.Match[str]) -> str:
        fits = found[2] in choices.get(found[1], [found[2]])
        return found[0] if found[1] in options and fits else ""

    return _KEYWORD.sub(said, _ADVICE.sub(advice, message))


def _with_value(option: str, value: str) -> list[str]:
    """An option with the value of a keyword; it is repeated for the names in a list."""
    if value.startswith("["):
        return [f"{option} {shlex.quote(name)}" for name in re.findall(r"'([^']*)'", value)]
    return [option, "" if value == "True" else value]
