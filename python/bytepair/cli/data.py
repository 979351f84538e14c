"""`bytepair download` and `bytepair shard`: the data that a model is trained on."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import tell
from bytepair.corpus.source import resolve
from bytepair.shards.manifest import InputSplit, ShardFormat


@option.command(
    "bytepair download fineweb-edu -n 8",
    "bytepair download climbmix -n 170",
    "bytepair download HuggingFaceFW/fineweb --pattern 'sample/10BT/*' -n -1 --out fineweb",
)
@click.argument("dataset", default="fineweb-edu")
@click.option(
    "--files",
    "-n",
    "n",
    default=8,
    help="The number of files, starting with the first; -1 for all. For climbmix, the number of "
    "training files; the last file (validation) is always added.",
)
@click.option(
    "--out",
    "-o",
    "dir",
    type=option.PATH,
    help="The output folder.  [default: base_data, or base_data_climbmix, in ~/.cache/bytepair]",
)
@click.option(
    "--pattern", default="*.parquet", help="A glob that selects files of a data set on the Hub."
)
@click.option("--workers", type=option.number, default=4, help="The number of parallel downloads.")
@click.option("--endpoint", help="The URL of the Hub.  [default: HF_ENDPOINT, or huggingface.co]")
def download(
    dataset: str,
    n: int,
    dir: Path | None,
    **options: Any,
) -> None:
    """Download the files of a data set; run it again to resume.

    DATASET: fineweb-edu, climbmix, or a data set on the Hugging Face Hub (owner/name).
    """
    files = bytepair.corpus.download_dataset(dataset, n, dir=dir, **options)
    size = sum(file.stat().st_size for file in files) / 1e6
    place = dir or bytepair.corpus.download.folder(dataset)
    click.echo(f"{len(files):,} files, {size:,.1f} MB: {place}")


#: The options for `shard_options`.
sharding = option.together(
    click.option(
        "--format",
        type=click.Choice(get_args(ShardFormat)),
        default="bytepair",
        help="The format of the shards.",
    ),
    click.option(
        "--tokens-per-shard",
        type=option.number,
        default="100M",
        help="The maximum number of tokens in a shard.",
    ),
    click.option(
        "--bos/--no-bos", default=True, help="Begin each document with the tokenizer's BOS."
    ),
    click.option("--bos-token", help="Begin each document with this special token."),
    click.option("--eos", is_flag=True, help="End each document with the tokenizer's EOS."),
    click.option("--eos-token", help="End each document with this special token."),
    option.column,
    option.max_document_bytes,
    option.errors,
    click.option(
        "--split",
        type=click.Choice(get_args(InputSplit)),
        help="What to read of a data set that says which of its files are for validation; both: "
        "first shards for validation, of the last file if no data set says it, then those for "
        "training.  [default: train; all of other sources]",
    ),
    option.dropout,
)


def shard_options(options: dict[str, Any], **more: Any) -> bytepair.shards.ShardOptions:
    """Remove the shard options from the options of a command and return them."""
    for role in ("bos", "eos"):
        option.one_of(role, f"{role}_token")
        usual, name = options.pop(role), options.pop(f"{role}_token")
        more[role] = name or usual
    option.both_or_none("dropout", "seed")
    names = (
        "format", "tokens_per_shard", "column", "max_document_bytes", "errors", "split",
        "dropout", "seed",
    )  # fmt: skip
    return bytepair.shards.ShardOptions(**{name: options.pop(name) for name in names}, **more)


@option.command(
    "bytepair shard 'base_data/*.parquet' -t my-tokenizer -o shards",
    "bytepair shard corpus/ -o gpt2-shards --format nanogpt --split both",
    "srun --ntasks=100 bytepair shard corpus/ -o shards --world-size 100",
)
@option.sources
@option.out_folder
@option.tokenizer
@sharding
@click.option(
    "--doc-cap", type=option.number, help="Encode at most this many characters of each document."
)
@option.threads
@option.rank
@option.world_size
@option.ray
@option.quiet
def shard(
    source: tuple[str, ...],
    out: Path,
    tokenizer: str,
    pattern: str | None,
    rank: int | None,
    world_size: int | None,
    threads: int | None,
    doc_cap: int | None,
    ray: bool,
    **options: Any,
) -> None:
    """Encode text and write token shards; run it again to resume.

    SOURCE: files, folders, globs or URLs. A second run checks the shards, and writes missing or
    damaged ones again. New files after the old ones are added.
    """
    values = asdict(shard_options(options, doc_cap=doc_cap))
    tok = bytepair.load(tokenizer, pattern=pattern)
    split: Any = "all" if values["split"] == "both" else values["split"]
    files = resolve(bytepair.corpus.Paths(source), split=split)
    manifest: bytepair.shards.Manifest | None
    if ray or rank is not None or world_size is not None:
        manifest = bytepair.distributed.shard(
            files, tok, out, rank=rank, world_size=world_size, ray=ray, threads=threads,
            **values,
        )  # fmt: skip
    else:
        manifest = bytepair.shards.write(files, tok, out, threads=threads, **values)
    if manifest is None:
        click.echo("this rank is done; the last rank to finish writes the shards")
        return
    for left in manifest.skipped:
        tell("warning", f"skipped {left['input']}, {_rows(left)}: {left['reason']}")
    click.echo(f"{manifest}: {out}")
    click.echo(f"next: bytepair verify {out}")


def _rows(left: dict[str, Any]) -> str:
    first, count = left["first"], left["rows"]
    if count is None:
        return f"from row {first} on"
    return f"row {first}" if count == 1 else f"rows {first} to {first + count - 1}"
