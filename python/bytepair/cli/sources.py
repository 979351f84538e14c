"""Sources, as commands name them: files and standard input, named groups of text, and weights.

A named source is `NAME=PATH`; sources of the same name form one group. Without a name, each file is
a group named by its file name up to the first dot: `texts/*.txt` gives one group per language if
the files are `en.txt`, `de.txt` and so on.
"""

from __future__ import annotations

import functools
import operator
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli.messages import BadValue, Misuse
from bytepair.files.outputs import scratch


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
    """The groups named by sources: each is a list of files, or counts.

    Args:
        sources: `NAME=PATH`, or paths, folders and globs of files.
    """
    paths: dict[str, list[str]] = {}
    for source in sources:
        name, is_named, path = source.partition("=")
        if is_named:
            paths.setdefault(name, []).append(path)
            continue
        for file in bytepair.corpus.list_files(source):
            paths.setdefault(re.split(r"[/\\]", file)[-1].partition(".")[0], []).append(file)
    if not paths:
        raise Misuse("name the sources, as NAME=PATH")
    return {name: _source(named) for name, named in paths.items()}


def _source(paths: list[str]) -> Any:
    """The counts if the path is a file of counts, else the files."""
    if len(paths) == 1 and bytepair.Counts.is_counts_file(paths[0]):
        return bytepair.load_counts(paths[0])
    return files(paths)


def numbers_of(text: str, name: str) -> dict[str, Fraction]:
    """Parse the value of an option such as `english=0.6,code=0.4`.

    Args:
        text: the value.
        name: the name of the option, for errors.
    """
    numbers: dict[str, Fraction] = {}
    for part in text.split(","):
        group, _, value = part.strip().rpartition("=")
        if not group or group in numbers:
            raise BadValue(f"{part!r} is not NAME=NUMBER, or repeats a name", param_hint=name)
        numbers[group] = positive(value, name)
    return numbers
