"""Checks paths on the command line before the work begins: sources to read, and outputs.

A named source is `NAME=PATH`; sources of the same name form one group. Without a name, each file is
a group named by its file name up to the first dot: `texts/*.txt` forms one group per language if
the files are `en.txt`, `de.txt` and so on. An output is replaced only with `--force`.
"""

from __future__ import annotations

import functools
import operator
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, cast

import click

import bytepair
from bytepair.cli.messages import BadValue, Misuse, in_words
from bytepair.errors import BytepairError
from bytepair.files.outputs import (
    OF_FILES,
    check_output,
    check_output_file,
    check_output_folder,
    scratch,
)


def files(names: Sequence[str]) -> bytepair.corpus.Paths:
    """The files named on the command line; a dash is standard input, read as text."""
    return bytepair.corpus.Paths([_standard_input() if name == "-" else name for name in names])


def _standard_input() -> Path:
    """Copy standard input to a temporary file, which exists until the command ends.

    Several threads can then read it in parallel.
    """
    path = click.get_current_context().with_resource(scratch()) / "standard-input.txt"
    with path.open("xb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return path


def positive(text: str, name: str) -> Fraction:
    """Parse the value of an option: a decimal number or fraction above 0, such as 2.5 or 1/3."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+|/[1-9][0-9]*)?", text) or not Fraction(text):
        raise BadValue(f"{text!r} is not a number above 0", param_hint=name)
    return Fraction(text)


def weighted(
    names: Sequence[str], weights: Sequence[str], count: Callable[[str], bytepair.Counts]
) -> bytepair.Counts:
    """The sum of the counts of all sources, each multiplied by its weight."""
    weight_of = dict.fromkeys(names, Fraction(1))
    for text in weights:
        name, _, value = text.rpartition("=")
        if name not in weight_of:
            raise BadValue(f"{name!r} is not one of the SOURCE arguments", param_hint="--weight")
        weight_of[name] = positive(value, "--weight")
    parts = [count(name).times(weight) for name, weight in weight_of.items()]
    return functools.reduce(operator.add, parts)


def groups_of(sources: Sequence[str]) -> dict[str, Any]:
    """The groups named by sources: each is a list of files, or counts."""
    if not sources:
        raise Misuse("name the sources, as NAME=PATH")
    return {name: _source(named) for name, named in named_paths(sources).items()}


def named_paths(sources: Sequence[str], unnamed: str | None = None) -> dict[str, list[str]]:
    """The paths of each group; those without a name are of one group, or each file is of its own.

    Example:
        >>> named_paths(["code=src", "code=lib", "books"], "other")
        {'code': ['src', 'lib'], 'other': ['books']}
    """
    paths: dict[str, list[str]] = {}
    for source in sources:
        name, is_named, path = source.partition("=")
        if is_named and not Path(source).exists():
            paths.setdefault(name, []).append(path)
        elif unnamed is not None:
            paths.setdefault(unnamed, []).append(source)
        else:
            for file in bytepair.corpus.list_files(source):
                paths.setdefault(re.split(r"[/\\]", file)[-1].partition(".")[0], []).append(file)
    return paths


def _source(paths: list[str]) -> Any:
    if len(paths) == 1 and bytepair.Counts.is_counts_file(paths[0]):
        return bytepair.training.load_counts(paths[0])
    return files(paths)


def numbers_of(text: str, name: str) -> dict[str, Fraction]:
    """Parse the value of an option such as `english=0.6,code=0.4`."""
    numbers: dict[str, Fraction] = {}
    for part in text.split(","):
        group, _, value = part.strip().rpartition("=")
        if not group or group in numbers:
            raise BadValue(f"{part!r} is not NAME=NUMBER, or repeats a name", param_hint=name)
        numbers[group] = positive(value, name)
    return numbers


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


#: The parameters that are not names of files to read.
_NOT_READ: Final = ("pattern", "column", "superword_pattern", "text")


def files_of(params: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The parameters that are output files."""
    return [one for one in params if isinstance(one.type, Output) and one.type.is_own is not None]


def _inputs(ctx: click.Context) -> Iterator[Path]:
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
    for param in files_of(ctx.command.params):
        path = ctx.params.get(param.name or "")
        if path is None or not path.exists():
            continue
        is_own: Any = cast("Output", param.type).is_own
        try:
            overwrite = ctx.params.get("overwrite") or is_own(path)
            check_output(path, inputs=_inputs(ctx), overwrite=overwrite)
        except (BytepairError, OSError) as error:
            raise BadValue(*in_words(error), param=param, ctx=ctx) from None


#: `--force` of a command whose function need not know.
replacing = click.option(
    "--force", "overwrite", is_flag=True, help="Replace an output file that exists."
)
