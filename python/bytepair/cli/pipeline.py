"""`bytepair pipeline`: run all steps from text to a tokenizer and token shards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair pipeline base_data/ --vocab-size 65536 --out run --max-chars 2B --doc-cap 10000",
)
@option.sources
@option.out_folder
@option.vocab_size
@option.pattern
@option.training
@click.option(
    "--max-chars",
    type=option.number,
    help="Train on at most this many characters; all text is encoded to shards.",
)
@click.option(
    "--doc-cap",
    type=option.number,
    help="Train on at most this many characters of each document.",
)
@option.sharding
@option.memory_limit
@option.threads
@option.quiet
def pipeline(
    source: tuple[str, ...],
    out: Path,
    **options: Any,
) -> None:
    """Run all steps: count, train, evaluate, save, shard and verify; run it again to resume.

    SOURCE: files, folders, globs or URLs.
    """
    training, sharding = option.train_options(options), option.shard_options(options)
    result = bytepair.run_pipeline(list(source), out, training, sharding, **options)
    for name, seconds in result.seconds.items():
        click.echo(f"{name:>8}  {seconds:,.1f} s")
    click.echo(repr(result.tokenizer))
    click.echo(str(result.report))
    if result.report:
        click.echo(f"next: bytepair explore {out / 'tokenizer'}")
    sys.exit(0 if result.report else 1)
