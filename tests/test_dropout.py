"""BPE-dropout: ids equal to the reference, and shares of splits equal to their probabilities."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from math import prod, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
import reference_twins
from bytepair.errors import ArgumentError, SplitError
from messages import told
from texts import hard_text

BYTES = {bytes([byte]): byte for byte in range(256)}
TOKENS = [b"ab", b"bc", b"abc", b"cab", b"aa", b"abcab", b" a", b"bcb"]
RANKS = BYTES | {token: 300 - n for n, token in enumerate(TOKENS)}
MERGES = [(b"b", b"c"), (b"a", b"b"), (b"a", b"a"), (b"ab", b"c"), (b"c", b"ab"), (b" ", b"a"),
          (b"a", b"bc"), (b"abc", b"ab"), (b"a", b"b")]  # fmt: skip

Rank = Callable[[bytes, bytes], int | None]


def tokenizers() -> dict[str, bytepair.Tokenizer]:
    special = {"<s>": 400}
    by_ranks = bytepair.Tokenizer.from_ranks(RANKS, pattern="gpt2", special_tokens=special)
    by_merges = bytepair.Tokenizer.from_merges(
        RANKS, MERGES, pattern="gpt2", special_tokens=special, ignore_merges=True
    )
    return {"ranks": by_ranks, "merges": by_merges}


def rank_of(tok: bytepair.Tokenizer) -> Rank:
    """Which neighbours merge, from the definition of the rule."""
    if tok.merge_rule == "ranks":
        ranks = tok.mergeable_ranks()
        return lambda left, right: ranks.get(left + right)
    order = {pair: n for n, pair in reversed(list(enumerate(tok.merges())))}
    return lambda left, right: order.get((left, right))


def plain(tok: bytepair.Tokenizer, texts: list[str], dropout: float, seed: int) -> list[list[int]]:
    """Texts one by one, by the reference."""
    rank, ids, rows = rank_of(tok), tok.mergeable_ranks(), []
    for text, start in zip(texts, reference_twins.random_numbers(seed), strict=False):
        numbers = reference_twins.random_numbers(start)
        row: list[int] = []
        for pretoken in bytepair.pretokenize(text, tok):
            parts = reference_twins.encode_dropout(
                pretoken.encode(),
                rank,
                lambda: (next(numbers) >> 11) / (1 << 53) < dropout,  # noqa: B023
            )
            row += [ids[part] for part in parts]
        rows.append(row)
    return rows


def rows_of(arrays: tuple[Any, Any]) -> list[list[int]]:
    ids, offsets = arrays
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())]


@settings(max_examples=150)
@given(
    st.lists(st.one_of(st.text("abc ", max_size=30), hard_text), max_size=6),
    st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.integers(0, 2**64 - 1),
    st.sampled_from(["ranks", "merges"]),
)  # fmt: skip
def test_ids_are_those_of_the_reference(
    texts: list[str], dropout: float, seed: int, rule: str
) -> None:
    tok = tokenizers()[rule]
    rows = rows_of(tok.encode_batch_to_numpy(texts, dropout=dropout, seed=seed))
    expected = plain(tok, texts, dropout, seed) if dropout else tok.encode_batch(texts)
    assert rows == expected
    assert [tok.decode_bytes(row) for row in rows] == [text.encode() for text in texts]


def distribution(word: bytes, rank: Rank, dropout: float) -> dict[tuple[bytes, ...], float]:
    """The probability of each result by the definition of the paper, over all subsets of merges."""

    @cache
    def of(parts: tuple[bytes, ...]) -> Mapping[tuple[bytes, ...], float]:
        ranks = [(rank(a, b), i) for i, (a, b) in enumerate(itertools.pairwise(parts))]
        pairs = sorted((n, i) for n, i in ranks if n is not None)
        shares: dict[tuple[bytes, ...], float] = defaultdict(float)
        for drops in itertools.product([True, False], repeat=len(pairs)):
            share = prod(dropout if drop else 1 - dropout for drop in drops)
            left = [i for (_, i), drop in zip(pairs, drops, strict=True) if not drop]
            if not left:
                shares[parts] += share
                continue
            i = left[0]
            for result, part in of((*parts[:i], parts[i] + parts[i + 1], *parts[i + 2 :])).items():
                shares[result] += share * part
        return shares

    return dict(of(tuple(word[i : i + 1] for i in range(len(word)))))


def fits(
    observed: Counter[tuple[bytes, ...]], expected: dict[tuple[bytes, ...], float], z: float
) -> bool:
    """Pearson's test: whether chi-square is below its quantile of a normal deviate `z`."""
    total = observed.total()
    assert abs(sum(expected.values()) - 1) < 1e-9
    assert observed.keys() <= {result for result, share in expected.items() if share}
    common = {result for result, share in expected.items() if share * total >= 5}
    cells = [(observed[result], expected[result] * total) for result in common]
    cells.append((total - sum(o for o, _ in cells), total - sum(e for _, e in cells)))
    chi = sum((o - e) ** 2 / e for o, e in cells if e > 1e-6)
    freedom = max(sum(e > 1e-6 for _, e in cells) - 1, 1)
    return bool(chi < freedom * (1 - 2 / (9 * freedom) + z * sqrt(2 / (9 * freedom))) ** 3)


@pytest.mark.parametrize("rule", ["ranks", "merges"])
@pytest.mark.parametrize("word", ["abc", "abcab", "aabcb", "cabca"])
@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_shares_are_those_of_the_paper(rule: str, word: str, dropout: float) -> None:
    tok = tokenizers()[rule]
    expected = distribution(word.encode(), rank_of(tok), dropout)
    assert len(expected) > 2
    rows = rows_of(tok.encode_batch_to_numpy([word] * 20_000, dropout=dropout, seed=7))
    by_text = Counter(tuple(tok.token_bytes(id) for id in row) for row in rows)
    assert fits(by_text, expected, z=3.7)
    # In one text: its pretokens share one sequence of random numbers.
    text = "\n".join([word] * 20_000)
    (row,) = rows_of(tok.encode_batch_to_numpy([text], dropout=dropout, seed=8))
    tokens = [tok.token_bytes(id) for id in row]
    ends = [-1, *(i for i, token in enumerate(tokens) if token == b"\n"), len(tokens)]
    within = Counter(tuple(tokens[a + 1 : b]) for a, b in itertools.pairwise(ends))
    assert fits(within, expected, z=3.7)
    # The test detects another probability.
    assert not fits(by_text, distribution(word.encode(), rank_of(tok), dropout + 0.05), z=3.7)


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_shares_are_those_of_tokenizers_where_no_merge_undoes_another(dropout: float) -> None:
    """In `tokenizers`, an outdated entry of the queue restores the pairs that were dropped."""
    models = pytest.importorskip("tokenizers.models")
    merges = [(b"a", b"b"), (b"c", b"d"), (b"ab", b"cd")]
    tokens = BYTES | {a + b: 256 + n for n, (a, b) in enumerate(merges)}
    names = {token.decode(): id for token, id in tokens.items() if token.isalpha()}
    pairs = [(a.decode(), b.decode()) for a, b in merges]
    theirs = pytest.importorskip("tokenizers").Tokenizer(models.BPE(names, pairs, dropout=dropout))
    tok = bytepair.Tokenizer.from_merges(tokens, merges, pattern="gpt2")
    expected = distribution(b"abcd", rank_of(tok), dropout)
    encoded = theirs.encode_batch(["abcd"] * 20_000)
    counts = Counter(tuple(token.encode() for token in one.tokens) for one in encoded)
    assert fits(counts, expected, z=5.5)  # its random numbers have no seed
    rows = rows_of(tok.encode_batch_to_numpy(["abcd"] * 20_000, dropout=dropout, seed=1))
    assert fits(Counter(tuple(tok.token_bytes(i) for i in row) for row in rows), expected, z=3.7)


def test_any_number_of_threads_gives_the_same(trained: bytepair.Tokenizer) -> None:
    texts = [path.read_text("utf-8") for path in bytepair.sample.paths()]
    first = trained.encode_batch_to_numpy(texts, dropout=0.1, seed=3, threads=1)
    for threads in (2, 3, 8):
        again = trained.encode_batch_to_numpy(texts, dropout=0.1, seed=3, threads=threads)
        assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert first[0].dtype == np.uint16
    # A text depends on its index, and not on the others.
    other = trained.encode_batch_to_numpy(["x", *texts[1:9]], dropout=0.1, seed=3)
    assert rows_of(other)[1:] == rows_of(first)[1:9]
    assert (
        rows_of(trained.encode_batch_to_numpy(texts[:3], dropout=0.1, seed=4))
        != (rows_of(first)[:3])
    )
    plainly = trained.encode_batch_to_numpy(texts)
    none = trained.encode_batch_to_numpy(texts, dropout=0, seed=3)
    assert all((a == b).all() for a, b in zip(plainly, none, strict=True))
    assert len(plainly[0]) < len(first[0]) < 2 * len(plainly[0])
    every = trained.encode_batch_to_numpy(texts, dropout=1, seed=3)
    assert len(every[0]) == sum(len(text.encode()) for text in texts)


def test_special_tokens_are_never_dropped() -> None:
    tok = tokenizers()["ranks"]
    options: dict[str, Any] = {"special": "all", "prepend": "<s>", "append": 65}
    rows = tok.encode_batch_to_numpy(["ab<s>ab"], dropout=1.0, seed=0, **options)
    assert rows[0].tolist() == [400, 97, 98, 400, 97, 98, 65]
    marked = bytepair.Tokenizer.from_ranks(
        BYTES | {"é".encode(): 256}, pattern="gpt4", normalizer="NFC"
    )
    never = marked.encode_batch_to_numpy(["e\u0301"], dropout=1e-12, seed=0)
    assert never[0].tolist() == [256]


def test_a_long_pretoken_takes_no_square_of_its_length() -> None:
    rng = random.Random(0)
    text = "".join(rng.choices("abc", k=300_000))
    for tok in tokenizers().values():
        ids, _ = tok.encode_batch_to_numpy([text], dropout=0.3, seed=1)
        assert tok.decode_bytes(ids.tolist()) == text.encode()


def test_invalid_options_are_errors() -> None:
    tok = tokenizers()["ranks"]
    for dropout in (-0.1, 1.1, float("nan"), float("inf")):
        with told(ValueError):
            tok.encode_batch_to_numpy(["a"], dropout=dropout, seed=0)
    with told(TypeError):
        tok.encode_batch_to_numpy(["a"], dropout=0.1)
    with told(TypeError):
        tok.encode_batch_to_numpy(["a"], seed=1)
    with told(ArgumentError):
        tok.encode_batch_to_numpy(["a"], dropout=0.1, seed=-1)
    few = bytepair.Tokenizer.from_ranks({b"a": 0}, pattern="gpt2")
    with pytest.raises(SplitError):
        few.encode_batch_to_numpy(["a", "b"], dropout=0.5, seed=1)
