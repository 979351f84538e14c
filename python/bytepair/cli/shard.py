"""`bytepair shard`: text files to token shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import bytepair
from bytepair.cli import option


def shard(
    source: Annotated[list[str], typer.Argument(help="Files, folders, globs or URLs.")],
    out: option.OutFolder,
    tokenizer: option.Tokenizer = Path("tokenizer"),
    format: option.ShardFormat = "bytepair",
    tokens_per_shard: option.TokensPerShard = "100M",
    bos: Annotated[
        bool, typer.Option("--bos", help="Begin each document with the usual special token.")
    ] = False,
    bos_token: Annotated[
        str | None, typer.Option(help="Begin each document with this special token.")
    ] = None,
    eos: Annotated[
        bool, typer.Option("--eos", help="End each document with the usual special token.")
    ] = False,
    eos_token: Annotated[
        str | None, typer.Option(help="End each document with this special token.")
    ] = None,
    column: option.Column = "text",
    doc_cap: Annotated[
        int | None, typer.Option(min=1, help="Take so many characters of each document.")
    ] = None,
    max_document_bytes: Annotated[
        str, typer.Option(help="A longer document cannot be read; memory grows with it.")
    ] = "128M",
    on_error: Annotated[
        Literal["raise", "skip"],
        typer.Option(help="What cannot be read ends the run, or is left out and recorded."),
    ] = "raise",
    threads: option.Threads = None,
    rank: option.Rank = None,
    world: option.World = None,
    ray: option.Ray = False,
) -> None:
    """Write token shards; run it again to continue where it was interrupted.

    Examples:
    * `bytepair shard 'base_data/*.parquet' -t my-tokenizer -o shards --bos`

    * `bytepair shard corpus/ -o gpt2-shards --format llmc --tokens-per-shard 100M --bos`

    * `srun --array=0-99 bytepair shard corpus/ -o shards --world 100`
    """
    tok = bytepair.load(tokenizer)
    options: dict[str, Any] = {
        "format": format, "tokens_per_shard": int(option.number(tokens_per_shard)),
        "bos": bos_token or bos, "eos": eos_token or eos, "column": column, "doc_cap": doc_cap,
        "max_document_bytes": int(option.number(max_document_bytes)), "on_error": on_error,
        "threads": threads,
    }  # fmt: skip
    made: bytepair.shards.Manifest | None
    if ray or rank is not None or world is not None:
        made = bytepair.distributed.shard(
            source, tok, out, rank=rank, world_size=world, ray=ray, **options
        )
    else:
        made = bytepair.shards.write(source, tok, out, **options)
    if made is None:
        typer.echo("this share is done; the last rank to finish writes the shards")
        return
    for left in made.skipped:
        typer.echo(f"left out: {left['input']}, {_rows(left)}: {left['reason']}", err=True)
    typer.echo(f"{made}: {out}")
    typer.echo(f"next: bytepair verify {out}")


def _rows(left: dict[str, Any]) -> str:
    first, count = left["first"], left["rows"]
    if count is None:
        return f"from row {first} on"
    return f"row {first}" if count == 1 else f"rows {first} to {first + count - 1}"
