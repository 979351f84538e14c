"""Validation text stays out of training: a data set says which files are for it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair import shards
from bytepair.corpus import files as corpus_files
from bytepair.errors import ArgumentError, CorpusError, ShardError
from commands import run
from loaders import text_batches
from messages import told

TEXTS = [f"the text number {number} of this corpus, {number * number}" for number in range(400)]


@pytest.fixture
def nanochat(tmp_path: Path) -> Path:
    """A folder as nanochat's: the last shard is for validation."""
    home = tmp_path / "base_data"
    home.mkdir()
    for number in range(4):
        part = TEXTS[number * 100 : number * 100 + 100]
        table = pa.table({"text": part})
        pq.write_table(table, home / f"shard_{number:05}.parquet", row_group_size=30)
    (home / "README.md").write_text("a card")
    return home


def read(source: Any, **options: Any) -> list[str]:
    batches = bytepair.corpus.read_documents(source, bytepair.Reading(**options))
    return [text for batch in batches for text in batch.column(0).to_pylist()]


def decoded(folder: Path, tok: bytepair.Tokenizer) -> list[str]:
    data = shards.Dataset(folder)
    return [tok.decode(data[number]) for number in range(len(data))]


@pytest.fixture
def tok() -> bytepair.Tokenizer:
    return bytepair.train(TEXTS, 300)


# ---------------------------------------------------------------------------- data sets


def test_the_validation_shard_is_not_trained_on(
    nanochat: Path, tmp_path: Path, tok: bytepair.Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bytepair")
    train, val = bytepair.count(TEXTS[:300]), bytepair.count(TEXTS[300:])
    assert bytepair.count(nanochat) == train
    assert caplog.messages == [
        "reading 3 parquet files of the split train; skipped shard_00003.parquet (val), README.md"
    ]
    assert bytepair.count(nanochat, reading=bytepair.Reading(split="val")) == val
    assert bytepair.count(nanochat, reading=bytepair.Reading(split="all")) == bytepair.count(TEXTS)
    # The last shard is that of the folder, whatever files are named.
    assert bytepair.count(sorted(nanochat.glob("*.parquet"))) == train
    assert bytepair.count(nanochat / "shard_00001.parquet") == bytepair.count(TEXTS[100:200])
    assert bytepair.train(nanochat, 300) == bytepair.train(TEXTS[:300], 300)
    assert read(nanochat) == read(nanochat, split="train") == TEXTS[:300]
    assert read(nanochat, split="val") == TEXTS[300:]
    shards.write(nanochat, tok, tmp_path / "out", bos=False)
    assert decoded(tmp_path / "out", tok) == TEXTS[:300]
    shards.write(nanochat, tok, tmp_path / "val", split="val", bos=False)
    assert decoded(tmp_path / "val", tok) == TEXTS[300:]
    with told(CorpusError):
        bytepair.count(nanochat / "shard_00003.parquet")


def test_batches_of_text_take_the_same_files(nanochat: Path, tok: bytepair.Tokenizer) -> None:
    for split, texts in (("train", TEXTS[:300]), ("val", TEXTS[300:])):
        batches = text_batches(nanochat, tok, 1, 8, split=split, packing="stream")
        inputs, _ = next(batches)
        assert tok.decode(inputs[0, 1:]) in texts[0]


def test_each_folder_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    last = Mock(wraps=corpus_files._last_shard)
    monkeypatch.setattr(corpus_files, "_last_shard", last)
    names = [f"bucket/shard_{number:05}.parquet" for number in range(9)]
    inputs = [corpus_files.Input(name, 1, "cloud", name) for name in names]
    assert corpus_files.splits_of(inputs) == ["train"] * 8 + ["val"]
    assert last.call_count == 1


def test_names_of_the_hub_say_their_split(tmp_path: Path) -> None:
    for name in ("train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001",
                 "test-00000-of-00001"):  # fmt: skip
        pq.write_table(pa.table({"text": [name]}), tmp_path / f"{name}.parquet")
    names = ["train-00000-of-00002", "train-00001-of-00002"]
    assert bytepair.count(tmp_path) == bytepair.count(names)
    assert bytepair.count(tmp_path, reading=bytepair.Reading(split="val")) == bytepair.count(
        ["validation-00000-of-00001"]
    )
    assert read(tmp_path, split="val") == ["validation-00000-of-00001"]


@pytest.mark.parametrize("source", ["files", "texts", "arrow"])
def test_a_split_that_no_data_set_says_is_an_error(source: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two")
    data: Any = {"files": tmp_path, "texts": ["one two"], "arrow": pa.array(["one two"])}[source]
    for split in ("train", "val"):
        with told(CorpusError) as refused:
            bytepair.count(data, reading=bytepair.Reading(split=split))
        assert refused.value.option == "split"
    assert bytepair.count(data, reading=bytepair.Reading(split="all")) == bytepair.count(
        ["one two"]
    )


def test_a_split_of_another_name_is_refused(nanochat: Path) -> None:
    with pytest.raises(ArgumentError) as refused:
        bytepair.count(nanochat, reading=bytepair.Reading(split="test"))  # type: ignore[arg-type]
    assert (refused.value.option, refused.value.value) == ("split", "test")


def test_a_data_set_without_validation_has_no_such_split(
    tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    shards.write(bytepair.sample.paths()[:2], tok, tmp_path)
    with told(ShardError):
        shards.Dataset(tmp_path, split="val")


# ---------------------------------------------------------------------------- commands


def test_commands_take_splits(nanochat: Path, tmp_path: Path, tok: bytepair.Tokenizer) -> None:
    tok.save(tmp_path / "tokenizer")
    line = "reading 3 parquet files of the split train; skipped shard_00003.parquet (val)"
    for words in ("count", "train --vocab-size 300 -o new", "shard -o shards --no-bos"):
        done = run(*words.split(), "base_data", cwd=tmp_path)
        assert done.stderr.startswith(line)
    assert bytepair.training.load_counts(tmp_path / "counts.parquet") == bytepair.count(TEXTS[:300])
    assert decoded(tmp_path / "shards", tok) == TEXTS[:300]
    run("count", "base_data", "--split", "val", cwd=tmp_path)
    assert bytepair.training.load_counts(tmp_path / "counts.parquet") == bytepair.count(TEXTS[300:])
    run("evaluate", "tokenizer", "--against", "none", "--val", "base_data", cwd=tmp_path)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    error = run("count", "a.jsonl", "--split", "val", cwd=tmp_path, code=1).stderr
    assert "--split all" in error
