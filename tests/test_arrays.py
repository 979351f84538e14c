"""Ids as arrays, counts of ids and lists: each against `encode` one text at a time."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

import bytepair
import memory
from bytepair.errors import SpecialTokenError
from messages import told
from texts import hard_text

BYTES = {bytes([b]): b for b in range(256)}
SMALL = bytepair.Tokenizer.from_ranks(
    BYTES | {b"ab": 256, b" the": 257}, pattern="gpt4", special_tokens={"<s>": 300}
)
LARGE = bytepair.Tokenizer.from_ranks(
    BYTES | {b"ab": 256, b" the": 70_000}, pattern="gpt4", special_tokens={"<s>": 70_001}
)

#: Any `str`, also with lone surrogates, which UTF-8 does not have.
any_str = st.text(
    st.one_of(st.characters(), st.sampled_from("abé中😀\ud83d\ude00\udfff ")), max_size=60
)
some_texts = st.lists(st.one_of(hard_text, any_str), max_size=12)
special = st.sampled_from(["text", "all", "none", {"<s>"}])


def mended(text: str) -> str:
    """Surrogate pairs become their character, lone surrogates U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class TestTexts:
    @given(any_str)
    def test_a_str_of_any_kind_is_read_as_its_utf8(self, text: str) -> None:
        assert SMALL.decode_bytes(SMALL.encode(text)) == mended(text).encode()

    @pytest.mark.parametrize("last", ["a", "é", "中", "😀", "\ud83d"])
    def test_lone_surrogates_in_long_texts(self, last: str) -> None:
        text = ("the 'ab' <s> " * 30_000 + last) * 3
        assert SMALL.encode(text) == SMALL.encode(mended(text))
        assert SMALL.decode(SMALL.encode(text)) == mended(text)
        assert SMALL.encode_batch_to_numpy([text], threads=3).ids.tolist() == SMALL.encode(text)

    def test_no_second_copy_is_kept(self) -> None:
        text = "中文" * 1000
        before = sys.getsizeof(text)
        SMALL.encode(text)
        SMALL.encode_batch([text])
        SMALL.count(text)
        assert sys.getsizeof(text) == before


class TestArrays:
    @given(hard_text, special)
    def test_one_text(self, text: str, special: str) -> None:
        for tok, kind in ((SMALL, np.uint16), (LARGE, np.uint32)):
            ids = tok.encode_batch_to_numpy([text], special=special, prepend="<s>", append=97).ids
            assert ids.dtype == kind
            assert ids.tolist() == tok.encode(text, special=special, prepend="<s>", append=97)

    @given(some_texts, special, st.integers(1, 5))
    def test_a_batch(self, texts: list[str], special: str, threads: int) -> None:
        for tok, kind in ((SMALL, np.uint16), (LARGE, np.uint32)):
            ids, offsets = tok.encode_batch_to_numpy(
                texts, special=special, append="<s>", threads=threads
            )
            assert ids.dtype == kind
            assert offsets.dtype == np.int64
            expected = [tok.encode(text, special=special, append="<s>") for text in texts]
            assert [ids[start:end].tolist() for start, end in pairwise(offsets)] == expected
            assert tok.encode_batch(texts, special=special, append="<s>") == expected

    @pytest.mark.parametrize("threads", [1, 2, 5])
    def test_many_texts_and_long_ones(
        self, documents: Callable[[str], list[str]], trained: bytepair.Tokenizer, threads: int
    ) -> None:
        texts = documents("multilingual")[:300] + documents("code")[:50]
        texts += ["", "\n\n".join(documents("english")[:100]), "中文。" * 300_000, ""]
        expected = [trained.encode(text) for text in texts]
        ids, offsets = trained.encode_batch_to_numpy(texts, threads=threads)
        assert [ids[start:end].tolist() for start, end in pairwise(offsets)] == expected
        assert trained.encode_batch(texts, threads=threads) == expected
        assert (
            trained.encode_batch_to_numpy([texts[-3]], threads=threads).ids.tolist() == expected[-3]
        )
        counts = bytepair.tokenizer.count_batch(trained, texts, threads=threads)
        assert counts.tolist() == list(map(len, expected))

    def test_equal_to_tiktoken(
        self,
        pair: tuple[bytepair.Tokenizer, tiktoken.Encoding],
        documents: Callable[[str], list[str]],
    ) -> None:
        ours, theirs = pair
        texts = documents("multilingual")[:200] + documents("code")[:30]
        ids, offsets = ours.encode_batch_to_numpy(texts)
        lists = theirs.encode_ordinary_batch(texts, num_threads=2)
        assert ids.tolist() == [i for ids in lists for i in ids]
        assert np.diff(offsets).tolist() == list(map(len, lists))

    def test_empty_input(self) -> None:
        ids, offsets = SMALL.encode_batch_to_numpy([])
        assert ids.dtype == np.uint16
        assert (ids.tolist(), offsets.tolist()) == ([], [0])
        assert SMALL.encode_batch_to_numpy([""]).ids.tolist() == []
        assert bytepair.tokenizer.count_batch(SMALL, []).tolist() == []

    def test_errors_are_those_of_encode(self) -> None:
        for call in (
            SMALL.encode_batch_to_numpy,
            partial(bytepair.tokenizer.count_batch, SMALL),
            SMALL.encode_batch,
        ):
            with told(SpecialTokenError):
                call(["a", "Hi <s>"] * 3, special="error")
            with told(TypeError):
                call("text")


class TestCount:
    @given(st.one_of(hard_text, any_str), special)
    def test_a_count_is_the_length_of_the_list(self, text: str, special: str) -> None:
        for keywords in ({}, {"prepend": "<s>"}, {"append": 65}, {"prepend": 1, "append": 2}):
            ids = SMALL.encode(text, special=special, **keywords)
            assert SMALL.count(text, special=special, **keywords) == len(ids)
            assert bytepair.tokenizer.count_batch(
                SMALL, [text], special=special, **keywords
            ).tolist() == [len(ids)]


class TestLists:
    def test_lists_share_their_integers(self) -> None:
        one, two = LARGE.encode(" the"), LARGE.encode(" the the")
        assert one == [70_000]
        assert one[0] is two[0] is two[1]

    def test_lists_belong_to_the_caller(self) -> None:
        ids = SMALL.encode(" the ab")
        ids.append(7)
        ids[0] = -1
        assert SMALL.encode(" the ab") == [257, 32, 256]

    def test_integers_outlive_the_tokenizer(self) -> None:
        tok = bytepair.Tokenizer.from_ranks(BYTES | {b"ab": 7000}, pattern="gpt4")
        ids = tok.encode("ab" * 1000)
        del tok
        assert set(ids) == {7000}


def test_a_pretoken_of_megabytes_takes_little_more_than_its_ids() -> None:
    program = """
    import random
    import bytepair

    letters = random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=1_000_000)
    text = "".join(letters) * 20
    del letters
    tok = bytepair.train([text[:300_000]], 2000, special_tokens=[])
    before = peak_mb()
    ids = tok.encode_batch_to_numpy([text]).ids
    print(ids.nbytes / 1e6, peak_mb() - before)
    """
    ids, grown = map(float, memory.run(program))
    assert grown < 5 * ids


def test_a_pretoken_of_many_windows_has_the_ids_that_it_has_elsewhere() -> None:
    picked = random.Random(2)
    text = "".join(picked.choices("abcdefghijklmnopqrstuvwxyz", k=300_000))
    for trained in (text, " ".join(text[at : at + 7] for at in range(0, 10_000, 7))):
        tok = bytepair.train([trained[:100_000]], 1000, special_tokens=[])
        assert tok.encode_batch_to_numpy([text]).ids.tolist() == bytepair.compat.to_tiktoken(
            tok
        ).encode(text)
