"""Libraries that constrain a model by a grammar, each with a vocabulary and random logits.

Only what is installed is tested: llguidance, xgrammar and outlines_core.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

import bytepair
from bytepair.engines import stop_ids
from bytepair.errors import SpecialTokenError
from bytepair.properties.tokens import all_tokens
from messages import told

#: All values are bounded but the number, which ends soon if each next id is random.
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "bb", "é <|bos|>"]}, "maxItems": 3},
        "ok": {"type": "boolean"},
    },
    "required": ["name", "age", "tags", "ok"],
    "additionalProperties": False,
}

#: A function that says which ids may come next, and one that accepts an id.
Step = tuple[Callable[[], NDArray[np.bool_]], Callable[[int], object]]

TOK = bytepair.train(bytepair.sample.paths(), 2000)
END = TOK.special_tokens["<|assistant_end|>"]


def trained_by_merges() -> bytepair.Tokenizer:
    """The same with the other merge rule, an unused id and other special tokens."""
    special = {"<end>": TOK.vocab_size + 3, "<bos>": TOK.vocab_size + 2}
    return bytepair.Tokenizer.from_merges(
        TOK.mergeable_ranks(), TOK.merges(), pattern="gpt4", special_tokens=special
    )


TOKENIZERS = {"<|assistant_end|>": TOK, "<end>": trained_by_merges()}


def of_llguidance(tok: bytepair.Tokenizer, stop: str, schema: Any) -> Step:
    llguidance = pytest.importorskip("llguidance")
    bitmasks = pytest.importorskip("llguidance.numpy")
    options = {"x-guidance": {"whitespace_flexible": False}}
    grammar = llguidance.LLMatcher.grammar_from_json_schema(schema | options)
    matcher = llguidance.LLMatcher(bytepair.engines.to_llguidance(tok, stop=stop), grammar)
    assert not matcher.get_error()
    bits = bitmasks.allocate_token_bitmask(1, tok.vocab_size)

    def allowed() -> NDArray[np.bool_]:
        bitmasks.fill_next_token_bitmask(matcher, bits, 0)
        return unpacked(bits, tok.vocab_size)

    return allowed, matcher.consume_token


def of_xgrammar(tok: bytepair.Tokenizer, stop: str, schema: Any) -> Step:
    xgrammar = pytest.importorskip("xgrammar")
    compiler = xgrammar.GrammarCompiler(bytepair.engines.to_xgrammar(tok, stop=stop))
    compiled = compiler.compile_json_schema(json.dumps(schema), any_whitespace=False)
    matcher = xgrammar.GrammarMatcher(compiled)
    bits = xgrammar.allocate_token_bitmask(1, tok.vocab_size)

    def allowed() -> NDArray[np.bool_]:
        matcher.fill_next_token_bitmask(bits)
        return unpacked(bits.numpy(), tok.vocab_size)

    return allowed, matcher.accept_token


def outlines_vocabulary(core: Any, tok: bytepair.Tokenizer, stop: str) -> Any:
    """As on the page about engines."""
    tokens = {token: [id] for token, id in tok.mergeable_ranks().items()}
    return core.Vocabulary(tok.special_tokens[stop], tokens)


def of_outlines(tok: bytepair.Tokenizer, stop: str, schema: Any) -> Step:
    core = pytest.importorskip("outlines_core")
    theirs = importlib.import_module("outlines_core.json_schema")
    regex = theirs.build_regex_from_schema(json.dumps(schema))
    guide = core.Guide(core.Index(regex, outlines_vocabulary(core, tok, stop)))

    def allowed() -> NDArray[np.bool_]:
        mask = np.zeros(tok.vocab_size, bool)
        mask[guide.get_tokens()] = True
        return mask

    return allowed, guide.advance


def unpacked(bits: NDArray[np.int32], count: int) -> NDArray[np.bool_]:
    flat = np.unpackbits(bits.view(np.uint8).ravel(), bitorder="little")
    return flat[:count].astype(bool)


LIBRARIES = {"llguidance": of_llguidance, "xgrammar": of_xgrammar, "outlines_core": of_outlines}


def generated(tok: bytepair.Tokenizer, step: Step, end: int, seed: int) -> Iterator[int]:
    """Ids of a model of random logits, up to the one that ends the text."""
    pick = np.random.default_rng(seed)
    allowed, take = step
    for _ in range(1000):
        mask = allowed()
        assert mask.any()
        others = set(tok.special_tokens.values()) - {end}
        assert not mask[list(others)].any()
        assert not mask[[i for i, token in enumerate(all_tokens(tok)) if not token]].any()
        id = int(np.where(mask, pick.standard_normal(tok.vocab_size), -np.inf).argmax())
        if id == end:
            return
        take(id)
        yield id
    raise AssertionError("the text does not end")


@pytest.mark.parametrize("stop", list(TOKENIZERS))
@pytest.mark.parametrize("library", list(LIBRARIES))
def test_what_a_random_model_generates_fits_the_schema(library: str, stop: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    tok = TOKENIZERS[stop]
    end = tok.special_tokens[stop]
    texts = set()
    for seed in range(20):
        step = LIBRARIES[library](tok, stop, SCHEMA)
        text = tok.decode(list(generated(tok, step, end, seed)), errors="strict")
        # XGrammar allows control characters in strings of a bounded length.
        value = json.loads(text, strict=library != "xgrammar")
        jsonschema.validate(value, SCHEMA)
        texts.add(text)
    assert len(texts) == 20


def test_a_stop_is_a_special_token() -> None:
    named = TOK.replace(roles={"eos": "<|assistant_end|>"})
    assert stop_ids(named, None) == stop_ids(TOK, END) == stop_ids(TOK, ["<|assistant_end|>", END])
    assert stop_ids(TOK, ["<|assistant_end|>", "<|bos|>"]) == [END, TOK.special_tokens["<|bos|>"]]
    for wrong in ("hello", 7, ["<|bos|>", "</s>"]):
        with told(SpecialTokenError):
            stop_ids(TOK, wrong)
    with told(SpecialTokenError):
        stop_ids(TOK, [])
    with told(SpecialTokenError):
        stop_ids(bytepair.train(["hi"], 257, special_tokens=[]), None)


@pytest.mark.parametrize("library", ["llguidance", "xgrammar"])
def test_a_library_that_is_missing_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with told(ImportError, f"bytepair[{library}]"):
        getattr(bytepair.engines, f"to_{library}")(TOK, stop=END)


def test_llguidance_encodes_as_we_do() -> None:
    """Text that a grammar forces is encoded by the tokenizer, canonically."""
    llguidance = pytest.importorskip("llguidance")
    theirs = bytepair.engines.to_llguidance(TOK, stop=["<|assistant_end|>", "<|user_end|>"])
    assert theirs.is_canonical
    assert theirs.eos_tokens == [END, TOK.special_tokens["<|user_end|>"]]
    assert theirs.vocab_size == TOK.vocab_size
    for text in ("hello world", "<|assistant_end|>", "é 123\n", '{"name": "中文"}', ""):
        assert theirs.tokenize_str(text) == TOK.encode(text)
        assert theirs.decode_bytes(TOK.encode(text)) == text.encode()
    assert bytepair.engines.to_llguidance(TOK, stop=END, vocab_size=2048).vocab_size == 2048
    with told(ValueError, "2000 ids"):
        bytepair.engines.to_llguidance(TOK, stop=END, vocab_size=1999)
    grammar = llguidance.LLMatcher.grammar_from_regex("the same words each time[0-9]")
    matcher = llguidance.LLMatcher(bytepair.engines.to_llguidance(TOK, stop=END), grammar)
    forced = matcher.compute_ff_tokens()
    assert forced
    assert forced == TOK.encode("the same words each time")[: len(forced)]


def test_xgrammar_knows_what_is_special() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    info = bytepair.engines.to_xgrammar(TOK, stop=END, vocab_size=2048)
    others = sorted(set(TOK.special_tokens.values()) - {END})
    assert (info.vocab_size, info.stop_token_ids) == (2048, [END])
    assert set(others) <= set(info.special_token_ids)
    assert info.decoded_vocab[:1990] == all_tokens(TOK)[:1990]
    matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(info).compile_regex("[<a-z_|>]+"))
    assert not any(matcher.fork().accept_token(i) for i in [*others, END])
    for id in TOK.encode("<|bos|>"):
        assert matcher.accept_token(id)
    assert matcher.accept_token(END)
    assert matcher.is_terminated()


def test_outlines_has_the_ordinary_tokens() -> None:
    core = pytest.importorskip("outlines_core")
    vocabulary = outlines_vocabulary(core, TOK, "<|assistant_end|>")
    assert vocabulary.get_eos_token_id() == END
    assert len(vocabulary) in (len(TOK.mergeable_ranks()), len(TOK.mergeable_ranks()) + 1)
    guide = core.Guide(core.Index("[0-9]", vocabulary))
    assert sorted(guide.get_tokens()) == [TOK.token_id(b"%d" % digit) for digit in range(10)]
    assert guide.advance(TOK.token_id(b"7")) == [END]
