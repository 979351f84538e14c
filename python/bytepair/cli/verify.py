"""`bytepair verify`: is a tokenizer whole, and as training gives it; are shards as promised?"""

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
    """Check that a tokenizer is whole, or that every merge was the one to make, or shards.

    Of a tokenizer file all tables are made anew and compared, so that it may come from a stranger;
    with counts, each merge is compared with the best one there was. Of shards everything that
    their manifest says is checked. Exit code 0 if all is right, 1 if something is not.

    Examples:
    * `bytepair verify my-tokenizer`

    * `bytepair verify my-tokenizer counts.parquet`

    * `bytepair verify shards/`
    """
    verdict: bytepair.Verdict | bytepair.shards.Report
    if counts is None:
        own = path.is_file() or (path / "tokenizer.bytepair").exists()
        if own and not (path / "manifest.json").exists():
            typer.echo(f"whole, and every table is right: {bytepair.load(path, check=True)!r}")
            return
        verdict = bytepair.shards.verify(path, samples=samples)
    else:
        verdict = bytepair.verify(
            bytepair.load(path, check=True),
            bytepair.Counts.load(counts),
            ties=ties,
            min_count=min_count,
        )
    typer.echo(str(verdict))
    raise typer.Exit(0 if verdict else 1)
