"""`bytepair compare`: where do two tokenizers differ, and why?"""

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
    help="What has to be equal: ids, or the tokens that they stand for.",
)
@click.option(
    "--special",
    type=click.Choice(["all", "text"]),
    default="all",
    help="Special tokens in the texts are their ids, or text.",
)
@click.option("--limit", type=click.IntRange(min=0), default=10, help="Differences to explain.")
@click.option("--pattern", help="The split pattern of ONE, if its file does not hold it.")
@click.option("--pattern-of-two", help="The same of TWO.")
@option.max_chars
@option.column
@option.errors
@option.max_document_bytes
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
    """Find where two tokenizers first differ: on which text, at which byte, and why.

    ONE and TWO: a folder, a file or a published name each. SOURCE: files, folders or globs of text;
    none means the texts that are shipped, in sixty languages.

    Exit code 0 if the tokens of all texts are equal, 1 if some differ.
    """
    if not source:
        option.refuse("there is no SOURCE", "max_chars", "column", "errors", "max_document_bytes")
    names = [Path(name).name or name for name in (one, two)]
    if names[0] == names[1]:
        names = [one, two] if one != two else ["one", "two"]
    found = bytepair.compare(
        one, two, files=option.files(source) if source else None,
        names=(names[0], names[1]), patterns=(pattern, pattern_of_two), **options,
    )  # fmt: skip
    click.echo(found.to_json() if as_json else str(found), nl=not as_json)
    sys.exit(0 if found else 1)
