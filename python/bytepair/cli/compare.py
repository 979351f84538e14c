"""`bytepair compare`: find where two tokenizers differ."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair compare my-tokenizer exported/tokenizer.json corpus/",
    "bytepair compare gpt2 my-tokenizer",
    "bytepair compare my-tokenizer pruned --by tokens --json 'shards/*.parquet'",
)
@click.argument("one")
@click.argument("two")
@click.argument("source", nargs=-1)
@click.option(
    "--by",
    type=click.Choice(["ids", "tokens"]),
    default="ids",
    help="Compare ids, or the bytes of the tokens.",
)
@click.option(
    "--special",
    type=click.Choice(["all", "text"]),
    default="all",
    help="Encode special tokens in the texts as their ids, or as text.",
)
@click.option("--pattern", help="The split pattern of ONE, if its file does not contain one.")
@click.option(
    "--pattern-of-two", help="The split pattern of TWO, if its file does not contain one."
)
@option.max_chars
@option.column
@option.errors
@option.max_document_bytes
@option.quiet
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def compare(
    one: str,
    two: str,
    source: tuple[str, ...],
    pattern: str | None,
    pattern_of_two: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find where two tokenizers first differ: the text, the byte and the tokens.

    ONE, TWO: a folder, a file or a published name such as gpt2. SOURCE: files, folders or globs of
    text; without SOURCE, the included texts in sixty languages.

    Exit code 0 if all texts are encoded equally, 1 if some differ, 2 if they cannot be compared.
    """
    if not source:
        option.refuse("it needs SOURCE", "max_chars", "column", "errors", "max_document_bytes")
    names = [Path(name).name or name for name in (one, two)]
    if names[0] == names[1]:
        names = [one, two] if one != two else ["one", "two"]
    comparison = bytepair.evaluate.compare(
        one, two, option.files(source) if source else None,
        names=(names[0], names[1]), patterns=(pattern, pattern_of_two), **options,
    )  # fmt: skip
    click.echo(comparison.to_json() if as_json else str(comparison), nl=not as_json)
    sys.exit(0 if comparison else 1)
