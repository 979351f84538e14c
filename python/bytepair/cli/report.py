"""`bytepair report`: the figures of a tokenizer as a page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import bytepair
from bytepair.cli import option
from bytepair.cli.evaluate import found_for


def report(
    tokenizer: Annotated[
        str, typer.Argument(help="The tokenizer: a folder, a file or a published name.")
    ] = "tokenizer",
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    against: Annotated[
        list[str] | None, typer.Option(help="As in `bytepair evaluate`; may be repeated.")
    ] = None,
    train: Annotated[list[str] | None, typer.Option(help="As in `bytepair evaluate`.")] = None,
    val: Annotated[list[str] | None, typer.Option(help="As in `bytepair evaluate`.")] = None,
    max_chars: Annotated[
        int, typer.Option(min=1, help="Read so many characters of each of them.")
    ] = 10_000_000,
    column: option.Column = "text",
    width: Annotated[int, typer.Option(min=1, help="Numbers in the embedding of an id.")] = 768,
) -> None:
    """Write what `bytepair evaluate` finds as one page of HTML, with pictures.

    The page is one file that loads nothing: to look at, to send, to print.

    Examples:
    * `bytepair report my-tokenizer -o report.html`
    """
    texts = {"train": train or [], "validation": val or []}
    found = found_for(tokenizer, against, texts, column, max_chars, width)
    path = bytepair.report.save(found, out)
    typer.echo(f"{path.stat().st_size / 1e3:,.0f} kB: {path}")
