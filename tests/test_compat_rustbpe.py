"""`bytepair.compat.rustbpe` gives what rustbpe gives.

The assertions are in `rustbpe_interface`, since lesson 9 uses them, too.
"""

from __future__ import annotations

from typing import Any

import pytest
import rustbpe as original
from hypothesis import given
from hypothesis import strategies as st

import rustbpe_interface as interface
from bytepair.compat import rustbpe
from bytepair.errors import ArgumentError
from messages import told


@pytest.mark.parametrize("pattern", [None, r"\w+|\W+"])
@pytest.mark.parametrize("vocab_size", [256, 270, 300, 5000])
def test_every_method_gives_what_rustbpe_gives(vocab_size: int, pattern: str | None) -> None:
    interface.same_results(rustbpe.Tokenizer, original.Tokenizer, vocab_size, pattern)


def test_before_training_the_vocabulary_is_the_bytes() -> None:
    interface.same_before_training(rustbpe.Tokenizer, original.Tokenizer)


@given(st.lists(st.text(max_size=12), max_size=6), st.text(max_size=20))
def test_any_texts(texts: list[str], text: str) -> None:
    interface.same_for_texts(rustbpe.Tokenizer, original.Tokenizer, texts, text)


@pytest.mark.parametrize("buffer_size", [1, 2, 100])
def test_the_buffer_size_changes_nothing(buffer_size: int) -> None:
    interface.same_for_any_buffer(rustbpe.Tokenizer, original.Tokenizer, buffer_size)


def test_batches_decode_too() -> None:
    interface.batches_decode(rustbpe.Tokenizer)


def test_wrong_calls_raise_the_usual_exceptions() -> None:
    interface.wrong_calls_raise(rustbpe.Tokenizer)
    with told(ValueError):
        original.Tokenizer().decode([999])


def test_all_assertions_of_lesson_9_hold() -> None:
    assert len(interface.check(rustbpe.Tokenizer, original.Tokenizer)) == 5
    with pytest.raises(AssertionError):
        interface.check(_Wrong, rustbpe.Tokenizer)


class _Wrong(rustbpe.Tokenizer):
    """It encodes another text than it is given."""

    def encode(self, text: str) -> list[int]:
        return super().encode(text.lower()[:-1])


@pytest.mark.parametrize("texts", [{"text": ["a"]}, "abc", b"abc"], ids=type)
def test_a_table_or_a_text_is_no_iterator_of_texts(texts: Any) -> None:
    with pytest.raises(ArgumentError):
        rustbpe.Tokenizer().train_from_iterator(texts, 260)
