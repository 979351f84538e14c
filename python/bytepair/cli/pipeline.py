"""`bytepair pipeline`: text files to a tokenizer and token shards."""

from __future__ import annotations

from typing import Annotated

import typer

import bytepair
from bytepair.cli import option


def pipeline(
    source: Annotated[list[str], typer.Argument(help="Files, folders, globs or URLs.")],
    out: option.OutFolder,
    vocab_size: Annotated[int, typer.Option(help="Ids of the tokenizer.")] = 65536,
    pattern: option.Pattern = "nanochat",
    max_chars: Annotated[
        str | None, typer.Option(help="Train on so many characters; shard all.")
    ] = None,
    doc_cap: Annotated[
        int | None, typer.Option(min=1, help="Train on so many characters of each document.")
    ] = None,
    format: option.ShardFormat = "bytepair",
    tokens_per_shard: option.TokensPerShard = "100M",
    column: option.Column = "text",
    threads: option.Threads = None,
) -> None:
    """Count, train, evaluate, save, shard and verify; run it again to continue after a break.

    Examples:
    * `bytepair pipeline base_data/ --vocab-size 65536 --out run --max-chars 2B --doc-cap 10000`
    """
    made = bytepair.pipeline(
        list(source),
        out,
        vocab_size,
        pattern=pattern,
        max_chars=None if max_chars is None else int(option.number(max_chars)),
        doc_cap=doc_cap,
        format=format,
        tokens_per_shard=int(option.number(tokens_per_shard)),
        column=column,
        threads=threads,
    )
    for name, seconds in made.seconds.items():
        typer.echo(f"{name:>8}  {seconds:,.1f} s")
    typer.echo(repr(made.tokenizer))
    typer.echo(str(made.report))
    raise typer.Exit(0 if made.report else 1)
