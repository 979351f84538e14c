"""Words of a command line in, named groups of text out, and a number for each group.

A source is `NAME=PATH`; what has the same name belongs together. A source without a name gives one
group a file, named as the file is up to its first dot: `texts/*.txt` is one group a language where
the files are called `en.txt`, `de.txt` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

import bytepair
from bytepair.cli import option

mixture = click.option(
    "--mixture",
    metavar="NAME=SHARE,...",
    help="Train on a mixture: the share of the bytes that each source has, whose SOURCE is "
    "NAME=PATH; only the proportions count.",
)


def groups_of(sources: Sequence[str]) -> dict[str, Any]:
    """The groups that sources stand for: files by name, or counts.

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
        raise click.UsageError("name the sources, as NAME=PATH")
    return {name: _source(found) for name, found in paths.items()}


def _source(paths: list[str]) -> Any:
    """Counts, if a file holds them, or files."""
    if len(paths) == 1 and bytepair.Counts.found_in(paths[0]):
        return bytepair.load_counts(paths[0])
    found = option.files(tuple(paths))
    return found if len(found) > 1 else found[0]


def numbers_of(said: str, name: str) -> dict[str, Fraction]:
    """The numbers of an option such as `english=0.6,code=0.4`.

    Args:
        said: what the option says.
        name: the option, for errors.
    """
    found: dict[str, Fraction] = {}
    for part in said.split(","):
        group, _, value = part.strip().rpartition("=")
        if not group or group in found:
            raise click.BadParameter(
                f"{part!r} is no NAME=NUMBER, or its name was there before", param_hint=name
            )
        found[group] = option.positive(value, name)
    return found
