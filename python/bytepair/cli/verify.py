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
@click.argument("path")
@click.argument("counts", type=option.PATH, required=False)
@option.pattern_of_file
@option.merging
@click.option(
    "--superword-counts",
    type=option.PATH,
    help="Of a tokenizer with superwords: the counts of the text by its own split pattern.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=3,
    help="Of shards: how many documents to decode.",
)
def verify(
    path: str,
    counts: Path | None,
    pattern: str | None,
    ties: Literal["rustbpe", "hf", "first-seen", "bytes-max"],
    min_count: int,
    superword_counts: Path | None,
    samples: int,
) -> None:
    """Verify a tokenizer's file, every merge of its training, or token shards.

    PATH: a tokenizer (a folder, a file or a published name), or a folder of shards. COUNTS: those
    that the tokenizer was trained on.

    Of a tokenizer file all tables are made anew and compared, so that it may come from a stranger;
    with counts, each merge is compared with the best one there was. Of shards everything that
    their manifest says is checked. Exit code 0 if all is right, 1 if something is not.
    """
    verdict: bytepair.Verdict | bytepair.shards.Report
    if counts is not None:
        option.refuse("COUNTS are those of a tokenizer, and not of shards", "samples")
        tok, known = bytepair.load(path, pattern=pattern, check=True), bytepair.load_counts(counts)
        others = None if superword_counts is None else bytepair.load_counts(superword_counts)
        verdict = bytepair.verify_merges(
            tok, known, ties=ties, min_count=min_count, superword_counts=others
        )
    elif Path(path, "manifest.json").exists():
        option.refuse(f"{path} holds shards", "ties", "min_count", "pattern", "superword_counts")
        verdict = bytepair.shards.verify(path, samples=samples)
    else:
        option.refuse("without COUNTS no merge is checked", "ties", "min_count", "superword_counts")
        option.refuse(f"{path} holds no shards", "samples")
        _verify_tokenizer(path, pattern)
        return
    click.echo(str(verdict))
    sys.exit(0 if verdict else 1)


def _verify_tokenizer(path: str, pattern: str | None) -> None:
    """Say that a tokenizer is whole; of other formats than ours all is made anew in any case."""
    try:
        tok = bytepair.load(path, pattern=pattern, check=True)
    except FileNotFoundError:
        there = (
            "there is nothing" if not Path(path).exists() else "there is no tokenizer and no shards"
        )
        raise FileNotFoundError(f"{there} at {path}; look at the name") from None
    click.echo(f"whole, and every table is right: {tok!r}")
