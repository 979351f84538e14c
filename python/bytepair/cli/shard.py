"""`bytepair shard`: text files to token shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair shard 'base_data/*.parquet' -t my-tokenizer -o shards --bos",
    "bytepair shard corpus/ -o gpt2-shards --format llmc --tokens-per-shard 100M --bos",
    "srun --array=0-99 bytepair shard corpus/ -o shards --world 100",
)
@option.sources
@option.out_folder
@option.tokenizer
@option.shard_format
@option.tokens_per_shard
@click.option("--bos", is_flag=True, help="Begin each document with the usual special token.")
@click.option("--bos-token", help="Begin each document with this special token.")
@click.option("--eos", is_flag=True, help="End each document with the usual special token.")
@click.option("--eos-token", help="End each document with this special token.")
@option.column
@click.option("--doc-cap", type=option.number, help="Take so many characters of each document.")
@option.max_document_bytes
@click.option(
    "--on-error",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    help="What cannot be read ends the run, or is left out and recorded.",
)
@option.threads
@option.rank
@option.world
@option.ray
def shard(
    source: tuple[str, ...],
    out: Path,
    tokenizer: Path,
    pattern: str | None,
    bos: bool,
    bos_token: str | None,
    eos: bool,
    eos_token: str | None,
    rank: int | None,
    world: int | None,
    ray: bool,
    **options: Any,
) -> None:
    """Write token shards; run it again to continue where it was interrupted.

    SOURCE: files, folders, globs or URLs.
    """
    option.one_of("bos", "bos_token")
    option.one_of("eos", "eos_token")
    tok = bytepair.load(tokenizer, pattern=pattern)
    options |= {"bos": bos_token or bos, "eos": eos_token or eos}
    made: bytepair.shards.Manifest | None
    if ray or rank is not None or world is not None:
        made = bytepair.distributed.shard(
            list(source), tok, out, rank=rank, world_size=world, ray=ray, **options
        )
    else:
        made = bytepair.shards.write(list(source), tok, out, **options)
    if made is None:
        click.echo("this share is done; the last rank to finish writes the shards")
        return
    for left in made.skipped:
        click.echo(f"left out: {left['input']}, {_rows(left)}: {left['reason']}", err=True)
    click.echo(f"{made}: {out}")
    click.echo(f"next: bytepair verify {out}")


def _rows(left: dict[str, Any]) -> str:
    first, count = left["first"], left["rows"]
    if count is None:
        return f"from row {first} on"
    return f"row {first}" if count == 1 else f"rows {first} to {first + count - 1}"
