"""The face of rustbpe beside rustbpe."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import rustbpe as original
from hypothesis import given
from hypothesis import strategies as st

from bytepair.compat import rustbpe

CORPUS = ["the cat sat on the mat", "hello hello world 12345", "naïve café 你好 🙂\n\n  x"] * 3


def both(texts: list[str], vocab_size: int, pattern: str | None = None) -> tuple[object, object]:
    ours, theirs = rustbpe.Tokenizer(), original.Tokenizer()
    for tokenizer in (ours, theirs):
        tokenizer.train_from_iterator(iter(texts), vocab_size, pattern=pattern)
    return ours, theirs


FACE: list[Callable[[rustbpe.Tokenizer], object]] = [
    lambda t: t.get_mergeable_ranks(),
    lambda t: t.get_pattern(),
    lambda t: t.vocab_size,
    lambda t: t.encode("hello the world, naïve 999"),
    lambda t: t.batch_encode(["hello", "", "你好"]),
    lambda t: t.decode(t.encode("hello 你好")),
]


@pytest.mark.parametrize("pattern", [None, r"\w+|\W+"])
@pytest.mark.parametrize("vocab_size", [256, 270, 300, 5000])
def test_the_face_gives_what_rustbpe_gives(vocab_size: int, pattern: str | None) -> None:
    ours, theirs = both(CORPUS, vocab_size, pattern)
    for ask in FACE:
        assert ask(ours) == ask(theirs)  # type: ignore[arg-type]


def test_before_training_there_are_bytes_and_no_ids() -> None:
    ours, theirs = rustbpe.Tokenizer(), original.Tokenizer()
    for ask in FACE:
        assert ask(ours) == ask(theirs)
    assert ours.decode([104, 105]) == theirs.decode([104, 105])


@given(st.lists(st.text(max_size=12), max_size=6), st.text(max_size=20))
def test_any_texts(texts: list[str], text: str) -> None:
    ours, theirs = both(texts, 270)
    assert ours.get_mergeable_ranks() == theirs.get_mergeable_ranks()  # type: ignore[attr-defined]
    assert ours.encode(text) == theirs.encode(text)  # type: ignore[attr-defined]


@pytest.mark.parametrize("buffer_size", [1, 2, 100])
def test_the_buffer_changes_nothing(buffer_size: int) -> None:
    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(iter(CORPUS), 290, buffer_size)
    assert tokenizer.get_mergeable_ranks() == both(CORPUS, 290)[1].get_mergeable_ranks()  # type: ignore[attr-defined]


def test_batches_decode_too() -> None:
    ours, _ = both(CORPUS, 290)
    assert ours.batch_decode(ours.batch_encode(CORPUS)) == CORPUS  # type: ignore[attr-defined]


def test_what_is_wrong_is_an_ordinary_error() -> None:
    ours, _ = both(CORPUS, 290)
    assert isinstance(ours, rustbpe.Tokenizer)
    for tokenizer in (ours, original.Tokenizer(), rustbpe.Tokenizer()):
        with pytest.raises(ValueError, match=r"Unknown token id: .*999"):
            tokenizer.decode([999])
    with pytest.raises(ValueError, match="id 999"):
        ours.decode([999])
    with pytest.raises(UnicodeDecodeError):
        ours.decode([0xFF])
    with pytest.raises(ValueError, match="not in the vocabulary"):
        rustbpe.Tokenizer().decode([300])
    with pytest.raises(ValueError, match="at least 256"):
        ours.train_from_iterator([], 255)
    with pytest.raises(ValueError, match="at least 1"):
        ours.train_from_iterator([], 256, buffer_size=0)
    with pytest.raises(TypeError, match="not a str"):
        ours.train_from_iterator(["a", 3], 256)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="pattern is not valid"):
        ours.train_from_iterator(["a"], 257, pattern="(")
