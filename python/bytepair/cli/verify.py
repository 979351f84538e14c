"""`bytepair verify`: is a vocabulary what training gives; are shards what was promised?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import bytepair


def verify(
    path: Annotated[Path, typer.Argument(help="A tokenizer, or a folder of shards.")],
    counts: Annotated[
        Path | None, typer.Argument(help="The counts that the tokenizer was trained on.")
    ] = None,
    ties: Annotated[
        Literal["rustbpe", "hf", "first-seen", "bytes-max"],
        typer.Option(help="Which of equal pairs its trainer merges first."),
    ] = "rustbpe",
    min_count: Annotated[int, typer.Option(min=1, help="The least count of a merge.")] = 1,
    samples: Annotated[
        int, typer.Option(min=0, help="Of shards: how many documents to decode.")
    ] = 3,
) -> None:
    """Check that every merge was the one to make, or that shards are what their manifest says.

    Exit code 0 if all is right, 1 if something is not.

    Examples:
    * `bytepair verify my-tokenizer counts.parquet`

    * `bytepair verify shards/`
    """
    verdict: bytepair.Verdict | bytepair.shards.Report
    if counts is None:
        if not (path / "manifest.json").exists() and (path / "tokenizer.bytepair").exists():
            raise typer.BadParameter("a tokenizer is checked against counts; name them too")
        verdict = bytepair.shards.verify(path, samples=samples)
    else:
        verdict = bytepair.verify(
            bytepair.load(path), bytepair.Counts.load(counts), ties=ties, min_count=min_count
        )
    typer.echo(str(verdict))
    raise typer.Exit(0 if verdict else 1)
