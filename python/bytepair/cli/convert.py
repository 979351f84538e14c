"""`bytepair convert`: convert a tokenizer to another format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import BadValue, advice_in_words, in_words, tell


@option.command(
    "bytepair convert my-tokenizer tokenizer.json",
    "bytepair convert my-tokenizer hf/ --format huggingface",
    "bytepair convert vocab.tiktoken out.bytepair --pattern gpt4",
    "bytepair convert my-tokenizer my-vocab.gguf --eos-token '<|end|>'",
)
@click.argument("source")
@click.argument("target", type=option.PATH)
@click.option(
    "--format",
    help=f"The format to write: {option.WRITTEN}.  [default: chosen by the name of TARGET]",
)
@click.option("--source-format", help="The format to read.  [default: detected from the content]")
@click.option("--pattern", help="The split pattern, if SOURCE does not contain one.")
@click.option(
    "--special-tokens",
    help='The special tokens, if SOURCE does not contain them, as JSON: {"<|bos|>": 1000}.',
)
@option.roles
@click.option(
    "--sentencepiece-ids",
    is_flag=True,
    help="Renumber the tokens to the ids that run.c of llama2.c expects; encoded text must be "
    "encoded again.",
)
@option.force
@click.option("--lossy", is_flag=True, help="Skip features that cannot be read or written.")
@click.option(
    "--allow-pickle", is_flag=True, help="Allow reading tokenizer.pkl; no code in it is executed."
)
@click.option("--revision", help="The commit, tag or branch, if SOURCE is owner/name.")
def convert(
    source: str,
    target: Path,
    format: str | None,
    source_format: str | None,
    special_tokens: str | None,
    sentencepiece_ids: bool,
    overwrite: bool,
    lossy: bool,
    **options: Any,
) -> None:
    """Convert a tokenizer between bytepair, huggingface, tiktoken, gpt2, nanochat, gguf and others.

    SOURCE: a file, a folder, the name of a tiktoken encoding, or owner/name on the Hugging Face
    Hub. TARGET: the output file or folder.
    """
    special = None if special_tokens is None else _special(special_tokens)
    reading = {name: options.pop(name) for name in ("pattern", "allow_pickle", "revision")}
    tokenizer = bytepair.load(source, source_format, special_tokens=special, lossy=lossy, **reading)
    tokenizer = option.with_roles(tokenizer, options)
    tokenizer = (
        bytepair.engines.with_sentencepiece_ids(tokenizer) if sentencepiece_ids else tokenizer
    )
    try:
        path = tokenizer.export(target, format, lossy=lossy, overwrite=overwrite)
    except bytepair.errors.ArgumentError as error:
        raise BadValue(*in_words(error), param_hint="--format") from None
    losses = bytepair.compat.export_losses(tokenizer, format or target, target)
    for lost in losses:
        tell("warning", f"not kept in {path}: {lost}")
    advice = advice_in_words(losses.hint)
    if advice:
        tell("hint", advice)
    click.echo(f"{tokenizer.vocab_size:,} ids written to {path}")


def _special(text: str) -> dict[str, int]:
    """Parse special tokens from JSON."""
    try:
        tokens = json.loads(text)
    except ValueError as error:
        raise BadValue(f"invalid JSON: {error}", param_hint="--special-tokens") from None
    if not isinstance(tokens, dict) or not all(type(id) is int for id in tokens.values()):
        raise BadValue("expected a JSON object of names and ids", param_hint="--special-tokens")
    return tokens
