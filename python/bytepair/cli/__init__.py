"""The command `bytepair`: its subcommands are in files by subject, and call only the public API.

Results go to standard output, messages to standard error. Exit codes: 0 success; 1 failure, with a
line `error: ...` on standard error that gives the reason, and lines `hint: ...` with what to do; 2
wrong usage; 130 interrupted by Ctrl-C. Of `compare`, 1 means that the tokenizers differ, and 2 that
they could not be compared. Every exception becomes such lines; with `BYTEPAIR_DEBUG=1` the
traceback is printed above them.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any, Final

import click

from bytepair import __version__
from bytepair.cli.messages import (
    CannotCompareError,
    Failure,
    Misuse,
    in_words,
    is_closed_pipe,
    show_log,
    tell,
    tell_of,
    use_output,
)
from bytepair.errors import BytepairError

#: The commands in the order of `--help`, and the file of each.
COMMANDS: Final = {
    "train": "train", "count": "data", "encode": "text", "decode": "text", "inspect": "look",
    "evaluate": "look", "compare": "look", "explore": "look", "render": "data",
    "verify": "look", "prune": "train", "extend": "train",
    "download": "data", "shard": "data", "plan": "data", "convert": "train",
}  # fmt: skip

#: The commands that resume after an interruption.
CONTINUED: Final = ("download", "shard")


class Commands(click.Group):
    """The subcommands, each imported on first use.

    A command exits quietly when its output pipe is closed, and prints a message when interrupted.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of `--help`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of this name; for an unknown name, suggest the nearest one."""
        if name not in COMMANDS:
            from difflib import get_close_matches

            for near in get_close_matches(name, COMMANDS, 1):
                raise Misuse(f"No such command {name!r}", f"did you mean {near!r}?", ctx=ctx)
            return None
        command: click.Command = getattr(import_module(f"bytepair.cli.{COMMANDS[name]}"), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn interrupts and exceptions into messages and exit codes."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt as error:
            if ctx.invoked_subcommand != "explore":  # a server always ends by Ctrl-C
                more = "; run the same command again to resume"
                more = more if ctx.invoked_subcommand in CONTINUED else ""
                saved = "".join(f" {note}" for note in getattr(error, "__notes__", []))
                click.echo(f"bytepair: interrupted{saved or more}", err=True)
            ctx.exit(130)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            if isinstance(error, OSError) and is_closed_pipe(error):
                # Python would report an error when it flushes stdout at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                ctx.exit(0)
            _debug()
            problem, *hints = _reason(error)
            failure = CannotCompareError if ctx.invoked_subcommand == "compare" else Failure
            raise failure(problem, *hints) from None
        else:
            return result


@click.group(
    "bytepair",
    cls=Commands,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="bytepair %(version)s", help="Print the version.")
def command() -> None:
    """Train, inspect and use byte-level BPE tokenizers.

    Exit codes: 0 success, 1 failure (standard error gives the reason after error:), 2 wrong usage,
    130 interrupted. Set the environment variable BYTEPAIR_DEBUG=1 to print tracebacks.
    """


def main() -> None:
    """Run the command and exit with its exit code."""
    warnings.showwarning = lambda message, *_, **__: tell("warning", *in_words(message))
    show_log()
    use_output(sys.stdout)
    use_output(sys.stderr)
    try:
        sys.exit(command.main(prog_name="bytepair", standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        tell_of(error)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):  # Ctrl-C before or after a command runs
        sys.exit(130)
    except Exception as error:  # a command that cannot be imported
        _debug()
        tell("error", *_reason(error))
        sys.exit(1)


def _reason(error: Exception) -> list[str]:
    """The reason of a failure in one line, and hints; an unexpected exception is a bug."""
    notes = getattr(error, "__notes__", [])  # of a number that is too large
    text, *hints = in_words(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"  # without the errno
    line = " ".join([text, *notes])
    if isinstance(error, BytepairError | OSError | OverflowError | ImportError) and line:
        return [line, *hints]
    if isinstance(error, UnicodeEncodeError):  # half a character, or bytes of another encoding
        return [f"{error.object[:40]!r} is not UTF-8"]
    if isinstance(error, MemoryError):
        return [f"not enough memory{line and f': {line}'}"]
    return [
        f"unexpected {type(error).__name__}{line and f': {line}'}; this is a bug in bytepair",
        "please report it with the traceback that BYTEPAIR_DEBUG=1 prints",
    ]


def _debug() -> None:
    if os.environ.get("BYTEPAIR_DEBUG") == "1":
        traceback.print_exc()
