"""`bytepair verify`: check a tokenizer file, the merges of its training, or token shards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import Failure


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
    help="For a tokenizer with superwords: counts of the text, split by the tokenizer's pattern.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=3,
    help="For shards: how many documents to decode.",
)
def verify(
    path: str,
    counts: Path | None,
    pattern: str | None,
    ties: Any,
    min_count: int,
    superword_counts: Path | None,
    samples: int,
) -> None:
    """Verify a tokenizer file, every merge of its training, or token shards.

    PATH: a tokenizer (a folder, a file or a published name), or a folder of shards. COUNTS: the
    counts that the tokenizer was trained on.

    For a tokenizer file, all tables are rebuilt and compared, so that a file from an untrusted
    source can be used safely. With COUNTS, it is checked that each merge has the highest count at
    its step. For shards, everything recorded in the manifest is checked. Exit code 0 if all checks
    pass, 1 if one fails.
    """
    verdict: object
    if counts is not None:
        option.refuse("COUNTS verifies a tokenizer, not shards", "samples")
        tok, own_counts = (
            bytepair.load(path, pattern=pattern, check=True),
            bytepair.load_counts(counts),
        )
        others = None if superword_counts is None else bytepair.load_counts(superword_counts)
        verdict = bytepair.verify_merges(
            tok, own_counts, ties=ties, min_count=min_count, superword_counts=others
        )
    elif Path(path, "manifest.json").exists():
        option.refuse(f"{path} contains shards", "ties", "min_count", "pattern", "superword_counts")
        verdict = bytepair.shards.verify(path, samples=samples)
    else:
        option.refuse("it needs COUNTS", "ties", "min_count", "superword_counts")
        option.refuse(f"{path} contains no shards", "samples")
        if shard := next(Path(path).glob("*[0-9][0-9][0-9][0-9]*.bin"), None):
            raise Failure(
                f"{path} contains {shard.name} but no manifest.json: the shards are unfinished, or "
                "their manifest was removed",
                "run bytepair shard again to finish them",
            )
        _verify_tokenizer(path, pattern)
        return
    click.echo(str(verdict))
    sys.exit(0 if verdict else 1)


def _verify_tokenizer(path: str, pattern: str | None) -> None:
    """Check a tokenizer and report success; other formats than ours hold no tables to compare."""
    try:
        tok = bytepair.load(path, pattern=pattern, check=True)
    except FileNotFoundError:
        if Path(path).exists():
            reason = f"{path} contains neither a tokenizer nor shards"
        else:
            reason = f"{path} does not exist"
        raise Failure(reason, "check the path") from None
    click.echo(f"verified, all tables are correct: {tok!r}")
