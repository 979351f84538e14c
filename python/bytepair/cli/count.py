"""`bytepair count`: text files to a table of counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import bytepair
from bytepair.cli import option


def count(
    source: Annotated[list[str], typer.Argument(help="Files, folders, globs or URLs.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The parquet file to write.")] = Path(
        "counts.parquet"
    ),
    pattern: option.Pattern = "nanochat",
    max_chars: option.MaxChars = None,
    doc_cap: option.DocCap = None,
    threads: option.Threads = None,
    column: option.Column = "text",
    memory_limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Bytes to hold while counting; the rest goes to disk. [default: half the memory]",
        ),
    ] = None,
    errors: option.Errors = "strict",
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Save here every few minutes; if it is there, go on from it."),
    ] = None,
    rank: option.Rank = None,
    world: option.World = None,
    ray: option.Ray = False,
) -> None:
    """Count the pretokens of text; the result can be trained from, added up and filtered.

    Examples:
    * `bytepair count corpus/ -o counts.parquet`

    * `bytepair count corpus/ --checkpoint partial.parquet` — the same again goes on after a break

    * `bytepair train counts.parquet --vocab-size 32768`
    """
    if ray or rank is not None or world is not None:
        if max_chars is not None or errors != "strict" or checkpoint is not None:
            raise typer.BadParameter(
                "ranks and Ray read all, have marks instead of a checkpoint, and are strict"
            )
        shared = bytepair.distributed.count(
            source, out, rank=rank, world_size=world, ray=ray, pattern=pattern, doc_cap=doc_cap,
            column=column, threads=threads,
        )  # fmt: skip
        if shared is None:
            typer.echo("this share is done; the last rank to finish writes the counts")
        else:
            _report(shared, out)
        return
    counts = bytepair.count(
        option.source(source, column),
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
    _report(counts, out)


def _report(counts: bytepair.Counts, out: Path) -> None:
    size = counts.text_bytes / 1e6
    typer.echo(
        f"{len(counts):,} distinct pretokens of {counts.total:,} in {size:,.1f} MB: {out}\n"
        f"next: bytepair train {out}"
    )
