"""`compat.huggingface.Tokenizer` beside `tokenizers.Tokenizer`: every value of every encoding.

The original is the reference. Each test gives both the same texts and settings.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

import bytepair
from bytepair.compat import huggingface
from messages import told
from texts import hard_text

Documents = Callable[[str], list[str]]

#: Small: trained on the sample text. Its added tokens have all flags that are done exactly.
NAMES = ["<|bos|>", "<|eos|>", "<|pad|>", "<tool>", "<mask>", "<|é|>", "ab", "<right>"]


def small() -> tokenizers.Tokenizer:
    tok = bytepair.train(bytepair.sample.paths(), 600, pattern="gpt2", special_tokens=NAMES[:3])
    theirs = bytepair.compat.to_huggingface(tok)
    theirs.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("ab", normalized=False)])
    theirs.add_tokens([AddedToken("<|é|>", normalized=False)])
    theirs.add_special_tokens(
        [AddedToken("<mask>", lstrip=True), AddedToken("<right>", rstrip=True)]
    )
    return theirs


def with_processor(processor: Callable[[tokenizers.Tokenizer], Any]) -> tokenizers.Tokenizer:
    tokenizer = small()
    tokenizer.post_processor = processor(tokenizer)
    return tokenizer


def template(tokenizer: tokenizers.Tokenizer) -> Any:
    bos, eos = tokenizer.token_to_id("<|bos|>"), tokenizer.token_to_id("<|eos|>")
    return processors.TemplateProcessing(
        single="<|bos|> $A:0 <|eos|>:0",
        pair="<|bos|> $A:0 <|eos|>:0 <|bos|>:1 $B:1 <|eos|>:1",
        special_tokens=[("<|bos|>", bos), ("<|eos|>", eos)],
    )


def byte_level_and_template(tokenizer: tokenizers.Tokenizer) -> Any:
    return processors.Sequence([processors.ByteLevel(trim_offsets=True), template(tokenizer)])


def roberta(tokenizer: tokenizers.Tokenizer) -> Any:
    ends: Any = [(name, tokenizer.token_to_id(name)) for name in ("<|eos|>", "<|bos|>")]
    return processors.RobertaProcessing(ends[0], ends[1], add_prefix_space=True)


def plain(
    processor: Callable[[tokenizers.Tokenizer], Any] = byte_level_and_template, more: str = "ab"
) -> tokenizers.Tokenizer:
    """Without tokens that strip white space, so that strings and offsets follow from the ids."""
    tok = bytepair.train(bytepair.sample.paths(), 600, special_tokens=NAMES[:3])
    tokenizer = bytepair.compat.to_huggingface(tok)
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in ("<tool>", more)])
    tokenizer.post_processor = processor(tokenizer)
    return tokenizer


def normalizing() -> tokenizers.Tokenizer:
    tokenizer = plain()
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


KINDS: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "bare": small,
    "template": lambda: with_processor(template),
    "byte level": lambda: with_processor(lambda tok: processors.ByteLevel(trim_offsets=True)),
    "untrimmed": lambda: with_processor(lambda tok: processors.ByteLevel(trim_offsets=False)),
    "sequence": lambda: with_processor(byte_level_and_template),
    "roberta": lambda: with_processor(roberta),
    "plain": plain,
    "plain, with spaces": lambda: plain(more="  "),
    "plain, untrimmed": lambda: plain(lambda tok: processors.ByteLevel(trim_offsets=False)),
    "plain template": lambda: plain(template, "  "),
    "plain, first space": lambda: plain(lambda tok: processors.ByteLevel(add_prefix_space=True)),
    "plain roberta": lambda: plain(roberta),
    "plain, trimmed twice": lambda: plain(
        lambda tok: processors.Sequence([processors.ByteLevel(), processors.ByteLevel()])
    ),
    "normalizing": normalizing,
}


@pytest.fixture(scope="module", params=sorted(KINDS))
def both(request: pytest.FixtureRequest) -> tuple[huggingface.Tokenizer, tokenizers.Tokenizer]:
    """A tokenizer on bytepair, and the original."""
    original = KINDS[request.param]()
    ours = huggingface.Tokenizer(copy.deepcopy(original))
    assert ours.reason is None
    return ours, original


VALUES = (
    "ids", "type_ids", "tokens", "offsets", "attention_mask", "special_tokens_mask", "word_ids",
    "sequence_ids", "n_sequences",
)  # fmt: skip


def check(ours: Any, theirs: Any) -> None:
    """Compare two encodings, value by value and offset by offset."""
    assert len(ours) == len(theirs)
    for name in VALUES:
        assert getattr(ours, name) == getattr(theirs, name), name
    for at in range(len(theirs) + 1):
        assert ours.token_to_chars(at) == theirs.token_to_chars(at)
        assert ours.token_to_word(at) == theirs.token_to_word(at)
        if theirs.n_sequences == 1:  # of two tokens that overlap, the original may return either
            assert ours.token_to_sequence(at) == theirs.token_to_sequence(at)
    for sequence in range(theirs.n_sequences):
        for at in range(12):
            assert ours.char_to_token(at, sequence) == theirs.char_to_token(at, sequence)
            assert ours.char_to_word(at, sequence) == theirs.char_to_word(at, sequence)
            assert ours.word_to_tokens(at, sequence) == theirs.word_to_tokens(at, sequence)
            assert ours.word_to_chars(at, sequence) == theirs.word_to_chars(at, sequence)
    assert repr(ours) == repr(theirs)
    assert len(ours.overflowing) == len(theirs.overflowing)
    for one, other in zip(ours.overflowing, theirs.overflowing, strict=True):
        check(one, other)


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the kind and words of its error."""
    try:
        return call()
    except BaseException as error:  # a panic of the original is no Exception
        return type(error), str(error)


def compare(ours: Any, theirs: Any, call: Callable[[Any], Any]) -> None:
    """Compare what a call returns or raises; in a batch with several errors, any may be raised."""
    result, expected = outcome(lambda: call(ours)), outcome(lambda: call(theirs))
    if not isinstance(expected, list):
        assert result[0] is expected[0]
        assert result[1][:16] == expected[1][:16]
        return
    assert len(result) == len(expected)
    for one, other in zip(result, expected, strict=True):
        check(one, other)


text = st.lists(
    st.one_of(hard_text, st.sampled_from([*NAMES, "a b ", "  ", " <mask> ", "<|bos"])), max_size=4
).map("".join)
inputs = st.one_of(text, st.tuples(text, text))
truncations = st.none() | st.fixed_dictionaries(
    {
        "max_length": st.integers(0, 12),
        "stride": st.sampled_from([0, 0, 0, 1, 2]),
        "strategy": st.sampled_from(["longest_first", "only_first", "only_second"]),
        "direction": st.sampled_from(["left", "right"]),
    }
)
paddings = st.none() | st.fixed_dictionaries(
    {
        "direction": st.sampled_from(["left", "right"]),
        "pad_id": st.just(3),
        "pad_type_id": st.integers(0, 1),
        "pad_token": st.sampled_from(["<|pad|>", "x"]),
        "length": st.none() | st.integers(0, 20),
        "pad_to_multiple_of": st.none() | st.integers(0, 8),
    }
)


def apply(tokenizer: Any, truncation: Any, padding: Any, split: bool) -> Any:
    """Apply settings; a setting that is refused is left out, and its error returned."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = split
    refused = truncation and outcome(lambda: tokenizer.enable_truncation(**truncation))
    if padding:
        tokenizer.enable_padding(**padding)
    return refused, tokenizer.truncation, tokenizer.padding, tokenizer.encode_special_tokens


@settings(max_examples=60)
@given(
    st.lists(inputs, max_size=4), truncations, paddings, st.booleans(), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_random_texts_with_random_settings(
    both: Any, batch: list[Any], truncation: Any, padding: Any, split: bool, special: bool,
    flat: bool,
) -> None:  # fmt: skip
    ours, theirs = both
    assert apply(ours, truncation, padding, split) == apply(theirs, truncation, padding, split)
    batch = [one for one in batch if isinstance(one, str)] if flat else batch
    compare(ours, theirs, lambda t: t.encode_batch(batch, add_special_tokens=special))


def test_ids_do_not_need_the_original(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts, pairs, truncation of a text and padding never call the original."""
    ours, theirs = both
    batch: list[Any] = ["some text here, and more", ("one", "another text"), "", "<|bos|>"]
    for tokenizer in both:
        apply(tokenizer, {"max_length": 7}, {"pad_id": 3, "direction": "left"}, False)
    expected = theirs.encode_batch(batch)
    calls: list[Any] = []
    monkeypatch.setattr(ours, "encode_original", lambda *args: calls.append(args))
    encodings = ours.encode_batch(batch)
    for name in ("ids", "type_ids", "attention_mask", "special_tokens_mask", "n_sequences"):
        assert [getattr(e, name) for e in encodings] == [getattr(e, name) for e in expected]
    assert [len(e) for e in encodings] == [len(e) for e in expected]
    assert calls == []
    monkeypatch.undo()
    for tokenizer in both:
        apply(tokenizer, None, None, False)


@given(st.lists(st.integers(0, 620), max_size=30), st.booleans())
def test_any_ids_decode_to_the_same_text(both: Any, ids: list[int], skip: bool) -> None:
    """Lone bytes, special tokens, and ids that stand for nothing."""
    ours, theirs = both
    assert ours.decode(ids, skip) == theirs.decode(ids, skip)
    assert ours.decode(tuple(ids)) == theirs.decode(tuple(ids))
    assert ours.decode_batch([ids, [], ids[:3]], skip) == theirs.decode_batch(
        [ids, [], ids[:3]], skip
    )


@pytest.mark.parametrize(
    "wrong", [[-1], [1 << 40], ["a"], [None], [1.5], None, "ab", 3, [[1]], [True]]
)
def test_wrong_ids_are_the_same_error(both: Any, wrong: Any) -> None:
    ours, theirs = both
    assert outcome(lambda: ours.decode(wrong)) == outcome(lambda: theirs.decode(wrong))
    assert outcome(lambda: ours.decode_batch([wrong])) == outcome(
        lambda: theirs.decode_batch([wrong])
    )


@pytest.mark.parametrize(
    "wrong",
    ["\ud800", "a\udfffé", b"bytes", None, 3, ["a", "b"], ("a", "b"), ["a"], ("a",), [("a",)], [],
     ["\ud800"], [("a", "\ud800")], ["a", 1], [("a", "b", "c")], [["a", "b"]], {"a"}],
)  # fmt: skip
@pytest.mark.parametrize("pretokenized", [False, True])
def test_wrong_texts_are_the_same_error(both: Any, wrong: Any, pretokenized: bool) -> None:
    for call in (
        lambda t: [t.encode(wrong, is_pretokenized=pretokenized)],
        lambda t: [t.encode("a", wrong, is_pretokenized=pretokenized)],
        lambda t: t.encode_batch(wrong, is_pretokenized=pretokenized),
        lambda t: t.encode_batch_fast(wrong, is_pretokenized=pretokenized)[:0],
    ):
        compare(both[0], both[1], call)


# ---------------------------------------------------------------------------- changes


def pair_of(make: Callable[[], tokenizers.Tokenizer]) -> tuple[Any, Any]:
    original = make()
    return huggingface.Tokenizer(copy.deepcopy(original)), original


SOME = ["a new token <new> here <|bos|>", "nothing", " <new>  <mask> <|eos|>"]


def same_ids(ours: Any, theirs: Any) -> None:
    for special in (False, True):
        for split in (False, True):
            ours.encode_special_tokens = theirs.encode_special_tokens = split
            encodings = ours.encode_batch(SOME, add_special_tokens=special)
            for one, other in zip(
                encodings, theirs.encode_batch(SOME, False, special), strict=True
            ):
                check(one, other)
    everything = list(range(theirs.get_vocab_size()))
    assert ours.decode(everything) == theirs.decode(everything)
    assert json.loads(ours.to_str()) == json.loads(theirs.to_str())


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a token": lambda t: t.add_tokens(["<new>", AddedToken("nothing", normalized=False)]),
    "a special token": lambda t: t.add_special_tokens(["<new>"]),
    "a token becomes special": lambda t: t.add_special_tokens(["<tool>"]),
    "a token of one word": lambda t: t.add_tokens([AddedToken("new", single_word=True)]),
    "a token like others": lambda t: t.add_tokens([AddedToken("<|bos|><", normalized=False)]),
    "a token like bytes": lambda t: t.add_tokens([AddedToken("é", normalized=False)]),
    "post-processor": lambda t: setattr(t, "post_processor", template(t)),
    "no post-processor": lambda t: setattr(t, "post_processor", None),
    "post-processor twice": lambda t: setattr(
        t, "post_processor", processors.TemplateProcessing("$A $A", "$A $B", [])
    ),
    "pair in another order": lambda t: setattr(
        t, "post_processor", processors.TemplateProcessing("$A:1", "$B:1 $A:0", [])
    ),
    "pre-tokenizer": lambda t: setattr(
        t, "pre_tokenizer", pre_tokenizers.ByteLevel(add_prefix_space=True)
    ),
    "another pre-tokenizer": lambda t: setattr(
        t,
        "pre_tokenizer",
        pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        ),
    ),
    "normalizer": lambda t: setattr(t, "normalizer", normalizers.NFC()),
    "another normalizer": lambda t: setattr(t, "normalizer", normalizers.Lowercase()),
    "decoder": lambda t: setattr(t, "decoder", decoders.Fuse()),
    "model": lambda t: setattr(t, "model", models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])),
    "other model": lambda t: setattr(t, "model", models.WordLevel({"a": 0, "[u]": 1}, "[u]")),
    "dropout in place": lambda t: setattr(t.model, "dropout", 1.0),
    "post-processor in place": lambda t: setattr(t, "post_processor", None),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
@pytest.mark.parametrize("kind", ["bare", "sequence", "plain"])
def test_changed_settings_change_the_ids_equally(kind: str, change: str) -> None:
    ours, theirs = pair_of(KINDS[kind])
    same_ids(ours, theirs)
    assert CHANGES[change](ours) == CHANGES[change](theirs)
    same_ids(ours, theirs)


def test_a_component_that_was_handed_out_may_be_changed_in_place() -> None:
    ours, theirs = pair_of(plain)
    held = [ours.pre_tokenizer, ours.model]
    same_ids(ours, theirs)
    assert ours.reason is None
    for steps in (held[0], theirs.pre_tokenizer):
        steps[1] = pre_tokenizers.ByteLevel(add_prefix_space=True)
    same_ids(ours, theirs)
    assert ours.reason is None
    for tokenizer in (ours, theirs):
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.model.dropout = 1.0
    assert "dropout" in (ours.reason or "")
    same_ids(ours, theirs)
    held[1].dropout = theirs.model.dropout = None
    assert ours.reason is None
    same_ids(ours, theirs)


def test_a_tokenizer_that_is_refused_is_examined_again_only_after_a_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours: Any = huggingface.Tokenizer(plain())
    ours.model.dropout = 1.0
    for _ in range(3):
        ours.encode("some text")
        ours.decode([1, 2])
    assert len(caplog.records) == 1
    ours.model.dropout = 0.5
    ours.encode("some text")
    assert len(caplog.records) == 2


def test_training_makes_another_tokenizer() -> None:
    base = tokenizers.Tokenizer(models.BPE())
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = decoders.ByteLevel()
    ours, theirs = huggingface.Tokenizer(copy.deepcopy(base)), base
    assert ours.encode("some text").ids == []
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        show_progress=False,
        special_tokens=["<|eos|>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    for tokenizer in (ours, theirs):
        tokenizer.train_from_iterator(["some text and some more text"] * 3, trainer)
    assert ours.reason is None
    same_ids(ours, theirs)


def test_an_encoding_from_before_a_change_keeps_its_ids_and_refuses_the_rest() -> None:
    ours, theirs = pair_of(plain)
    before, expected = ours.encode("a new <new>"), theirs.encode("a new <new>")
    encoding = ours.encode("other text")
    ours.add_tokens(["<new>"])
    ours.enable_truncation(2)
    ours.enable_padding(length=9)
    ours.encode_special_tokens = True
    assert before.ids == expected.ids
    with told(RuntimeError):
        before.word_ids  # noqa: B018
    check(encoding, theirs.encode("other text"))  # with the settings of the time when it was made
    assert ours.truncation["max_length"] == 2
    assert ours.padding["length"] == 9
    assert ours.encode_special_tokens


def test_special_tokens_that_merges_make() -> None:
    """With `encode_special_tokens`, merging gives their ids, which bytepair does not."""
    ours, theirs = pair_of(plain)
    vocabulary = json.loads(theirs.to_str())["model"]["vocab"]
    token = max((name for name in vocabulary if name.isalpha() and name.isascii()), key=len)
    for tokenizer in (ours, theirs):
        tokenizer.add_special_tokens([AddedToken(token, normalized=False)])
    same_ids(ours, theirs)
    assert ours.reason is None
    for split in (False, True):
        ours.encode_special_tokens = theirs.encode_special_tokens = split
        for text in (token, f" {token}{token}", f"{token}s x{token}"):
            assert ours.encode(text).ids == theirs.encode(text).ids
        assert vocabulary[token] in ours.encode(token).ids


def test_values_are_the_callers_own() -> None:
    ours, theirs = pair_of(plain)
    encoding, expected = ours.encode("some text"), theirs.encode("some text")
    for name in ("ids", "type_ids", "attention_mask", "special_tokens_mask", "tokens"):
        getattr(encoding, name).clear()
    check(encoding, expected)
    ours.enable_padding(length=3)
    ours.padding["length"] = 9
    assert ours.padding["length"] == 3


def test_encodings_can_be_padded_truncated_and_merged() -> None:
    ours, theirs = pair_of(KINDS["sequence"])
    one, other = (t.encode("some text here, and more") for t in (ours, theirs))
    for encoding in (one, other):
        encoding.truncate(6, stride=1, direction="left")
        encoding.pad(9, pad_id=2, pad_token="<|pad|>", direction="left")
        encoding.set_sequence_id(1)
    check(one, other)
    parts = [
        [t.encode(text, add_special_tokens=False) for text in ("a b", "c")] for t in (ours, theirs)
    ]
    merged = [tokenizers.Encoding.merge(parts[1]), huggingface.Encoding.merge(parts[0])]
    check(*merged)
    check(ours.post_process(*parts[0]), theirs.post_process(*parts[1]))
    check(pickle.loads(pickle.dumps(parts[0][0])), parts[1][0])
    check(copy.deepcopy(parts[0][0]), parts[1][0])


@pytest.mark.parametrize(
    "copier", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_copies_are_equal_and_apart(copier: Callable[[Any], Any]) -> None:
    ours, theirs = pair_of(KINDS["sequence"])
    ours.enable_truncation(5, stride=1, direction="left")
    ours.enable_padding(length=8, pad_id=2)
    ours.encode_special_tokens = True
    copied = copier(ours)
    assert (copied.truncation, copied.padding) == (ours.truncation, ours.padding)
    assert copied.encode_special_tokens
    assert copied.reason is None
    for one, other in zip(copied.encode_batch(SOME), ours.encode_batch(SOME), strict=True):
        check(one, other)
    copied.add_tokens(["<new>"])
    assert copied.encode(SOME[0], add_special_tokens=False).ids != ours.encode(SOME[0]).ids
    ours.no_truncation(), ours.no_padding()
    same_ids(ours, theirs)


def test_files(tmp_path: Path) -> None:
    _, theirs = pair_of(KINDS["sequence"])
    theirs.enable_truncation(4)
    theirs.save(str(tmp_path / "theirs.json"))
    text = (tmp_path / "theirs.json").read_text(encoding="utf-8")
    for ours in (
        huggingface.Tokenizer.from_file(str(tmp_path / "theirs.json")),
        huggingface.Tokenizer.from_str(text),
        huggingface.Tokenizer.from_buffer(text.encode()),
    ):
        assert ours.reason is None
        assert ours.encode(SOME[0]).ids == theirs.encode(SOME[0]).ids
        ours.save(str(tmp_path / "ours.json"))
        assert (tmp_path / "ours.json").read_text(encoding="utf-8") == text
        ours.no_truncation()
        assert bytepair.load(ours).encode("hi") == ours.encode("hi", add_special_tokens=False).ids


def test_the_vocabulary(both: Any) -> None:
    ours, theirs = both
    for with_added in (False, True):
        assert ours.get_vocab(with_added) == theirs.get_vocab(with_added)
        assert ours.get_vocab_size(with_added) == theirs.get_vocab_size(with_added)
    for id in range(theirs.get_vocab_size() + 2):
        assert ours.id_to_token(id) == theirs.id_to_token(id)
        token = theirs.id_to_token(id) or "no such token"
        assert ours.token_to_id(token) == theirs.token_to_id(token)
    assert repr(ours.get_added_tokens_decoder()) == repr(theirs.get_added_tokens_decoder())
    for pair in (False, True):
        assert ours.num_special_tokens_to_add(pair) == theirs.num_special_tokens_to_add(pair)


def test_the_wrapper_has_every_name_of_the_original() -> None:
    pair = pair_of(plain)
    for ours, theirs in (pair, [one.encode("a text") for one in pair]):
        assert {name for name in dir(theirs) if not name.startswith("_")} <= set(dir(ours))


def test_coroutines() -> None:
    ours, theirs = pair_of(plain)

    async def run() -> None:
        check(await ours.async_encode("some text", "more"), theirs.encode("some text", "more"))
        for call in (ours.async_encode_batch, ours.async_encode_batch_fast):
            assert [one.ids for one in await call(SOME)] == [
                e.ids for e in theirs.encode_batch(SOME)
            ]
        assert await ours.async_decode_batch([[1, 2]]) == theirs.decode_batch([[1, 2]])

    asyncio.run(run())


def test_many_threads_encode_while_settings_change() -> None:
    """Each encoding has the settings of one moment, and its places and overflow fit its ids."""
    ours, theirs = pair_of(KINDS["sequence"])
    lengths: dict[int | None, list[int]] = {None: theirs.encode("some text here").ids}
    for length in (4, 5):
        theirs.enable_truncation(length)
        lengths[length] = theirs.encode("some text here").ids

    def work(number: int) -> None:
        for _ in range(30):
            if number == 0:
                ours.enable_truncation(4)
                ours.enable_truncation(5)
                ours.no_truncation()
            else:
                encoding = ours.encode("some text here")
                assert encoding.ids in lengths.values()
                assert len(encoding.offsets) == len(encoding.ids)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


# ---------------------------------------------------------------------------- wrap


def test_one_tokenizer_is_wrapped_and_stays_as_it_is() -> None:
    theirs: Any = small()
    ours = huggingface.wrap(theirs)
    assert isinstance(ours, huggingface.Tokenizer)
    assert huggingface.wrap(ours) is ours
    theirs.add_tokens(["<new>"])
    assert ours.encode("<new>").ids != theirs.encode("<new>").ids


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "word pieces": (
        lambda: tokenizers.Tokenizer(models.WordPiece()),
        "a WordPiece model is not BPE",
    ),
    "a text twice": (lambda: changed("post-processor twice"), "it has the text 2 times"),
    "dropout": (lambda: changed("dropout in place"), "model.dropout"),
}  # fmt: skip


def changed(change: str) -> tokenizers.Tokenizer:
    tokenizer = plain()
    CHANGES[change](tokenizer)
    return tokenizer


def test_a_model_without_its_unknown_token_is_kept() -> None:
    theirs = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1}, [], unk_token="<unk>"))
    theirs.add_special_tokens(["<s>"])
    assert huggingface.Tokenizer(theirs).encode("ab").ids == theirs.encode("ab").ids == [0, 1]


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_an_unsupported_tokenizer_is_kept_and_the_reason_logged(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, reason = REFUSED[kind]
    theirs = make()
    with caplog.at_level(logging.WARNING, "bytepair.compat.huggingface"):
        assert huggingface.wrap(theirs) is theirs
    assert reason in caplog.text
    assert len(caplog.records) == 1


#: Files whose tokens are names of characters, or strip white space, and one that lacks bytes.
NAMED = ["clip", "falcon", "llama2", "mistral-7b-v0.3", "phi-3-mini", "roberta-base"]


@pytest.mark.parametrize("name", NAMED)
def test_tokens_that_are_names_run_on_bytepair(name: str, shared: Path) -> None:
    file = str(shared / "tokenizers" / f"{name}.tokenizer.json")
    ours, theirs = huggingface.Tokenizer.from_file(file), tokenizers.Tokenizer.from_file(file)
    assert ours.reason is None
    texts = [
        "Hello <s>  world</s> \n\t x", "<|user|>\nHi<|end|> a", " lead\x0bing é日😀 ", "", " ",
        "\u2581a<0x0A> <mask> y", "[INST] hi [/INST]",
    ]  # fmt: skip
    for split in (False, True):
        ours.encode_special_tokens = theirs.encode_special_tokens = split
        for text in texts:
            check(ours.encode(text), theirs.encode(text))
            ids = theirs.encode(text).ids
            assert ours.decode(ids) == theirs.decode(ids)
        for pair in zip(texts, reversed(texts), strict=True):
            check(ours.encode(*pair), theirs.encode(*pair))


def test_one_patch_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers, "Tokenizer", huggingface.Tokenizer)
    trained: Any = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.train_from_iterator(
        ["hello hello"], tokenizers.trainers.BpeTrainer(show_progress=False)
    )
    assert (trained.reason, len(trained.encode("hello x hello").ids)) == (None, 3)
    again = tokenizers.Tokenizer.from_str(trained.to_str())
    assert pickle.loads(pickle.dumps(again)).encode("hello").ids == trained.encode("hello").ids


def test_what_is_no_tokenizer_is_not_wrapped() -> None:
    for wrong in (None, "gpt2", object()):
        with told(TypeError):
            huggingface.wrap(wrong)


# ---------------------------------------------------------------------------- habits of Python


def test_arrays_of_texts_are_batches() -> None:
    tok = bytepair.train(["hello hello"], vocab_size=269)
    ours, theirs = huggingface.Tokenizer(tok), bytepair.compat.to_huggingface(tok)
    arrays: list[Any] = [
        np.array(["hello", "x"]), np.array(["hello", "x"], object), np.array(["hello"] * 20),
        np.array([["hello", "x"]]), np.array([["a", "b"], ["c", "d"]], object), np.array([], "U1"),
    ]  # fmt: skip
    wrongs: list[Any] = [np.array([b"x"]), np.array("x"), np.array([1])]
    for array in arrays:
        expected = [encoding.ids for encoding in theirs.encode_batch(array)]
        for encode in (ours.encode_batch, ours.encode_batch_fast):
            assert [encoding.ids for encoding in encode(array)] == expected
    for wrong in wrongs:
        with pytest.raises(TypeError):
            theirs.encode_batch(wrong)
        with pytest.raises(TypeError):
            ours.encode_batch(wrong)


def test_a_tokenizer_is_shown_as_the_original() -> None:
    tok = bytepair.train(["hello hello"], vocab_size=269)
    ours, theirs = huggingface.Tokenizer(tok), bytepair.compat.to_huggingface(tok)
    assert (repr(ours), str(ours)) == (repr(theirs), str(theirs))


def test_async_calls_do_not_block_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = huggingface.Tokenizer(bytepair.train(["hello hello"], vocab_size=269))
    begun = threading.Event()
    others = ("encode", "encode_batch", "decode_batch")

    async def run(name: str, argument: Any) -> Any:
        """The result, if another task of the loop has run while it was made."""
        task = asyncio.ensure_future(getattr(ours, f"async_{name}")(argument))
        await asyncio.sleep(0)
        begun.set()
        return await task

    for name, argument in zip(others, ("hello", ["hello"], [[259]]), strict=True):
        expected = getattr(ours, name)(argument)
        original = getattr(huggingface.Tokenizer, name)

        def waiting(self: Any, argument: Any, original: Any = original) -> Any:
            assert begun.wait(10), "the loop is blocked"
            return original(self, argument)

        begun.clear()
        monkeypatch.setattr(huggingface.Tokenizer, name, waiting)
        result = asyncio.run(run(name, argument))
        assert getattr(result, "ids", None) == getattr(expected, "ids", None)
        monkeypatch.undo()


def test_the_class_may_take_the_place_of_the_original(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain_ids = small().encode("hello ab").ids
    path = tmp_path / "tokenizer.json"
    small().save(str(path))
    tok = bytepair.load(path)
    monkeypatch.setattr(tokenizers, "Tokenizer", huggingface.Tokenizer)
    loaded: Any = tokenizers.Tokenizer.from_file(str(path))
    assert isinstance(loaded, huggingface.Tokenizer)
    assert loaded.encode("hello ab").ids == plain_ids
    assert tokenizers.Tokenizer.from_str(path.read_text()).encode("hello ab").ids == plain_ids
    assert tokenizers.Tokenizer(models.BPE()).get_vocab_size() == 0
    assert huggingface.Tokenizer(tok).encode("hello ab").ids == plain_ids
    assert copy.deepcopy(loaded).encode("hello ab").ids == plain_ids
