"""`bytepair plan`: the size of a model to the data that it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import bytepair
from bytepair.cli import option


def plan(
    params: Annotated[
        str | None, typer.Option(help="Parameters of the model, such as 561M.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option(min=1, help="Layers of a model of nanochat's shape instead.")
    ] = None,
    vocab_size: Annotated[int, typer.Option(min=256, help="Ids of the vocabulary.")] = 65536,
    width: Annotated[
        int | None, typer.Option(min=1, help="Width of the model. [default: 64 times the depth]")
    ] = None,
    ratio: Annotated[float, typer.Option(help="Tokens for each parameter.")] = bytepair.plan.RATIO,
    chars_per_token: Annotated[
        float, typer.Option(help="Characters of a token.")
    ] = bytepair.plan.CHARS_PER_TOKEN,
    rate: Annotated[
        str, typer.Option(help="Characters encoded in a second.")
    ] = f"{bytepair.plan.CHARS_PER_SECOND / 1e6:.0f}M",
    tokenizer: Annotated[
        Path | None,
        typer.Option("--tokenizer", "-t", help="Measure both with this tokenizer instead."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Files to measure on; may be repeated. [default: the sample text]"),
    ] = None,
    shards: Annotated[
        int, typer.Option(min=1, help="Shards of text that the data set has.")
    ] = bytepair.plan.SHARDS,
    shard_chars: Annotated[str, typer.Option(help="Characters of a shard of text.")] = "250M",
) -> None:
    """Say what data the training of a model needs: tokens, text, shards, disk, time.

    Examples:
    * `bytepair plan --params 561M`

    * `bytepair plan --depth 20 --vocab-size 65536`

    * `bytepair plan --params 1.5B -t my-tokenizer --text 'shards/*.parquet'`
    """
    size = None if params is None else option.number(params)
    chars_per_second = option.number(rate)
    if tokenizer is not None:
        tok = bytepair.load(tokenizer)
        source = [Path(name) for name in text or []] or bytepair.sample.paths()
        chars_per_token, chars_per_second = bytepair.plan.measure(tok, source)
        vocab_size = tok.vocab_size
    needed = bytepair.plan.plan(
        size,
        depth=depth,
        vocab_size=vocab_size,
        width=width,
        ratio=ratio,
        chars_per_token=chars_per_token,
        chars_per_second=chars_per_second,
        chars_per_shard=int(option.number(shard_chars)),
        available=shards,
    )
    typer.echo(str(needed))
