"""Evaluations and plans measure a seeded sample that is spread over all files, and say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair import evaluate
from bytepair.corpus.read import sample
from commands import run

WORDS = {"a": "def f(x): return x\n", "b": "the long story of words ", "c": "12 34 56 78 90 "}


@pytest.fixture(params=["txt", "jsonl", "parquet"])
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Three files of the same size, each of one kind of text."""
    home = tmp_path / "corpus"
    home.mkdir()
    for name, words in WORDS.items():
        texts = [f"{words * 20} {number}" for number in range(600)]
        if request.param == "txt":
            (home / f"{name}.txt").write_text("\n".join(texts))
        elif request.param == "jsonl":
            rows = "".join(f'{{"text": "{t}"}}\n'.replace("x\n", "x ") for t in texts)
            (home / f"{name}.jsonl").write_text(rows)
        else:
            pq.write_table(pa.table({"text": texts}), home / f"{name}.parquet", row_group_size=50)
    return home


def kinds(texts: list[str]) -> Counter[str]:
    chars: Counter[str] = Counter()
    for text in texts:
        chars["a" if "def" in text else "b" if "story" in text else "c"] += len(text)
    return chars


def test_a_sample_is_spread_over_all_files(corpus: Path) -> None:
    whole = sample(corpus)
    assert whole.is_whole
    drawn = sample(corpus, bytepair.Reading(max_chars=300_000))
    assert not drawn.is_whole
    assert 200_000 < drawn.chars <= 300_000
    assert drawn.files == 3
    shares = kinds(drawn)
    expected = kinds(whole)
    for kind, chars in shares.items():
        assert chars / drawn.chars == pytest.approx(expected[kind] / whole.chars, abs=0.2), shares
    assert len(shares) == 3
    assert sample(corpus, bytepair.Reading(max_chars=300_000)) == drawn
    assert sample(corpus, bytepair.Reading(max_chars=300_000), seed=1) != drawn
    assert sample(corpus, bytepair.Reading(max_chars=whole.chars)) == whole


def test_a_large_corpus_is_read_in_part(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bytepair.corpus.read.READ_BYTES", 1000)
    drawn = sample(corpus, bytepair.Reading(max_chars=30_000))
    assert not drawn.is_whole
    assert len(kinds(drawn)) == 3


def test_evaluations_and_plans_measure_the_sample_and_say_so(corpus: Path, tmp_path: Path) -> None:
    tok = bytepair.train(bytepair.corpus.Paths(corpus), vocab_size=300)
    tok.save(tmp_path / "tokenizer")
    for words in (
        "evaluate tokenizer --against none --max-chars 200K --val",
        "plan --params 1M -t tokenizer --max-chars 200K --corpus",
    ):
        done = run(*words.split(), "corpus", cwd=tmp_path)
        assert "a sample of " in done.stderr
        assert "3 files" in done.stderr
    texts = evaluate.documents(corpus, max_chars=200_000)
    evaluation = evaluate.measure(tok, against=[], texts={"validation": texts})
    assert str(texts) in evaluation.corpus
    whole = bytepair.plan.measure(tok, corpus)
    part = bytepair.plan.measure(tok, corpus, max_chars=200_000)
    assert part.chars_per_token == pytest.approx(whole.chars_per_token, rel=0.2)


def test_what_does_not_train_reads_files_of_any_split(tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(pa.table({"text": [f"text number {number}"] * 30}),
                       tmp_path / f"shard_{number:05}.parquet")  # fmt: skip
    tok = bytepair.train(["text number text number"], 266)
    tok.save(tmp_path / "tokenizer")
    val = tmp_path / "shard_00002.parquet"
    assert len(evaluate.documents(val)) == 30
    assert len(evaluate.documents(tmp_path / "shard_0000*.parquet")) == 90
    assert evaluate.compare(tok, tok, bytepair.corpus.Paths(val)).texts == 30
    assert bytepair.plan.measure(tok, val).chars_per_token
    for words in (
        "compare tokenizer tokenizer", "plan --params 1M -t tokenizer --corpus",
        "evaluate tokenizer --against none --train", "evaluate tokenizer --against none --val",
    ):  # fmt: skip
        run(*words.split(), val.name, cwd=tmp_path)


def test_a_mixture_is_inferred_from_files_of_any_split(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    for number, words in enumerate(("a cat sat ", "ein Kater sass ")):
        pq.write_table(pa.table({"text": [words * 20] * 30}),
                       tmp_path / f"shard_{number:05}.parquet")  # fmt: skip
    tok = bytepair.train(["a cat sat ", "ein Kater sass "] * 20, 275)
    parts = {name: tmp_path / f"shard_0000{number}.parquet" for number, name in enumerate("ab")}
    assert set(bytepair.training.infer_mixture(tok, parts).shares) == {"a", "b"}


@pytest.mark.parametrize("texts", [{"a": "one"}, "one two", b"one"])
def test_a_mapping_or_one_text_is_not_many_texts(texts: Any) -> None:
    tok = bytepair.train(["one two one two"], 270)
    calls: list[Callable[[], object]] = [
        lambda: evaluate.use(tok, texts),
        lambda: evaluate.sweep(tok, texts),
        lambda: evaluate.measure(tok, against=[], texts={"mine": texts}),
    ]
    for call in calls:
        with pytest.raises(bytepair.errors.ArgumentError) as caught:
            call()
        assert caught.value.option
