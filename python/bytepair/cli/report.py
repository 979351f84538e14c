"""`bytepair report`: the figures of a tokenizer as a page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.evaluate import found_for, measured


@option.command("bytepair report my-tokenizer -o report.html")
@measured
@option.path(
    "--out", "-o", default="report.html", type=option.OUTPUT_FILE, help="The page to write."
)
def report(out: Path, **options: Any) -> None:
    """Write what bytepair evaluate finds as one page of HTML, with pictures.

    The page is one file that loads nothing: to look at, to send, to print.

    TOKENIZER: a folder, a file or a published name.
    """
    found = found_for(**options)
    path = bytepair.report.save(found, out)
    click.echo(f"{path.stat().st_size / 1e3:,.0f} kB: {path}")
