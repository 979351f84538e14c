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


#: How groups take turns: what `parity_of` takes.
parity = option.together(
    click.option(
        "--parity",
        is_flag=True,
        help="Make each merge for the source that compresses worst; SOURCE is NAME=PATH.",
    ),
    click.option(
        "--development",
        multiple=True,
        metavar="NAME=PATH",
        help="With --parity: the text by which a source is compared, best the same in all "
        "languages; may be repeated.",
    ),
    click.option(
        "--ratios",
        metavar="NAME=NUMBER,...",
        help="With --parity: compare by the bytes per token that each source shall have, in "
        "proportion.",
    ),
    click.option(
        "--window",
        type=option.number,
        help="With --parity: look back at this many merges, so that no source gets nearly all.",
    ),
    click.option(
        "--alpha",
        type=float,
        default=2.0,
        help="With --window: how many times its equal share a source may get.",
    ),
    click.option(
        "--global-merges",
        type=click.IntRange(min=0),
        default=0,
        help="With --parity: this many merges first, by all sources together.",
    ),
)


def parity_of(options: dict[str, Any]) -> bytepair.Parity | None:
    """How groups take turns, taken out of the options of a command."""
    names = ("development", "ratios", "window", "alpha", "global_merges")
    said = {name: options.pop(name) for name in names}
    if not options.pop("parity"):
        option.refuse("they say how sources take turns, which needs --parity", *names)
        return None
    if said["window"] is None:
        option.refuse("it needs --window", "alpha")
    development, ratios = said.pop("development"), said.pop("ratios")
    if ratios:
        ratios = {name: float(ratio) for name, ratio in numbers_of(ratios, "--ratios").items()}
    return bytepair.Parity(
        development=groups_of(development) if development else None, ratios=ratios, **said
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
