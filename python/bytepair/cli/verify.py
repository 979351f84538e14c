"""`bytepair verify`: is a vocabulary what training on these counts gives?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import bytepair


def verify(
    tokenizer: Annotated[Path, typer.Argument(help="The tokenizer folder or file.")],
    counts: Annotated[Path, typer.Argument(help="The counts that it was trained on.")],
    ties: Annotated[
        Literal["rustbpe", "hf", "first-seen", "bytes-max"],
        typer.Option(help="Which of equal pairs its trainer merges first."),
    ] = "rustbpe",
    min_count: Annotated[int, typer.Option(min=1, help="The least count of a merge.")] = 1,
) -> None:
    """Check that every merge was the one to make, or name the first that was not.

    Exit code 0 if all were right, 1 if one was not.

    Examples:
    * `bytepair verify my-tokenizer counts.parquet`
    """
    verdict = bytepair.verify(
        bytepair.load(tokenizer), bytepair.Counts.load(counts), ties=ties, min_count=min_count
    )
    typer.echo(str(verdict))
    raise typer.Exit(0 if verdict else 1)
