"""The covers of a text (all ways in which the ids of longer texts begin), against brute force."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import reference
from bytepair.engines import cover
from bytepair.errors import ArgumentError, PatternError
from messages import told

PATTERNS = ["gpt2", "gpt4", "gpt4o", "qwen2", "llama3", "nanochat"]
BYTES = {bytes([byte]): byte for byte in range(256)}

#: Further characters that may follow, and those that a token may begin.
OTHERS = "x \u00a0\u2003\nX\u01c5'lesrvtdmLESRVTDM7!中\u0301"
EVERY = [chr(c) for c in (*range(0x80, 0xD800), *range(0xE000, 0x110000, 61))]

Encode = Callable[[str], list[int]]
Covers = set[tuple[int, ...]]


def slowly(tok: bytepair.Tokenizer) -> Encode:
    """Encode as the reference does."""
    ids = tok.mergeable_ranks()
    merges = tok.merges()

    @lru_cache(None)
    def pretoken(part: bytes) -> list[int]:
        if tok.merge_rule == "ranks":
            return reference.encode(part, ids)
        return reference.encode_merges(part, ids, merges, bytepair.tokenizer.ignores_merges(tok))

    return lambda text: [i for part in reference.split(text, tok.pattern) for i in pretoken(part)]


def covering(tok: bytepair.Tokenizer, ids: list[int], text: str) -> tuple[int, ...]:
    """The first ids whose bytes are as many as those of the text."""
    lengths = itertools.accumulate(len(tok.token_bytes(i)) for i in ids)
    length = len(text.encode())
    return tuple(ids[: next((n for n, size in enumerate(lengths, 1) if size >= length), 0)])


def continuations(alphabet: str, most: int) -> Iterable[str]:
    for length in range(most + 1):
        yield from map("".join, itertools.product(alphabet, repeat=length))


def begins(tok: bytepair.Tokenizer, ids: tuple[int, ...], encode: Encode, alphabet: str) -> bool:
    """Whether the encoding of some text begins with these ids."""
    data = tok.decode_bytes(ids)
    text = data.decode(errors="ignore")
    rest = data[len(text.encode()) :]
    ends = [c for c in EVERY if c.encode().startswith(rest)] if rest else [""]
    return any(
        tuple(encode(text + end + more)[: len(ids)]) == ids
        for more in [*continuations(alphabet, 2), *continuations(OTHERS, 2)]
        for end in ends
    )


def check(tok: bytepair.Tokenizer, text: str, alphabet: str, most: int) -> None:
    encode = slowly(tok)
    result = cover(tok, text)
    covers = {(*result.ids, *ending) for ending in result.endings}
    assert len(covers) == len(result.endings)
    tried = {covering(tok, encode(text + more), text) for more in continuations(alphabet, most)}
    assert tried <= covers, (tok.pattern, text, tried - covers)
    for ids in covers - tried:
        assert covering(tok, list(ids), text) == ids
        assert tok.decode_bytes(ids).startswith(text.encode())
        assert begins(tok, ids, encode, alphabet), (tok.pattern, text, ids)


def tokens(pick: random.Random, alphabet: str, count: int, pairs: bool) -> dict[bytes, int]:
    """A random vocabulary: neighbours joined, or any texts at all, also cut within characters."""
    table = dict(BYTES)
    pool = [bytes([byte]) for byte in alphabet.encode()]
    while len(table) < 256 + count:
        if pairs:
            token = b"".join(pick.choices(pool, k=2))
        else:
            token = "".join(pick.choices(alphabet, k=pick.randint(1, 4))).encode()
            token = token[pick.randint(0, 1) : len(token) - pick.randint(0, 1)]
        if 1 < len(token) < 9 and token not in table:
            table[token] = len(table)
            pool.append(token)
    return table


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    alphabet=st.sampled_from(["ab '\n", "aA中l'", " \n\u3000a!", "1a é", "Aa\u0301\u01c5 "]),
    pairs=st.booleans(),
)
def test_random_vocabularies(pattern: str, seed: int, alphabet: str, pairs: bool) -> None:
    pick = random.Random(seed)
    vocabulary = tokens(pick, alphabet, 25, pairs)
    tok = bytepair.Tokenizer.from_ranks(vocabulary, pattern=pattern)
    for _ in range(3):
        check(tok, "".join(pick.choices(alphabet, k=pick.randint(1, 5))), alphabet, 4)


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_the_rule_of_merges(ignore_merges: bool) -> None:
    pick = random.Random(3)
    for _ in range(10):
        trained = bytepair.train(["".join(pick.choices("ab ", k=800))], 275, special_tokens=[])
        merges = trained.merges()
        tok = bytepair.Tokenizer.from_merges(
            trained.mergeable_ranks(),
            pick.sample(merges, len(merges) - 2),
            pattern="gpt2",
            ignore_merges=ignore_merges,
        )
        for text in ("a", "ab", " ", "ba b", "aa", "a  "):
            check(tok, text, "ab ", 5)


def test_a_token_that_only_wins_as_a_whole() -> None:
    """`abc` is no merge of its bytes: where more letters follow, it is three ids."""
    tok = bytepair.Tokenizer.from_ranks({**BYTES, b"abc": 256, b"cd": 257}, pattern="gpt2")
    a, b, c = b"abc"
    assert cover(tok, "a").endings == [[a], [256]]
    assert cover(tok, "abc").endings == [[a, b, c], [a, b, 257], [256]]
    check(tok, "abc", "abcd ", 3)


def test_a_character_that_a_token_begins() -> None:
    vocabulary = {**BYTES, b" \xe4": 256, b" \xe4\xb8\xad": 257, b"a\xc3": 258, b"a\xc3\xa9": 259}
    tok = bytepair.Tokenizer.from_ranks(vocabulary, pattern="gpt2")
    assert [
        [256] in cover(tok, " ").endings,
        [258] in cover(tok, "a").endings,
    ] == [True, True]
    # Here `a` with any character that begins so is a token, so 256 never ends the ids of a text.
    letters = {b"a" + chr(c).encode(): c + 200 for c in range(0xC0, 0x100)}
    tok = bytepair.Tokenizer.from_ranks({**BYTES, b"a\xc3": 256, **{
        token: 257 + n for n, token in enumerate(letters)}}, pattern="gpt2")  # fmt: skip
    assert [256] not in cover(tok, "a").endings
    assert len(cover(tok, "a").endings) == 1 + 62  # all but two of these characters are letters


def test_special_tokens_and_ordinary_text() -> None:
    tok = bytepair.train(["hello hello"], 269)
    bos = tok.special_tokens["<|bos|>"]
    assert cover(tok, "") == ([], [[]], True)
    assert cover(tok, "hello<|bos|>", special="all") == (
        [tok.token_id("hello"), bos],
        [[]],
        True,
    )
    ids, endings, _ = cover(tok, "hello <|bos|>hel", special={"<|bos|>"})
    assert ids[-1] == bos
    assert [tok.decode(ending) for ending in endings] == ["hel", "hello"]
    assert cover(tok, "<|bos|>x").ids[:1] != [bos]
    with pytest.raises(bytepair.errors.SpecialTokenError):
        cover(tok, "<|bos|>", special="error")


def test_the_ids_of_the_text_itself_are_a_cover() -> None:
    tok = bytepair.train(bytepair.sample.paths(), 2000)
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")
    for end in range(100, 200):
        ids, endings, _ = cover(tok, text[:end])
        matches = {tok.encode(text[:end])[len(ids) :] == ending for ending in endings}
        assert True in matches
        after = covering(tok, tok.encode(text[: end + 50]), text[:end])
        assert [*after[len(ids) :]] in endings
        assert list(after[: len(ids)]) == ids


@pytest.mark.parametrize(("pattern", "normalizer"), [(r"\w+|\s+|[^\w\s]+", None), ("gpt4", "NFC")])
def test_other_patterns_are_refused(pattern: str, normalizer: str | None) -> None:
    tok = bytepair.Tokenizer.from_ranks(BYTES, pattern=pattern, normalizer=normalizer)
    with told(PatternError):
        cover(tok, "text")


def test_a_limit_ends_the_search_and_the_cover_says_that_it_is_not_complete() -> None:
    tok = bytepair.train(["the then there their them"], 265, special_tokens=())
    every = cover(tok, "the th")
    assert every.complete
    assert len(every.endings) > 2
    exact = cover(tok, "the th", limit=len(every.endings))
    assert exact == every
    few = cover(tok, "the th", limit=2)
    assert (few.ids, len(few.endings), few.complete) == (every.ids, 2, False)
    assert all(ending in every.endings for ending in few.endings)
    with pytest.raises(ArgumentError) as wrong:
        cover(tok, "the th", limit=0)
    assert wrong.value.option == "limit"
