"""`to_huggingface`: the same ids from the tokenizers library."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from pre_tokenizers import to_oniguruma

TOK = bytepair.train(bytepair.sample.paths(), vocab_size=1500)
THEIRS = bytepair.compat.to_huggingface(TOK)
THEIRS.encode_special_tokens = True


@given(st.one_of(st.text(max_size=30), st.text("ab \n'<|>bos1é", max_size=40)))
def test_ids_are_equal_on_any_text(text: str) -> None:
    assert THEIRS.encode(text).ids == TOK.encode(text)
    assert THEIRS.decode(TOK.encode(text), skip_special_tokens=False) == text


def test_special_tokens() -> None:
    text = "<|bos|>hi<|user_end|>"
    assert bytepair.compat.to_huggingface(TOK).encode(text).ids == TOK.encode(text, special="all")
    assert THEIRS.encode(text).ids == TOK.encode(text)
    assert THEIRS.token_to_id("<|bos|>") == TOK.special_tokens["<|bos|>"]
    assert THEIRS.get_vocab_size() == TOK.vocab_size


def test_a_list_of_merges_goes_out_as_it_is() -> None:
    tokens = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"abc": 257, b"bc": 258}
    merges = [(b"b", b"c"), (b"a", b"bc")]
    for ignore in (False, True):
        tok = bytepair.Tokenizer.from_merges(
            tokens, merges, pattern="gpt4", special_tokens={"<|bos|>": 300}, ignore_merges=ignore
        )
        exported = bytepair.compat.to_huggingface(tok)
        for text in ("ab", "abc", "abcab bc", "<|bos|>abc"):
            assert exported.encode(text).ids == tok.encode(text, special="all")


def test_ids_are_equal_on_real_text(
    pair: tuple[bytepair.Tokenizer, tiktoken.Encoding], documents: Callable[[str], list[str]]
) -> None:
    ours, _ = pair
    exported = bytepair.compat.to_huggingface(ours)
    exported.encode_special_tokens = True
    for kind in ("english", "code"):
        texts = [text[:20_000] for text in documents(kind)[:40]]
        theirs = [one.ids for one in exported.encode_batch(texts)]
        assert theirs == ours.encode_batch(texts)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"a{2}+", r"(?>a{2})"),
        (r"(?:a|[^)\]{2}+$]){1,}+b", r"(?>(?:a|[^)\]{2}+$]){1,})b"),
        (r"^\x{41}{1,2}+\$", r"\A(?>\x{41}{1,2})\$"),
        (r"[a-z&&[^aeiou]]{3}+\{1}+", r"(?>[a-z&&[^aeiou]]{3})\{1}+"),
        (r"\p{N}{1,3}", r"\p{N}{1,3}"),
        (r"(?m:$)|(?s:.)$", r"$|(?m:.)\z"),
    ],
)
def test_patterns_are_written_for_the_other_engine(pattern: str, expected: str) -> None:
    assert to_oniguruma(pattern) == expected


def test_a_missing_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(ImportError):
        bytepair.compat.to_huggingface(TOK)
