"""`bytepair decode`: decode ids to text."""

from __future__ import annotations

import re
import sys

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair decode 72 101 108 108 111",
    "echo 'Hello world' | bytepair encode | bytepair decode",
)
@click.argument("ids", nargs=-1)
@option.tokenizer
@click.option(
    "--lines", is_flag=True, help="Treat each line as a document; end each text with a newline."
)
def decode(
    ids: tuple[str, ...],
    tokenizer: str,
    pattern: str | None,
    lines: bool,
) -> None:
    """Decode ids (separated by spaces, commas or brackets) to the bytes of their text.

    IDS: the ids. Without IDS, they are read from standard input.
    """
    tok = bytepair.load(tokenizer, pattern=pattern)
    text = " ".join(ids) if ids else sys.stdin.buffer.read().decode(errors="replace")
    for line in text.splitlines() if lines else [text]:
        sys.stdout.buffer.write(tok.decode_bytes(_numbers(line)))
        if lines:
            sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def _numbers(text: str) -> list[int]:
    words = [word for word in re.split(r"[\s,\[\]]+", text) if word]
    wrong = next((word for word in words if not re.fullmatch(r"-?[0-9]+", word)), None)
    if wrong is not None:
        raise bytepair.errors.UnknownIdError(
            f"{wrong!r} is not an id; ids are integers",
            hint="read a file of ids from standard input, as in `bytepair decode < FILE`",
        )
    return [int(word) for word in words]
