"""`bytepair train`: text files to a tokenizer folder."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import bytepair
from bytepair.cli import option

#: Enough for the sample text, which is small.
SAMPLE_VOCAB_SIZE = 8192

SENTENCE = "Hello, how art thou? 1234 times — 你好，世界! Привет, мир! नमस्ते"


def train(
    source: Annotated[
        list[str] | None,
        typer.Argument(help="Files, folders, globs or URLs; the sample text if there is none."),
    ] = None,
    vocab_size: Annotated[
        int | None,
        typer.Option(help="Ids in all. [default: 65536, or 8192 for the sample text]"),
    ] = None,
    out: option.OutFolder = Path("tokenizer"),
    pattern: option.Pattern = "nanochat",
    special: Annotated[
        list[str] | None,
        typer.Option(help="A special token; may be repeated. [default: nanochat's nine]"),
    ] = None,
    initial: Annotated[
        list[str] | None,
        typer.Option(help="A word that shall be a token in any case; may be repeated."),
    ] = None,
    max_chars: option.MaxChars = None,
    doc_cap: option.DocCap = None,
    ties: Annotated[
        Literal["rustbpe", "hf", "first-seen", "bytes-max"],
        typer.Option(help="Which of equal pairs is merged first."),
    ] = "rustbpe",
    min_count: Annotated[int, typer.Option(min=1, help="Merge pairs that occur this often.")] = 1,
    threads: option.Threads = None,
    column: option.Column = "text",
    errors: option.Errors = "strict",
) -> None:
    """Train a tokenizer on text files, jsonl or parquet (each also .gz or .zst).

    Examples:
    * `bytepair train` — on the sample text, in a second

    * `bytepair train corpus/ --vocab-size 32768 -o my-tokenizer`

    * `bytepair train 'shards/*.parquet' --max-chars 2000000000 --doc-cap 10000`

    * `bytepair train counts.parquet` — from what `bytepair count` wrote
    """
    default_size = 65536 if source else SAMPLE_VOCAB_SIZE
    started = time.perf_counter()
    tokenizer = bytepair.train(
        _source(source or [], column),
        default_size if vocab_size is None else vocab_size,
        pattern=pattern,
        special_tokens=bytepair.NANOCHAT_SPECIAL_TOKENS if special is None else special,
        initial_tokens=initial or [],
        max_chars=max_chars,
        doc_cap=doc_cap,
        ties=ties,
        min_count=min_count,
        threads=threads,
        column=column,
        errors=errors,
    )
    seconds = time.perf_counter() - started
    path = tokenizer.save(out)
    color = os.isatty(1) and not os.environ.get("NO_COLOR")
    typer.echo(tokenizer.view(SENTENCE, color=color))
    if len(tokenizer.curve) > 1 and tokenizer.curve[0]:
        typer.echo(_curve(tokenizer))
    if source is None:
        typer.echo(_bytes_per_token(tokenizer))
    size = path.stat().st_size / 1e6
    typer.echo(f"{tokenizer.vocab_size:,} ids in {seconds:.2f} s, saved to {path} ({size:.2f} MB)")
    for lost in tokenizer.losses("gguf"):
        typer.echo(f"note: a GGUF file cannot hold {lost}")
    typer.echo(f"next: bytepair evaluate {out}, or bytepair explore {out}")


def _source(names: list[str], column: str) -> Any:
    """A single parquet file may hold counts instead of text."""
    if len(names) == 1 and bytepair.Counts.found_in(names[0]):
        return bytepair.Counts.load(names[0])
    return option.source(names, column) if names else bytepair.sample.paths()


def _curve(tokenizer: bytepair.Tokenizer) -> str:
    """Bytes per token of the training text at each doubling of the vocabulary, as bars."""
    curve = tokenizer.curve
    sizes = [merges for merges in (2**n - 256 for n in range(9, 22)) if merges < len(curve) - 1]
    rows = [
        (256 + merges, int(curve[0]) / int(curve[merges])) for merges in [*sizes, len(curve) - 1]
    ]
    widest = max(ratio for _, ratio in rows)
    bars = (f"{size:>9,} {ratio:5.2f} {'█' * round(40 * ratio / widest)}" for size, ratio in rows)
    return "\n".join(["bytes per token of the training text, by size of the vocabulary", *bars])


def _bytes_per_token(tokenizer: bytepair.Tokenizer) -> str:
    """The compression of the sample text, English and all languages together."""
    texts = [path.read_text(encoding="utf-8") for path in bytepair.sample.paths()]
    counts = [len(ids) for ids in tokenizer.encode_batch(texts)]
    sizes = [len(text.encode()) for text in texts]
    english, others = sizes[0] / counts[0], sum(sizes[1:]) / sum(counts[1:])
    return f"{english:.2f} bytes per token on Shakespeare, {others:.2f} on sixty languages"
