"""`bytepair prune`: remove tokens from a tokenizer."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import Misuse
from bytepair.files.outputs import check_output


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
    help="Keep the tokens that occur in a corpus: a file written by bytepair count.",
)
@click.option(
    "--unreachable", is_flag=True, help="Remove only tokens that merging can never produce."
)
@click.option("--vocab-size", type=option.size, help="Keep at most this many ids.")
@click.option(
    "--ids", type=option.OUTPUT_FILE, help="Write the map from old to new ids to this .npy file."
)
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
    """Remove tokens from a tokenizer, and keep those that the remaining tokens are merged from.

    TOKENIZER: a folder, a file or a published name such as gpt2.

    Special tokens, single bytes, and the intermediate tokens of a kept token are always kept. A
    text whose tokens are all kept is encoded to the same tokens, with new ids.
    """
    option.one_of("counts", "unreachable")
    option.one_of("vocab_size", "unreachable")
    option.ending(ids, ".npy")
    if out.is_dir():
        check_output(out / "tokenizer.bytepair", overwrite=overwrite)
    tok = bytepair.load(tokenizer, pattern=pattern)
    if unreachable:
        pruned = bytepair.prune(tok, drop=bytepair.evaluate.unreachable(tok))
    elif counts is not None:
        pruned = bytepair.prune(
            tok, bytepair.load_counts(counts, pattern=pattern), vocab_size=vocab_size
        )
    elif vocab_size is not None:
        pruned = bytepair.prune(tok, vocab_size)
    else:
        raise Misuse("pass --counts, --vocab-size or --unreachable: which tokens to keep")
    path = pruned.tokenizer.save(out, overwrite=overwrite)
    if ids is not None:
        pruned.save_ids(ids, overwrite=overwrite)
    gone = tok.vocab_size - pruned.tokenizer.vocab_size
    click.echo(f"{path}: {pruned.tokenizer.vocab_size:,} ids, {gone:,} fewer")
    more = "" if pattern is None else f" --pattern {shlex.quote(pattern)}"
    click.echo(f"next: bytepair compare {tokenizer} {path.parent} --by tokens{more}")
