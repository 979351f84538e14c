"""`bytepair convert`, `bytepair prune` and `bytepair extend`: make a new tokenizer from another."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from typing import Any

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import BadValue, Misuse, in_words, tell, with_options
from bytepair.cli.option import OUTPUT_FILE
from bytepair.corpus.column import Errors
from bytepair.files.outputs import check_output, write_whole


@option.command(
    "bytepair convert my-tokenizer tokenizer.json",
    "bytepair convert my-tokenizer hf/ --format huggingface",
    "bytepair convert vocab.tiktoken out.bytepair --pattern gpt4",
    "bytepair convert my-tokenizer my-vocab.gguf --eos-token '<|end|>'",
)
@click.argument("source")
@click.argument("target", type=option.PATH)
@click.option(
    "--format",
    help=f"The format to write: {option.WRITTEN}.  [default: chosen by the name of TARGET]",
)
@click.option("--source-format", help="The format to read.  [default: detected from the content]")
@click.option("--pattern", help="The split pattern, if SOURCE does not contain one.")
@click.option(
    "--special-tokens", help="Special tokens that SOURCE lacks: JSON of names and ids, or its file."
)
@option.roles
@click.option(
    "--sentencepiece-ids", is_flag=True, help="Renumber the tokens as run.c of llama2.c expects."
)
@click.option(
    "--uncovered", type=click.Choice(["error", "drop"]), help="Text that no token covers."
)
@option.force
@click.option("--lossy", is_flag=True, help="Skip features that cannot be read or written.")
@click.option(
    "--allow-pickle", is_flag=True, help="Allow reading tokenizer.pkl; no code in it is executed."
)
@click.option("--revision", help="The commit, tag or branch, if SOURCE is owner/name.")
def convert(
    source: str,
    target: Path,
    format: str | None,
    source_format: str | None,
    special_tokens: str | None,
    sentencepiece_ids: bool,
    overwrite: bool,
    lossy: bool,
    **options: Any,
) -> None:
    """Convert a tokenizer between bytepair, huggingface, tiktoken, gpt2, nanochat, gguf and others.

    SOURCE: a file, a folder, the name of a tiktoken encoding, or owner/name on the Hugging Face
    Hub. TARGET: the output file or folder.
    """
    special = None if special_tokens is None else _special(special_tokens)
    names = ("pattern", "allow_pickle", "revision", "uncovered")
    reading = {name: options.pop(name) for name in names}
    tokenizer = bytepair.load(source, source_format, special_tokens=special, lossy=lossy, **reading)
    tokenizer = option.with_roles(tokenizer, options)
    if sentencepiece_ids:
        tokenizer = bytepair.engines.with_sentencepiece_ids(tokenizer)
    try:
        path = tokenizer.export(target, format, lossy=lossy, overwrite=overwrite)
    except bytepair.errors.ArgumentError as error:
        raise BadValue(*in_words(error), param_hint="--format") from None
    losses = bytepair.compat.export_losses(tokenizer, format or target, target)
    for lost in losses:
        tell("warning", f"not kept in {path}: {lost}")
    if losses.hint:
        tell("hint", with_options(losses.hint))
    click.echo(f"{tokenizer.vocab_size:,} ids written to {path}")


def _special(text: str) -> dict[str, int] | str:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        tokens = json.loads(text)
    except ValueError as error:
        raise BadValue(f"invalid JSON: {error}", param_hint="--special-tokens") from None
    if not isinstance(tokens, dict) or not all(type(id) is int for id in tokens.values()):
        raise BadValue("expected a JSON object of names and ids", param_hint="--special-tokens")
    return tokens


@option.command(
    "bytepair count corpus/ -o counts.parquet",
    "bytepair prune my-tokenizer --counts counts.parquet -o smaller --ids ids.npy",
    "bytepair prune my-tokenizer --counts counts.parquet --vocab-size 32000 -o smaller",
    "bytepair prune my-tokenizer --unreachable -o smaller",
)
@click.argument("tokenizer")
@option.pattern_of_file
@click.option(
    "--counts", type=option.PATH, help="Keep the tokens that occur in this file of counts."
)
@click.option(
    "--unreachable", is_flag=True, help="Remove only tokens that merging can never produce."
)
@click.option("--vocab-size", type=option.size, help="Keep at most this many ids.")
@click.option(
    "--ids", type=OUTPUT_FILE, help="Write the map from old to new ids to this .npy file."
)
@option.out_folder
@option.force
def prune(
    tokenizer: str,
    pattern: str | None,
    counts: Path | None,
    unreachable: bool,
    vocab_size: int | None,
    ids: Path | None,
    out: Path,
    overwrite: bool,
) -> None:
    """Remove tokens from a tokenizer, and keep those that the remaining tokens are merged from.

    TOKENIZER: a folder, a file or a published name such as gpt2.

    Special tokens, single bytes, and the intermediate tokens of a kept token are always kept. A
    text whose tokens are all kept is encoded to the same tokens, with new ids.
    """
    option.one_of("counts", "unreachable")
    option.one_of("vocab_size", "unreachable")
    option.ending(ids, ".npy")
    if out.is_dir():
        check_output(out / "tokenizer.bytepair", overwrite=overwrite)
    tok = bytepair.load(tokenizer, pattern=pattern)
    if unreachable:
        pruned = bytepair.prune(tok, drop=bytepair.evaluate.unreachable(tok))
    elif counts is not None:
        kept = bytepair.training.load_counts(counts, pattern=pattern)
        pruned = bytepair.prune(tok, kept, vocab_size=vocab_size)
    elif vocab_size is not None:
        pruned = bytepair.prune(tok, vocab_size)
    else:
        raise Misuse("pass --counts, --vocab-size or --unreachable: which tokens to keep")
    path = pruned.tokenizer.save(out, overwrite=overwrite)
    if ids is not None:
        import numpy as np

        file = io.BytesIO()
        np.save(file, pruned.ids)
        write_whole(ids, file.getvalue(), overwrite=overwrite)
    gone = tok.vocab_size - pruned.tokenizer.vocab_size
    click.echo(f"{path}: {pruned.tokenizer.vocab_size:,} ids, {gone:,} fewer")
    _tell_next(tokenizer, path, "--by tokens", pattern)


@option.command(
    "bytepair extend gpt2 medicine/ --extra 4096 -o gpt2-medicine",
    "bytepair extend my-tokenizer new.parquet --extra 1000 --column body -o larger",
)
@click.argument("tokenizer")
@click.argument("source", nargs=-1, required=True)
@click.option("--extra", type=option.size, required=True, help="Learn at most this many tokens.")
@option.pattern_of_file
@option.column
@option.errors
@option.max_chars
@option.merging
@option.threads
@option.out_folder
@option.force
def extend(
    tokenizer: str,
    source: tuple[str, ...],
    extra: int,
    pattern: str | None,
    column: str,
    errors: Errors,
    max_chars: int | None,
    ties: Any,
    min_count: int,
    threads: int | None,
    out: Path,
    overwrite: bool,
) -> None:
    """Learn more tokens from new text; existing ids and merges stay the same.

    TOKENIZER: a folder, a file or a published name such as gpt2. SOURCE: files, folders, globs or
    URLs, as in `bytepair train`. New tokens get the ids after all others, so that the rows of a
    model's embeddings stay valid.
    """
    if out.is_dir():
        check_output(out / "tokenizer.bytepair", overwrite=overwrite)
    tok = bytepair.load(tokenizer, pattern=pattern)
    reading = bytepair.Reading(column=column, errors=errors, max_chars=max_chars)
    larger = bytepair.extend(
        tok, option.files(source), extra,
        ties=ties, min_count=min_count, reading=reading, threads=threads,
    )  # fmt: skip
    path = larger.save(out, overwrite=overwrite)
    click.echo(f"{path}: {larger.vocab_size:,} ids, {larger.vocab_size - tok.vocab_size:,} more")
    _tell_next(tokenizer, path, "", pattern)


def _tell_next(tokenizer: str, path: Path, options: str, pattern: str | None) -> None:
    words = ["bytepair compare", tokenizer, str(path.parent), options]
    words += [] if pattern is None else ["--pattern", shlex.quote(pattern)]
    click.echo(f"next: {' '.join(filter(None, words))}")
