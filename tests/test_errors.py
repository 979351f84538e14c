"""Errors say what is wrong and what to do, as text and as attributes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair import errors
from bytepair.errors import BytepairError, FormatError, LossError, OverwriteError


def all_errors() -> list[BytepairError]:
    """An error of each class."""
    kinds: list[Any] = [BytepairError, *BytepairError.__subclasses__(), errors.InUseError]
    plain = [kind for kind in kinds if kind not in (LossError, OverwriteError)]
    made = [
        kind("a.json", "it is bad", option="errors", value=3, hint="repair it")
        if issubclass(kind, FormatError)
        else kind("it is bad", option="errors", value=3, hint="repair it")
        for kind in plain
    ]
    return [*made, LossError("gpt2", ["a", "b"]), OverwriteError(Path("a"))]


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: type(error).__name__)
def test_errors_are_the_same_after_copies(error: BytepairError) -> None:
    attributes = (str(error), error.message, error.option, error.value, error.hint)
    assert all(text in str(error) for text in (error.message, error.hint))
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is type(error)
        assert attributes == (str(other), other.message, other.option, other.value, other.hint)


def test_an_error_can_be_given_a_place() -> None:
    for error in all_errors():
        placed = error.at("row 3")
        assert str(placed) == f"row 3: {error}"
        assert (placed.option, placed.value) == (error.option, error.value)


def test_the_core_names_the_argument(tmp_path: Path) -> None:
    tok = bytepair.train(["hello hello"], 269)
    (tmp_path / "bad.txt").write_bytes(b"a\xff")
    (tmp_path / "bad.jsonl").write_text('{"a": "\\ud800"}\n{"text": "b"}\n')
    cases: list[tuple[Callable[[], Any], str, list[str]]] = [
        (
            lambda: tok.encode("<|bos|>", special="error"), "special",
            ['special="text"', 'special="all"'],
        ),
        (
            lambda: bytepair.count(tmp_path / "bad.txt"), "errors",
            ['errors="replace"', 'errors="skip"'],
        ),
        (
            lambda: bytepair.count(tmp_path / "bad.jsonl", reading=bytepair.Reading(column="a")),
            "errors", ['errors="replace"', 'errors="skip"'],
        ),
        (
            lambda: bytepair.count(tmp_path / "bad.jsonl", reading=bytepair.Reading(column="b")),
            "column", ["column="],
        ),
    ]  # fmt: skip
    for call, option, allowed in cases:
        with pytest.raises(BytepairError) as refused:
            call()
        assert refused.value.option == option
        assert all(text in refused.value.hint for text in allowed)


def test_the_message_is_short_and_keeps_both_ends() -> None:
    error = BytepairError("a" * 5_000, hint='pass errors="skip"')
    assert len(str(error)) == 1_000
    assert str(error).endswith('; pass errors="skip"')
