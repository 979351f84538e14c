"""`bytepair render`: conversations to ids and masks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import click

import bytepair
from bytepair import chat
from bytepair.chat.rows import ChatOptions, RowKind, TrainOn
from bytepair.chat.segments import Truncate
from bytepair.chat.template import FIELDS
from bytepair.cli import option
from bytepair.cli.paths import OUTPUT_FILE
from bytepair.corpus.column import Errors
from bytepair.files.outputs import write_whole

#: The layout of rows that are preference pairs.
_PAIRS: Final = "preference"
_ANSWERS: Final = ("chosen", "rejected")

#: The templates that every tokenizer can be used with if it has their special tokens.
TEMPLATES: Final = {
    one.name: one
    for one in (chat.NANOCHAT, chat.CHATML, chat.QWEN25, chat.QWEN3, chat.LLAMA3, chat.LLAMA31)
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
@click.option(
    "--train-field",
    "train_fields",
    type=click.Choice(FIELDS),
    multiple=True,
    help="A field of these turns that is trained on; may be repeated.  [default: all]",
)
@option.choice(
    "--reasoning",
    ["fields", "tags"],
    "Where reasoning is: in fields, or also in <think> in the text.",
)
@option.choice(
    "--errors",
    get_args(Errors),
    "Invalid rows: stop, put U+FFFD, or leave them out.",
)
@click.option(
    "--ignore-field", "ignore_fields", multiple=True, help="A field that is not read; repeatable."
)
@click.option(
    "--max-tokens", type=option.number, help="The maximum number of ids of a conversation."
)
@option.choice(
    "--truncate",
    get_args(Truncate),
    "How --max-tokens shortens: cut, drop messages or turns, or split.",
)
@option.choice(
    "--on-untrained",
    ["error", "keep", "drop"],
    "Conversations with nothing to train on.",
)
@click.option("--pad-to", type=option.number, help="Pad each conversation to this many ids.")
@click.option(
    "--pack-to", type=option.number, help="Pack conversations into rows of this many ids."
)
@option.threads
@click.option("--count", is_flag=True, help="Write only the number of ids of each prompt.")
@click.option("--statistics", type=OUTPUT_FILE, help="Write the numbers of the last line as JSON.")
@click.option("--show", is_flag=True, help="Draw the tokens: green is trained on, red is not.")
def render(
    source: str,
    tokenizer: str,
    pattern: str | None,
    out: Path | None,
    template: str | None,
    statistics: Path | None,
    show: bool,
    count: bool,
    **options: Any,
) -> None:
    """Render conversations to ids and a mask of what is trained on.

    SOURCE: a file (jsonl, a list in .json, parquet, Arrow), a folder, a glob or a URL. Each
    conversation, or each row if they are padded or packed, is written as a line of JSON, or as a
    row of a parquet file. The last line, on standard error, says what was read and left out.
    """
    option.one_of("out", "show", "count")
    option.one_of("pad_to", "pack_to")
    tok = bytepair.load(tokenizer, pattern=pattern)
    own_or_named = _template(tok, template)
    options["train_fields"] = options["train_fields"] or None
    are_pairs = options["rows"] == _PAIRS
    if are_pairs:
        no_pairs = ("train_on", "truncate", "pad_to", "pack_to", "statistics")
        option.refuse("pairs have all turns of their answers, and no rows", *no_pairs)
        options = {
            name: value for name, value in options.items() if name not in (*no_pairs, "rows")
        }
    how = option.taken(ChatOptions, options)
    if count:
        option.refuse("prompts have no rows and no mask", "pad_to", "pack_to", "statistics")
        _count(tok, source, own_or_named, how)
        return
    if out is not None:
        from bytepair.chat.batch import check_can_save

        check_can_save()  # before the work
    render_all: Any = chat.render_preferences if are_pairs else bytepair.Tokenizer.render_batch
    batch = render_all(tok, source, template=own_or_named, options=how, **options)
    if not are_pairs:
        click.echo(batch.statistics, err=True)
        if statistics is not None:
            text = json.dumps(batch.statistics.to_json(), indent=2)
            write_whole(statistics, f"{text}\n".encode(), overwrite=True)
    if out is not None:
        path = batch.save(out, overwrite=True)  # the command has checked it
        what = ("pair" if are_pairs else "row") + "s" * (len(batch) != 1)
        click.echo(f"{path}: {len(batch):,} {what}")
        return
    for line in map(_drawing(tok) if show else json.dumps, _rows(batch)):
        sys.stdout.write(f"{line}\n")


def _count(tok: bytepair.Tokenizer, source: str, template: Any, how: ChatOptions) -> None:
    from bytepair.chat.batch import Gathered, gathered
    from bytepair.chat.sources import read

    def prompt(row: Any) -> list[int]:
        return tok.render_for_completion(row, template=template, options=how)

    out = Gathered()
    lengths = [len(ids) for _, ids in gathered(read(source, how), out, how, prompt)]
    out.warn(f"{len(lengths) + out.skipped:,} conversations")
    sys.stdout.writelines(f"{length}\n" for length in lengths)


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
        answers = [tokens(row[f"{name}_ids"], row[f"{name}_mask"]) for name in _ANSWERS]
        return "\n".join([prompt, *answers])

    return draw
