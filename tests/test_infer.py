"""The mixture behind a vocabulary: inferred from mixtures that the tests make themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import _core, reference
from bytepair.errors import ArgumentError, CorpusError, CountsError
from conftest import refused
from messages import told

NAMES = ("de", "en", "hi", "ja")


@pytest.fixture(scope="module")
def samples() -> dict[str, bytepair.Counts]:
    files = {path.stem: path for path in bytepair.sample.paths()}
    return {name: bytepair.count(files[name]) for name in NAMES}


@pytest.mark.parametrize("shares", [(1, 2, 3, 4), (70, 1, 9, 20), (1, 1, 1, 1)])
def test_a_mixture_of_the_samples_is_found(
    samples: dict[str, bytepair.Counts], shares: tuple[int, ...]
) -> None:
    pytest.importorskip("scipy")
    expected = {name: share / sum(shares) for name, share in zip(NAMES, shares, strict=True)}
    tok = bytepair.train(samples, 800, recipe=bytepair.training.Mixture(expected))
    result = bytepair.training.infer_mixture(tok, samples, merges=500)
    assert result.shares == pytest.approx(expected, abs=0.02)
    assert sum(result.shares.values()) == pytest.approx(1)
    assert (result.merges, result.contradictions, result.is_final) == (500, 0, True)
    assert str(result).count("%") == 4


def test_samples_of_other_text_of_the_same_kinds() -> None:
    pytest.importorskip("scipy")
    texts = {p.stem: p.read_text("utf-8") for p in bytepair.sample.paths() if p.stem in NAMES}
    halves = [
        {name: [text[: len(text) // 2]] for name, text in texts.items()},
        {name: [text[len(text) // 2 :]] for name, text in texts.items()},
    ]
    expected = {"de": 0.4, "en": 0.1, "hi": 0.2, "ja": 0.3}
    tok = bytepair.train(halves[0], 700, recipe=bytepair.training.Mixture(expected))
    result = bytepair.training.infer_mixture(tok, halves[1], merges=200)
    assert result.shares == pytest.approx(expected, abs=0.05)
    assert result.contradictions > 0


words = st.dictionaries(
    st.text("abcd", min_size=1, max_size=8).map(str.encode), st.integers(1, 9), max_size=8
)


@settings(deadline=None)
@given(st.lists(words, min_size=1, max_size=3), st.data())
def test_rivals_are_those_of_a_recount(texts: list[dict[bytes, int]], data: st.DataObject) -> None:
    """At each step all pairs are counted again, and compared with the pair of the list."""
    merges = list(itertools.islice(reference.train(texts[0], 9), 9))
    tokens = reference.vocabulary(merges)
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(texts), max_size=len(texts)))
    counts = [_core.Counts.from_items(text.items(), "a") for text in texts]
    named = [(tokens[left], tokens[right]) for left, right in merges]
    history = _core.PairHistory(named, counts)
    steps, pairs, numbers = history.rivals(
        np.array(weights, float), np.zeros(len(merges)), [], 10**6, 0.0
    )
    rows = numbers.reshape(len(steps), len(texts)).tolist()
    merged = history.merged().reshape(-1, len(texts)).tolist()
    splits = [[(list(word), n) for word, n in text.items()] for text in texts]
    for step, pair in enumerate(merges):
        counted = [reference.count_pairs(split) for split in splits]
        every = {p: [count.get(p, 0) for count in counted] for count in counted for p in count}
        assert merged[step] == every.get(pair, [0] * len(texts))

        def value(row: list[int]) -> int:
            return sum(n * weight for n, weight in zip(row, weights, strict=True))

        limit = value(merged[step])
        expected = sorted(row for p, row in every.items() if p != pair and value(row) > limit)
        assert sorted(r for s, r in zip(steps.tolist(), rows, strict=True) if s == step) == expected
        new = 256 + step
        splits = [[(reference.replace(i, pair, new), n) for i, n in split] for split in splits]
    assert len(set(zip(steps.tolist(), pairs.tolist(), strict=True))) == len(steps)


def test_invalid_arguments(samples: dict[str, bytepair.Counts]) -> None:
    pytest.importorskip("scipy")
    tok = bytepair.train(samples["en"], 300)
    with refused("merges", 0):
        bytepair.training.infer_mixture(tok, samples, merges=0)
    with refused("rounds", 0):
        bytepair.training.infer_mixture(tok, samples, rounds=0)
    with told(ArgumentError):
        bytepair.training.infer_mixture(tok, ["a text"])  # type: ignore[arg-type]
    with told(CorpusError):
        bytepair.training.infer_mixture(tok, {"a": ["one"], "b": [""]})
    with told(CountsError):
        bytepair.training.infer_mixture(tok, {"a": bytepair.count(["one"], pattern="gpt2")})
