"""`bytepair evaluate`: measure a tokenizer and compare it with others."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import Misuse, tell
from bytepair.cli.option import OUTPUT_FILE
from bytepair.corpus.files import Files, announce, files_matching, of_split, splits_of
from bytepair.files.outputs import write_whole


@option.command(
    "bytepair evaluate my-tokenizer",
    "bytepair evaluate my-tokenizer --val 'shards/val*.parquet' --markdown > figures.md",
    "bytepair evaluate my-tokenizer --against other-tokenizer --json",
    "bytepair evaluate my-tokenizer --parallel 'flores/*.txt' --base en",
)
@click.argument("tokenizer", default="tokenizer")
@option.pattern_of_file
@click.option(
    "--against",
    multiple=True,
    help="A tokenizer to compare with, or none.  [default: gpt2, cl100k_base, o200k_base]",
)
@click.option(
    "--train", multiple=True, metavar="[NAME=]PATH", help="Training text; may be repeated."
)
@click.option(
    "--val", multiple=True, metavar="[NAME=]PATH", help="Validation text; may be repeated."
)
@click.option(
    "--max-chars", type=option.number, default="10M", help="The size of the sample of a text."
)
@option.column
@option.errors
@option.max_document_bytes
@option.quiet
@click.option("--markdown", is_flag=True, help="Write Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Write all figures as JSON.")
@click.option(
    "--sizes", type=OUTPUT_FILE, help="Write bytes per token by vocabulary size: .csv or .svg."
)
@click.option(
    "--token-bytes", type=OUTPUT_FILE, help="Write the bytes of each id: .npy, or .pt for torch."
)
@click.option(
    "--parallel", multiple=True, metavar="NAME=PATH", help="The same text in each language."
)
@click.option("--base", help="With --parallel: the reference language.")
def evaluate(
    tokenizer: str,
    pattern: str | None,
    against: tuple[str, ...],
    train: tuple[str, ...],
    val: tuple[str, ...],
    markdown: bool,
    as_json: bool,
    sizes: Path | None,
    token_bytes: Path | None,
    parallel: tuple[str, ...],
    base: str | None,
    **reading: Any,
) -> None:
    """Compare tokenizers: compression by text and language, token usage, vocabulary, sizes.

    TOKENIZER: a folder, a file or a published name such as gpt2; by default the folder
    "tokenizer".
    """
    option.one_of("markdown", "as_json")
    if parallel:
        option.refuse(
            "--parallel reads its own text", "train", "val", "max_chars", "sizes",
            "max_document_bytes",
        )  # fmt: skip
    else:
        option.refuse("it needs --parallel", "base")
        if not train and not val:
            nothing = "there is neither --train nor --val to read"
            option.refuse(nothing, "max_chars", "column", "errors")
    option.ending(sizes, ".csv", ".svg")
    option.ending(token_bytes, ".npy", ".pt")
    tok = bytepair.load(tokenizer, pattern=pattern)
    if token_bytes:
        bytepair.evaluate.save_token_bytes(tok, token_bytes, overwrite=True)
    who = _names(tokenizer, against)
    if parallel:
        _parallel(tok, who, parallel, base, markdown=markdown, as_json=as_json, **reading)
        return
    texts = {
        name: bytepair.evaluate.documents(_files_of(some, split), **reading)
        for kind, sources, split in (("train", train, "train"), ("validation", val, "val"))
        for name, some in option.named_paths(sources, kind).items()
    }
    evaluation = bytepair.evaluate.measure(tok, **who, texts=texts)
    _tell_missing(evaluation.missing)
    if sizes:
        _write_sizes(evaluation, sizes)
    if as_json:
        click.echo(bytepair.evaluate.to_json(evaluation), nl=False)
    elif markdown:
        click.echo(bytepair.evaluate.to_markdown(evaluation), nl=False)
    else:
        _print(lambda width: bytepair.evaluate.to_terminal(evaluation, width))


def _parallel(
    tok: bytepair.Tokenizer, who: dict[str, Any], parallel: Sequence[str], base: str | None, *,
    markdown: bool, as_json: bool, column: str, errors: Any, **_: Any,
) -> None:  # fmt: skip
    from bytepair.evaluate.evaluation import rivals_of

    tokenizers, missing = rivals_of(tok, **who)
    _tell_missing(missing)
    texts = bytepair.evaluate.parallel(option.groups_of(parallel), column=column, errors=errors)
    costs = bytepair.evaluate.compress(tokenizers, texts)
    table = bytepair.evaluate.parity(costs, base)
    if as_json:
        click.echo(json.dumps([vars(one) for one in costs], ensure_ascii=False, indent=2))
    elif markdown:
        click.echo(table.to_markdown())
    else:
        _print(table.to_terminal)


def _write_sizes(evaluation: bytepair.evaluate.Evaluation, path: Path) -> None:
    # Without a training history, `sweep` raises with the reason.
    sweep = evaluation.sweep or bytepair.evaluate.sweep(evaluation.tokenizer)
    if path.suffix == ".svg":
        picture = io.BytesIO()
        figure: Any = bytepair.plot.sizes(sweep, evaluation.corpus).figure
        figure.savefig(picture, format="svg")
        write_whole(path, picture.getvalue())
    else:
        sweep.save(path, overwrite=True)


def _tell_missing(names: Collection[str]) -> None:
    if names:
        tell(
            "warning",
            f"left out, neither on this machine nor in reach of the network: {', '.join(names)}",
            "bytepair vocabularies lists where their files are searched for",
        )


def _files_of(names: Sequence[str], split: Any) -> Files:
    """The files of a split where the data set has it, else all that are named."""
    files = files_matching(names)
    splits = splits_of(files.files)
    has_split = any(splits) and split in {one or "train" for one in splits}
    files = of_split(files, split if has_split else "all")
    announce(files)
    return files


def _names(tokenizer: str, against: Sequence[str]) -> dict[str, Any]:
    if "none" in against and set(against) != {"none"}:
        raise Misuse("--against none contradicts the other --against", "give one of them")
    name = Path(tokenizer).resolve().name if Path(tokenizer).exists() else tokenizer
    rivals = [name for name in against or bytepair.evaluate.USUAL_RIVALS if name != "none"]
    return {"name": f"{name} (ours)" if name in against else name, "against": rivals}


def _print(parts: Callable[[int], list[Any]]) -> None:
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # the command ends as all others do, not with exit code 1

    # A table truncated to 80 columns would lose figures.
    console = Output() if sys.stdout.isatty() else Output(width=200)
    for part in parts(console.width):
        console.print(part, crop=False)
