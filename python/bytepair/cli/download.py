"""`bytepair download`: download a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option


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
