"""`bytepair evaluate`: the figures of a tokenizer, beside those of others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import bytepair
from bytepair.cli import option


def evaluate(
    tokenizer: Annotated[
        str, typer.Argument(help="The tokenizer: a folder, a file or a published name.")
    ] = "tokenizer",
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="What to compare with: a folder, a file, a published name "
            f"({', '.join(bytepair.evaluate.PUBLISHED)}), or none; may be repeated. "
            "[default: gpt2, cl100k_base and o200k_base]"
        ),
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(help="Files, folders or globs of training text; may be repeated."),
    ] = None,
    val: Annotated[
        list[str] | None,
        typer.Option(help="The same for validation text."),
    ] = None,
    max_chars: Annotated[
        int, typer.Option(min=1, help="Read so many characters of each of them.")
    ] = 10_000_000,
    column: option.Column = "text",
    width: Annotated[int, typer.Option(min=1, help="Numbers in the embedding of an id.")] = 768,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write all numbers as JSON.")] = False,
    sizes: Annotated[
        Path | None,
        typer.Option(help="Write bytes per token of every size here: .csv, or .svg for a plot."),
    ] = None,
    token_bytes: Annotated[
        Path | None, typer.Option(help="Write the bytes of each id here: .npy, or .pt for torch.")
    ] = None,
) -> None:
    """Compare a tokenizer with others: texts, languages, use, vocabulary, sizes.

    Examples:
    * `bytepair evaluate my-tokenizer`

    * `bytepair evaluate my-tokenizer --val 'shards/val*.parquet' --markdown > figures.md`

    * `bytepair evaluate my-tokenizer --against other-tokenizer --json`
    """
    texts = {"train": train or [], "validation": val or []}
    found = found_for(tokenizer, against, texts, column, max_chars, width)
    if sizes:
        _write_sizes(found, sizes)
    if token_bytes:
        bytepair.evaluate.save_token_bytes(found.tokenizer, token_bytes)
    if as_json:
        typer.echo(bytepair.evaluate.to_json(found), nl=False)
    elif markdown:
        typer.echo(bytepair.evaluate.to_markdown(found), nl=False)
    else:
        _print(found)


def _write_sizes(found: bytepair.evaluate.Evaluation, path: Path) -> None:
    sweep = found.sweep or bytepair.evaluate.sweep(found.tokenizer)  # which says why there is none
    if path.suffix == ".svg":
        path.write_text(bytepair.report.sizes_plot(sweep, found.corpus), encoding="utf-8")
    else:
        sweep.save(path)


def found_for(
    tokenizer: str,
    against: list[str] | None,
    texts: dict[str, list[str]],
    column: str,
    max_chars: int,
    width: int,
) -> bytepair.evaluate.Evaluation:
    """Evaluate as the options say, and tell on standard error what was left out."""
    found = bytepair.evaluate.measure(
        bytepair.evaluate.open_tokenizer(tokenizer),
        name=_name(tokenizer, against or []),
        against=_rivals(against),
        texts=_texts(texts, column, max_chars),
        width=width,
    )
    for reason in found.missing.values():
        typer.echo(f"bytepair: {reason}", err=True)
    return found


def _name(tokenizer: str, against: list[str]) -> str:
    name = Path(tokenizer).resolve().name if Path(tokenizer).exists() else tokenizer
    return f"{name} (ours)" if name in against else name


def _rivals(against: list[str] | None) -> list[str]:
    if against is None:
        return list(bytepair.evaluate.USUAL_RIVALS)
    return [name for name in against if name != "none"]


def _texts(sources: dict[str, list[str]], column: str, max_chars: int) -> dict[str, list[str]]:
    return {
        name: bytepair.evaluate.documents(
            [Path(path) for path in paths], column=column, max_chars=max_chars
        )
        for name, paths in sources.items()
        if paths
    }


def _print(found: bytepair.evaluate.Evaluation) -> None:
    from rich.console import Console

    console = Console()
    if not sys.stdout.isatty():  # a table cut to eighty columns would lose figures
        console = Console(width=200)
    for part in bytepair.evaluate.to_terminal(found):
        console.print(part)
