"""BPE-dropout of files: shards and the command line, equal to a plain loop over documents."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bytepair
import reference_twins
from bytepair import distributed, shards
from bytepair.cli import command
from bytepair.errors import ArgumentError, ShardError
from messages import told
from test_dropout import plain, rows_of

encode: Any = import_module("bytepair.shards.encode")
DROPOUT: dict[str, Any] = {"dropout": 0.3, "seed": 5}


@pytest.fixture(scope="module")
def inputs() -> list[list[str]]:
    """The documents of each input, in order; some are equal."""
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")
    texts = [text[i : i + 300] for i in range(0, 15_000, 300)]
    return [[*texts[:20], "", texts[0]], [*texts[20:40], texts[0]], [texts[0]], texts[40:]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, inputs: list[list[str]]) -> Path:
    """Parquet with small row groups, jsonl, text, and parquet again."""
    folder = tmp_path_factory.mktemp("corpus")
    pq.write_table(pa.table({"text": inputs[0]}), folder / "a.parquet", 4)
    lines = "".join(json.dumps({"text": t}) + "\n" for t in inputs[1])
    (folder / "b.jsonl").write_text(lines, encoding="utf-8")
    (folder / "c.txt").write_text(inputs[2][0], encoding="utf-8")
    pq.write_table(pa.table({"text": inputs[3]}), folder / "d.parquet")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def by_loop(tok: bytepair.Tokenizer, inputs: list[list[str]]) -> list[list[int]]:
    """Document by document, with the loop of the reference."""
    rows = []
    for texts, seed in zip(inputs, reference_twins.random_numbers(DROPOUT["seed"]), strict=False):
        rows += plain(tok, texts, DROPOUT["dropout"], seed)
    return rows


def test_shards_are_those_of_a_plain_loop(
    corpus: Path, inputs: list[list[str]], tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    bos = trained.special_tokens["<|bos|>"]
    expected = [[bos, *row] for row in by_loop(trained, inputs)]
    wholes = []
    for threads in (1, 2, 5):
        out = tmp_path / str(threads)
        result = shards.write(
            corpus, trained, out, bos=True, tokens_per_shard=900, threads=threads, **DROPOUT
        )
        assert len(result.shards) > 3
        data = shards.Dataset(out, split=None)
        assert [data[i].tolist() for i in range(len(data))] == expected
        assert (result.job["dropout"], result.job["seed"]) == (0.3, 5)
        wholes.append(files(out))
    assert wholes[0] == wholes[1] == wholes[2]


def test_batches_and_ranks_make_no_difference(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards.write(corpus, trained, tmp_path / "whole", tokens_per_shard=900, **DROPOUT)
    whole = files(tmp_path / "whole")
    for rank in range(2):
        distributed.shard(
            corpus, trained, tmp_path / "ranks", rank=rank, world_size=2, task_bytes=1,
            tokens_per_shard=900, **DROPOUT,
        )  # fmt: skip
    assert files(tmp_path / "ranks") == whole
    for size in (1, 2000):
        monkeypatch.setattr(encode, "JOIN_BYTES", size)
        out = tmp_path / f"by {size}"
        shards.write(corpus, trained, out, tokens_per_shard=900, **DROPOUT)
        assert files(out) == whole


def test_a_run_that_was_interrupted_goes_on_to_the_same_bytes(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    options: dict[str, Any] = {"tokens_per_shard": 900, **DROPOUT}
    result = shards.write(corpus, trained, tmp_path / "whole", **options)
    for marks in range(1, len(result.shards)):
        out = tmp_path / str(marks)
        interrupt(corpus, trained, out, marks, options)
        for other in ({"dropout": 0.2}, {"dropout": None, "seed": None}, {"dropout": 0.0}):
            with told(ShardError, "dropout"):
                shards.write(corpus, trained, out, **{**options, **other})
        with told(ShardError, "seed"):
            shards.write(corpus, trained, out, **{**options, "seed": 6})
        shards.write(corpus, trained, out, **options)
        assert files(out) == files(tmp_path / "whole")


def interrupt(
    corpus: Path, tok: bytepair.Tokenizer, out: Path, marks: int, options: dict[str, Any]
) -> None:
    """A run that ends when some shards are finished."""
    writer: Any = import_module("bytepair.shards.writer")
    with pytest.MonkeyPatch.context() as patch:
        opened = writer.Sharder._open

        def dying(sharder: Any, first: Any) -> Any:
            if len(sharder.shards) == marks:
                raise KeyboardInterrupt
            return opened(sharder, first)

        patch.setattr(writer.Sharder, "_open", dying)
        with pytest.raises(KeyboardInterrupt):
            shards.write(corpus, tok, out, **options)


def test_no_dropout_is_plain_encoding(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    shards.write(corpus, trained, tmp_path / "plain")
    shards.write(corpus, trained, tmp_path / "none", dropout=0.0, seed=3)
    assert files(tmp_path / "plain") == files(tmp_path / "none")
    assert b"dropout" not in (tmp_path / "plain" / "manifest.json").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        {"dropout": 0.1},
        {"seed": 1},
        {"dropout": 1.1, "seed": 1},
        {"dropout": float("nan"), "seed": 1},
        {"dropout": 0.1, "seed": -1},
        {"dropout": 0.1, "seed": 2**64},
        {"dropout": 0.1, "seed": 1.5},
    ],
)
def test_invalid_options(
    options: dict[str, Any], corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    with told(ArgumentError):
        shards.write(corpus, trained, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_the_command_line(
    corpus: Path, inputs: list[list[str]], tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    trained.save(tmp_path / "tok")
    arguments = ["-t", str(tmp_path / "tok"), "--dropout", "0.3", "--seed", "5"]
    paths = sorted(map(str, corpus.iterdir()))
    result = CliRunner().invoke(
        command, ["encode", *paths, *arguments, "--json"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    ids = [json.loads(line) for line in result.stdout.splitlines()]
    texts = [text for some in inputs for text in some]
    assert ids == rows_of(trained.encode_batch_to_numpy(texts, **DROPOUT))

    shard = ["shard", str(corpus), *arguments, "--no-bos", "-o", str(tmp_path / "out")]
    assert CliRunner().invoke(command, shard, catch_exceptions=False).exit_code == 0
    data = shards.Dataset(tmp_path / "out", split=None)
    rows = [data[i].tolist() for i in range(len(data))]
    assert rows == by_loop(trained, inputs)

    for words in (["encode", "--text", "a"], ["shard", str(corpus), "-o", str(tmp_path / "no")]):
        for option, other in (("--dropout", "--seed"), ("--seed", "--dropout")):
            result = CliRunner().invoke(command, [*words, "-t", str(tmp_path / "tok"), option, "1"])
            assert result.exit_code == 2
            assert f"{option} needs {other}" in result.output
