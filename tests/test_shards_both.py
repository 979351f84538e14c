"""Shards for validation and for training are written in one run, by the inputs or by a share."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bytepair
from bytepair import distributed, shards
from bytepair.cli import command
from bytepair.errors import ArgumentError, CorpusError, ShardError
from bytepair.shards import manifest
from messages import told


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(["some text, and some more text"] * 9, 270)


@pytest.fixture(scope="module", params=["hub", "nanochat", "text"])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set that names its files for validation in one of two ways, or none."""
    folder = tmp_path_factory.mktemp("corpus")
    for number, (kind, name) in enumerate(
        [("train", "shard_00000"), ("train", "shard_00001"), ("validation", "shard_00002")]
    ):
        texts = [f"some text {kind} {row}" for row in range(40)]
        if request.param == "text":
            (folder / f"{number}.txt").write_text("\n".join(texts))
            continue
        hub = f"{kind}-{number:05}-of-00002.parquet"
        pq.write_table(
            pa.table({"text": texts}),
            folder / (hub if request.param == "hub" else f"{name}.parquet"),
        )
    return folder


def texts_of(folder: Path, tok: bytepair.Tokenizer, split: Any) -> list[str]:
    data = shards.Dataset(folder, split=split)
    return [tok.decode(data[number].astype(np.uint32)) for number in range(len(data))]


@pytest.mark.parametrize("name", sorted(shards.LAYOUTS))
def test_both_splits_are_written_in_one_run(
    name: Any,
    corpus: Path,
    tmp_path: Path,
    tok: bytepair.Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for limit in (100, 10**6):
        options: dict[str, Any] = {"format": name, "tokens_per_shard": limit, "split": "both"}
        out = tmp_path / str(limit)
        made = shards.write(corpus, tok, out, **options)
        train, val = texts_of(out, tok, "train"), texts_of(out, tok, "val")
        assert all("train" in text for text in train)
        assert all("validation" in text for text in val)
        assert len(train) == 2 * len(val)
        splits = [shard.split for shard in made.shards]
        assert splits == sorted(splits, reverse=True)
        assert shards.verify(out)
        assert shards.write(corpus, tok, out, **options) == made
        assert distributed.shard(
            corpus, tok, tmp_path / f"ranks{limit}", rank=0, world_size=1, task_bytes=1, **options
        )
        assert files(tmp_path / f"ranks{limit}") == files(out)
        resumed = tmp_path / f"resumed{limit}"
        with monkeypatch.context() as patch:
            patch.setattr(manifest, "save_mark", dying)
            if len(made.shards) > 1:
                with pytest.raises(Killed):
                    shards.write(corpus, tok, resumed, **options)
        shards.write(corpus, tok, resumed, **options)
        assert files(resumed) == files(out)
        with pytest.raises(ShardError):
            shards.write(corpus, tok, out, **{**options, "split": "all"})


class Killed(BaseException):
    """Raised where the process would end."""


def dying(*_: object) -> None:
    raise Killed


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_nanogpt_gets_both_files_from_the_shell(
    corpus: Path, tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    tok.save(tmp_path / "tok")
    words = ["shard", str(corpus), "-t", str(tmp_path / "tok"), "--format", "nanogpt"]
    words += ["--split", "both", "-o", str(tmp_path / "out")]
    assert CliRunner().invoke(command, words, catch_exceptions=False).exit_code == 0
    for name, word in (("train", "train"), ("val", "validation")):
        ids = np.fromfile(tmp_path / "out" / f"{name}.bin", np.uint16)
        documents = tok.decode(ids.astype(np.uint32)).split("<|bos|>")[1:]
        assert documents
        assert all(word in document for document in documents)


def test_nanogpts_own_loader_reads_them(
    corpus: Path, tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    if "NANOGPT_GIT" not in os.environ:
        pytest.skip("needs a clone of karpathy/nanoGPT, which NANOGPT_GIT names")
    torch = pytest.importorskip("torch", reason="needs the package torch")
    command = ["git", "-C", os.environ["NANOGPT_GIT"], "show", "HEAD:train.py"]
    source = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    [get_batch] = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == "get_batch"
    ]
    shards.write(corpus, tok, tmp_path / "out", format="nanogpt", split="both")
    space: dict[str, Any] = {
        "os": os, "np": np, "torch": torch, "data_dir": str(tmp_path / "out"), "block_size": 8,
        "batch_size": 4, "device_type": "cpu", "device": "cpu",
    }  # fmt: skip
    exec(compile(ast.Module([get_batch], []), "train.py", "exec"), space)
    for name in ("train", "val"):
        ids = np.fromfile(tmp_path / "out" / f"{name}.bin", np.uint16)
        inputs, targets = space["get_batch"](name)
        windows = {tuple(ids[at : at + 9].tolist()) for at in range(len(ids) - 8)}
        for row, after in zip(inputs.tolist(), targets.tolist(), strict=True):
            assert (*row, after[-1]) in windows
            assert row[1:] == after[:-1]


def test_one_file_has_no_part_for_validation(tmp_path: Path, tok: bytepair.Tokenizer) -> None:
    (tmp_path / "a.txt").write_text("some text")
    with told(CorpusError):
        shards.write(tmp_path / "a.txt", tok, tmp_path / "out", split="both")
    with pytest.raises(CorpusError):
        shards.write([{"text": "some text"}], tok, tmp_path / "out", split="both")


@pytest.mark.parametrize("name", sorted(shards.LAYOUTS))
@pytest.mark.parametrize("limit", [100, 10**6])
def test_a_share_of_the_text_is_for_validation(
    name: Any, limit: int, tmp_path: Path, tok: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    texts = [f"some text {number:03}" for number in range(400)]
    (corpus / "0.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in texts[:100]))
    pq.write_table(pa.table({"text": texts[100:]}), corpus / "1.parquet")
    sizes = [path.stat().st_size for path in sorted(corpus.iterdir())]
    for share in (0.001, 0.01, 0.9):
        end = share * sum(sizes)
        in_second = max(end - sizes[0], 0) / sizes[1]
        expected = max(round(min(end / sizes[0], 1) * 100) + round(in_second * 300), 1)
        options: dict[str, Any] = {"format": name, "tokens_per_shard": limit, "val_share": share}
        out, ranks = tmp_path / f"{share}", tmp_path / f"ranks{share}"
        made = shards.write(corpus, tok, out, **options)
        assert [text.removeprefix("<|bos|>") for text in texts_of(out, tok, None)] == texts
        assert len(texts_of(out, tok, "val")) == expected
        assert shards.write(corpus, tok, out, **options) == made
        assert distributed.shard(corpus, tok, ranks, rank=0, world_size=1, task_bytes=1, **options)
        assert files(ranks) == files(out)
        resumed = tmp_path / f"resumed{share}"
        with monkeypatch.context() as patch:
            patch.setattr(manifest, "save_mark", dying)
            with pytest.raises(Killed):
                shards.write(corpus, tok, resumed, **options)
        shards.write(corpus, tok, resumed, **options)
        assert files(resumed) == files(out)


def test_a_share_leaves_something_for_training(tmp_path: Path, tok: bytepair.Tokenizer) -> None:
    made = shards.write(["one text", "another"], tok, tmp_path / "texts", val_share=0.01)
    assert [shard.split for shard in made.shards] == ["val", "train"]
    with told(CorpusError):
        shards.write(["one text"], tok, tmp_path / "one", val_share=0.01)
    values: list[Any] = [0.0, 1.0, -0.5, float("nan"), "0.5"]
    for value in values:
        with told(ArgumentError):
            shards.write(["one text"], tok, tmp_path / "one", val_share=value)
    with told(ArgumentError):
        shards.write(["one text"], tok, tmp_path / "one", val_share=0.5, split="both")
