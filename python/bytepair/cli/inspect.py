"""`bytepair inspect`: what a tokenizer is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import bytepair
from bytepair.view import readable


def inspect(
    tokenizer: Annotated[Path, typer.Argument(help="The tokenizer folder or file.")] = Path(
        "tokenizer"
    ),
    text: Annotated[str | None, typer.Option(help="Show how this text is split.")] = None,
    count: Annotated[int, typer.Option(help="How many tokens to list of each kind.")] = 12,
) -> None:
    """Show a tokenizer's values, and its first, last and longest tokens.

    Examples:
    * `bytepair inspect my-tokenizer`

    * `bytepair inspect --text 'Hello world'`
    """
    tok = bytepair.load(tokenizer)
    if text is not None:
        typer.echo(tok.view(text))
        return
    names = {regex: name for name, regex in bytepair.PATTERNS.items()}
    merged = [token for token in tok.mergeable_ranks if len(token) > 1]
    longest = sorted(merged, key=len, reverse=True)
    rows = {
        "ids": f"{tok.vocab_size:,}",
        "merges": f"{len(merged):,}",
        "rule": tok.merge_rule,
        "pattern": f"{names.get(tok.pattern, 'its own')}: {tok.pattern}",
        "unicode": tok.unicode_version,
        "fingerprint": tok.fingerprint,
        "special": " ".join(f"{name}={i}" for name, i in tok.special_tokens.items()) or "none",
        "first": _shown(merged[:count]),
        "last": _shown(merged[-count:]),
        "longest": _shown(longest[:count]),
        "notes": " ".join(
            f"{name}={value}" for name, value in tok.notes.items() if len(value) < 80
        ),
    }
    for name, value in rows.items():
        typer.echo(f"{name:>11}  {value}")


def _shown(tokens: list[bytes]) -> str:
    return " ".join(readable(token).replace(" ", "·") for token in tokens)
