"""`bytepair report`: write the evaluation of a tokenizer as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.evaluate import evaluation_for, measured


@option.command("bytepair report my-tokenizer -o report.html")
@measured
@option.path(
    "--out", "-o", default="report.html", type=option.OUTPUT_FILE, help="The output file (HTML)."
)
def report(out: Path, **options: Any) -> None:
    """Write the results of bytepair evaluate as an HTML page with charts.

    The page is one self-contained file that works offline and can be printed.

    TOKENIZER: a folder, a file or a published name such as gpt2; by default the folder
    "tokenizer".
    """
    evaluation = evaluation_for(**options)
    path = bytepair.report.save(evaluation, out)
    click.echo(f"{path.stat().st_size / 1e3:,.0f} kB: {path}")
