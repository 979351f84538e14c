"""The options that several commands have, each written once: its type, its name and its help.

A command gives the default, or none where the option has to be given.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer

import bytepair

_SIZES: Final = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}

Pattern: TypeAlias = Annotated[
    str, typer.Option(help=f"A regular expression, or one of {', '.join(bytepair.PATTERNS)}.")
]
Column: TypeAlias = Annotated[str, typer.Option(help="The column or field with the text.")]
Threads: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Threads. [default: all]")]
MaxChars: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Stop reading after so many characters.")
]
DocCap: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Read so many characters of each document.")
]
Errors: TypeAlias = Annotated[
    Literal["strict", "replace"], typer.Option(help="What to do where text is not UTF-8.")
]
Tokenizer: TypeAlias = Annotated[
    Path, typer.Option("--tokenizer", "-t", help="The tokenizer folder or file.")
]
OutFolder: TypeAlias = Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")]
ShardFormat: TypeAlias = Annotated[
    Literal["bytepair", "llmc", "nanogpt", "megatron", "arrow"],
    typer.Option(help="Who shall read the shards."),
]
TokensPerShard: TypeAlias = Annotated[str, typer.Option(help="The most tokens of a shard.")]
Rank: TypeAlias = Annotated[
    int | None,
    typer.Option(min=0, help="Do the share of this rank. [default: the job array's]"),
]
World: TypeAlias = Annotated[int | None, typer.Option(min=1, help="How many ranks share the work.")]
Ray: TypeAlias = Annotated[bool, typer.Option("--ray", help="Let a Ray cluster do the work.")]


def source(names: list[str], column: str) -> Any:
    """What a command line names: paths, or, where URLs are among them, the documents there."""
    if any("://" in name for name in names):
        return bytepair.documents(names, column)
    return [Path(name) for name in names]


def number(text: str) -> float:
    """A number that may end with K, M, B (or G) or T."""
    found = re.fullmatch(r"([0-9][0-9_,]*\.?[0-9]*(?:e[0-9]+)?)([KMBGT]?)", text.strip(), re.I)
    if not found:
        raise typer.BadParameter(f"{text!r} is no number such as 561M, 1.5B or 100000")
    return float(found[1].replace(",", "")) * _SIZES[found[2].upper()]
