"""A message of the package in, the same in the words of the command line out.

Messages name the keywords of Python functions: `pass errors="replace"`. A command has options:
`pass --errors replace`. The options of the command that runs say which keyword is which. Advice for
which it has no option is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import click

#: Keywords of Python functions that an option of another name sets.
RENAMED: Final = {
    "special_tokens": "special_token",
    "initial_tokens": "initial_token",
    "max_words": "superword_max_words",
}

#: A keyword with a value, `errors="replace"`, or alone, `vocab_size`; not in quotes or in a path.
_KEYWORD: Final = re.compile(
    r"""(?<![\w./\\'"-])([a-z][a-z_]*)(?:(=)("[^"]*"|'[^']*'|[\w+-]*)|(?![\w=/\\'"-]|\.\w))"""
)

#: Advice to pass a keyword, up to the end of the clause.
_ADVICE: Final = re.compile(r"(?:;|, or) pass ([a-z_]+)=[^;]*")


def in_words_of(commands: Sequence[click.Command], message: str) -> str:
    """Say a message in the words of a command.

    Args:
        commands: the command, and others whose options it may advise.
        message: what a Python function says.

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
    """
    options: dict[str, str] = {}
    for command in reversed(commands):
        suffix = "" if command is commands[0] else f" of bytepair {command.name}"
        for param in command.params:
            if isinstance(param, click.Option) and param.name is not None:
                options[param.name] = max(param.opts, key=len) + suffix
    options |= {python: options[name] for python, name in RENAMED.items() if name in options}

    def said(found: re.Match[str]) -> str:
        name, value = found[1], (found[3] or "").strip("'\"")
        if name not in options or not (found[2] or "_" in name):
            return found[0]
        option, _, where = options[name].partition(" ")
        words = [option, "" if value == "True" else value, where]
        return " ".join(word for word in words if word)

    message = _ADVICE.sub(lambda found: found[0] if found[1] in options else "", message)
    return _KEYWORD.sub(said, message)
