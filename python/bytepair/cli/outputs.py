"""The output files of a command: checked before the work begins, replaced only with `--force`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import click

import bytepair
from bytepair.cli.messages import BadValue, in_words
from bytepair.errors import BytepairError
from bytepair.files.outputs import (
    OF_FILES,
    check_output,
    check_output_file,
    check_output_folder,
)


class Output(click.Path):
    """A path to write to; it is checked before the work begins.

    Args:
        check: raises an error if the path cannot be written to.
        is_own: whether an existing file is of the kind that the command writes, so that it is
            replaced without `--force`; None for folders, whose files the work itself protects.
    """

    def __init__(
        self, check: Callable[[Path], None], is_own: Callable[[Path], bool] | None = None
    ) -> None:
        super().__init__(path_type=Path)
        self._check = check
        self.is_own = is_own

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path if it can be written to; else fail."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            self._check(path)
        except OSError as error:
            raise BadValue(*in_words(error), param=param, ctx=ctx) from None
        return path


OUTPUT_FILE: Final = Output(check_output_file, lambda _: False)
COUNTS_FILE: Final = Output(check_output_file, bytepair.Counts.is_counts_file)
FOLDER: Final = Output(check_output_folder)


#: Where the context of a command notes `--force`, if its function does not take it.
_REPLACING: Final = "bytepair.replacing"

#: The parameters that are not names of files to read.
_NOT_READ: Final = ("pattern", "column", "superword_pattern", "text")


def files_of(params: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The parameters that are output files."""
    return [one for one in params if isinstance(one.type, Output) and one.type.is_own is not None]


def _inputs(ctx: click.Context) -> Iterator[Path]:
    """The files that the arguments and options of a command name for reading."""
    for param in ctx.command.params:
        values = ctx.params.get(param.name or "")
        if isinstance(param.type, Output) or param.name in _NOT_READ:
            continue
        for value in values if isinstance(values, tuple) else (values,):
            if isinstance(value, str | Path) and str(value) not in ("", "-"):
                yield from _files_named(str(value))


def _files_named(name: str) -> Iterator[Path]:
    """The files of a name, a folder or a glob; also after `NAME=`."""
    for one in {name, name.partition("=")[2]} - {""}:
        path = Path(one)
        if "://" in one:
            continue
        if path.is_dir():
            yield from (file for file in path.iterdir() if file.name.endswith(OF_FILES))
        if path.is_file():
            yield path
        elif path.is_dir() or any(sign in one for sign in "*?["):
            with suppress(BytepairError, OSError, ValueError):
                yield from map(Path, bytepair.corpus.list_files(one))


def check_outputs(ctx: click.Context) -> None:
    """Refuse output files of a command that exist, and are neither its own nor replaced."""
    may_replace = ctx.params.get("overwrite") or ctx.meta.get(_REPLACING, False)
    for param in files_of(ctx.command.params):
        path = ctx.params.get(param.name or "")
        if path is None or not path.exists():
            continue
        is_own = cast("Output", param.type).is_own
        try:
            check_output(
                path,
                inputs=_inputs(ctx),
                overwrite=may_replace or (is_own is not None and is_own(path)),
            )
        except (BytepairError, OSError) as error:
            raise BadValue(*in_words(error), param=param, ctx=ctx) from None


def _replace(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    ctx.meta[_REPLACING] = is_given


#: `--force` of a command whose function need not know.
replacing = click.option(
    "--force",
    "overwrite",
    is_flag=True,
    expose_value=False,
    callback=_replace,
    help="Replace an output file that exists.",
)
