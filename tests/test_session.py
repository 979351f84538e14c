"""A text that grows in pieces has the ids of the whole text after each of them."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair.errors import SpecialTokenError
from bytepair.tokenizer.results import Change
from messages import told

#: Published patterns; one each for the automaton, in steps and for the regex engine; and NFC.
PATTERNS: list[str | tuple[str, ...]] = [
    "gpt2", "cl100k_base", "o200k_base", "qwen2", "llama3", "nanochat",
    r"\w+|\s+|[^\w\s]+",
    (r"\p{N}{1,3}", r"[一-龥]+", r" ?\p{L}+|\s+(?!\S)|\s|[^\s\p{L}]+"),
    r"(?=(.))\w+|(?<=a) b|\s+|.",
    "NFC",
]  # fmt: skip
SPECIAL = ["<|a|>", "<|a|><|b", "<|b|>", "x y"]
TEXTS = [
    "It's 12345 o'clock;  we'LL see.\n\n  The end\t<|a|><|b|> and x yes.\r\n" * 2,
    "中文字符，没有空格。e\u0301 ﬁ 한국어 ไทยไม่มีช่องว่าง 😀😀",
]


def tokenizer(pattern: str | tuple[str, ...], rule: str) -> bytepair.Tokenizer:
    normalizer = "NFC" if pattern == "NFC" else None
    plain = "qwen2" if pattern == "NFC" else pattern
    tok = bytepair.train(TEXTS * 3, 330, pattern=plain, special_tokens=SPECIAL)
    values: Any = {
        "pattern": plain, "special_tokens": tok.special_tokens, "normalizer": normalizer
    }  # fmt: skip
    if rule == "ranks":
        return bytepair.Tokenizer.from_ranks(tok.mergeable_ranks(), **values)
    return bytepair.Tokenizer.from_merges(tok.mergeable_ranks(), tok.merges()[:-3], **values)


TOKENIZERS = [tokenizer(pattern, rule) for pattern in PATTERNS for rule in ("ranks", "merges")]
HARD = [
    *"ab 1'!\n<|>中e",
    "\u0301",
    "\ud83d",
    "\ude00",
    "😀",
    "<|a|>",
    "<|b",
    "x y",
    "  ",
    "'s",
    "ab",
]
#: Any Unicode, with lone surrogates, and what patterns and special tokens look at.
ANY_TEXT = st.lists(st.sampled_from(HARD) | st.characters(exclude_categories=())).map("".join)


def check(tok: bytepair.Tokenizer, pieces: list[str], **options: Any) -> None:
    session, text, stable = bytepair.tokenizer.Session(tok, **options), "", []
    ids = session.ids
    for piece in pieces:
        text += piece
        change = session.append(piece)
        assert 0 <= change.removed <= len(ids) - session.stable + len(change.ids)
        ids[len(ids) - change.removed :] = change.ids
        assert session.ids == ids == tok.encode(text, **options)
        assert len(session) == len(ids)
        stable.append(ids[: session.stable])
    assert all(ids[: len(part)] == part for part in stable)
    assert [len(part) for part in stable] == sorted(len(part) for part in stable)


@given(
    st.sampled_from(TOKENIZERS),
    st.lists(ANY_TEXT | st.sampled_from(TEXTS), max_size=8),
    st.sampled_from([None, "text", "all", "none", ("<|a|>", "x y")]),
    st.sampled_from([None, "<|b|>", 7]),
)
def test_any_pieces(
    tok: bytepair.Tokenizer, pieces: list[str], special: Any, prepend: str | int | None
) -> None:
    check(tok, pieces, special=special, prepend=prepend)


@pytest.mark.parametrize("tok", TOKENIZERS, ids=lambda tok: f"{tok.pattern[:20]} {tok.merge_rule}")
def test_character_by_character_and_at_random_cuts(tok: bytepair.Tokenizer) -> None:
    pick = random.Random(0)
    for text in TEXTS:
        check(tok, list(text), special="all")
        for _ in range(10):
            cuts = [0, *sorted(pick.choices(range(len(text)), k=5)), len(text)]
            check(tok, [text[a:b] for a, b in pairwise(cuts)], special="all")


def test_forks_grow_on_their_own() -> None:
    tok = TOKENIZERS[0]
    session = bytepair.tokenizer.Session(tok)
    session.append(TEXTS[0] * 300)
    forks = [session.fork() for _ in range(3)]
    for number, fork in enumerate(forks):
        fork.append(f"{number} more")
    assert session.ids == tok.encode(TEXTS[0] * 300)
    for number, fork in enumerate(forks):
        assert fork.ids == tok.encode(TEXTS[0] * 300 + f"{number} more")
        assert session.stable <= fork.stable


def test_a_forbidden_special_token_leaves_the_session_as_it_was() -> None:
    session = bytepair.tokenizer.Session(TOKENIZERS[0], special="error")
    session.append("a <|")
    before = session.ids
    with told(SpecialTokenError):
        session.append("a|>")
    assert session.ids == before
    assert session.append("c") == Change(0, TOKENIZERS[0].encode("c"))
    with pytest.raises(SpecialTokenError):
        bytepair.tokenizer.Session(TOKENIZERS[0], special=["<|nobody|>"])


def test_only_the_last_words_are_encoded_again() -> None:
    """With published patterns only the last words are encoded again, unless the text is one run."""
    for tok in TOKENIZERS[:12]:
        session = bytepair.tokenizer.Session(tok, special="all")
        for _ in range(2000):
            session.append("and so it goes, 12 times.\n")
            assert len(session.rest) < 30
            assert len(session) - session.stable < 20


def test_wrong_arguments() -> None:
    session = bytepair.tokenizer.Session(TOKENIZERS[0])
    with told(TypeError):
        session.append(b"bytes")  # type: ignore[arg-type]
    assert session.append("") == Change(0, [])
    assert session.ids == []


def with_white_space(pattern: str) -> bytepair.Tokenizer:
    """A tokenizer whose ids tell how white space is divided."""
    pairs = [b"  ", b" \t", b" \n", b"\n ", b"qq", b"11"]
    ranks = [*(bytes([byte]) for byte in range(256)), *pairs]
    return bytepair.Tokenizer.from_ranks(
        {token: rank for rank, token in enumerate(ranks)}, pattern=pattern, special_tokens={}
    )


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k_base", "o200k_base", "qwen2", "llama3"])
@pytest.mark.parametrize("start", ["  1", " \t+", "\n 'S", "a  (", "12 ", "  é", "\u3000\u3000x1"])
@pytest.mark.parametrize("run", ["q", "1", "中"])
def test_a_long_text_without_a_certain_position_has_the_ids_of_the_whole(
    pattern: str, start: str, run: str
) -> None:
    tok = with_white_space(pattern)
    for length in (253, 300):
        text = start + run * length
        check(tok, [text[at : at + 61] for at in range(0, len(text), 61)])
        check(tok, [text])


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k_base", "o200k_base", "nanochat"])
def test_streams_keep_white_space_before_a_long_run_apart(pattern: str) -> None:
    tok = with_white_space(pattern)
    for start in ["", " ", "  ", "   ", " \n", "\n ", "a  ", "1 \n"]:
        for sign in ["1", "-", "'", "/"]:
            for run in ["q" * 300, "q" * 70_000, "中" * 30_000]:
                pieces = [start + sign + run, "x 1"]
                expected = tok.encode("".join(pieces))
                assert list(tok.encode_stream(pieces)) == expected, (start, sign)
                session = bytepair.tokenizer.Session(tok)
                for piece in pieces:
                    session.append(piece)
                assert list(session.ids) == expected, (start, sign)
