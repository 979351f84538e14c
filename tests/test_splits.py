"""Validation text stays out of training: by the files of a data set, or by documents held out."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import shards
from bytepair.corpus.splits import HoldOut
from bytepair.errors import ArgumentError, CorpusError, ShardError
from commands import run

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
    batches = bytepair.corpus.read_documents(source, **options)
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
    assert bytepair.count(nanochat, split="val") == val
    assert bytepair.count(nanochat, split="all") == bytepair.count(TEXTS)
    # The last shard is that of the folder, whatever files are named.
    assert bytepair.count(sorted(nanochat.glob("*.parquet"))) == train
    assert bytepair.count(nanochat / "shard_00001.parquet") == bytepair.count(TEXTS[100:200])
    assert bytepair.train(nanochat, 300) == bytepair.train(TEXTS[:300], 300)
    assert read(nanochat) == read(nanochat, split="train") == TEXTS[:300]
    assert read(nanochat, split="val") == TEXTS[300:]
    shards.write(nanochat, tok, tmp_path / "out")
    assert decoded(tmp_path / "out", tok) == TEXTS[:300]
    shards.write(nanochat, tok, tmp_path / "val", split="val")
    assert decoded(tmp_path / "val", tok) == TEXTS[300:]
    with pytest.raises(CorpusError, match=r"no file of the source belongs to the split 'train'"):
        bytepair.count(nanochat / "shard_00003.parquet")


def test_batches_of_text_take_the_same_files(nanochat: Path, tok: bytepair.Tokenizer) -> None:
    for split, texts in (("train", TEXTS[:300]), ("val", TEXTS[300:])):
        batches = shards.TextBatches(nanochat, tok, 1, 8, split=split, packing="stream")  # type: ignore[arg-type]
        inputs, _ = next(batches)
        assert tok.decode(inputs[0, 1:]) in texts[0]


@pytest.mark.parametrize("where", ["here", "above"])
def test_a_manifest_says_which_files_are_for_validation(where: str, tmp_path: Path) -> None:
    home = tmp_path / "set" / "data" if where == "above" else tmp_path
    home.mkdir(exist_ok=True, parents=True)
    for name in ("a", "b", "c"):
        (home / f"{name}.txt").write_text(name)
    place = home.parent if where == "above" else home
    globs = ["data/b.txt", "*/c*"] if where == "above" else ["b.txt", "c*"]
    (place / "splits.json").write_text(json.dumps({"val": globs}))
    assert bytepair.count(home) == bytepair.count(["a"])
    assert bytepair.count(home, split="val") == bytepair.count(["b", "c"])
    (place / "splits.json").write_text('{"val": "b.txt"}')
    with pytest.raises(CorpusError, match=r"splits\.json must hold lists of file names"):
        bytepair.count(home)


def test_names_of_the_hub_say_their_split(tmp_path: Path) -> None:
    for name in ("train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001",
                 "test-00000-of-00001"):  # fmt: skip
        pq.write_table(pa.table({"text": [name]}), tmp_path / f"{name}.parquet")
    names = ["train-00000-of-00002", "train-00001-of-00002"]
    assert bytepair.count(tmp_path) == bytepair.count(names)
    assert bytepair.count(tmp_path, split="val") == bytepair.count(["validation-00000-of-00001"])
    assert read(tmp_path, split="val") == ["validation-00000-of-00001"]


@pytest.mark.parametrize("source", ["files", "texts", "arrow"])
def test_a_split_that_no_data_set_says_is_an_error(source: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two")
    data: Any = {"files": tmp_path, "texts": ["one two"], "arrow": pa.array(["one two"])}[source]
    for split in ("train", "val"):
        with pytest.raises(CorpusError, match=rf"does not say which .* '{split}'; .* hold_out="):
            bytepair.count(data, split=split)
    assert bytepair.count(data, split="all") == bytepair.count(["one two"])


# ---------------------------------------------------------------------------- documents


@pytest.mark.parametrize("amount", [0.2, 7, 150])
def test_what_is_held_out_is_the_rest(
    amount: float, tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
    (tmp_path / "a.jsonl").write_text(lines)
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "a.parquet", row_group_size=50)
    whole = bytepair.count(TEXTS)
    for source in (TEXTS, pa.array(TEXTS), tmp_path / "a.jsonl", tmp_path / "a.parquet"):
        train = bytepair.count(source, hold_out=amount)
        val = bytepair.count(source, hold_out=amount, split="val")
        assert Counter(dict(train.items())) + Counter(dict(val.items())) == dict(whole.items())
        assert 0 < val.total < whole.total
        assert train == bytepair.count(TEXTS, hold_out=amount)
    for number, name in enumerate(("a.jsonl", "a.parquet")):
        parts: list[str] = []
        for split in ("train", "val"):
            out = tmp_path / f"{number}{split}"
            shards.write(tmp_path / name, tok, out, hold_out=amount, split=split, doc_cap=30)
            texts = decoded(out, tok)
            expected = HoldOut(amount, split).chosen(iter([TEXTS]))
            assert texts == [text[:30] for text in next(expected)]  # type: ignore[union-attr]
            parts += texts
        assert sorted(parts) == sorted(text[:30] for text in TEXTS)


@given(st.lists(st.text(max_size=5)), st.floats(0.01, 0.99))
def test_a_share_depends_on_the_text_alone(texts: list[str], share: float) -> None:
    def chosen(texts: list[str]) -> list[str]:
        return [t for batch in HoldOut(share, "val").chosen(iter([texts])) for t in batch]  # type: ignore[union-attr]

    assert chosen(texts) == [text for text in texts if chosen([text])]


@pytest.mark.parametrize("amount", [0.3, 41])
def test_a_run_that_was_killed_holds_the_same_out(
    amount: float, tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    options: dict[str, Any] = {"tokens_per_shard": 1500, "hold_out": amount, "split": "train"}

    def stop(*_: object) -> None:
        if len(list((tmp_path / "out").glob("shard_*.bin"))) > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shards.write(tmp_path / "a.jsonl", tok, tmp_path / "out", progress=stop, **options)
    shards.write(tmp_path / "a.jsonl", tok, tmp_path / "out", **options)
    shards.write(tmp_path / "a.jsonl", tok, tmp_path / "one", **options)
    assert decoded(tmp_path / "out", tok) == decoded(tmp_path / "one", tok)


def test_ranks_hold_out_a_share(tmp_path: Path, tok: bytepair.Tokenizer) -> None:
    for number in range(4):
        (tmp_path / f"{number}.jsonl").write_text(
            "".join(json.dumps({"text": t}) + "\n" for t in TEXTS[number::4])
        )
    source = str(tmp_path / "*.jsonl")
    options: dict[str, Any] = {"rank": 0, "world_size": 1, "task_bytes": 100, "hold_out": 0.2}
    counts = bytepair.distributed.count(source, tmp_path / "c.parquet", **options)
    assert counts == bytepair.count(source, hold_out=0.2)
    manifest = bytepair.distributed.shard(source, tok, tmp_path / "out", **options)
    one = shards.write(source, tok, tmp_path / "one", hold_out=0.2)
    assert manifest is not None
    assert manifest.documents == one.documents < len(TEXTS)
    with pytest.raises(ShardError, match="hold_out is 5, but ranks and Ray cannot count"):
        bytepair.distributed.count(source, tmp_path / "d.parquet", **{**options, "hold_out": 5})


@pytest.mark.parametrize("amount", [0, -1, 1.5, True, "1", 0.0])
def test_wrong_amounts(amount: Any) -> None:
    with pytest.raises(ArgumentError, match=r"hold_out is .*; (pass|it must be) a number"):
        bytepair.count(TEXTS, hold_out=amount)


def test_contradictions(nanochat: Path) -> None:
    with pytest.raises(ArgumentError, match="hold_out would be ignored"):
        bytepair.count(TEXTS, hold_out=3, split="all")
    with pytest.raises(CorpusError, match="hold_out is not needed"):
        bytepair.count(nanochat, hold_out=3)
    with pytest.raises(ArgumentError) as refused:
        bytepair.count(nanochat, split="test")  # type: ignore[arg-type]
    assert (refused.value.option, refused.value.value) == ("split", "test")


def test_a_data_set_without_validation_has_no_such_split(
    tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    shards.write(bytepair.sample.paths()[:2], tok, tmp_path)
    with pytest.raises(ShardError, match="has no shards of the split 'val', only of 'train'"):
        shards.Dataset(tmp_path, split="val")


# ---------------------------------------------------------------------------- commands


def test_commands_take_splits(nanochat: Path, tmp_path: Path, tok: bytepair.Tokenizer) -> None:
    tok.save(tmp_path / "tokenizer")
    line = "reading 3 parquet files of the split train; skipped shard_00003.parquet (val)"
    for words in ("count", "train --vocab-size 300 -o new", "shard -o shards --no-bos"):
        done = run(*words.split(), "base_data", cwd=tmp_path)
        assert done.stderr.startswith(line)
    assert bytepair.load_counts(tmp_path / "counts.parquet") == bytepair.count(TEXTS[:300])
    assert decoded(tmp_path / "shards", tok) == TEXTS[:300]
    run("count", "base_data", "--split", "val", cwd=tmp_path)
    assert bytepair.load_counts(tmp_path / "counts.parquet") == bytepair.count(TEXTS[300:])
    run("evaluate", "tokenizer", "--against", "none", "--val", "base_data", cwd=tmp_path)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    for amount, number in (("10%", 0.1), ("0.1", 0.1), ("12", 12)):
        for split in ("train", "val"):
            words = f"count a.jsonl --hold-out {amount} --split {split}"
            done = run(*words.split(), cwd=tmp_path)
            assert "held-out" in done.stderr
            counts = bytepair.load_counts(tmp_path / "counts.parquet")
            assert counts == bytepair.count(TEXTS, hold_out=number, split=split)
    error = run("count", "a.jsonl", "--split", "val", cwd=tmp_path, code=1).stderr
    assert "pass --hold-out to hold documents out, or --split all" in error
