"""`bytepair prune`: a tokenizer without the tokens that a corpus does not need."""

from __future__ import annotations

from pathlib import Path

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair count corpus/ -o counts.parquet",
    "bytepair prune my-tokenizer --counts counts.parquet -o smaller --ids ids.npy",
    "bytepair prune my-tokenizer --counts counts.parquet --vocab-size 32000 -o smaller",
    "bytepair prune my-tokenizer --unreachable -o smaller",
)
@click.argument("tokenizer")
@option.pattern_of_file
@click.option(
    "--counts",
    type=option.PATH,
    help="Keep the tokens that occur in this corpus, which bytepair count counted.",
)
@click.option(
    "--unreachable", is_flag=True, help="Leave out only tokens that merging never produces."
)
@click.option("--vocab-size", type=option.size, help="Keep at most this many ids.")
@click.option("--ids", type=option.OUTPUT_FILE, help="Write the new id of each old one: a .npy.")
@option.out_folder
@option.force
def prune(
    tokenizer: str,
    pattern: str | None,
    counts: Path | None,
    unreachable: bool,
    vocab_size: int | None,
    ids: Path | None,
    out: Path,
    overwrite: bool,
) -> None:
    """Leave out tokens, and keep all that texts of the other tokens need.

    TOKENIZER: a folder, a file or a published name.

    Special tokens, bytes, and what merging a kept token needs always stay. A text whose tokens all
    stay is encoded to the same tokens, under their new ids.
    """
    option.one_of("counts", "unreachable")
    option.one_of("vocab_size", "unreachable")
    option.ending(ids, ".npy")
    tok = bytepair.load(tokenizer, pattern=pattern)
    if unreachable:
        pruned = tok.prune(drop=bytepair.evaluate.unreachable(tok))
    elif counts is not None:
        pruned = tok.prune(bytepair.load_counts(counts, pattern=pattern), vocab_size=vocab_size)
    elif vocab_size is not None:
        pruned = tok.prune(vocab_size)
    else:
        raise click.UsageError("pass --counts, --vocab-size or --unreachable, which say what stays")
    path = pruned.tokenizer.save(out, overwrite=overwrite)
    if ids is not None:
        import numpy as np

        np.save(ids, pruned.ids)
    gone = tok.vocab_size - pruned.tokenizer.vocab_size
    click.echo(f"{path}: {pruned.tokenizer.vocab_size:,} ids, {gone:,} fewer")
