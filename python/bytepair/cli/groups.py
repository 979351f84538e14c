"""Parse command-line arguments into named groups of text, with a number for each group.

A source is `NAME=PATH`; sources of the same name form one group. Without a name, each file is a
group named by its file name up to the first dot: `texts/*.txt` gives one group per language if the
files are `en.txt`, `de.txt` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import BadValue, Misuse

mixture = click.option(
    "--mixture",
    metavar="NAME=SHARE,...",
    help="Train on a mixture: the share of each source in the bytes; SOURCE is then NAME=PATH. "
    "Shares are normalized.",
)


#: The options for `parity_of`.
parity = option.together(
    click.option(
        "--parity",
        is_flag=True,
        help="Parity-aware BPE: choose each merge from the source that compresses worst; SOURCE "
        "is NAME=PATH.",
    ),
    click.option(
        "--development",
        multiple=True,
        metavar="NAME=PATH",
        help="With --parity: the text on which the compression of a source is measured, "
        "preferably parallel text; may be repeated.",
    ),
    click.option(
        "--ratios",
        metavar="NAME=NUMBER,...",
        help="With --parity: the bytes per token that each source should reach, relative to the "
        "others.",
    ),
    click.option(
        "--window",
        type=option.number,
        help="With --parity: limit how often one source is chosen within this many merges.",
    ),
    click.option(
        "--alpha",
        type=float,
        default=2.0,
        help="With --window: how often one source may be chosen, relative to an equal share.",
    ),
    click.option(
        "--global-merges",
        type=click.IntRange(min=0),
        default=0,
        help="With --parity: first train this many merges on all sources together.",
    ),
)


def parity_of(options: dict[str, Any]) -> bytepair.Parity | None:
    """Remove the parity options from the options of a command and return them."""
    names = ("development", "ratios", "window", "alpha", "global_merges")
    values = {name: options.pop(name) for name in names}
    if not options.pop("parity"):
        option.refuse("these options need --parity", *names)
        return None
    if values["window"] is None:
        option.refuse("it needs --window", "alpha")
    development, ratios = values.pop("development"), values.pop("ratios")
    if ratios:
        ratios = {name: float(ratio) for name, ratio in numbers_of(ratios, "--ratios").items()}
    return bytepair.Parity(
        development=groups_of(development) if development else None, ratios=ratios, **values
    )


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
    return {name: _source(files) for name, files in paths.items()}


def _source(paths: list[str]) -> Any:
    """The counts if the path is a file of counts, else the files."""
    if len(paths) == 1 and bytepair.Counts.is_counts_file(paths[0]):
        return bytepair.load_counts(paths[0])
    return option.files(paths)


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
        numbers[group] = option.positive(value, name)
    return numbers
