"""The options for superwords: tokens that span several words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import click

import bytepair
from bytepair.cli import option

#: The options that need `--superwords`, and the field of `Superwords` that each sets.
_FIELDS: Final = {
    "superword_start": "start", "superword_pattern": "pattern", "superword_max_words": "max_words",
    "superword_never": "never", "superword_counts": "counts",
}  # fmt: skip


def start(text: str) -> float:
    """Option type: a fraction of the vocabulary, such as 0.8, or a number of ids."""
    return float(text) if re.fullmatch(r"[0-9]*\.[0-9]+", text) else option.size(text)


start.__name__ = "number"

options = option.together(
    click.option(
        "--superwords",
        is_flag=True,
        help="Learn superwords after the other tokens: tokens that span several words.",
    ),
    click.option(
        "--superword-start",
        type=start,
        help="The number of ids before the first superword: a fraction of the vocabulary, or a "
        "count.  [default: 0.8]",
    ),
    click.option(
        "--superword-pattern",
        help="The split pattern for superwords and for the final tokenizer.  [default: split at "
        "line ends, digits and runs of punctuation]",
    ),
    click.option(
        "--superword-max-words",
        type=click.IntRange(min=0),
        help="The maximum number of words in a superword; 0 for no limit.  [default: 4]",
    ),
    click.option(
        "--superword-never",
        multiple=True,
        help="A string that superwords may not contain; may be repeated.  [default: ': ']",
    ),
    click.option(
        "--superword-counts",
        type=option.PATH,
        help="If SOURCE is counts: counts of the same text, split by the superword pattern.",
    ),
)


def rules_of(values: dict[str, Any]) -> bytepair.Superwords | None:
    """Remove the superword options and return them; None without `--superwords`."""
    has_superwords = values.pop("superwords")
    if not has_superwords:
        option.refuse("these options need --superwords", *_FIELDS)
    values_by_field = {field: values.pop(name) for name, field in _FIELDS.items()}
    if not has_superwords:
        return None
    option.refuse("superwords read the text twice; weight sources with --mixture", "weight")
    fields = {field: value for field, value in values_by_field.items() if value not in (None, ())}
    if values_by_field["max_words"] == 0:
        fields["max_words"] = None
    counts: Path | None = values_by_field["counts"]
    if counts is not None:
        fields["counts"] = bytepair.load_counts(counts)
    return bytepair.Superwords(**fields)
