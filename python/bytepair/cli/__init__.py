"""The command `bytepair`: one file for each subcommand, which calls only public names.

Standard output is data, standard error is talk. Exit codes: 0 all went well; 1 it did not, and one
line on standard error says why; 2 the command line is wrong; 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, TextIO

import typer
from typer.core import TyperGroup

from bytepair import BytepairError, __version__

#: The commands in the order of `--help`: each is the function in the file of its name.
COMMANDS: Final = (
    "train", "count", "encode", "decode", "inspect", "evaluate", "report", "explore", "verify",
    "download", "shard", "plan", "pipeline", "convert",
)  # fmt: skip

#: Those that go on where they were interrupted.
CONTINUED: Final = ("download", "shard", "pipeline")


class _Group(TyperGroup):
    """The commands.

    They end quietly when the reader of their output has had enough, and say so when interrupted.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Python would complain when it closes stdout at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            if ctx.invoked_subcommand != "explore":  # which ends in no other way
                more = "; the same command goes on from here"
                more = more if ctx.invoked_subcommand in CONTINUED else ""
                typer.echo(f"bytepair: interrupted{more}", err=True)
            raise typer.Exit(130) from None


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"bytepair {__version__}")
        raise typer.Exit


def options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options of the command itself."""


def _app(names: Sequence[str]) -> typer.Typer:
    """The command with some of its subcommands, whose files are imported."""
    app = typer.Typer(
        cls=_Group,
        help="Byte-level BPE tokenizers: train one, look at it, encode and decode.\n\n"
        "Exit codes: 0 success, 1 failure (one line on standard error says why), "
        "2 wrong usage, 130 interrupted.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
    )
    app.callback()(options)
    for name in names:
        app.command()(getattr(import_module(f"bytepair.cli.{name}"), name))
    return app


def _called(words: list[str]) -> Sequence[str]:
    """The subcommands that a command line is about: one, or all where it does not say."""
    if words[:1] == ["--version"]:
        return COMMANDS[:1]
    return [word for word in words[:1] if word in COMMANDS] or COMMANDS


def main() -> None:
    """Run the command and leave with its exit code."""
    warnings.showwarning = _one_line
    try:
        _app(_called(sys.argv[1:]))()
    except KeyboardInterrupt:
        sys.exit(130)
    except (BytepairError, OSError) as error:
        typer.echo(f"bytepair: {error}", err=True)
        sys.exit(1)


def _one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning as `warnings.showwarning` would, without its place in the code."""
    typer.echo(f"bytepair: {message}", err=True)
