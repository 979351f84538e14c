"""`bytepair inspect`, `vocabularies`, `compare` and `verify`: look at tokenizers, and check them.

The exit code of `compare` and `verify` says whether all is as it should be.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option, paths
from bytepair.cli.messages import Failure
from bytepair.errors import visible


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
        click.echo(f"{name:>11}  {visible(value)}")


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


@option.command(
    "bytepair compare my-tokenizer exported/tokenizer.json corpus/",
    "bytepair compare gpt2 my-tokenizer",
    "bytepair compare my-tokenizer pruned --by tokens --json 'shards/*.parquet'",
)
@click.argument("one")
@click.argument("two")
@click.argument("source", nargs=-1)
@click.option(
    "--by",
    type=click.Choice(["ids", "tokens"]),
    default="ids",
    help="Compare ids, or the bytes of the tokens.",
)
@click.option(
    "--special",
    type=click.Choice(["all", "text"]),
    default="all",
    help="Encode special tokens in the texts as their ids, or as text.",
)
@click.option("--pattern", help="The split pattern of ONE, if its file does not contain one.")
@click.option(
    "--pattern-of-two", help="The split pattern of TWO, if its file does not contain one."
)
@option.max_chars
@option.column
@option.errors
@option.max_document_bytes
@option.quiet
@option.as_json
def compare(
    one: str,
    two: str,
    source: tuple[str, ...],
    pattern: str | None,
    pattern_of_two: str | None,
    as_json: bool,
    by: Any,
    special: Any,
    **reading: Any,
) -> None:
    """Find where two tokenizers first differ: the text, the byte and the tokens.

    ONE, TWO: a folder, a file or a published name such as gpt2. SOURCE: files, folders or globs of
    text; without SOURCE, the included texts in sixty languages.

    Exit code 0 if all texts are encoded equally, 1 if some differ, 2 if they cannot be compared.
    """
    if not source:
        option.refuse("it needs SOURCE", "max_chars", "column", "errors", "max_document_bytes")
    names = [Path(name).name or name for name in (one, two)]
    if names[0] == names[1]:
        names = [one, two] if one != two else ["one", "two"]
    comparison = bytepair.evaluate.compare(
        one, two, paths.files(source) if source else None,
        by=by, special=special, names=(names[0], names[1]), patterns=(pattern, pattern_of_two),
        reading=bytepair.Reading(**reading),
    )  # fmt: skip
    click.echo(comparison.to_json() if as_json else visible(str(comparison)), nl=not as_json)
    sys.exit(0 if comparison else 1)


@option.command(
    "bytepair verify my-tokenizer",
    "bytepair verify my-tokenizer counts.parquet",
    "bytepair verify shards/",
)
@click.argument("path")
@click.argument("counts", type=option.PATH, required=False)
@option.pattern_of_file
@option.merging
@click.option(
    "--superword-counts",
    type=option.PATH,
    help="For a tokenizer with superwords: counts of the text, split by the tokenizer's pattern.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=3,
    help="For shards: how many documents to decode.",
)
def verify(
    path: str,
    counts: Path | None,
    pattern: str | None,
    ties: Any,
    min_count: int,
    superword_counts: Path | None,
    samples: int,
) -> None:
    """Verify a tokenizer file, every merge of its training, or token shards.

    PATH: a tokenizer (a folder, a file or a published name), or a folder of shards. COUNTS: the
    counts that the tokenizer was trained on.

    For a tokenizer file, all tables are rebuilt and compared, so that a file from an untrusted
    source can be used safely. With COUNTS, each merge must have the highest count at its step. For
    shards, everything recorded in the manifest is checked. Exit code 0 if all checks pass, 1 if one
    fails.
    """
    verdict: object
    if counts is not None:
        option.refuse("COUNTS verifies a tokenizer, not shards", "samples")
        tok, own_counts = (
            bytepair.load(path, pattern=pattern, check=True),
            bytepair.load_counts(counts),
        )
        others = None if superword_counts is None else bytepair.load_counts(superword_counts)
        verdict = bytepair.verify_merges(
            tok, own_counts, ties=ties, min_count=min_count, superword_counts=others
        )
    elif Path(path, "manifest.json").exists():
        option.refuse(f"{path} contains shards", "ties", "min_count", "pattern", "superword_counts")
        verdict = bytepair.shards.verify(path, samples=samples)
    else:
        option.refuse("it needs COUNTS", "ties", "min_count", "superword_counts")
        option.refuse(f"{path} contains no shards", "samples")
        if shard := next(Path(path).glob("*[0-9][0-9][0-9][0-9]*.bin"), None):
            raise Failure(
                f"{path} contains {shard.name} but no manifest.json: the shards are unfinished, or "
                "their manifest was removed",
                "run bytepair shard again to finish them",
            )
        _verify_tokenizer(path, pattern)
        return
    click.echo(str(verdict))
    sys.exit(0 if verdict else 1)


def _verify_tokenizer(path: str, pattern: str | None) -> None:
    """Check a tokenizer and report success; other formats than ours hold no tables to compare."""
    try:
        tok = bytepair.load(path, pattern=pattern, check=True)
    except FileNotFoundError:
        if Path(path).exists():
            reason = f"{path} contains neither a tokenizer nor shards"
        else:
            reason = f"{path} does not exist"
        raise Failure(reason, "check the path") from None
    click.echo(f"verified, all tables are correct: {tok!r}")
