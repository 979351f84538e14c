"""Assertions about a class with the interface of rustbpe: that it gives what another one gives.

The tests compare `bytepair.compat.rustbpe` with rustbpe. Lesson 9 compares the class that its
reader writes with `bytepair.compat.rustbpe`. This module needs neither rustbpe nor pytest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

CORPUS = ["the cat sat on the mat", "hello hello world 12345", "naïve café 你好 🙂\n\n  x"] * 3


class Interface(Protocol):
    """The interface of `rustbpe.Tokenizer`."""

    def train_from_iterator(
        self,
        iterator: Iterable[str],
        vocab_size: int,
        buffer_size: int = 8192,
        pattern: str | None = None,
    ) -> None: ...
    def get_pattern(self) -> str: ...
    @property
    def vocab_size(self) -> int: ...
    def get_mergeable_ranks(self) -> list[tuple[bytes, int]]: ...
    def encode(self, text: str) -> list[int]: ...
    def batch_encode(self, texts: Sequence[str]) -> list[list[int]]: ...
    def decode(self, ids: Sequence[int]) -> str: ...
    def batch_decode(self, batch_ids: Sequence[Sequence[int]]) -> list[str]: ...


#: Makes a tokenizer that is not trained.
Make = Callable[[], Interface]

#: Calls of every method whose results are compared.
CALLS: list[Callable[[Interface], object]] = [
    lambda t: t.get_mergeable_ranks(),
    lambda t: t.get_pattern(),
    lambda t: t.vocab_size,
    lambda t: t.encode("hello the world, naïve 999"),
    lambda t: t.batch_encode(["hello", "", "你好"]),
    lambda t: t.decode(t.encode("hello 你好")),
]


def trained(make: Make, texts: list[str], vocab_size: int, pattern: str | None = None) -> Interface:
    """Make a tokenizer and train it on texts."""
    tokenizer = make()
    tokenizer.train_from_iterator(iter(texts), vocab_size, pattern=pattern)
    return tokenizer


def same_results(ours: Make, theirs: Make, vocab_size: int, pattern: str | None) -> None:
    """Every method gives the same results for both classes."""
    one, other = (trained(make, CORPUS, vocab_size, pattern) for make in (ours, theirs))
    for call in CALLS:
        assert call(one) == call(other)


def same_before_training(ours: Make, theirs: Make) -> None:
    """Before training the vocabulary is the 256 bytes, and `encode` gives no ids."""
    for call in CALLS:
        assert call(ours()) == call(theirs())
    assert ours().decode([104, 105]) == theirs().decode([104, 105])


def same_for_texts(ours: Make, theirs: Make, texts: list[str], text: str) -> None:
    """Training on texts gives the same merges, and encoding a text the same ids."""
    one, other = (trained(make, texts, 270) for make in (ours, theirs))
    assert one.get_mergeable_ranks() == other.get_mergeable_ranks()
    assert one.encode(text) == other.encode(text)


def same_for_any_buffer(ours: Make, theirs: Make, buffer_size: int) -> None:
    """`buffer_size`, how many texts are read at once, does not change the merges."""
    tokenizer = ours()
    tokenizer.train_from_iterator(iter(CORPUS), 290, buffer_size)
    ranks = trained(theirs, CORPUS, 290).get_mergeable_ranks()
    assert tokenizer.get_mergeable_ranks() == ranks


def batches_decode(ours: Make) -> None:
    """Encoding a batch and decoding it gives its texts again."""
    tokenizer = trained(ours, CORPUS, 290)
    assert tokenizer.batch_decode(tokenizer.batch_encode(CORPUS)) == CORPUS


def fails(kind: type[Exception], words: str, call: Callable[[], object]) -> None:
    """A call raises an error of this class, and its message matches a regular expression."""
    message = None
    try:
        call()
    except kind as error:
        message = str(error)
    assert message is not None, f"no {kind.__name__}"
    assert re.search(words, message), message


def wrong_calls_raise(ours: Make) -> None:
    """Wrong arguments raise the usual exceptions, and their messages name the rule."""
    tokenizer, empty = trained(ours, CORPUS, 290), ours()
    for one in (tokenizer, empty):
        fails(ValueError, r"Unknown token id: .*999", lambda one=one: one.decode([999]))  # type: ignore[misc]
    fails(ValueError, "id 999", lambda: tokenizer.decode([999]))
    fails(UnicodeDecodeError, "", lambda: tokenizer.decode([0xFF]))
    fails(ValueError, "not in the vocabulary", lambda: empty.decode([300]))
    train = tokenizer.train_from_iterator
    fails(ValueError, "at least 256", lambda: train([], 255))
    fails(ValueError, "at least 1", lambda: train([], 256, buffer_size=0))
    fails(TypeError, "not a str", lambda: train(["a", 3], 256))  # type: ignore[list-item]
    fails(ValueError, "pattern is not valid", lambda: train(["a"], 257, pattern="("))


def check(ours: Make, theirs: Make) -> list[str]:
    """Run all assertions; returns the name of each group."""
    for pattern in (None, r"\w+|\W+"):
        for vocab_size in (256, 270, 300, 5000):
            same_results(ours, theirs, vocab_size, pattern)
    same_before_training(ours, theirs)
    for buffer_size in (1, 2, 100):
        same_for_any_buffer(ours, theirs, buffer_size)
    batches_decode(ours)
    wrong_calls_raise(ours)
    return ["every method", "before training", "any buffer", "batches", "errors"]
