"""The words that an option may have stand in one table, and the types say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import click
import pytest

import bytepair
from bytepair import _core, reference
from bytepair.cli import option, text
from bytepair.corpus import files
from bytepair.corpus.column import Errors
from bytepair.errors import ArgumentError
from bytepair.formats import registry, writing
from bytepair.formats.parts import WrittenFormat
from bytepair.shards.layout import LAYOUTS
from bytepair.shards.manifest import ShardFormat
from bytepair.tokenizer import results
from bytepair.training.options import Ties, TrainSettings


def test_the_types_name_what_the_core_knows() -> None:
    assert get_args(Ties) == _core.TIES
    assert get_args(Errors) == _core.ERROR_MODES
    in_python = {"parquet", "arrow", "json"}  # the last two are copied to a kind of the core
    assert set(get_args(files.Kind)) == {*_core.FILE_KINDS, *in_python} - {"lines"}
    assert set(files.COMPRESSIONS.values()) == set(_core.COMPRESSIONS)


def test_every_mode_of_special_tokens_has_a_type_and_an_option() -> None:
    (choice,) = (param.type for param in text.encode.params if param.name == "special")
    assert isinstance(choice, click.Choice)
    assert get_args(get_args(results.SpecialMode)[0]) == tuple(choice.choices)
    tok = bytepair.Tokenizer.from_ranks({b"a": 0}, pattern="gpt2")
    with pytest.raises(ArgumentError) as refusal:
        tok.encode("a", special="other")
    named = ", ".join(f'"{name}"' for name in choice.choices)
    assert f"it must be {named} or a set of names" in str(refusal.value)


def test_the_first_rule_for_ties_is_the_default() -> None:
    assert TrainSettings().ties == _core.TIES[0]


@pytest.mark.parametrize("ties", get_args(Ties))
def test_the_reference_has_every_rule_for_ties(ties: Ties) -> None:
    assert len(reference.train({b"ab": 1}, 1, ties)) == 1


def test_the_types_name_the_formats() -> None:
    assert get_args(ShardFormat) == tuple(LAYOUTS)
    names = [name for name, format in registry.FORMATS.items() if name in get_args(WrittenFormat)]
    assert get_args(WrittenFormat) == ("bytepair", *names)
    assert writing._NAMES == option.WRITTEN


def test_threads_mean_the_same_everywhere() -> None:
    """In `_core` too, whose docstrings are of the same form."""
    usual = re.compile(
        r"as in `bytepair\.train`\.|"
        r"the maximum number of threads( of each process)?; None means (one with Ray, which gives "
        r"each task one core, else )?`BYTEPAIR_NUM_THREADS`, or else all( processors)?\."
    )
    root = Path(__file__).resolve().parents[1]
    files = [*(root / "python").rglob("*.py"), *(root / "rust/binding").rglob("*.rs")]
    entry = re.compile(r"^([ /]+)threads: (\S.*(?:\n\1 {4}\S.*)*)", re.M)
    entries = [
        (file, re.sub(r"\s+(/// +)?", " ", text))
        for file in files
        for _, text in entry.findall(file.read_text(encoding="utf-8"))
        if " " in text and not text.startswith("int")
    ]
    assert len(entries) >= 15
    assert [(file, text) for file, text in entries if not usual.fullmatch(text)] == []
