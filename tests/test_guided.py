"""Libraries for constrained generation take the ids and bytes of a tokenizer."""

from __future__ import annotations

import pytest

import bytepair
from bytepair.properties.tokens import all_tokens

TOK = bytepair.train(bytepair.sample.paths(), 600).replace(roles={"eos": "<|assistant_end|>"})
END = TOK.special_tokens["<|assistant_end|>"]


def test_ids_of_roles_are_those_of_their_tokens() -> None:
    assert (TOK.bos_token_id, TOK.eos_token_id) == (TOK.special_tokens["<|bos|>"], END)
    plain = bytepair.train(["hi"], 257, special_tokens=[])
    assert plain.bos_token_id is plain.eos_token_id is plain.pad_token_id is None
    published = bytepair.train(["hi"], 258, special_tokens=["<|endoftext|>"])
    assert published.eos_token_id == published.bos_token_id == 257


def test_the_tokens_by_their_ids() -> None:
    tok = bytepair.Tokenizer.from_ranks(
        {b"a": 0, b"b": 3}, pattern="gpt4", special_tokens={"<|é|>": 5}
    )
    assert all_tokens(tok) == [b"a", b"", b"", b"b", b"", "<|é|>".encode()]


def test_llguidance() -> None:
    llguidance = pytest.importorskip("llguidance")
    theirs = bytepair.engines.to_llguidance(TOK)
    assert (theirs.vocab_size, theirs.eos_token) == (TOK.vocab_size, END)
    for text in ("hello world", "<|assistant_end|>", "é 123\n"):
        assert theirs.tokenize_str(text) == TOK.encode(text)
    matcher = llguidance.LLMatcher(theirs, llguidance.LLMatcher.grammar_from_regex("[0-9]+"))
    assert matcher.consume_tokens([*TOK.encode("12"), END])
    assert matcher.is_stopped()
    assert not matcher.consume_tokens(TOK.encode("a"))


def test_outlines_core() -> None:
    core = pytest.importorskip("outlines_core")
    ids = {token: [id] for token, id in TOK.mergeable_ranks().items()}
    guide = core.Guide(core.Index("[0-9]", core.Vocabulary(TOK.eos_token_id, ids)))
    assert sorted(guide.get_tokens()) == [TOK.token_id(b"%d" % digit) for digit in range(10)]
    assert guide.advance(TOK.token_id(b"7")) == [END]


def test_xgrammar() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    info = xgrammar.TokenizerInfo(all_tokens(TOK), stop_token_ids=TOK.eos_token_id)
    assert (info.vocab_size, info.stop_token_ids) == (TOK.vocab_size, [END])
    assert info.decoded_vocab == all_tokens(TOK)
    grammar = xgrammar.GrammarCompiler(info).compile_regex("[0-9]")
    matcher = xgrammar.GrammarMatcher(grammar)
    assert not matcher.accept_token(TOK.token_id(b"a"))
    assert matcher.accept_token(TOK.token_id(b"7"))
    assert matcher.accept_token(END)
    assert matcher.is_terminated()
