"""The command `bytepair`: one file for each subcommand, which calls only public names.

Standard output is data, standard error is talk. Exit codes: 0 all went well; 1 it did not, and one
line on standard error says why; 2 the command line is wrong; 130 interrupted by Ctrl-C. Whatever is
raised ends in such a line; with `BYTEPAIR_DEBUG=1` the trace stands above it.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any, Final

import click

from bytepair import BytepairError, __version__
from bytepair.cli.output import is_closed_pipe, use_output
from bytepair.cli.words import in_words_of

#: The commands in the order of `--help`: each is the function in the file of its name.
COMMANDS: Final = (
    "train", "count", "encode", "decode", "inspect", "evaluate", "compare", "report", "explore",
    "verify", "prune", "mixture", "download", "shard", "plan", "pipeline", "convert",
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
            return self._invoke_to_closed_pipe(ctx)
        except KeyboardInterrupt as error:
            if ctx.invoked_subcommand != "explore":  # which ends in no other way
                more = "; the same command goes on from here"
                more = more if ctx.invoked_subcommand in CONTINUED else ""
                saved = "".join(f" {note}" for note in getattr(error, "__notes__", []))
                click.echo(f"bytepair: interrupted{saved or more}", err=True)
            ctx.exit(130)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            _debug()
            raise click.ClickException(_in_words(_reason(error))) from None

    def _invoke_to_closed_pipe(self, ctx: click.Context) -> Any:
        """Run one; that nobody reads its output any more is no failure."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if not is_closed_pipe(error):
                raise
            # Python would complain when it closes stdout at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        return result


@click.group(
    "bytepair",
    cls=Commands,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="bytepair %(version)s", help="Print the version.")
def command() -> None:
    """Byte-level BPE tokenizers: train one, look at it, encode and decode.

    Exit codes: 0 success, 1 failure (one line on standard error says why), 2 wrong usage, 130
    interrupted. BYTEPAIR_DEBUG=1 in the environment shows the trace of a failure.
    """


def main() -> None:
    """Run the command and leave with its exit code."""
    warnings.showwarning = _one_line
    use_output(sys.stdout)
    use_output(sys.stderr)
    try:
        sys.exit(command.main(prog_name="bytepair", standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "bytepair"
        said = _in_words(error.format_message().removesuffix("."), error.ctx)
        click.echo(f"{path}: {said}; see {path} --help", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        click.echo(f"bytepair: {error.message}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):  # Ctrl-C before a command runs, or behind it
        sys.exit(130)
    except Exception as error:  # a command that cannot be imported
        _debug()
        click.echo(f"bytepair: {_reason(error)}", err=True)
        sys.exit(1)


def _reason(error: Exception) -> str:
    """What went wrong, in one line; what no command expects is named as such."""
    notes = getattr(error, "__notes__", [])  # of a number that is too large
    text = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"  # without the number of the error
    said = " ".join(" ".join([text, *notes]).split())
    if isinstance(error, BytepairError | OSError | OverflowError | ImportError) and said:
        return said
    if isinstance(error, MemoryError):
        return f"there is not enough memory{said and f': {said}'}"
    return (
        f"unexpected {type(error).__name__}{said and f': {said}'}; this is a defect of bytepair: "
        "please report it with the trace that BYTEPAIR_DEBUG=1 shows"
    )


def _in_words(message: str, ctx: click.Context | None = None) -> str:
    """A message in the words of the command that runs; what only reading tells is `convert`'s."""
    ctx = ctx or click.get_current_context(silent=True)
    while ctx is not None and not isinstance(ctx.command, Commands):
        ctx = ctx.parent
    if ctx is None or not isinstance(ctx.command, Commands) or ctx.invoked_subcommand is None:
        return message
    names = dict.fromkeys([ctx.invoked_subcommand, "convert"])
    commands = [ctx.command.get_command(ctx, name) for name in names]
    return in_words_of([command for command in commands if command], message)


def _debug() -> None:
    """Show the trace of the exception that is handled, if the user wants it."""
    if os.environ.get("BYTEPAIR_DEBUG") == "1":
        traceback.print_exc()


def _one_line(message: Warning | str, *_: object, **_named: object) -> None:
    """Show a warning as `warnings.showwarning` would, without its place in the code."""
    click.echo(f"bytepair: {_in_words(str(message))}", err=True)
