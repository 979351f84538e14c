"""`bytepair inspect` and `bytepair vocabularies`: show one tokenizer, list those that are here."""

from __future__ import annotations

import json
from typing import Any

import click

import bytepair
from bytepair.cli import option


@option.command(
    "bytepair inspect my-tokenizer",
    "bytepair inspect --text 'Hello world'",
    "bytepair inspect gpt2.tiktoken --pattern gpt2",
)
@click.argument("tokenizer", default="tokenizer")
@option.pattern_of_file
@click.option("--text", help="Show the tokens of this text instead.")
@click.option(
    "--tokens",
    type=click.IntRange(min=0),
    default=12,
    help="How many first, last and longest tokens to list.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Write the properties as JSON, without tokens."
)
def inspect(
    tokenizer: str,
    pattern: str | None,
    text: str | None,
    tokens: int,
    as_json: bool,
) -> None:
    """Show the properties of a tokenizer, and its first, last and longest tokens.

    TOKENIZER: a folder, a file or a published name such as gpt2; by default the folder
    "tokenizer".
    """
    option.one_of("text", "tokens", "as_json")
    tok = bytepair.load(tokenizer, pattern=pattern)
    if text is not None:
        click.echo(tok.show(text, color=option.colored()))
        return
    if as_json:
        click.echo(json.dumps(_values(tok), ensure_ascii=False, indent=1))
        return
    names = [name for name, regex in bytepair.PATTERNS.items() if regex == tok.pattern]
    merged = [token for token in tok.mergeable_ranks() if len(token) > 1]
    longest = sorted(merged, key=len, reverse=True)
    rows = {
        "ids": f"{tok.vocab_size:,}",
        "merges": f"{len(merged):,}",
        "rule": tok.merge_rule,
        **_rules(tok, names),
        "unicode": bytepair.UNICODE_VERSION,
        "fingerprint": tok.fingerprint,
        "special": " ".join(f"{_named(n)}={i}" for n, i in tok.special_tokens.items()) or "none",
        "roles": " ".join(f"{role}={_named(n)}" for role, n in tok.roles.items()) or "none",
        "first": _shown(merged[:tokens]),
        "last": _shown(merged[max(len(merged) - tokens, 0) :]),
        "longest": _shown(longest[:tokens]),
        "notes": " ".join(
            f"{name}={value}" for name, value in tok.notes.items() if len(value) < 80
        ),
    }
    for name, value in rows.items():
        click.echo(f"{name:>11}  {value}")


def _rules(tok: bytepair.Tokenizer, names: list[str]) -> dict[str, str]:
    """What happens to a text before it is merged."""
    pattern, rules = tok.pattern, bytepair.tokenizer.text_rules(tok)
    steps = (pattern,) if isinstance(pattern, str) else pattern or tuple(rules.pre_tokenizer)
    return {
        "pattern": f"{', '.join(names) or 'custom'}: {', then '.join(steps) or 'none'}",
        "normalizer": ", ".join(rules.normalizer) or "none",
        "uncovered": _uncovered(tok),
        "lossless": "yes"
        if bytepair.tokenizer.is_lossless(tok)
        else "no: not every text is decoded to itself",
    }


def _uncovered(tok: bytepair.Tokenizer) -> str:
    """The bytes that no token covers, and what happens to them."""
    missing = bytepair.tokenizer.uncovered(tok)
    shown = " ".join(f"0x{byte:02X}" for byte in missing[:8]) + (" ..." if missing[8:] else "")
    dropped = bytepair.tokenizer.text_rules(tok).drops_uncovered
    return f"{shown or 'no byte'}: {'left out' if dropped else 'an error'}"


def _values(tok: bytepair.Tokenizer) -> dict[str, Any]:
    """The properties of a tokenizer and its metadata, by the names of the Python attributes."""
    names = (
        "vocab_size", "merge_rule", "pattern", "fingerprint",
        "special_tokens", "roles", "chat_templates", "notes",
    )  # fmt: skip
    return {name: getattr(tok, name) for name in names} | {
        "ignore_merges": bytepair.tokenizer.ignores_merges(tok),
        "unicode_version": bytepair.UNICODE_VERSION,
        "normalizer": bytepair.tokenizer.text_rules(tok).normalizer,
        "uncovered": "drop" if bytepair.tokenizer.text_rules(tok).drops_uncovered else "error",
        "lossless": bytepair.tokenizer.is_lossless(tok),
        "merges": len(tok.merges()),
    }


def _named(special: str) -> str:
    """The name of a special token, with control characters escaped for the terminal."""
    return bytepair.readable(special.encode())


def _shown(tokens: list[bytes]) -> str:
    return " ".join(bytepair.readable(token).replace(" ", "·") for token in tokens)


@option.command("bytepair vocabularies")
def vocabularies() -> None:
    """List the published vocabularies that can be loaded here by name, without a network.

    Then the folders that were searched: the cache of tiktoken, packages that bring rank files, and
    the cache of the Hugging Face Hub. The names are for -t and for bytepair.load.
    """
    click.echo(str(bytepair.list_vocabularies()))
