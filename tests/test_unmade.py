"""Tokens that merging does not produce: a whole pretoken becomes one, a part of a pretoken never.

Long pretokens without spaces are divided into sections; a section is looked up as a pretoken is.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import reference

CHARACTERS = "中文字符没有空格กาขคงかなカナだЖы"
RNG = random.Random(5)
TEXTS = ["".join(RNG.choices(CHARACTERS, k=40)) for _ in range(300)]
TOK = bytepair.train(TEXTS, 700, pattern="llama3", special_tokens=[])
runs = st.lists(st.sampled_from([*CHARACTERS, " ", "a", "1", ", "]), max_size=60).map("".join)


def without(dropped: set[int], by_rank: bool) -> bytepair.Tokenizer:
    """The tokens of `TOK`, without some merges by list, or with ids that lead elsewhere."""
    ranks = TOK.mergeable_ranks()
    if not by_rank:
        merges = [pair for number, pair in enumerate(TOK.merges()) if number not in dropped]
        return bytepair.Tokenizer.from_merges(ranks, merges, pattern="llama3", ignore_merges=True)
    gone = {token for token, id in ranks.items() if id - 256 in dropped and len(token) < 4}
    rest = {token: id for token, id in ranks.items() if token not in gone}
    return bytepair.Tokenizer.from_ranks(rest, pattern="llama3")


def expected(tok: bytepair.Tokenizer, text: str) -> list[int]:
    ranks, ids = tok.mergeable_ranks(), []
    for pretoken in bytepair.pretokenize(text, tok.pattern):
        data = pretoken.encode()
        if tok.merge_rule == "ranks":
            ids += reference.encode(data, ranks)
        else:
            ids += reference.encode_merges(data, ranks, tok.merges(), ignore_merges=True)
    return ids


@pytest.mark.parametrize("by_rank", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_parts_of_pretokens_are_merged(seed: int, by_rank: bool) -> None:
    rng = random.Random(seed)
    tok = without(set(rng.sample(range(444), rng.choice([1, 5, 100]))), by_rank)
    assert by_rank or bytepair.evaluate.unreachable(tok)

    @settings(max_examples=60)
    @given(runs)
    def on_any_text(text: str) -> None:
        assert tok.encode(text) == expected(tok, text)

    on_any_text()
    for text in TEXTS[:40]:
        assert tok.encode(text) == expected(tok, text)
        assert tok.encode(text[:1]) == expected(tok, text[:1])
    again = bytepair.Tokenizer.from_bytes(tok.to_bytes())
    assert again.encode_batch(TEXTS) == tok.encode_batch(TEXTS)
