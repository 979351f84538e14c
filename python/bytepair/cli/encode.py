"""`bytepair encode`: text to ids."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

import bytepair


def encode(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Text files, one document each; standard input if there is none."),
    ] = None,
    tokenizer: Annotated[
        Path, typer.Option("--tokenizer", "-t", help="The tokenizer folder or file.")
    ] = Path("tokenizer"),
    text: Annotated[str | None, typer.Option(help="Encode this text instead.")] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Each line is a document; its end is left out.")
    ] = False,
    special: Annotated[
        Literal["text", "all", "error"],
        typer.Option(help="What special tokens in the text are: text, their ids, or an error."),
    ] = "text",
    prepend: Annotated[str | None, typer.Option(help="A special token to begin with.")] = None,
    append: Annotated[str | None, typer.Option(help="A special token to end with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write each as a JSON list.")] = False,
) -> None:
    """Encode text: one line of ids for each document.

    Examples:
    * `echo 'Hello world' | bytepair encode`

    * `bytepair encode book.txt -t my-tokenizer > ids.txt`

    * `bytepair encode --lines < questions.txt`
    """
    tok = bytepair.load(tokenizer)
    for document in _documents(files or [], text, lines):
        ids = tok.encode(document, special=special, prepend=prepend, append=append)
        typer.echo(json.dumps(ids) if as_json else " ".join(map(str, ids)))


def _documents(files: list[Path], text: str | None, lines: bool) -> list[str]:
    if text is not None:
        texts = [text]
    elif files:
        texts = [_decoded(path.read_bytes(), str(path)) for path in files]
    else:
        texts = [_decoded(sys.stdin.buffer.read(), "standard input")]
    return (
        [line for t in texts for line in t.split("\n")[: -1 if t.endswith("\n") else None]]
        if (lines)
        else texts
    )


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise bytepair.errors.CorpusError(f"{name} is not UTF-8 at byte {error.start}") from None
