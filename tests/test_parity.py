"""Parity-aware training: equal to the reference, and to `ParityBpeTrainer` of Hugging Face."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import reference
from bytepair.errors import ArgumentError, CorpusError, VocabularyError
from commands import run

NAMES = ("a", "b", "c")
TIES = ("rustbpe", "hf", "first-seen", "bytes-max", "characters-max")

words = st.text(st.sampled_from("abc é中"), min_size=1, max_size=9)
counts = st.dictionaries(words.map(str.encode), st.integers(1, 9), min_size=1, max_size=12)


def by_name(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(values, values, values).map(lambda drawn: dict(zip(NAMES, drawn, strict=True)))


groups = by_name(counts)
ratios = by_name(st.sampled_from([0.5, 1.0, 1.25, 3.0]))
windows = st.one_of(st.none(), st.integers(1, 8))

Counted = Mapping[str, Mapping[bytes, int]]

pytestmark = pytest.mark.filterwarnings("ignore::bytepair.ExhaustedWarning")


def core(texts: Counted) -> dict[str, bytepair.Counts]:
    return {
        name: bytepair.Counts(bytepair._core.Counts.from_items(items.items(), "a|b"))
        for name, items in texts.items()
    }


def merges(texts: Counted, vocab_size: int = 296, **options: Any) -> list[tuple[bytes, bytes]]:
    tok = bytepair.train(core(texts), vocab_size, special_tokens=(), **options)
    return tok.merges()


def plain(texts: Counted, wanted: int = 40, **options: Any) -> list[tuple[bytes, bytes]]:
    learnt = reference.train_parity(list(texts.values()), wanted, **options)
    tokens = reference.vocabulary(learnt)
    return [(tokens[left], tokens[right]) for left, right in learnt]


# ---------------------------------------------------------------------------- the reference


@settings(max_examples=150, deadline=None)
@given(
    groups, st.one_of(st.none(), groups, ratios), windows, st.sampled_from([0.4, 1.0, 2.0]),
    st.sampled_from([0, 0, 3, 99]), st.sampled_from(TIES), st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 3]),
)  # fmt: skip
def test_training_equals_the_reference(
    texts: Counted, measure: Any, window: int | None, alpha: float, first: int, ties: Any,
    min_count: int, threads: int,
) -> None:  # fmt: skip
    is_ratios = measure is not None and isinstance(measure["a"], float)
    parity = bytepair.Parity(
        development=None if is_ratios or measure is None else core(measure),
        ratios=measure if is_ratios else None,
        window=window, alpha=alpha, global_merges=first,
    )  # fmt: skip
    found = merges(texts, parity=parity, ties=ties, min_count=min_count, threads=threads)
    assert found == plain(
        texts,
        development=() if is_ratios or measure is None else list(measure.values()),
        ratios=list(measure.values()) if is_ratios else (),
        window=None if window is None else (window, alpha),
        global_merges=first, ties=ties, min_count=min_count,
    )  # fmt: skip


@given(counts, st.sampled_from(TIES))
def test_one_group_is_plain_training(text: Mapping[bytes, int], ties: Any) -> None:
    (counted,) = core({"a": text}).values()
    tok = bytepair.train(counted, 290, special_tokens=(), ties=ties)
    for parity in (bytepair.Parity(), bytepair.Parity(window=3), bytepair.Parity(global_merges=9)):
        again = bytepair.train({"a": counted}, 290, special_tokens=(), ties=ties, parity=parity)
        assert again == tok
        assert again.merge_counts().tolist() == tok.merge_counts().tolist()


@given(groups)
def test_global_merges_alone_are_plain_training(texts: Counted) -> None:
    parts = core(texts)
    everything = parts["a"] + parts["b"] + parts["c"]
    parity = bytepair.Parity(global_merges=1000)
    found = bytepair.train(parts, 290, special_tokens=(), parity=parity)
    assert found == bytepair.train(everything, 290, special_tokens=())


@given(groups, groups)
def test_a_smaller_vocabulary_is_a_prefix(texts: Counted, development: Counted) -> None:
    parity = bytepair.Parity(development=core(development), window=3)
    large = bytepair.train(core(texts), 290, special_tokens=(), parity=parity)
    size = min(270, large.vocab_size)
    small = bytepair.train(core(texts), size, special_tokens=(), parity=parity)
    assert large.with_vocab_size(size) == small


def test_threads_do_not_change_real_text() -> None:
    texts = {path.stem: [path.read_text("utf-8")] for path in bytepair.sample.paths()[1:]}
    development = {name: [text[0][:2000]] for name, text in texts.items()}
    parity = bytepair.Parity(development=development, window=100)
    one, three = (bytepair.train(texts, 2000, parity=parity, threads=n) for n in (1, 3))
    assert one == three
    assert one.notes == three.notes


def test_the_note_says_who_got_the_merges() -> None:
    texts = {"a": {b"abab": 3}, "b": {b"cdcd": 1}}
    tok = bytepair.train(core(texts), 260, special_tokens=(), parity=bytepair.Parity())
    assert json.loads(tok.notes["parity"]) == {"merges": {"a": 2, "b": 2}}
    assert tok.compression_curve().tolist() == [16, 10, 7, 5, 4]


def test_initial_tokens_and_long_tokens() -> None:
    texts = {"a": ["the cat sat on the mat"], "b": ["die Katze sass auf der Matte"]}
    tok = bytepair.train(
        texts, 290, parity=bytepair.Parity(), initial_tokens=[" zebra"], max_token_bytes=6
    )
    assert len(tok.encode(" zebra")) == 1
    assert max(len(token) for token in tok.mergeable_ranks()) == 6


# ---------------------------------------------------------------------------- Hugging Face


def characters() -> dict[int, str]:
    """The characters that GPT-2 writes for bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {b: chr(256 + n) for n, b in enumerate(others)}


def hugging_face(
    texts: Mapping[str, list[str]],
    development: Mapping[str, list[str]] | None = None,
    ratios: Mapping[str, float] | None = None,
    **options: Any,
) -> list[tuple[bytes, bytes]]:
    tokenizers = pytest.importorskip("tokenizers")
    if not hasattr(tokenizers.trainers, "ParityBpeTrainer"):
        pytest.skip("needs tokenizers 0.23")
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.ParityBpeTrainer(show_progress=False, **options)
    trainer.train_from_iterator(
        tok,
        train_iterators=list(texts.values()),
        dev_iterators=None if development is None else list(development.values()),
        ratio=None if ratios is None else list(ratios.values()),
    )
    back = {character: byte for byte, character in characters().items()}
    return [
        (bytes(back[c] for c in left), bytes(back[c] for c in right))
        for left, right in json.loads(tok.to_str())["model"]["merges"]
    ]


sentences = st.lists(st.text(st.sampled_from("abc é中"), min_size=1, max_size=24), min_size=1)
corpora = by_name(sentences)


@settings(max_examples=80, deadline=None)
@given(corpora, st.one_of(st.none(), corpora, ratios), st.sampled_from([0, 0, 4]))
def test_merges_equal_those_of_hugging_face(
    texts: dict[str, list[str]], measure: Any, first: int
) -> None:
    is_ratios = measure is not None and isinstance(measure["a"], float)
    named: dict[str, Any] = {
        "development": None if is_ratios else measure, "ratios": measure if is_ratios else None,
    }  # fmt: skip
    theirs = hugging_face(texts, **named, num_merges=30, global_merges=first)
    parity = bytepair.Parity(**named, global_merges=first)
    tok = bytepair.train(
        texts, 286, special_tokens=(), pattern="gpt2", ties="characters-max", parity=parity
    )
    assert tok.merges() == theirs


@pytest.mark.parametrize("window", [None, 7, 100])
def test_merges_of_many_languages_equal_those_of_hugging_face(window: int | None) -> None:
    """With windows, too; they are equal as long as no language runs out of pairs, as here."""
    files = {path.stem: path for path in bytepair.sample.paths()[1:]}
    lines = {name: path.read_text("utf-8").splitlines(True) for name, path in files.items()}
    names = ("am", "de", "en", "hi", "ja", "zh-Hans")
    texts = {name: lines[name][20:] for name in names}
    development = {name: lines[name][:20] for name in names}
    options: dict[str, Any] = {} if window is None else {"variant": "window", "window_size": window}
    theirs = hugging_face(texts, development, num_merges=900, min_frequency=2, **options)
    parity = bytepair.Parity(development=development, window=window)
    tok = bytepair.train(
        texts, 256 + 900, special_tokens=(), pattern="gpt2", ties="characters-max", min_count=2,
        parity=parity,
    )  # fmt: skip
    assert tok.merges() == theirs


# ---------------------------------------------------------------------------- the command


def test_the_command_trains_languages_of_a_folder(tmp_path: Path) -> None:
    texts = {"en": "the cat and the other cat sat down", "hi": "बिल्ली और दूसरी बिल्ली बैठ गई"}
    for folder, end in (("texts", None), ("parallel", 12)):
        (tmp_path / folder).mkdir()
        for name, text in texts.items():
            (tmp_path / folder / f"{name}.txt").write_text(text[:end], encoding="utf-8")
    sources = {name: [text] for name, text in texts.items()}
    development = {name: [text[:12]] for name, text in texts.items()}
    said = ("--vocab-size", "290", "--parity")
    run("train", "texts/*.txt", *said, "--development", "parallel/*.txt", "-o", "1", cwd=tmp_path)
    parity = bytepair.Parity(development=development)
    assert bytepair.load(tmp_path / "1") == bytepair.train(sources, 290, parity=parity)
    more = ("--ratios", "hi=2.5,en=1", "--window", "5", "--alpha", "1.5", "--global-merges", "3")
    run("train", "hi=texts/hi.txt", "en=texts/en.txt", *said, *more, "-o", "2", cwd=tmp_path)
    parity = bytepair.Parity(ratios={"hi": 2.5, "en": 1}, window=5, alpha=1.5, global_merges=3)
    in_order = {"hi": sources["hi"], "en": sources["en"]}
    assert bytepair.load(tmp_path / "2") == bytepair.train(in_order, 290, parity=parity)
    for wrong in (
        ("--window", "5"), ("--parity", "--alpha", "3"), ("--parity", "--mixture", "en=1,hi=1"),
        ("--parity", "--ratios", "en=0,hi=1"), ("--ratios", "en=1,hi=1"),
    ):  # fmt: skip
        run("train", "texts/*.txt", *wrong, cwd=tmp_path, code=2)


# ---------------------------------------------------------------------------- what cannot be


def test_invalid_options_are_refused() -> None:
    texts = {"a": ["one one"], "b": ["two two"]}
    for options in (
        {"development": texts, "ratios": {"a": 1, "b": 1}}, {"ratios": {"a": 1, "b": 0}},
        {"ratios": {"a": 1, "b": float("nan")}}, {"window": 0}, {"alpha": 0.0},
        {"alpha": float("inf")}, {"global_merges": -1},
    ):  # fmt: skip
        with pytest.raises(ArgumentError):
            bytepair.Parity(**options)
    for option in ("development", "ratios"):
        value: Any = {"a": ["one"], "c": ["two"]} if option == "development" else {"a": 1.0}
        with pytest.raises(ArgumentError, match=f"{option} has the names"):
            bytepair.train(texts, 270, parity=bytepair.Parity(**{option: value}))
    with pytest.raises(ArgumentError, match="parity needs groups"):
        bytepair.train(["one"], 270, parity=bytepair.Parity())
    with pytest.raises(ArgumentError, match="cannot be combined"):
        bytepair.train(texts, 270, parity=bytepair.Parity(), mixture={"a": 1, "b": 1})
    with pytest.raises(CorpusError, match="'b' has no text"):
        bytepair.train({"a": ["one"], "b": [""]}, 270, parity=bytepair.Parity())
    with pytest.raises(VocabularyError, match="not one pretoken"):
        bytepair.train(texts, 270, parity=bytepair.Parity(), initial_tokens=["two words"])
