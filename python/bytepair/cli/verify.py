"""`bytepair verify`: is a tokenizer whole, and as training gives it; are shards as promised?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair verify my-tokenizer",
    "bytepair verify my-tokenizer counts.parquet",
    "bytepair verify shards/",
)
@click.argument("path", type=option.PATH)
@click.argument("counts", type=option.PATH, required=False)
@click.option(
    "--ties",
    type=option.TIES,
    default="rustbpe",
    help="Which of equal pairs its trainer merges first.",
)
@click.option("--min-count", type=option.number, default=1, help="The least count of a merge.")
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=3,
    help="Of shards: how many documents to decode.",
)
def verify(
    path: Path,
    counts: Path | None,
    ties: Literal["rustbpe", "hf", "first-seen", "bytes-max"],
    min_count: int,
    samples: int,
) -> None:
    """Check that a tokenizer is whole, or that every merge was the one to make, or shards.

    PATH: a tokenizer, or a folder of shards. COUNTS: those that the tokenizer was trained on.

    Of a tokenizer file all tables are made anew and compared, so that it may come from a stranger;
    with counts, each merge is compared with the best one there was. Of shards everything that
    their manifest says is checked. Exit code 0 if all is right, 1 if something is not.
    """
    verdict: bytepair.Verdict | bytepair.shards.Report
    if counts is None:
        own = path.is_file() or (path / "tokenizer.bytepair").exists()
        if own and not (path / "manifest.json").exists():
            click.echo(f"whole, and every table is right: {bytepair.load(path, check=True)!r}")
            return
        verdict = bytepair.shards.verify(path, samples=samples)
    else:
        verdict = bytepair.verify(
            bytepair.load(path, check=True),
            bytepair.Counts.load(counts),
            ties=ties,
            min_count=min_count,
        )
    click.echo(str(verdict))
    sys.exit(0 if verdict else 1)
