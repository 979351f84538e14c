"""`bytepair count` and `bytepair mixture`: count text, and infer what was counted."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option, paths
from bytepair.cli.paths import COUNTS_FILE
from bytepair.corpus.source import resolve
from bytepair.files.outputs import remove_own


@option.command(
    "bytepair count corpus/ -o counts.parquet",
    "bytepair count corpus/ --checkpoint partial.parquet  # run it again to resume",
    "bytepair train counts.parquet --vocab-size 32768",
)
@option.sources
@click.option(
    "--out", "-o", default="counts.parquet", type=COUNTS_FILE, help="The output file (parquet)."
)
@option.pattern
@option.max_chars
@option.doc_cap
@option.threads
@option.column
@option.memory_limit
@option.weight
@option.errors
@option.split
@option.max_document_bytes
@option.checkpoint
@option.rank
@option.world_size
@option.ray
@option.quiet
def count(
    source: tuple[str, ...],
    out: Path,
    pattern: str,
    threads: int | None,
    weight: tuple[str, ...],
    rank: int | None,
    world_size: int | None,
    ray: bool,
    **options: Any,
) -> None:
    """Count the pretokens of text; counts can be trained on, added and filtered.

    SOURCE: files, folders, globs or URLs; - is text on standard input.
    """
    is_shared = ray or rank is not None or world_size is not None
    if is_shared:
        option.refuse(
            "ranks and Ray read all text and resume without a checkpoint",
            "max_chars", "checkpoint", "memory_limit", "weight",
        )  # fmt: skip
    option.check_checkpoint(options["checkpoint"], source)
    reading = bytepair.Reading(**options)
    if is_shared:
        shared = bytepair.distributed.count(
            resolve(bytepair.corpus.Paths(source), split=reading.split), out,
            rank=rank, world_size=world_size, ray=ray,
            pattern=pattern, threads=threads, reading=reading,
            overwrite=True,  # the option has refused other files, unless --force is given
        )  # fmt: skip
        if shared is None:
            click.echo("this rank is done; the last rank to finish writes the counts")
        else:
            _report(shared, out)
        return

    def counts_of(*names: str) -> bytepair.Counts:
        files = paths.files(names)
        return bytepair.count(files, pattern=pattern, reading=reading, threads=threads)

    if weight:
        option.refuse("--weight counts each source separately", "max_chars", "checkpoint")
    counts = paths.weighted(source, weight, counts_of) if weight else counts_of(*source)
    counts.save(out, overwrite=True)  # as above
    if reading.checkpoint is not None:
        remove_own(Path(reading.checkpoint))
    _report(counts, out)


def _report(counts: bytepair.Counts, out: Path) -> None:
    size = counts.text_bytes / 1e6
    click.echo(
        f"{len(counts):,} distinct pretokens of {counts.total:,} in {size:,.1f} MB: {out}\n"
        f"next: bytepair train {out}"
    )


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
@option.as_json
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
        tok, paths.groups_of(source), merges=merges, rounds=rounds,
        reading=bytepair.Reading(**reading), threads=threads,
    )  # fmt: skip
    click.echo(json.dumps(asdict(result), ensure_ascii=False, indent=2) if as_json else str(result))
