"""What the subcommands have in common: their form, and the options that several of them have.

An option is written once, with its name, its type and its help; a command says what differs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

import bytepair

PATH: Final = click.Path(path_type=Path)
TIES: Final = click.Choice(["rustbpe", "hf", "first-seen", "bytes-max"])

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_SIZES: Final = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}


def number(text: str | int) -> int:
    """The type of an option: a whole number from 1 to 2^63; it may end with K, M, B (or G) or T."""
    found = re.fullmatch(
        r"([0-9][0-9_,]*\.?[0-9]*(?:e[0-9]{1,2})?)([KMBGT]?)", str(text).strip(), re.I
    )
    value = round(float(found[1].replace(",", "")) * _SIZES[found[2].upper()]) if found else 0
    if not 1 <= value < 1 << 63:
        raise click.BadParameter(
            f"{str(text)!r} is no number from 1 to 2^63, such as 561M, 1.5B or 100000"
        )
    return value


def command(*examples: str) -> Callable[[Callable[..., None]], click.Command]:
    """A subcommand, whose help ends with examples."""

    def made(function: Callable[..., None]) -> click.Command:
        return click.command(
            short_help=(inspect.getdoc(function) or "").partition("\n")[0],
            epilog="\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples),
            context_settings={"show_default": True, "max_content_width": 100},
        )(function)

    return made


def path(*names: str, default: str | None = None, help: str) -> Callable[[Decorated], Decorated]:
    """An option that is a path; one without a default has to be given."""
    return click.option(*names, type=PATH, default=default, required=default is None, help=help)


def together(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Several options as one, in this order."""

    def made(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return made


sources = click.argument("source", nargs=-1, required=True)
out_folder = path("--out", "-o", help="The folder to write.")
pattern = click.option(
    "--pattern",
    default="nanochat",
    help=f"A regular expression, or one of {', '.join(bytepair.PATTERNS)}.",
)
column = click.option("--column", default="text", help="The column or field with the text.")
threads = click.option("--threads", type=number, help="Threads.  [default: all]")
max_chars = click.option("--max-chars", type=number, help="Stop reading after so many characters.")
doc_cap = click.option("--doc-cap", type=number, help="Read so many characters of each document.")
errors = click.option(
    "--errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    help="What to do where text is not UTF-8.",
)
tokenizer = path("--tokenizer", "-t", default="tokenizer", help="The tokenizer folder or file.")
shard_format = click.option(
    "--format",
    type=click.Choice(["bytepair", "llmc", "nanogpt", "megatron", "arrow"]),
    default="bytepair",
    help="Who shall read the shards.",
)
tokens_per_shard = click.option(
    "--tokens-per-shard", type=number, default="100M", help="The most tokens of a shard."
)
rank = click.option(
    "--rank",
    type=click.IntRange(min=0),
    help="Do the share of this rank.  [default: the job array's]",
)
world = click.option("--world", type=number, help="How many ranks share the work.")
ray = click.option("--ray", is_flag=True, help="Let a Ray cluster do the work.")


def source(names: tuple[str, ...], column: str) -> Any:
    """What a command line names: paths, or, where URLs are among them, the documents there."""
    if any("://" in name for name in names):
        return bytepair.documents(list(names), column)
    return [Path(name) for name in names]
