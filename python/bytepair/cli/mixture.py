"""`bytepair mixture`: infer the training mixture of a published vocabulary."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

import bytepair
from bytepair.cli import groups, option


@option.command(
    "bytepair mixture gpt2 english=news/ code=repos/ german=de.txt",
    "bytepair mixture my-tokenizer 'samples/*.txt' --merges 10k --json",
)
@click.argument("tokenizer")
@option.pattern_of_file
@option.sources
@click.option(
    "--merges", type=option.number, default=3000, help="Use the first merges, up to this number."
)
@click.option(
    "--rounds", type=option.number, default=100, help="Solve at most this many linear programs."
)
@option.max_chars
@option.threads
@option.column
@option.errors
@option.max_document_bytes
@option.quiet
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def mixture(
    tokenizer: str,
    pattern: str | None,
    source: tuple[str, ...],
    merges: int,
    rounds: int,
    as_json: bool,
    threads: int | None,
    **reading: Any,
) -> None:
    """Infer the mixture of texts that a vocabulary was trained on, from the order of its merges.

    TOKENIZER: a folder, a file or a published name such as gpt2.

    SOURCE: NAME=PATH, one sample for each kind of text; without NAME=, each file is a sample named
    after the file. Together the samples must cover the training text. Requires scipy: the extra
    "infer".
    """
    tok = bytepair.load(tokenizer, pattern=pattern)
    result = bytepair.infer_mixture(
        tok, groups.groups_of(source), merges=merges, rounds=rounds,
        reading=bytepair.Reading(**reading), threads=threads,
    )  # fmt: skip
    click.echo(json.dumps(asdict(result), ensure_ascii=False, indent=2) if as_json else str(result))
