"""The command `bytepair`: one file for each subcommand, which calls only public names.

Standard output is data, standard error is talk. Exit codes: 0 all went well; 1 it did not, and one
line on standard error says why; 2 the command line is wrong; 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import Any, Final, TextIO

import click

from bytepair import BytepairError, __version__

#: The commands in the order of `--help`: each is the function in the file of its name.
COMMANDS: Final = (
    "train", "count", "encode", "decode", "inspect", "evaluate", "report", "explore", "verify",
    "download", "shard", "plan", "pipeline", "convert",
)  # fmt: skip

#: Those that go on where they were interrupted.
CONTINUED: Final = ("download", "shard", "pipeline")


class Commands(click.Group):
    """The subcommands, each imported when it is asked for.

    They end quietly when the reader of their output has had enough, and say so when interrupted.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All, in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The one of this name; where there is none, say what may be meant."""
        if name not in COMMANDS:
            from difflib import get_close_matches

            for near in get_close_matches(name, COMMANDS, 1):
                ctx.fail(f"No such command {name!r}; did you mean {near!r}?")
            return None
        found: click.Command = getattr(import_module(f"bytepair.cli.{name}"), name)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run one, and end as the class says."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Python would complain when it closes stdout at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except KeyboardInterrupt:
            if ctx.invoked_subcommand != "explore":  # which ends in no other way
                more = "; the same command goes on from here"
                more = more if ctx.invoked_subcommand in CONTINUED else ""
                click.echo(f"bytepair: interrupted{more}", err=True)
            ctx.exit(130)


@click.group("bytepair", cls=Commands, context_settings={"max_content_width": 100})
@click.version_option(__version__, message="bytepair %(version)s", help="Print the version.")
def command() -> None:
    """Byte-level BPE tokenizers: train one, look at it, encode and decode.

    Exit codes: 0 success, 1 failure (one line on standard error says why), 2 wrong usage, 130
    interrupted.
    """


def main() -> None:
    """Run the command and leave with its exit code."""
    warnings.showwarning = _one_line
    try:
        sys.exit(command.main(prog_name="bytepair", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):  # Ctrl-C before a command runs, or behind it
        sys.exit(130)
    except (BytepairError, OSError, OverflowError) as error:
        where = getattr(error, "__notes__", [])  # of a number that is too large
        click.echo(f"bytepair: {' '.join([str(error), *where])}", err=True)
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
    click.echo(f"bytepair: {message}", err=True)
