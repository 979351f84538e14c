"""`bytepair count`: text files to a table of counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import bytepair


def count(
    source: Annotated[list[str], typer.Argument(help="Files, folders or globs.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The parquet file to write.")] = Path(
        "counts.parquet"
    ),
    pattern: Annotated[
        str, typer.Option(help=f"A regular expression, or one of {', '.join(bytepair.PATTERNS)}.")
    ] = "nanochat",
    max_chars: Annotated[
        int | None, typer.Option(min=1, help="Stop reading after so many characters.")
    ] = None,
    doc_cap: Annotated[
        int | None, typer.Option(min=1, help="Read so many characters of each document.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads. [default: all]")] = None,
    column: Annotated[str, typer.Option(help="The column or field with the text.")] = "text",
    memory_limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Bytes to hold while counting; the rest goes to disk. [default: half the memory]",
        ),
    ] = None,
    errors: Annotated[
        Literal["strict", "replace"], typer.Option(help="What to do where text is not UTF-8.")
    ] = "strict",
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Save here every few minutes; if it is there, go on from it."),
    ] = None,
) -> None:
    """Count the pretokens of text; the result can be trained from, added up and filtered.

    Examples:
    * `bytepair count corpus/ -o counts.parquet`

    * `bytepair count corpus/ --checkpoint partial.parquet` — the same again goes on after a break

    * `bytepair train counts.parquet --vocab-size 32768`
    """
    counts = bytepair.count(
        [Path(name) for name in source],
        pattern=pattern,
        max_chars=max_chars,
        doc_cap=doc_cap,
        threads=threads,
        column=column,
        errors=errors,
        memory_limit=memory_limit,
        checkpoint=checkpoint,
    )
    counts.save(out)
    if checkpoint is not None:
        checkpoint.unlink()
    size = counts.text_bytes / 1e6
    typer.echo(f"{len(counts):,} distinct pretokens of {counts.total:,} in {size:,.1f} MB: {out}")
