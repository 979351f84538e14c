"""`bytepair inspect`: what a tokenizer is."""

from __future__ import annotations

from pathlib import Path

import click

import bytepair
from bytepair.cli import option
from bytepair.view import readable


@option.command("bytepair inspect my-tokenizer", "bytepair inspect --text 'Hello world'")
@click.argument("tokenizer", type=option.PATH, default="tokenizer")
@click.option("--text", help="Show how this text is split.")
@click.option("--count", default=12, help="How many tokens to list of each kind.")
def inspect(
    tokenizer: Path,
    text: str | None,
    count: int,
) -> None:
    """Show a tokenizer's values, and its first, last and longest tokens.

    TOKENIZER: the tokenizer folder or file.
    """
    tok = bytepair.load(tokenizer)
    if text is not None:
        click.echo(tok.view(text))
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
        click.echo(f"{name:>11}  {value}")


def _shown(tokens: list[bytes]) -> str:
    return " ".join(readable(token).replace(" ", "·") for token in tokens)
