"""Mixtures: named sources with shares of the bytes, exactly and in any order."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import reference
from bytepair.errors import ArgumentError, CorpusError, CountsError
from commands import run
from messages import told

NAMES = ("code", "english", "math")

some_texts = st.lists(st.text(st.sampled_from("ab é中"), min_size=1, max_size=20), min_size=1)
some_parts = st.fixed_dictionaries(dict.fromkeys(NAMES, some_texts))
some_shares = st.fixed_dictionaries(
    dict.fromkeys(NAMES, st.fractions(min_value=Fraction(1, 100), max_value=9, max_denominator=100))
)


def counted(parts: dict[str, list[str]]) -> dict[str, bytepair.Counts]:
    return {name: bytepair.count(bytepair.corpus.Texts(texts)) for name, texts in parts.items()}


@given(some_parts, some_shares)
def test_each_part_has_its_share_of_the_bytes(
    parts: dict[str, list[str]], shares: dict[str, Fraction]
) -> None:
    counts = counted(parts)
    mixture = bytepair.Counts.mixture(counts, shares)
    sizes = {name: part.text_bytes for name, part in counts.items()}
    whole = sum(shares.values())
    expected: dict[bytes, Fraction] = {}
    for name, part in counts.items():
        weight = shares[name] / whole * sum(sizes.values()) / sizes[name]
        for pretoken, number in part.items():
            expected[pretoken] = expected.get(pretoken, Fraction()) + weight * number
    assert {p: Fraction(n, mixture.denominator) for p, n in mixture.items()} == expected
    assert mixture.text_bytes == sum(sizes.values()) * mixture.denominator


@pytest.mark.filterwarnings("ignore::bytepair.errors.ExhaustedWarning")
@given(some_parts, some_shares, st.randoms(use_true_random=False))
def test_the_order_of_sources_and_documents_does_not_matter(
    parts: dict[str, list[str]], shares: dict[str, Fraction], order: random.Random
) -> None:
    groups = counted(parts)
    mixed = bytepair.Counts.mixture(groups, shares)
    for names in itertools.permutations(NAMES):
        again = bytepair.Counts.mixture({n: groups[n] for n in names}, shares)
        assert again == mixed
    tok = bytepair.train(groups, 270, recipe=bytepair.training.Mixture(shares))
    shuffled = {n: order.sample(t, len(t)) for n, t in order.sample(list(parts.items()), 3)}
    sources = {n: bytepair.count(bytepair.corpus.Texts(t)) for n, t in shuffled.items()}
    assert bytepair.train(sources, 270, recipe=bytepair.training.Mixture(shares)) == tok


def test_training_is_that_of_the_reference() -> None:
    texts = {"a": ["low low lower"], "b": ["new newer"]}
    shares = {"a": Fraction(1, 4), "b": Fraction(3, 4)}
    tok = bytepair.train(
        texts, 262, pattern="gpt2", special_tokens=(), recipe=bytepair.training.Mixture(shares)
    )
    # 13 and 9 bytes: the weights are as 1/13 to 3/9, that is 3 to 13.
    counts = bytepair.count(["low low lower"], pattern="gpt2") * 3
    counts += bytepair.count(["new newer"], pattern="gpt2") * 13
    learnt = reference.train(dict(counts.items()), 6)
    tokens = reference.vocabulary(learnt)
    assert tok.merges() == [(tokens[left], tokens[right]) for left, right in learnt]


def test_only_proportions_count_and_floats_are_decimal() -> None:
    parts = counted({"a": ["one two three"], "b": ["1 2"]})
    mixture = bytepair.Counts.mixture(parts, {"a": 0.1, "b": 0.3})
    assert bytepair.Counts.mixture(parts, {"a": 1, "b": 3}) == mixture
    assert bytepair.Counts.mixture(parts, {"a": Fraction(1, 4), "b": 0.75}) == mixture
    halves = {name: part.times(Fraction(1, 2)) for name, part in parts.items()}
    halved = bytepair.Counts.mixture(halves, {"a": 1, "b": 3})
    assert halved.times(2) == mixture


def test_shares_that_need_more_than_64_bits_are_the_nearest() -> None:
    sizes = {f"{n}": 10**9 + n for n in (1, 3, 7, 9)}
    parts = {name: bytepair.count([name]) * size for name, size in sizes.items()}
    shares = {name: Fraction(1, n + 2) for n, name in enumerate(sizes)}
    mixture = bytepair.Counts.mixture(parts, shares)
    assert mixture.text_bytes <= 1 << 62
    whole, numbers = sum(shares.values()), dict(mixture.items())
    for name, share in shares.items():
        expected = share / whole * mixture.text_bytes
        assert 0 < abs(numbers[name.encode()] / expected - 1) < 1e-8


def test_min_count_is_in_occurrences_of_the_mixture() -> None:
    texts = {"a": ["ab " * 30], "b": ["cd " * 30]}
    shares = {"a": 0.8, "b": 0.2}  # ab weighs 48 and cd 12
    assert (
        len(
            bytepair.train(
                texts,
                269,
                options=bytepair.TrainOptions(min_count=11),
                recipe=bytepair.training.Mixture(shares),
            ).merges()
        )
        == 4
    )
    with pytest.warns(bytepair.errors.ExhaustedWarning):
        tok = bytepair.train(
            texts,
            269,
            options=bytepair.TrainOptions(min_count=13),
            recipe=bytepair.training.Mixture(shares),
        )
    assert {left + right for left, right in tok.merges()} == {b"ab", b" ab"}


def test_invalid_mixtures() -> None:
    texts = {"a": ["one"], "b": ["two"]}
    for shares in ({}, {"a": 1}, {"a": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}):
        with told(ArgumentError):
            bytepair.train(texts, 270, recipe=bytepair.training.Mixture(shares))
    for share in (0, -1, float("nan"), float("inf")):
        with told(CountsError):
            bytepair.train(texts, 270, recipe=bytepair.training.Mixture({"a": 1, "b": share}))
    with told(CountsError):
        bytepair.train(
            texts, 270, recipe=bytepair.training.Mixture({"a": 1, "b": Fraction(1, 1 << 70)})
        )
    with told(CountsError):
        bytepair.train(
            {"a": ["one"], "b": [""]}, 270, recipe=bytepair.training.Mixture({"a": 1, "b": 1})
        )
    with told(ArgumentError):
        bytepair.train(["one"], 270, recipe=bytepair.training.Mixture({"a": 1}))
    with told(ArgumentError) as refused:
        bytepair.train(texts, 270)
    assert refused.value.option == "recipe"
    with told(ArgumentError):
        bytepair.train(texts, 270, recipe=[bytepair.training.Mixture({"a": 1, "b": 1})] * 2)
    with told(ArgumentError):
        bytepair.train(texts, 270, recipe={"a": 1})  # type: ignore[arg-type]
    other = bytepair.count(["two"], pattern="gpt2")
    with told(CountsError):
        bytepair.train(
            {"a": ["one"], "b": other},
            270,
            pattern="gpt4",
            recipe=bytepair.training.Mixture({"a": 1, "b": 1}),
        )
    with pytest.raises(CorpusError):
        bytepair.train(
            {"a": Path("none.txt"), "b": ["two"]},
            270,
            recipe=bytepair.training.Mixture({"a": 1, "b": 1}),
        )


def test_the_command_names_its_sources(tmp_path: Path) -> None:
    texts = {"english": "the cat and the other cat sat", "code": "def f(x): return x + 1; f(x)"}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    shares = {"english": 0.6, "code": 0.4}
    expected = bytepair.train(
        {n: [t] for n, t in texts.items()}, 275, recipe=bytepair.training.Mixture(shares)
    )
    options = ("--mixture", "code=0.4,english=0.6", "--vocab-size", "275")
    run("train", "english=english.txt", "code=code.txt", *options, "-o", "one", cwd=tmp_path)
    run("train", "*.txt", *options, "-o", "two", cwd=tmp_path)
    run("count", "code.txt", "-o", "code.parquet", cwd=tmp_path)
    run("train", "code=code.parquet", "english.txt", *options, "-o", "three", cwd=tmp_path)
    for name in ("one", "two", "three"):
        assert bytepair.load(tmp_path / name) == expected
    for wrong in ("code", "code=0", "code=x", "code=1,code=1", "=1", "code=1"):
        run("train", "*.txt", "--mixture", wrong, cwd=tmp_path, code=1 if wrong == "code=1" else 2)
    (tmp_path / "books").mkdir()
    for number, part in enumerate(("the cat and the other", " cat sat")):
        (tmp_path / "books" / f"{number}.txt").write_text(part, encoding="utf-8")
    parts = {"english": [tmp_path / "books" / f"{n}.txt" for n in (0, 1)], "code": [texts["code"]]}
    words = ("english=books/0.txt", "english=books/1.txt", "code=code.txt")
    run("train", *words, *options, "-o", "four", cwd=tmp_path)
    assert bytepair.load(tmp_path / "four") == bytepair.train(
        parts, 275, recipe=bytepair.training.Mixture(shares)
    )
    weight = ("--weight", "code.txt=2")
    done = run("train", "*.txt", *options, *weight, cwd=tmp_path, code=2)
    assert "contradict" in done.stderr
