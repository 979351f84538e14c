"""`bytepair download`: data sets to files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import bytepair


def download(
    dataset: Annotated[
        str, typer.Argument(help="fineweb-edu, or a data set of the Hugging Face Hub (owner/name).")
    ] = "fineweb-edu",
    n: Annotated[int, typer.Option("-n", help="The first so many files; -1 for all.")] = 8,
    dir: Annotated[
        Path | None, typer.Option("--dir", "-o", help="[default: ~/.cache/bytepair/base_data]")
    ] = None,
    pattern: Annotated[
        str, typer.Option(help="Which files of a data set of the Hub, as a glob.")
    ] = "*.parquet",
    workers: Annotated[int, typer.Option(min=1, help="Files at the same time.")] = 4,
    endpoint: Annotated[
        str | None, typer.Option(help="Where the Hub is. [default: HF_ENDPOINT, or huggingface.co]")
    ] = None,
) -> None:
    """Load files of a data set; run it again to continue after a break.

    Examples:
    * `bytepair download fineweb-edu -n 8`

    * `bytepair download HuggingFaceFW/fineweb --pattern 'sample/10BT/*' -n -1 --dir fineweb`
    """
    files = bytepair.download.download(
        dataset, n, dir=dir, pattern=pattern, workers=workers, endpoint=endpoint
    )
    size = sum(file.stat().st_size for file in files) / 1e6
    typer.echo(f"{len(files):,} files, {size:,.1f} MB: {dir or bytepair.download.folder()}")
