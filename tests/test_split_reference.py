"""The definition of splitting against the core and `tokenizers`: small patterns, short texts."""

from __future__ import annotations

import itertools
import random

import pytest
import tokenizers
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import reference
from bytepair.errors import PatternError
from fuzz_patterns import BOUNDS, check, pattern_of
from pre_tokenizers import may_match_nothing, to_oniguruma

#: All texts of up to four of these characters.
TEXTS = ["".join(text) for n in range(5) for text in itertools.product("ab \n", repeat=n)]

PARTS = st.sampled_from(["a", "b", "[ab]", "[^b]", r"\s", r"\S", "ab", ".", " ", r"\s+", "(?i:B)"])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of others."""
    groups = st.sampled_from(["(?:@)", "(?=@)", "(?!@)", "(?>@)"])
    times = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "*+", "++"])
    return st.one_of(
        st.builds(lambda group, one: group.replace("@", one), groups, inner),
        st.builds(lambda one, count: f"(?:{one}){count}", inner, times),
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
    )


PATTERNS = st.recursive(PARTS, larger, max_leaves=6)


def forced(pattern: str) -> str:
    """The same pattern, with an assertion that always holds and that only the regex tier takes."""
    return f"(?:{pattern})(?=)"


def theirs(pattern: str, text: str) -> list[str]:
    """How `tokenizers` splits a text."""
    step = tokenizers.pre_tokenizers.Split(
        tokenizers.Regex(to_oniguruma(pattern)), behavior="isolated"
    )
    return [piece for piece, _ in step.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("pattern", "text", "pretokens"),
    [
        # A loop that prefers an empty match takes the place of the dot.
        ("(?:a|b?)+|.", "ab c", ["ab", " c"]),
        ("a??|.", "ab", ["ab"]),
        ("(?=b)|a", "aab", ["a", "a", "b"]),
        ("b*|a", "aba", ["a", "b", "a"]),
        # Both alternatives begin with the same repetition; the first one is preferred.
        (r"\d{1,3}\d{3}|\d{1,3}[a-z]?", "12345", ["12345"]),
    ],
)
def test_no_match_begins_where_an_empty_one_is_preferred(
    pattern: str, text: str, pretokens: list[str]
) -> None:
    assert [p.decode() for p in reference.split(text, pattern)] == pretokens
    assert bytepair.pretokenize(text, pattern) == pretokens
    assert bytepair.pretokenize(text, forced(pattern)) == pretokens


@settings(max_examples=150)
@given(PATTERNS)
def test_all_tiers_split_as_the_definition_says(pattern: str) -> None:
    try:
        bytepair.pretokenize("", pattern)
        bytepair.pretokenize("", forced(pattern))
    except PatternError:
        assume(False)
    for text in TEXTS[::3]:
        expected = [pretoken.decode() for pretoken in reference.split(text, pattern)]
        assert bytepair.pretokenize(text, pattern) == expected, (pattern, text)
        assert bytepair.pretokenize(text, forced(pattern)) == expected, (pattern, text)
        # tokenizers also splits where an empty match is; elsewhere the expression means the same.
        if not may_match_nothing(pattern):
            assert theirs(pattern, text) == expected, (pattern, text)


@given(st.text(st.sampled_from("ab1 \n\t'st.,é中😀\u00a0½"), max_size=40))
def test_named_patterns_split_as_the_definition_says(text: str) -> None:
    for name in bytepair.PATTERNS:
        expected = [pretoken.decode() for pretoken in reference.split(text, name)]
        assert bytepair.pretokenize(text, name) == expected
        assert bytepair.pretokenize(text, forced(bytepair.PATTERNS[name])) == expected


@pytest.mark.parametrize("repeat", ["+", "*"])
@pytest.mark.parametrize("between", ["'?", "'*", "x?", r"\s?"])
def test_a_class_that_is_repeated_twice_needs_two_characters(repeat: str, between: str) -> None:
    pattern = rf"\p{{L}}+{between}\p{{L}}{repeat}"
    for text in ("I am a don't b", "a", "ab", "a'b a"):
        expected = [pretoken.decode() for pretoken in reference.split(text, pattern)]
        assert bytepair.pretokenize(text, pattern) == expected
        assert bytepair.pretokenize(text, forced(pattern)) == expected
        if repeat == "+":
            assert theirs(pattern, text) == expected


@pytest.mark.parametrize("most", BOUNDS)
def test_a_number_has_as_many_digits_as_the_pattern_says(most: int) -> None:
    pattern = bytepair.PATTERNS["gpt4"].replace(r"\p{N}{1,3}", rf"\p{{N}}{{1,{most}}}")
    assert f"1,{most}}}" in pattern
    for length in (1, most, most + 1, 300, 2001):
        text = f"a{'7' * length} b"
        expected = [pretoken.decode() for pretoken in reference.split(text, pattern)]
        assert bytepair.pretokenize(text, pattern) == expected


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_split_as_another_engine_does(seed: int) -> None:
    for number in range(25):
        rng = random.Random(1000 * seed + number)
        assert check(pattern_of(rng), rng) is None
