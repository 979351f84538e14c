"""`bytepair report`: the figures of a tokenizer as a page of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.evaluate import found_for, of_each, width


@option.command("bytepair report my-tokenizer -o report.html")
@click.argument("tokenizer", default="tokenizer")
@option.path("--out", "-o", default="report.html", help="The page to write.")
@click.option("--against", multiple=True, help="As in bytepair evaluate; may be repeated.")
@click.option("--train", multiple=True, help="As in bytepair evaluate.")
@click.option("--val", multiple=True, help="As in bytepair evaluate.")
@of_each
@option.column
@width
def report(
    tokenizer: str,
    out: Path,
    against: tuple[str, ...],
    train: tuple[str, ...],
    val: tuple[str, ...],
    max_chars: int,
    column: str,
    width: int,
) -> None:
    """Write what bytepair evaluate finds as one page of HTML, with pictures.

    The page is one file that loads nothing: to look at, to send, to print.

    TOKENIZER: a folder, a file or a published name.
    """
    texts: dict[str, Sequence[str]] = {"train": train, "validation": val}
    found = found_for(tokenizer, against, texts, column, max_chars, width)
    path = bytepair.report.save(found, out)
    click.echo(f"{path.stat().st_size / 1e3:,.0f} kB: {path}")
