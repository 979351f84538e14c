"""`bytepair count`, `download`, `shard`, `plan` and `render`: data for models."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final, get_args

import click

import bytepair
from bytepair import chat
from bytepair.chat.rows import ChatOptions, RowKind, TrainOn
from bytepair.chat.segments import Truncate
from bytepair.cli import option
from bytepair.cli.messages import BadValue, Misuse, tell
from bytepair.cli.option import COUNTS_FILE, OUTPUT_FILE
from bytepair.corpus.column import Errors
from bytepair.corpus.source import resolve
from bytepair.errors import visible
from bytepair.files.outputs import remove_own, write_whole
from bytepair.shards.manifest import InputSplit, ShardFormat


@option.command(
    "bytepair count corpus/ -o counts.parquet",
    "bytepair count corpus/ --checkpoint partial.parquet  # run it again to resume",
    "bytepair train counts.parquet --vocab-size 32768",
)
@option.sources
@click.option(
    "--out", "-o", default="counts.parquet", type=COUNTS_FILE, help="The output file (parquet)."
)
@option.pattern
@option.weight
@option.threads
@option.quiet
@option.reading
@option.many_processes
def count(
    source: tuple[str, ...],
    out: Path,
    pattern: str,
    threads: int | None,
    weight: tuple[str, ...],
    **options: Any,
) -> None:
    """Count the pretokens of text; counts can be trained on, added and filtered.

    SOURCE: files, folders, globs or URLs; - is text on standard input.
    """
    ranks = option.ranks_of(options)
    if ranks:
        option.refuse(
            "ranks and Ray read all text and resume without a checkpoint",
            "max_chars", "checkpoint", "memory_limit", "weight",
        )  # fmt: skip
    option.check_checkpoint(options["checkpoint"], source)
    reading = bytepair.Reading(**options)
    if ranks:
        text = resolve(bytepair.corpus.Paths(source), split=reading.split)
        shared = bytepair.distributed.count(
            text, out, pattern=pattern, threads=threads, reading=reading,
            overwrite=True,  # the option has refused other files, unless --force is given
            **ranks,
        )  # fmt: skip
        if shared is None:
            click.echo("this rank is done; the last rank to finish writes the counts")
        else:
            _report_counts(shared, out)
        return

    def counts_of(*names: str) -> bytepair.Counts:
        files = option.files(names)
        return bytepair.count(files, pattern=pattern, reading=reading, threads=threads)

    if weight:
        option.refuse("--weight counts each source separately", "max_chars", "checkpoint")
    counts = option.weighted(source, weight, counts_of) if weight else counts_of(*source)
    counts.save(out, overwrite=True)  # as above
    if reading.checkpoint is not None:
        remove_own(Path(reading.checkpoint))
    _report_counts(counts, out)


def _report_counts(counts: bytepair.Counts, out: Path) -> None:
    size = counts.text_bytes / 1e6
    click.echo(
        f"{len(counts):,} distinct pretokens of {counts.total:,} in {size:,.1f} MB: {out}\n"
        f"next: bytepair train {out}"
    )


@option.command(
    "bytepair download fineweb-edu -n 8",
    "bytepair download climbmix -n 170",
    "bytepair download HuggingFaceFW/fineweb --pattern 'sample/10BT/*' -n -1 --out fineweb",
)
@click.argument("dataset", default="fineweb-edu")
@click.option(
    "--files", "-n", "n", default=8, help="How many files, or -1; of climbmix, those for training."
)
@click.option(
    "--out",
    "-o",
    "dir",
    type=option.PATH,
    help="The output folder.  [default: a folder in ~/.cache/bytepair]",
)
@click.option(
    "--pattern", default="*.parquet", help="A glob that selects files of a data set on the Hub."
)
def download(dataset: str, n: int, dir: Path | None, pattern: str) -> None:
    """Download the files of a data set; run it again to resume.

    DATASET: fineweb-edu, climbmix, or a data set on the Hugging Face Hub (owner/name).
    """
    files = bytepair.corpus.download_dataset(dataset, n, dir=dir, pattern=pattern)
    size = sum(file.stat().st_size for file in files) / 1e6
    place = dir or bytepair.corpus.download.folder(dataset)
    click.echo(f"{len(files):,} files, {size:,.1f} MB: {place}")


#: The options that are fields of `ShardOptions`.
sharding = option.together(
    option.choice("--format", get_args(ShardFormat), "The format of the shards."),
    click.option(
        "--tokens-per-shard", type=option.number, default="100M", help="Tokens of a shard at most."
    ),
    click.option(
        "--bos/--no-bos", default=True, help="Begin each document with the tokenizer's BOS."
    ),
    click.option("--bos-token", help="Begin each document with this special token."),
    click.option("--eos", is_flag=True, help="End each document with the tokenizer's EOS."),
    click.option("--eos-token", help="End each document with this special token."),
    option.column,
    option.max_document_bytes,
    option.errors,
    click.option(
        "--split",
        type=click.Choice(get_args(InputSplit)),
        help="What to read of a data set with splits; both writes val first, then train.",
    ),
    click.option(
        "--val-share",
        type=float,
        help="Write shards for validation first: of this share of all text, such as 0.01.",
    ),
    click.option(
        "--doc-cap", type=option.number, help="Encode at most so many characters of a document."
    ),
)


@option.command(
    "bytepair shard 'base_data/*.parquet' -t my-tokenizer -o shards",
    "bytepair shard corpus/ -o gpt2-shards --format nanogpt --split both",
    "srun --ntasks=100 bytepair shard corpus/ -o shards --world-size 100",
)
@option.sources
@option.out_folder
@option.tokenizer
@sharding
@option.threads
@option.quiet
@option.many_processes
def shard(
    source: tuple[str, ...],
    out: Path,
    tokenizer: str,
    pattern: str | None,
    threads: int | None,
    **options: Any,
) -> None:
    """Encode text and write token shards; run it again to resume.

    SOURCE: files, folders, globs or URLs. A second run checks the shards, and writes missing or
    damaged ones again. New files after the old ones are added.
    """
    for role in ("bos", "eos"):
        option.one_of(role, f"{role}_token")
        options[role] = options.pop(f"{role}_token") or options[role]
    tok = bytepair.load(tokenizer, pattern=pattern)
    split: Any = "all" if options["split"] == "both" else options["split"]
    files = resolve(bytepair.corpus.Paths(source), split=split)
    ranks = option.ranks_of(options)
    write: Any = bytepair.distributed.shard if ranks else bytepair.shards.write
    manifest = write(files, tok, out, threads=threads, **ranks, **options)
    if manifest is None:
        click.echo("this rank is done; the last rank to finish writes the shards")
        return
    for left in manifest.skipped:
        tell("warning", f"skipped {left['input']}, {_skipped(left)}: {left['reason']}")
    click.echo(f"{manifest}: {out}")
    click.echo(f"next: bytepair verify {out}")


def _skipped(left: dict[str, Any]) -> str:
    first, count = left["first"], left["rows"]
    if count is None:
        return f"from row {first} on"
    return f"row {first}" if count == 1 else f"rows {first} to {first + count - 1}"


@option.command(
    "bytepair plan --params 561M",
    "bytepair plan --depth 20 --preset nanochat-2025",
    "bytepair plan --depth 24 --preset nanochat-2026 --ratio 8",
    "bytepair plan --params 1.5B -t my-tokenizer --corpus 'shards/*.parquet'",
)
@click.option("--params", type=option.number, help="The number of model parameters, such as 561M.")
@click.option(
    "--depth", type=option.number, help="Instead of --params: the layers of a nanochat model."
)
@click.option(
    "--preset",
    type=click.Choice(list(bytepair.plan.PRESETS)),
    default=bytepair.plan.PRESET,
    help="The defaults of the options below, and the parameters that --depth counts.",
)
@click.option(
    "--vocab-size", type=option.size, help="The vocabulary size.  [default: that of the preset]"
)
@click.option(
    "--ratio", type=float, help="Training tokens per parameter.  [default: that of the preset]"
)
@click.option("--tokenizer", "-t", help="Measure with this tokenizer: a folder, a file or a name.")
@option.pattern_of_file
@click.option(
    "--corpus", multiple=True, help="With -t: what to measure on.  [default: the sample text]"
)
@click.option(
    "--max-chars", type=option.number, default="20M", help="With -t: the size of the sample."
)
@option.errors
@option.quiet
def plan(
    tokenizer: str | None,
    pattern: str | None,
    corpus: tuple[str, ...],
    max_chars: int,
    errors: Errors,
    **options: Any,
) -> None:
    """Estimate the data needed to train a model: tokens, text, shards, disk space, time."""
    option.one_of("params", "depth")
    if options["params"] is None and options["depth"] is None:
        raise Misuse("give the number of parameters (--params) or of layers (--depth)")
    if options["vocab_size"] is not None and options["vocab_size"] < 256:
        raise BadValue("a vocabulary has at least the 256 bytes", param_hint="--vocab-size")
    if tokenizer is None:
        option.refuse("it needs --tokenizer", "corpus", "pattern", "max_chars", "errors")
    else:
        option.refuse("it is measured with --tokenizer", "vocab_size")
        tok = bytepair.load(tokenizer, pattern=pattern)
        files = option.files(corpus) if corpus else bytepair.sample.paths()
        measurement = bytepair.plan.measure(tok, files, max_chars=max_chars, errors=errors)
        options |= {"vocab_size": tok.vocab_size, **measurement._asdict()}
    needed = bytepair.plan.plan_data(**options)
    click.echo(str(needed))
    dataset = bytepair.plan.PRESETS[options["preset"]].dataset
    if corpus:
        paths = (f"./{one}" if one.startswith("-") else one for one in corpus)  # no options
        words = ["bytepair", "shard", *paths, "-t", tokenizer or "", "-o", "shards"]
        words += ["--split", "both"] if len(bytepair.corpus.list_files(files)) > 1 else []
        click.echo(f"next: {visible(shlex.join(words))}")
    elif needed.shards <= needed.available:
        more = needed.shards + 1  # the last one is for validation
        click.echo(f"next: bytepair download {dataset} -n {more} -o {dataset}")


#: The layout of rows that are preference pairs.
_PAIRS: Final = "preference"

#: The templates that every tokenizer can be used with if it has their special tokens.
TEMPLATES: Final = {
    one.name: one for one in (chat.NANOCHAT, chat.CHATML, chat.QWEN25, chat.QWEN3, chat.LLAMA3)
}


@option.command(
    "bytepair render talks.jsonl -t my-tokenizer -o talks.parquet --pack-to 2048",
    "bytepair render talks.jsonl --rows sharegpt --train-on last --show",
    "bytepair render pairs.parquet --rows preference --template chatml -o ids.parquet",
)
@click.argument("source")
@option.tokenizer
@click.option("--out", "-o", type=OUTPUT_FILE, help="Write a parquet file instead of JSON.")
@click.option(
    "--template",
    help="The name of a chat template of the tokenizer, such as tool_use, or of one of "
    f"{', '.join(TEMPLATES)}; or a file, such as template.jinja.  [default: the tokenizer's own]",
)
@option.choice("--rows", [*get_args(RowKind), _PAIRS], "The layout of each row.")
@option.choice("--train-on", get_args(TrainOn), "The turns to train on.")
@option.choice(
    "--reasoning",
    ["fields", "tags"],
    "Where reasoning is: in fields, or also in <think> in the text.",
)
@option.choice("--errors", get_args(Errors), "Invalid rows: stop, put U+FFFD, or leave them out.")
@click.option(
    "--ignore-field", "ignore_fields", multiple=True, help="A field that is not read; repeatable."
)
@click.option(
    "--max-tokens", type=option.number, help="The maximum number of ids of a conversation."
)
@option.choice(
    "--truncate",
    get_args(Truncate),
    "How --max-tokens shortens: cut off the end, or drop the oldest turns.",
)
@option.choice(
    "--on-untrained", ["error", "keep", "drop"], "Conversations with nothing to train on."
)
@click.option("--pad-to", type=option.number, help="Pad each conversation to this many ids.")
@click.option(
    "--pack-to", type=option.number, help="Pack conversations into rows of this many ids."
)
@option.threads
@click.option("--show", is_flag=True, help="Draw the tokens: green is trained on, red is not.")
def render(
    source: str,
    tokenizer: str,
    pattern: str | None,
    out: Path | None,
    template: str | None,
    show: bool,
    **options: Any,
) -> None:
    """Render conversations to ids and a mask of what is trained on.

    SOURCE: a file (jsonl, a list in .json, parquet, Arrow), a folder, a glob or a URL. Each
    conversation, or each row if they are padded or packed, is written as a line of JSON, or as a
    row of a parquet file. The last line, on standard error, says what was read and left out.
    """
    option.one_of("out", "show")
    option.one_of("pad_to", "pack_to")
    tok = bytepair.load(tokenizer, pattern=pattern)
    own_or_named = _template(tok, template)
    are_pairs = options["rows"] == _PAIRS
    if are_pairs:
        no_pairs = ("train_on", "truncate", "pad_to", "pack_to")
        option.refuse("pairs have all turns of their answers, and no rows", *no_pairs)
        options = {
            name: value for name, value in options.items() if name not in (*no_pairs, "rows")
        }
    how = option.taken(ChatOptions, options)
    if out is not None:
        from bytepair.chat.batch import parquet

        pq = parquet()  # fails before the work
    render_all: Any = chat.render_preferences if are_pairs else bytepair.Tokenizer.render_batch
    batch = render_all(tok, source, template=own_or_named, options=how, **options)
    if not are_pairs:
        click.echo(batch.statistics, err=True)
    if out is not None:
        pq.write_table(batch.to_arrow(), stream := BytesIO())
        write_whole(out, stream.getbuffer(), overwrite=True)  # the command has checked it
        what = ("pair" if are_pairs else "row") + "s" * (len(batch) != 1)
        click.echo(f"{out}: {len(batch):,} {what}")
        return
    for line in map(_drawing(tok) if show else json.dumps, _rows(batch)):
        sys.stdout.write(f"{line}\n")


def _template(tok: bytepair.Tokenizer, name: str | None) -> Any:
    if name is not None and name.endswith(".jinja"):
        return chat.JinjaTemplate(option.read_text(Path(name)), name=name)
    if name is not None and name not in tok.chat_templates:
        return TEMPLATES.get(name, name)
    return name


def _rows(batch: Any) -> Iterator[dict[str, Any]]:
    from bytepair.chat.preferences import COLUMNS

    for one in batch:
        if isinstance(one, chat.Preference):
            yield {name: getattr(one, name).tolist() for name in COLUMNS}
        else:
            ids, mask = one
            yield {"input_ids": ids.tolist(), "loss_mask": mask.tolist()}


def _drawing(tok: bytepair.Tokenizer) -> Any:
    """A function that draws a row; the two answers of a pair are drawn one below the other."""
    color = None if sys.stdout.isatty() else False

    def tokens(ids: list[int], mask: list[int]) -> str:
        return tok.show(ids, mask, color=color)

    def draw(row: dict[str, Any]) -> str:
        if "input_ids" in row:
            return tokens(row["input_ids"], row["loss_mask"])
        prompt = tokens(row["prompt_ids"], [0] * len(row["prompt_ids"]))
        answers = [
            tokens(row[f"{name}_ids"], row[f"{name}_mask"]) for name in ("chosen", "rejected")
        ]
        return "\n".join([prompt, *answers])

    return draw
