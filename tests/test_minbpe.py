"""`ties="first-seen"` gives the merges of minbpe, whose training is written out here.

minbpe splits a text, counts all pairs in order of occurrence before each merge, and takes the first
of the most frequent ones.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import bytepair

#: The patterns of its two classes: the one of GPT-4 as it was first published, and no split.
PATTERNS = [
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"""
    r"""| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+""",
    r"(?s:.+)",
]


def trained(text: str, vocab_size: int, pattern: str) -> list[tuple[bytes, bytes]]:
    pieces = [list(piece.encode()) for piece in regex.findall(pattern, text)]
    tokens = [bytes([b]) for b in range(256)]
    merges = []
    while len(tokens) < vocab_size:
        counts: dict[tuple[int, int], int] = {}
        for piece in pieces:
            for pair in pairwise(piece):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        best = max(counts, key=lambda pair: counts[pair])  # `max` keeps the first of equals
        pieces = [bytepair.reference.replace(piece, best, len(tokens)) for piece in pieces]
        left, right = (tokens[id] for id in best)
        merges.append((left, right))
        tokens.append(left + right)
    return merges


@pytest.mark.filterwarnings("ignore::bytepair.errors.ExhaustedWarning")
@pytest.mark.parametrize("pattern", PATTERNS)
@given(st.text("ab c\nd'.1é", min_size=1, max_size=120), st.integers(256, 290))
def test_the_first_of_the_most_frequent_pairs(pattern: str, text: str, vocab_size: int) -> None:
    options = {"pattern": pattern, "ties": "first-seen", "special_tokens": ()}
    tok = bytepair.train(bytepair.corpus.Texts([text]), vocab_size=vocab_size, **options)  # type: ignore[arg-type]
    assert tok.merges() == trained(text, vocab_size, pattern)
