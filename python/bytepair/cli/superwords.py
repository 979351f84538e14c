"""The options of superwords: the tokens that cross spaces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import click

import bytepair
from bytepair.cli import option

#: The options that only superwords have, and the fields that they set.
_FIELDS: Final = {
    "superword_start": "start", "superword_pattern": "pattern", "superword_max_words": "max_words",
    "superword_never": "never", "superword_counts": "counts",
}  # fmt: skip


def start(text: str) -> float:
    """The type of an option: a part of the vocabulary, such as 0.8, or a number of ids."""
    return float(text) if re.fullmatch(r"[0-9]*\.[0-9]+", text) else option.size(text)


start.__name__ = "number"

options = option.together(
    click.option(
        "--superwords", is_flag=True, help="Learn tokens that cross spaces after the others."
    ),
    click.option(
        "--superword-start",
        type=start,
        help="Ids before the first superword: a part of all, or a number.  [default: 0.8]",
    ),
    click.option(
        "--superword-pattern",
        help="The split pattern of superwords, and of the tokenizer.  [default: lines, cut at "
        "digits and runs of punctuation]",
    ),
    click.option(
        "--superword-max-words",
        type=click.IntRange(min=0),
        help="The words in a superword at most; 0 for any number.  [default: 4]",
    ),
    click.option(
        "--superword-never",
        multiple=True,
        help="A text that is in no superword; may be repeated.  [default: ': ']",
    ),
    click.option(
        "--superword-counts",
        type=option.PATH,
        help="If SOURCE are counts: those of the same text by the pattern of superwords.",
    ),
)


def rules_of(values: dict[str, Any]) -> bytepair.Superwords | None:
    """The rules that options give, which are taken out; None without `--superwords`."""
    wanted = values.pop("superwords")
    if not wanted:
        option.refuse("there is no --superwords", *_FIELDS)
    given = {field: values.pop(name) for name, field in _FIELDS.items()}
    if not wanted:
        return None
    option.refuse("superwords need the text twice: weigh sources by --mixture", "weight")
    fields = {field: value for field, value in given.items() if value not in (None, ())}
    if given["max_words"] == 0:
        fields["max_words"] = None
    counts: Path | None = given["counts"]
    if counts is not None:
        fields["counts"] = bytepair.load_counts(counts)
    return bytepair.Superwords(**fields)
