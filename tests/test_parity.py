"""Parity-aware training: equal to the reference, and to other implementations.

These are `ParityBpeTrainer` of Hugging Face, and the scripts of the authors, which come from a
clone of cimeister/parity-aware-bpe (or its `.git`) that `PARITY_GIT` names; tests that need them
are skipped without it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
import reference_twins
from bytepair import _core, reference
from bytepair.errors import ArgumentError, CorpusError, VocabularyError
from bytepair.evaluate import compression_curve
from bytepair.training.options import Ties
from commands import run
from messages import told
from training_options import keywords

NAMES = ("a", "b", "c")
TIES: tuple[Ties, ...] = get_args(Ties)

words = st.text(st.sampled_from("abc é中"), min_size=1, max_size=9)
counts = st.dictionaries(words.map(str.encode), st.integers(1, 9), min_size=1, max_size=12)


def by_name(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(values, values, values).map(lambda drawn: dict(zip(NAMES, drawn, strict=True)))


groups = by_name(counts)
ratios = by_name(st.sampled_from([0.5, 1.0, 1.25, 3.0]))
windows = st.one_of(st.none(), st.integers(1, 8))

Counted = Mapping[str, Mapping[bytes, int]]

pytestmark = pytest.mark.filterwarnings("ignore::bytepair.errors.ExhaustedWarning")


def core(texts: Counted) -> dict[str, bytepair.Counts]:
    return {
        name: bytepair.Counts(bytepair._core.Counts.from_items(items.items(), "a|b"))
        for name, items in texts.items()
    }


def merges(texts: Counted, vocab_size: int = 296, **options: Any) -> list[tuple[bytes, bytes]]:
    tok = bytepair.train(core(texts), vocab_size, special_tokens=(), **keywords(**options))
    return tok.merges()


def plain(texts: Counted, number: int = 40, **options: Any) -> list[tuple[bytes, bytes]]:
    learnt = reference_twins.train_parity(list(texts.values()), number, **options)
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
    parity = bytepair.training.Parity(
        development=None if is_ratios or measure is None else core(measure),
        ratios=measure if is_ratios else None,
        window=window, alpha=alpha, global_merges=first,
    )  # fmt: skip
    result = merges(texts, recipe=parity, ties=ties, min_count=min_count, threads=threads)
    assert result == plain(
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
    for parity in (
        bytepair.training.Parity(),
        bytepair.training.Parity(window=3),
        bytepair.training.Parity(global_merges=9),
    ):
        again = bytepair.train({"a": counted}, 290, special_tokens=(), ties=ties, recipe=parity)
        assert again == tok
        assert _core.merge_counts(again).tolist() == _core.merge_counts(tok).tolist()


@given(groups)
def test_global_merges_alone_are_plain_training(texts: Counted) -> None:
    parts = core(texts)
    everything = parts["a"] + parts["b"] + parts["c"]
    parity = bytepair.training.Parity(global_merges=1000)
    tok = bytepair.train(parts, 290, special_tokens=(), recipe=parity)
    assert tok == bytepair.train(everything, 290, special_tokens=())


@given(groups, groups)
def test_a_smaller_vocabulary_is_a_prefix(texts: Counted, development: Counted) -> None:
    parity = bytepair.training.Parity(development=core(development), window=3)
    large = bytepair.train(core(texts), 290, special_tokens=(), recipe=parity)
    size = min(270, large.vocab_size)
    small = bytepair.train(core(texts), size, special_tokens=(), recipe=parity)
    assert large.replace(vocab_size=size) == small


def test_threads_do_not_change_real_text() -> None:
    texts = {path.stem: [path.read_text("utf-8")] for path in bytepair.sample.paths()[1:]}
    development = {name: [text[0][:2000]] for name, text in texts.items()}
    parity = bytepair.training.Parity(development=development, window=100)
    one, three = (bytepair.train(texts, 2000, threads=n, recipe=parity) for n in (1, 3))
    assert one == three
    assert one.notes == three.notes


def test_the_note_says_who_got_the_merges() -> None:
    texts = {"a": {b"abab": 3}, "b": {b"cdcd": 1}}
    tok = bytepair.train(core(texts), 260, special_tokens=(), recipe=bytepair.training.Parity())
    assert json.loads(tok.notes["parity"]) == {"merges": {"a": 2, "b": 2}}
    assert compression_curve(tok).tolist() == [16, 10, 7, 5, 4]


def test_initial_tokens_and_long_tokens() -> None:
    texts = {"a": ["the cat sat on the mat"], "b": ["die Katze sass auf der Matte"]}
    tok = bytepair.train(
        texts,
        290,
        options=bytepair.TrainOptions(initial_tokens=[" zebra"], max_token_bytes=6),
        recipe=bytepair.training.Parity(),
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
    parity = bytepair.training.Parity(**named, global_merges=first)
    tok = bytepair.train(
        texts, 286, special_tokens=(), pattern="gpt2", ties="characters-max", recipe=parity
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
    parity = bytepair.training.Parity(development=development, window=window)
    tok = bytepair.train(
        texts, 256 + 900, special_tokens=(), pattern="gpt2", ties="characters-max",
        options=bytepair.TrainOptions(min_count=2), recipe=parity,
    )  # fmt: skip
    assert tok.merges() == theirs


# ---------------------------------------------------------------------------- the authors

#: Commits of the authors' repository: of August 2025, when the paper appeared, and of March 2026.
PAPER, LATER = "cea2231", "9e31091"
SCRIPT, OPTIMIZED = "parity_aware_learn_bpe", "parity_aware_learn_bpe_optimized"
SCRIPTS = pytest.mark.parametrize(
    ("commit", "name"), [(PAPER, SCRIPT), (LATER, SCRIPT), (LATER, OPTIMIZED)]
)


@lru_cache
def script(commit: str, name: str) -> Any:
    """A script of the authors at a commit, as a module."""
    if "PARITY_GIT" not in os.environ:
        pytest.skip("needs a clone of cimeister/parity-aware-bpe, which PARITY_GIT names")
    pytest.importorskip("tokenizers")
    path = f"{commit}:parity_aware_bpe/{name}.py"
    command = ["git", "-C", os.environ["PARITY_GIT"], "show", path]
    source = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    module: Any = ModuleType(name)
    exec(compile(source, path, "exec"), module.__dict__)
    module.tqdm = lambda steps, **_: steps
    return module


def authors(
    module: Any,
    texts: Mapping[str, list[str]],
    number: int,
    *,
    development: Mapping[str, list[str]] | None = None,
    ratios: Mapping[str, float] | None = None,
    window: int | None = None,
    alpha: int = 2,
    global_merges: int = 0,
    min_count: int = 2,
    rarest: int = 1,
) -> tuple[list[tuple[bytes, bytes]], str]:
    """The merges of a script, and why it made no more of them."""
    options: dict[str, Any] = {"min_frequency": min_count, "num_global": global_merges}
    if ratios is not None:  # as their command passes them
        options["ratio"] = np.array(list(ratios.values())) / next(iter(ratios.values()))
    if module.__name__ == OPTIMIZED:
        options["vocab_min_freq"] = rarest
    learn = module.learn_bpe
    if window is not None:
        learn = module.learn_bpe_moving_window
        options |= {"window_size": window, "alpha": alpha}
    train, dev = (
        [io.StringIO("\n".join(lines)) for lines in groups.values()]
        for groups in (texts, development or {})
    )
    out, log, error = io.StringIO(), io.StringIO(), ""
    with contextlib.redirect_stderr(log):
        try:
            learn(train, out, dev, number, **options)
        except ValueError as raised:
            error = str(raised)
    back = {character: byte for byte, character in characters().items()}
    pairs = [line.split(" ") for line in out.getvalue().split("\n")[1:] if line]
    merged = [
        (bytes(back[c] for c in left), bytes(back[c] for c in right)) for left, right in pairs
    ]
    return merged, error or log.getvalue()


def pretokens(texts: Mapping[str, list[str]]) -> dict[str, dict[bytes, int]]:
    """The pretokens of the authors' pre-tokenizer: words, each behind a space."""
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Whitespace

    split = Sequence([Whitespace(), ByteLevel(use_regex=False)]).pre_tokenize_str
    back = {character: byte for byte, character in characters().items()}
    splits = {name: Counter(word for text in lines for word, _ in split(text))
             for name, lines in texts.items()}  # fmt: skip
    return {name: {bytes(back[c] for c in word): n for word, n in items.items()}
            for name, items in splits.items()}  # fmt: skip


def ours(
    texts: Mapping[str, list[str]],
    number: int,
    *,
    development: Mapping[str, list[str]] | None = None,
    min_count: int = 2,
    **options: Any,
) -> list[tuple[bytes, bytes]]:
    """Our merges of the authors' pretokens."""
    measure = None if development is None else core(pretokens(development))
    parity = bytepair.training.Parity(development=measure, **options)
    counted = pretokens(texts)
    return merges(counted, 256 + number, recipe=parity, ties="characters-max", min_count=min_count)


def six_languages() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The last two thirds of six declarations, to train on, and the first thirds."""
    names = ("am", "de", "en", "hi", "ja", "zh-Hans")
    files = {path.stem: path for path in bytepair.sample.paths()[1:]}
    lines = {name: files[name].read_text("utf-8").splitlines() for name in names}
    third = {name: len(lines[name]) // 3 for name in names}
    train = {name: lines[name][third[name] :] for name in names}
    return train, {name: lines[name][: third[name]] for name in names}


@SCRIPTS
@pytest.mark.parametrize(
    "options",
    [{}, {"window": 100}, {"window": 20, "alpha": 1}, {"global_merges": 300}],
    ids=["base", "window", "narrow", "hybrid"],
)
def test_merges_of_languages_equal_those_of_the_authors(
    commit: str, name: str, options: dict[str, Any]
) -> None:
    train, development = six_languages()
    options = {"development": development, **options}
    theirs, _ = authors(script(commit, name), train, 600, **options)
    assert len(theirs) == 600
    assert ours(train, 600, **options) == theirs


@pytest.mark.parametrize("name", [SCRIPT, OPTIMIZED])
@pytest.mark.parametrize("window", [None, 20])
def test_merges_by_ratios_equal_those_of_the_authors(name: str, window: int | None) -> None:
    train, _ = six_languages()
    ratios = dict(zip(train, (1.0, 1.25, 1.5, 2.0, 2.5, 3.0), strict=True))
    theirs, _ = authors(script(LATER, name), train, 600, ratios=ratios, window=window)
    assert len(theirs) == 600
    assert ours(train, 600, ratios=ratios, window=window) == theirs


@SCRIPTS
def test_merges_of_any_text_equal_those_of_the_authors(commit: str, name: str) -> None:
    """Up to the merge for a group without pairs, where their scripts stop."""
    module = script(commit, name)
    not_blank = by_name(sentences.filter(lambda lines: any(map(str.strip, lines))))

    @settings(max_examples=60, deadline=None)
    @given(
        not_blank, st.one_of(not_blank, ratios), st.sampled_from([None, 3, 10]),
        st.sampled_from([1, 2]), st.sampled_from([0, 0, 4]), st.sampled_from([1, 2, 3]),
    )  # fmt: skip
    def on_any_texts(
        texts: dict[str, list[str]], measure: Any, window: int | None, alpha: int, first: int,
        min_count: int,
    ) -> None:  # fmt: skip
        by_ratios = isinstance(measure["a"], float)
        if by_ratios and commit == PAPER:
            return
        options: dict[str, Any] = {"window": window, "min_count": min_count}
        options |= {"ratios": measure} if by_ratios else {"development": measure}
        options["global_merges"] = 0 if by_ratios else first
        theirs, end = authors(module, texts, 40, alpha=alpha, **options)
        if by_ratios:
            options["ratios"] = {key: value / measure["a"] for key, value in measure.items()}
        is_less = bool(options["global_merges"]) and name == SCRIPT
        result = ours(texts, 40, alpha=alpha * 3 / 4 if is_less else alpha, **options)
        assert result[: len(theirs)] == theirs
        if len(result) > len(theirs):
            assert "Stopping" in end or "empty sequence" in end

    on_any_texts()


def test_what_the_authors_do_differently() -> None:
    """The differences that docs/languages.md lists, each with the merge that it begins with."""
    train, development = six_languages()
    script_, optimized = script(LATER, SCRIPT), script(LATER, OPTIMIZED)
    options: dict[str, Any] = {"development": development}
    # the script stops where the group with the most tokens has no pair that occurs twice
    theirs, end = authors(script_, train, 9999, **options)
    result = ours(train, 9999, **options)
    assert "Stopping" in end
    assert result[: len(theirs)] == theirs
    assert len(result) > len(theirs) + 500
    # with global merges, the share of a window is alpha / (groups + 1), unless optimized
    options |= {"window": 100, "global_merges": 150}
    theirs, _ = authors(script_, train, 600, **options)
    assert ours(train, 600, **options) != theirs
    assert ours(train, 600, alpha=2 * 6 / 7, **options) == theirs
    assert ours(train, 600, **options) == authors(optimized, train, 600, **options)[0]
    # so all groups may be over their share, which is an error
    theirs, end = authors(script_, train, 600, alpha=1, **options)
    assert "empty sequence" in end
    assert ours(train, 600, alpha=6 / 7, **options)[: len(theirs)] == theirs
    # ratios cannot be combined with global merges
    for module in (script_, optimized):
        _, end = authors(module, train, 9, ratios=dict.fromkeys(train, 1.0), global_merges=3)
        assert "could not be broadcast" in end
    # ratios are divided by the first, so equal rates may become unequal
    texts = {"a": ["abcdef " * 3, "yz " * 2], "b": ["pq " * 3]}
    theirs, _ = authors(script_, texts, 9, ratios={"a": 0.3, "b": 0.1})
    assert theirs[6] == (b" ", b"p")
    assert ours(texts, 9, ratios={"a": 0.3, "b": 0.1})[6] == (b" ", b"y")
    assert ours(texts, 9, ratios={"a": 1.0, "b": 0.1 / 0.3}) == theirs
    # by default the optimized script drops words that occur once in all texts
    theirs, _ = authors(optimized, train, 99, development=development, rarest=2)
    counted = pretokens(train)
    total = sum(map(Counter, counted.values()), Counter[bytes]())
    counted = {n: {w: c for w, c in items.items() if total[w] > 1} for n, items in counted.items()}
    parity = bytepair.training.Parity(development=core(pretokens(development)))
    result = merges(counted, 256 + 99, recipe=parity, ties="characters-max", min_count=2)
    assert result[: len(theirs)] == theirs
    assert theirs != ours(train, 99, development=development)[: len(theirs)]


# ---------------------------------------------------------------------------- the command


def test_the_command_trains_languages_of_a_folder(tmp_path: Path) -> None:
    texts = {"en": "the cat and the other cat sat down", "hi": "बिल्ली और दूसरी बिल्ली बैठ गई"}
    for folder, end in (("texts", None), ("parallel", 12)):
        (tmp_path / folder).mkdir()
        for name, text in texts.items():
            (tmp_path / folder / f"{name}.txt").write_text(text[:end], encoding="utf-8")
    sources = {name: [text] for name, text in texts.items()}
    development = {name: [text[:12]] for name, text in texts.items()}
    options = ("--vocab-size", "290", "--parity")
    run(
        "train", "texts/*.txt", *options, "--development", "parallel/*.txt", "-o", "1", cwd=tmp_path
    )
    parity = bytepair.training.Parity(development=development)
    assert bytepair.load(tmp_path / "1") == bytepair.train(sources, 290, recipe=parity)
    run("train", "hi=texts/hi.txt", "en=texts/en.txt", *options, "-o", "2", cwd=tmp_path)
    parity = bytepair.training.Parity()
    in_order = {"hi": sources["hi"], "en": sources["en"]}
    assert bytepair.load(tmp_path / "2") == bytepair.train(in_order, 290, recipe=parity)
    for wrong in (
        ("--development", "parallel/*.txt"), ("--parity", "--mixture", "en=1,hi=1"),
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
            bytepair.training.Parity(**options)
    for option in ("development", "ratios"):
        value: Any = {"a": ["one"], "c": ["two"]} if option == "development" else {"a": 1.0}
        with told(ArgumentError):
            bytepair.train(texts, 270, recipe=bytepair.training.Parity(**{option: value}))
    with told(ArgumentError):
        bytepair.train(["one"], 270, recipe=bytepair.training.Parity())
    with told(ArgumentError):
        bytepair.train(
            texts,
            270,
            recipe=[bytepair.training.Parity(), bytepair.training.Mixture({"a": 1, "b": 1})],
        )
    with told(CorpusError):
        bytepair.train({"a": ["one"], "b": [""]}, 270, recipe=bytepair.training.Parity())
    with told(VocabularyError):
        bytepair.train(
            texts,
            270,
            options=bytepair.TrainOptions(initial_tokens=["two words"]),
            recipe=bytepair.training.Parity(),
        )
