"""`bytepair train`, `convert`, `prune` and `extend`: make a tokenizer from text or another one."""

from __future__ import annotations

import io
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Any, Final

import click

import bytepair
from bytepair.cli import option
from bytepair.cli.messages import BadValue, Misuse, in_words, tell, with_options
from bytepair.cli.option import FOLDER, OUTPUT_FILE
from bytepair.files.outputs import check_output, remove_own, write_whole

#: The default vocabulary size for the sample text, which is small.
SAMPLE_VOCAB_SIZE = 8192

#: What the command shows after training, token by token.
SENTENCE = "Good morrow, how art thou? 1234 times"

vocabulary = option.together(
    click.option(
        "--special-token",
        "special_tokens",
        multiple=True,
        help="A special token; may be repeated.  [default: the nine of nanochat]",
    ),
    click.option("--no-special-tokens", is_flag=True, help="Train without special tokens."),
    click.option(
        "--reserved", type=click.IntRange(min=0), default=0, help="Ids for later special tokens."
    ),
    option.merging,
    title="Vocabulary",
)


several_sources = option.together(
    option.weight,
    click.option("--mixture", metavar="NAME=SHARE,...", help="The share of each source."),
    click.option(
        "--parity",
        is_flag=True,
        help="Choose each merge from the source that compresses worst; SOURCE is NAME=PATH.",
    ),
    click.option(
        "--development",
        multiple=True,
        metavar="NAME=PATH",
        help="With --parity: the text, best parallel, on which a source is measured.",
    ),
    title="Several sources",
)


def start(text: str) -> float:
    """Option type: a fraction of the vocabulary, such as 0.8, or a number of ids."""
    return float(text) if re.fullmatch(r"[0-9]*\.[0-9]+", text) else option.size(text)


start.__name__ = "number"

superword_options = option.together(
    click.option("--superwords", is_flag=True, help="Also learn tokens that span several words."),
    click.option(
        "--superword-start",
        type=start,
        default="0.8",
        help="The number of ids before the first: a share of the vocabulary, or a count.",
    ),
    click.option("--superword-pattern", help="The final split pattern.  [default: by lines]"),
    click.option(
        "--superword-counts", type=option.PATH, help="If SOURCE is counts: others with it."
    ),
    title="Superwords",
)

#: The options that need `--superwords`: the fields of their value.
SUPERWORDS: Final = ("start", "pattern", "counts")


def superwords_of(options: dict[str, Any]) -> list[bytepair.training.Superwords]:
    """Remove the superword options from those of a command; what they say, if they are given."""
    values = {name: options.pop(f"superword_{name}") for name in SUPERWORDS}
    if not options.pop("superwords"):
        option.refuse(
            "these options need --superwords", *(f"superword_{name}" for name in SUPERWORDS)
        )
        return []
    option.refuse("superwords read the text twice; weight sources with --mixture", "weight")
    if values["counts"] is not None:
        values["counts"] = bytepair.training.load_counts(values["counts"])
    return [bytepair.training.Superwords(**values)]


@option.command(
    "bytepair train                 # on the sample text, in a second",
    "bytepair train corpus/ --vocab-size 32768 -o my-tokenizer",
    "bytepair train 'shards/*.parquet' --max-chars 2B --doc-cap 10000",
    "bytepair train corpus/ --checkpoint partial.parquet  # run it again to resume",
    "bytepair train english=books/ code=repos/ --mixture english=0.6,code=0.4",
    "bytepair train 'texts/*.txt' --parity --development 'parallel/*.txt'",
)
@click.argument("source", nargs=-1)
@click.option(
    "--vocab-size", type=option.size, help="The number of ids.  [default: 65536; sample text: 8192]"
)
@click.option("--out", "-o", type=FOLDER, default="tokenizer", help="The output folder.")
@option.force
@click.option(
    "--pattern", help=f"{option.PATTERN_HELP}  [default: nanochat, or the pattern of the counts]"
)
@vocabulary
@superword_options
@option.roles
@several_sources
@option.reading
@option.threads
@option.quiet
def train(
    source: tuple[str, ...],
    vocab_size: int | None,
    out: Path,
    overwrite: bool,
    weight: tuple[str, ...],
    mixture: str | None,
    parity: bool,
    development: tuple[str, ...],
    threads: int | None,
    pattern: str | None,
    special_tokens: tuple[str, ...],
    no_special_tokens: bool,
    ties: Any,
    **options: Any,
) -> None:
    """Train a tokenizer on text, jsonl, parquet or Arrow (each also .gz or .zst).

    SOURCE: files, folders, globs, URLs or parquet files of counts; - is text on standard input.
    Without SOURCE, the sample text is used. With --mixture or --parity, SOURCE is NAME=PATH;
    without NAME=, each file is a source named after the file.
    """
    option.one_of("weight", "mixture", "parity")
    option.one_of("special_tokens", "no_special_tokens")
    option.check_checkpoint(
        options["checkpoint"], source, "weight", "mixture", "parity", "superwords"
    )
    if out.is_dir():
        check_output(out / "tokenizer.bytepair", overwrite=overwrite)
    recipe: list[Any] = superwords_of(options)
    if parity:
        groups = option.groups_of(development) if development else None
        recipe.append(bytepair.training.Parity(groups))
    else:
        option.refuse("it needs --parity", "development")
    if mixture is not None:
        recipe.append(bytepair.training.Mixture(option.numbers_of(mixture, "--mixture")))
    training: dict[str, Any] = {
        "special_tokens": () if no_special_tokens else special_tokens or "nanochat",
        "options": option.taken(bytepair.TrainOptions, options),
    }
    reading = option.taken(bytepair.Reading, options)
    option.with_roles(_untrained(**training), options)  # report invalid roles before training
    if vocab_size is None:
        vocab_size = 65536 if source else SAMPLE_VOCAB_SIZE
    started = time.perf_counter()
    how: dict[str, Any] = {"pattern": pattern, "threads": threads, "reading": reading}
    has_groups = mixture is not None or parity
    text = option.groups_of(source) if has_groups else _source(source, weight, **how)
    tokenizer = bytepair.train(
        text, vocab_size, pattern=pattern, ties=ties, recipe=recipe, threads=threads,
        # With weights, the text has already been read.
        reading=bytepair.Reading() if weight else reading, **training,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    tokenizer = option.with_roles(tokenizer, options)
    path = tokenizer.save(out, overwrite=overwrite)
    if reading.checkpoint is not None:
        remove_own(Path(reading.checkpoint))
    if 2 * tokenizer.count(SENTENCE) <= len(SENTENCE):  # else it is split into letters
        click.echo(f"a sentence in tokens: {tokenizer.show(SENTENCE, color=option.colored())}")
    curve = bytepair.evaluate.compression_curve(tokenizer)
    if len(curve) > 1 and curve[0]:
        click.echo(_curve(bytepair.evaluate.sweep(tokenizer)))
    if not source:
        texts = [path.read_text(encoding="utf-8") for path in bytepair.sample.paths()]
        parts = {"Shakespeare": texts[:1], "text in sixty languages": texts[1:]}
        [one, two] = bytepair.evaluate.compress({"": tokenizer}, parts)
        english = f"{one.ratio(''):.2f} bytes per token on {one.text}"
        click.echo(f"{english}, {two.ratio(''):.2f} on {two.text}")
    size = path.stat().st_size / 1e6
    click.echo(f"{tokenizer.vocab_size:,} ids in {seconds:.2f} s, saved to {path} ({size:.2f} MB)")
    click.echo(f"next: bytepair evaluate {path.parent}, or bytepair explore {path.parent}")


def _untrained(special_tokens: Any, options: bytepair.TrainOptions) -> bytepair.Tokenizer:
    names = special_tokens
    if names == "nanochat":
        names = bytepair.training.NANOCHAT_SPECIAL_TOKENS
    size = 256 + len(names) + options.reserved
    return bytepair.train([], size, special_tokens=names, options=options, progress=False)


def _source(names: tuple[str, ...], weight: tuple[str, ...], **how: Any) -> Any:
    """The files to read; or counts, if all files contain counts or sources have weights."""

    def counts_of(name: str) -> bytepair.Counts:
        if bytepair.Counts.is_counts_file(name):
            return bytepair.training.load_counts(name)
        pattern = how["pattern"] or "nanochat"
        return bytepair.count(option.files((name,)), **{**how, "pattern": pattern})

    if weight:
        option.refuse("--weight counts each source separately", "max_chars")
    if weight or (names and all(map(bytepair.Counts.is_counts_file, names))):
        return option.weighted(names, weight, counts_of)
    return option.files(names) if names else bytepair.sample.paths()


def _curve(sweep: bytepair.evaluate.Sweep) -> str:
    least, most = int(sweep.sizes[0]), int(sweep.sizes[-1])
    sizes = [*(2**n for n in range(9, 22) if least < 2**n < most), most]
    rows = [(size, sweep.at(size)) for size in sizes]
    widest = max(ratio for _, ratio in rows)
    block = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    bars = (f"{size:>9,} {ratio:5.2f} {block * round(40 * ratio / widest)}" for size, ratio in rows)
    return "\n".join(["bytes per token of the training text, by vocabulary size", *bars])


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
@click.option("--special-tokens", type=option.PATH, help="Names and ids SOURCE lacks: a JSON file.")
@option.roles
@click.option("--sentencepiece-ids", is_flag=True, help="Renumber for run.c of llama2.c.")
@click.option("--uncovered", type=click.Choice(["error", "drop"]), help="Text without tokens.")
@option.force
@click.option("--lossy", is_flag=True, help="Skip features that cannot be read or written.")
@click.option("--allow-pickle", is_flag=True, help="Read tokenizer.pkl; its code is not run.")
@click.option("--revision", help="The commit, tag or branch, if SOURCE is owner/name.")
def convert(
    source: str,
    target: Path,
    format: str | None,
    source_format: str | None,
    sentencepiece_ids: bool,
    overwrite: bool,
    lossy: bool,
    **options: Any,
) -> None:
    """Convert a tokenizer between bytepair, huggingface, tiktoken, gpt2, nanochat, gguf and others.

    SOURCE: a file, a folder, the name of a tiktoken encoding, or owner/name on the Hugging Face
    Hub. TARGET: the output file or folder.
    """
    names = ("pattern", "special_tokens", "allow_pickle", "revision", "uncovered")
    reading = {name: options.pop(name) for name in names}
    tokenizer = bytepair.load(source, source_format, lossy=lossy, **reading)
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


@option.command(
    "bytepair count corpus/ -o counts.parquet",
    "bytepair prune my-tokenizer --counts counts.parquet -o smaller --ids ids.npy",
    "bytepair prune my-tokenizer --counts counts.parquet --vocab-size 32000 -o smaller",
    "bytepair prune my-tokenizer --unreachable -o smaller",
)
@click.argument("tokenizer")
@option.pattern_of_file
@click.option("--counts", type=option.PATH, help="Keep the tokens that occur in these counts.")
@click.option("--unreachable", is_flag=True, help="Remove only what merging never produces.")
@click.option("--vocab-size", type=option.size, help="Keep at most this many ids.")
@click.option("--ids", type=OUTPUT_FILE, help="Write the new id of each old one: .npy.")
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
    out: Path,
    overwrite: bool,
    **options: Any,
) -> None:
    """Learn more tokens from new text; existing ids and merges stay the same.

    TOKENIZER: a folder, a file or a published name such as gpt2. SOURCE: files, folders, globs or
    URLs, as in `bytepair train`. New tokens get the ids after all others, so that the rows of a
    model's embeddings stay valid.
    """
    if out.is_dir():
        check_output(out / "tokenizer.bytepair", overwrite=overwrite)
    tok = bytepair.load(tokenizer, pattern=pattern)
    reading = option.taken(bytepair.Reading, options)
    larger = bytepair.extend(tok, option.files(source), extra, reading=reading, **options)
    path = larger.save(out, overwrite=overwrite)
    click.echo(f"{path}: {larger.vocab_size:,} ids, {larger.vocab_size - tok.vocab_size:,} more")
    _tell_next(tokenizer, path, "", pattern)


def _tell_next(tokenizer: str, path: Path, options: str, pattern: str | None) -> None:
    words = ["bytepair compare", tokenizer, str(path.parent), options]
    words += [] if pattern is None else ["--pattern", shlex.quote(pattern)]
    click.echo(f"next: {' '.join(filter(None, words))}")
