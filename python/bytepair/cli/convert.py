"""`bytepair convert`: a tokenizer of one format to another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair convert my-tokenizer tokenizer.json",
    "bytepair convert my-tokenizer hf/ --format huggingface",
    "bytepair convert vocab.tiktoken out.bytepair --pattern gpt4",
    "bytepair convert my-tokenizer my-vocab.gguf --eos-token '<|end|>'",
)
@click.argument("source")
@click.argument("target", type=option.PATH)
@click.option("--format", help="The format to write.  [default: what the name of the target says]")
@click.option("--source-format", help="The format to read.  [default: what the content says]")
@click.option("--pattern", help="The split pattern, where the source does not hold one.")
@click.option(
    "--special-tokens",
    help='The special tokens, where the source does not: {"<|bos|>": 1000}.',
)
@option.roles
@click.option(
    "--sentencepiece-ids",
    is_flag=True,
    help="Give the tokens the ids that run.c of llama2.c expects; texts are to be encoded again.",
)
@option.force
@click.option("--lossy", is_flag=True, help="Leave out what cannot be read or written.")
@click.option("--allow-pickle", is_flag=True, help="Read tokenizer.pkl; no code in it is run.")
@click.option("--revision", help="The commit, tag or branch of owner/name.")
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
    """Convert a tokenizer: bytepair, huggingface, tiktoken, gpt2, nanochat, gguf, llama2c, ...

    SOURCE: a file, a folder, an encoding of tiktoken, or owner/name. TARGET: the file or folder to
    write.
    """
    special = None if special_tokens is None else _special(special_tokens)
    reading = {name: options.pop(name) for name in ("pattern", "allow_pickle", "revision")}
    tokenizer = bytepair.load(source, source_format, special_tokens=special, lossy=lossy, **reading)
    tokenizer = option.with_roles(tokenizer, options)
    tokenizer = tokenizer.with_sentencepiece_ids() if sentencepiece_ids else tokenizer
    try:
        path = tokenizer.export(target, format, lossy=lossy, overwrite=overwrite)
    except bytepair.errors.ArgumentError as error:
        raise click.BadParameter(str(error), param_hint="--format") from None
    for lost in tokenizer.export_losses(format or target):
        click.echo(f"bytepair: not kept in {path}: {lost}", err=True)
    click.echo(f"{tokenizer.vocab_size:,} ids written to {path}")


def _special(text: str) -> dict[str, int]:
    """The special tokens of a JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(
            f"this is no JSON: {error}", param_hint="--special-tokens"
        ) from None
    if not isinstance(found, dict) or not all(type(id) is int for id in found.values()):
        raise click.BadParameter(
            "an object of names and ids is expected", param_hint="--special-tokens"
        )
    return found
