"""`bytepair shard`: encode text to token shards."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import tell
from bytepair.corpus.source import resolve


@option.command(
    "bytepair shard 'base_data/*.parquet' -t my-tokenizer -o shards",
    "bytepair shard corpus/ -o gpt2-shards --format nanogpt --split both",
    "srun --ntasks=100 bytepair shard corpus/ -o shards --world-size 100",
)
@option.sources
@option.out_folder
@option.tokenizer
@option.sharding
@click.option(
    "--doc-cap", type=option.number, help="Encode at most this many characters of each document."
)
@option.threads
@option.rank
@option.world_size
@option.ray
@option.quiet
def shard(
    source: tuple[str, ...],
    out: Path,
    tokenizer: str,
    pattern: str | None,
    rank: int | None,
    world_size: int | None,
    threads: int | None,
    doc_cap: int | None,
    ray: bool,
    **options: Any,
) -> None:
    """Encode text and write token shards; run it again to resume.

    SOURCE: files, folders, globs or URLs. A second run checks the shards, and writes missing or
    damaged ones again. New files after the old ones are added.
    """
    values = asdict(option.shard_options(options, doc_cap=doc_cap))
    tok = bytepair.load(tokenizer, pattern=pattern)
    split: Any = "all" if values["split"] == "both" else values["split"]
    files = resolve(files=list(source), split=split)
    manifest: bytepair.shards.Manifest | None
    if ray or rank is not None or world_size is not None:
        manifest = bytepair.distributed.shard(
            files, tok, out, rank=rank, world_size=world_size, ray=ray, threads=threads,
            **values,
        )  # fmt: skip
    else:
        manifest = bytepair.shards.write(files, tok, out, threads=threads, **values)
    if manifest is None:
        click.echo("this rank is done; the last rank to finish writes the shards")
        return
    for left in manifest.skipped:
        tell("warning", f"skipped {left['input']}, {_rows(left)}: {left['reason']}")
    click.echo(f"{manifest}: {out}")
    click.echo(f"next: bytepair verify {out}")


def _rows(left: dict[str, Any]) -> str:
    first, count = left["first"], left["rows"]
    if count is None:
        return f"from row {first} on"
    return f"row {first}" if count == 1 else f"rows {first} to {first + count - 1}"
