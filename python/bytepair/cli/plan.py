"""`bytepair plan`: estimate the data that a model needs."""

from __future__ import annotations

from typing import Any

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import BadValue, Misuse
from bytepair.corpus.column import Errors


@option.command(
    "bytepair plan --params 561M",
    "bytepair plan --depth 20 --preset nanochat-2025",
    "bytepair plan --depth 24 --preset nanochat-2026 --ratio 8",
    "bytepair plan --params 1.5B -t my-tokenizer --corpus 'shards/*.parquet'",
)
@click.option("--params", type=option.number, help="The number of model parameters, such as 561M.")
@click.option(
    "--depth",
    type=option.number,
    help="Instead of --params: the number of layers of a nanochat model.",
)
@click.option(
    "--preset",
    type=click.Choice(list(bytepair.plan.PRESETS)),
    default=bytepair.plan.PRESET,
    help="The defaults of the options below, and the parameters that --depth counts.",
)
@click.option(
    "--vocab-size",
    type=option.size,
    help="The vocabulary size.  [default: 65,536; nanochat-2026: 32,768]",
)
@click.option(
    "--width", type=option.number, help="The width of the model.  [default: 64 times the depth]"
)
@click.option(
    "--ratio",
    type=float,
    help="Training tokens per parameter.  [default: 20; nanochat-2026: 12]",
)
@click.option(
    "--chars-per-token",
    type=float,
    help="Characters per token.  [default: 4.8; nanochat-2026: 5.4]",
)
@click.option(
    "--chars-per-second",
    type=option.number,
    default=f"{bytepair.plan.CHARS_PER_SECOND / 1e6:.0f}M",
    help="Characters encoded per second.",
)
@click.option(
    "--tokenizer",
    "-t",
    help="Measure characters per token and per second with this tokenizer: a folder, a file or a "
    "published name.",
)
@option.pattern_of_file
@click.option(
    "--corpus",
    multiple=True,
    help="With --tokenizer: files, folders or globs to measure on; may be repeated.  [default: "
    "the sample text]",
)
@click.option(
    "--available",
    type=option.number,
    help="The number of text shards in the data set.  [default: 1,822; nanochat-2026: 6,542]",
)
@click.option(
    "--chars-per-shard", type=option.number, help="Characters per text shard.  [default: 250M]"
)
@click.option(
    "--max-chars",
    type=option.number,
    default="20M",
    help="With --tokenizer: measure a sample of this many characters, from all files.",
)
@option.errors
@option.quiet
def plan(
    tokenizer: str | None,
    pattern: str | None,
    corpus: tuple[str, ...],
    max_chars: int,
    errors: Errors,
    **options: Any,
) -> None:
    """Estimate the data needed to train a model: tokens, text, shards, disk space, time."""
    option.one_of("params", "depth")
    if options["params"] is None and options["depth"] is None:
        raise Misuse("give the number of parameters (--params) or of layers (--depth)")
    if options["vocab_size"] is not None and options["vocab_size"] < 256:
        raise BadValue("a vocabulary has at least the 256 bytes", param_hint="--vocab-size")
    if tokenizer is None:
        option.refuse("it needs --tokenizer", "corpus", "pattern", "max_chars", "errors")
    else:
        names = ("vocab_size", "chars_per_token", "chars_per_second")
        option.refuse("it is measured with --tokenizer", *names)
        tok = bytepair.load(tokenizer, pattern=pattern)
        files = option.files(corpus) if corpus else bytepair.sample.paths()
        measurement = bytepair.plan.measure(tok, files, max_chars=max_chars, errors=errors)
        options |= {"vocab_size": tok.vocab_size, **measurement._asdict()}
    click.echo(str(bytepair.plan.plan_data(**options)))
