"""`bytepair convert`: a tokenizer of one format to another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import bytepair


def convert(
    source: Annotated[
        str, typer.Argument(help="A file, a folder, an encoding of tiktoken, or owner/name.")
    ],
    target: Annotated[Path, typer.Argument(help="The file or folder to write.")],
    format: Annotated[
        str | None,
        typer.Option(help="The format to write. [default: what the name of the target says]"),
    ] = None,
    source_format: Annotated[
        str | None, typer.Option(help="The format to read. [default: what the content says]")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(help="The split pattern, where the source does not hold one.")
    ] = None,
    special: Annotated[
        str | None,
        typer.Option(help='The special tokens, where the source does not: {"<|bos|>": 1000}.'),
    ] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Leave out what cannot be read or written.")
    ] = False,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Read tokenizer.pkl; no code in it is run.")
    ] = False,
    revision: Annotated[
        str | None, typer.Option(help="The commit, tag or branch of owner/name.")
    ] = None,
) -> None:
    """Convert a tokenizer: bytepair, huggingface, tiktoken, gpt2, nanochat, gguf, llama2c, ...

    Examples:
    * `bytepair convert my-tokenizer tokenizer.json`

    * `bytepair convert my-tokenizer hf/ --format huggingface`

    * `bytepair convert vocab.tiktoken out.bytepair --pattern gpt4`
    """
    tokenizer = bytepair.load(
        source,
        source_format,
        pattern=pattern,
        special_tokens=None if special is None else _special(special),
        lossy=lossy,
        allow_pickle=allow_pickle,
        revision=revision,
    )
    try:
        path = tokenizer.export(target, format, lossy=lossy)
    except bytepair.BytepairError:
        raise
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--format") from None
    typer.echo(f"{tokenizer.vocab_size:,} ids written to {path}")


def _special(text: str) -> dict[str, int]:
    """The special tokens of a JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"this is no JSON: {error}", param_hint="--special") from None
    if not isinstance(found, dict) or not all(type(id) is int for id in found.values()):
        raise typer.BadParameter("an object of names and ids is expected", param_hint="--special")
    return found
