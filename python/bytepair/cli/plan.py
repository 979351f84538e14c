"""`bytepair plan`: the size of a model to the data that it needs."""

from __future__ import annotations

from typing import Any

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair plan --params 561M",
    "bytepair plan --depth 20 --preset nanochat-2025",
    "bytepair plan --depth 24 --preset nanochat-2026 --ratio 8",
    "bytepair plan --params 1.5B -t my-tokenizer --text 'shards/*.parquet'",
)
@click.option("--params", type=option.number, help="Parameters of the model, such as 561M.")
@click.option("--depth", type=option.number, help="Layers of a model of nanochat's shape instead.")
@click.option(
    "--preset",
    type=click.Choice(list(bytepair.plan.PRESETS)),
    default=bytepair.plan.PRESET,
    help="Which defaults the options below have, and which parameters --depth counts.",
)
@click.option(
    "--vocab-size",
    type=option.size,
    help="Ids of the vocabulary.  [default: 65,536; in 2026 32,768]",
)
@click.option(
    "--width", type=option.number, help="Width of the model.  [default: 64 times the depth]"
)
@click.option("--ratio", type=float, help="Tokens for each parameter.  [default: 20; in 2026 12]")
@click.option(
    "--chars-per-token",
    type=float,
    help="Characters read for each token.  [default: 4.8; in 2026 5.4]",
)
@click.option(
    "--chars-per-second",
    type=option.number,
    default=f"{bytepair.plan.CHARS_PER_SECOND / 1e6:.0f}M",
    help="Characters encoded in a second.",
)
@click.option("--tokenizer", "-t", help="Measure both with this tokenizer instead.")
@option.pattern_of_file
@click.option(
    "--text",
    multiple=True,
    help="Files to measure on; may be repeated.  [default: the sample text]",
)
@click.option(
    "--available",
    type=option.number,
    help="Shards of text that the data set has.  [default: 1,822; in 2026 6,542]",
)
@click.option(
    "--chars-per-shard", type=option.number, help="Characters of a shard of text.  [default: 250M]"
)
def plan(tokenizer: str | None, pattern: str | None, text: tuple[str, ...], **options: Any) -> None:
    """Say what data the training of a model needs: tokens, text, shards, disk, time."""
    if options["vocab_size"] is not None and options["vocab_size"] < 256:
        raise click.BadParameter("it has at least the 256 bytes", param_hint="--vocab-size")
    if tokenizer is None:
        option.refuse("without --tokenizer nothing is measured", "text", "pattern")
    else:
        said = ("vocab_size", "chars_per_token", "chars_per_second")
        option.refuse("the tokenizer says it", *said)
        tok = bytepair.load(tokenizer, pattern=pattern)
        files = option.files(text) or bytepair.sample.paths()
        measured = bytepair.plan.measure(tok, files=files)
        options |= dict(zip(said, (tok.vocab_size, *measured), strict=True))
    click.echo(str(bytepair.plan.plan_data(**options)))
