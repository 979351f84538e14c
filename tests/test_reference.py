"""The definition itself: small cases that can be worked out by hand."""

from __future__ import annotations

import doctest

import pytest

import reference_twins
from bytepair import reference


def test_the_worked_example() -> None:
    """Wikipedia's: `aaabdaaabac` becomes `XdXac` with Z=aa, Y=ab, X=ZY."""
    merges = reference.train({b"aaabdaaabac": 1}, 3)
    assert [reference.vocabulary(merges)[256:]] == [[b"aa", b"ab", b"aaab"]]
    ranks = {token: i for i, token in enumerate(reference.vocabulary(merges))}
    assert reference.encode(b"aaabdaaabac", ranks) == [258, 100, 258, 97, 99]


@pytest.mark.parametrize(("run", "merged"), [(2, [9]), (3, [9, 7]), (4, [9, 9]), (5, [9, 9, 7])])
def test_runs_merge_from_the_left(run: int, merged: list[int]) -> None:
    assert reference.replace([7] * run, (7, 7), 9) == merged


def test_overlapping_pairs_count() -> None:
    assert reference.count_pairs([([1, 1, 1], 5)]) == {(1, 1): 10}


@pytest.mark.parametrize(
    ("ties", "first"),
    [
        ("rustbpe", (0x20, 0x62)),  # the smallest ids
        ("hf", (0x62, 0x61)),  # the space stands behind all printable characters
        ("first-seen", (0x20, 0x62)),
        ("bytes-max", (0x62, 0x61)),
        ("characters-max", (0x20, 0x62)),
    ],
)
def test_each_rule_breaks_ties_in_its_way(ties: str, first: tuple[int, int]) -> None:
    assert reference.train({b" ba": 1}, 1, ties) == [first]


def test_a_longer_byte_string_is_greater_than_its_prefix() -> None:
    # (a, b) and (aa, b) both occur twice: `aa` is greater than `a`.
    counts = {b"aab": 2, b"ab": 2}
    tokens = reference.vocabulary(reference.train(counts, 2, "bytes-max"))
    assert tokens[256:] == [b"ab", b"aab"]


def test_min_count_stops() -> None:
    assert reference.train({b"ab": 1, b"cd": 2}, 9, min_count=2) == [(0x63, 0x64)]


def test_the_two_rules_differ() -> None:
    """`abc` from (ab, c) only: the rule of ranks takes any two parts, the other only this pair."""
    tokens = [b"a", b"b", b"c", b"bc", b"abc"]
    ranks = {token: i for i, token in enumerate(tokens)}
    merges = [(b"b", b"c"), (b"ab", b"c")]
    assert reference.encode(b"abca", ranks) == [4, 0]
    assert reference.encode_merges(b"abca", ranks, merges) == [0, 3, 0]
    assert reference.encode_merges(b"abc", ranks, merges, ignore_merges=True) == [4]


def test_split_keeps_what_nothing_matches() -> None:
    assert reference.split("ab12cd", r"\d+") == [b"ab", b"12", b"cd"]


def test_the_examples_of_the_twins() -> None:
    assert doctest.testmod(reference_twins).failed == 0
