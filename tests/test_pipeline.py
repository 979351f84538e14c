"""The pipeline gives what its steps give, and does not repeat finished steps."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair.errors import ShardError

pipeline: Any = import_module("bytepair.pipeline")
TRAINING = set(bytepair.TrainOptions.__annotations__)
SHARDING = set(bytepair.shards.ShardOptions.__annotations__) - {"doc_cap"}
OPTIONS: dict[str, Any] = {"vocab_size": 1000, "tokens_per_shard": 60_000}


def run(source: Any, out: Path, **options: Any) -> Any:
    """Run a pipeline, with the options of its steps as keywords."""
    training = {k: options.pop(k) for k in TRAINING & options.keys()}
    sharding = {k: options.pop(k) for k in SHARDING & options.keys()}
    return bytepair.run_pipeline(
        source, out, bytepair.TrainOptions(**training),
        bytepair.shards.ShardOptions(**{"bos": True, **sharding}), **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def source() -> list[Path]:
    return bytepair.sample.paths()[1:20]


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_all_steps_of_the_pipeline(source: list[Path], tmp_path: Path) -> None:
    result = run(source, tmp_path / "out", **OPTIONS)
    assert result.tokenizer == bytepair.train(source, 1000)
    assert bytepair.load_counts(tmp_path / "out/counts.parquet") == bytepair.count(source)
    assert result.report
    assert len(result.report.manifest.shards) > 1
    assert (tmp_path / "out/evaluation.md").read_text(encoding="utf-8").startswith("# ours")
    again = run(source, tmp_path / "out", **OPTIONS)
    assert again.tokenizer == result.tokenizer
    assert list(again.seconds) == ["shard", "verify"]


def test_a_pipeline_does_not_read_its_results(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text, and more text\n" * 99, encoding="utf-8")
    first = run(tmp_path, tmp_path / "out", vocab_size=270)
    before = listing(tmp_path / "out")
    again = run(tmp_path, tmp_path / "out", vocab_size=270)
    assert again.tokenizer == first.tokenizer
    assert listing(tmp_path / "out") == before
    (tmp_path / "b.txt").write_text("text", encoding="utf-8")
    with pytest.raises(ShardError, match=r'different inputs\[1\] \(none, now .*b\.txt", 4\]\)'):
        run(tmp_path, tmp_path / "out", vocab_size=270)


class Killed(BaseException):
    """Raised where the process would end."""


@pytest.mark.parametrize("step", ["count", "train", "_evaluate", "write", "verify"])
def test_an_interruption_in_any_step_is_resumed(
    source: list[Path], tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(source, tmp_path / "whole", **OPTIONS)

    def dying(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(bytepair.shards if step in ("write", "verify") else pipeline, step, dying)
        with pytest.raises(Killed):
            run(source, tmp_path / "out", **OPTIONS)
    run(source, tmp_path / "out", **OPTIONS)
    assert listing(tmp_path / "out") == listing(tmp_path / "whole")


def test_another_pipeline_is_refused(source: list[Path], tmp_path: Path) -> None:
    run(source, tmp_path / "out", **OPTIONS)
    with pytest.raises(ShardError, match="different inputs"):
        run(source[1:], tmp_path / "out", **OPTIONS)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").touch()
    with pytest.raises(ShardError, match="is not empty"):
        run(source, tmp_path / "full", **OPTIONS)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("changed", "steps"),
    [
        ({"tokens_per_shard": 90_000}, ["shard", "verify"]),
        ({"format": "nanogpt"}, ["shard", "verify"]),
        ({"bos": False}, ["shard", "verify"]),
        ({"vocab_size": 1001}, ["train", "evaluate", "shard", "verify"]),
        ({"special_tokens": ["<|bos|>"]}, ["train", "evaluate", "shard", "verify"]),
        ({"pattern": "gpt2"}, ["count", "train", "evaluate", "shard", "verify"]),
        ({"doc_cap": 2000}, ["count", "train", "evaluate", "shard", "verify"]),
    ],
)
def test_another_option_redoes_what_depends_on_it(
    source: list[Path], tmp_path: Path, changed: dict[str, Any], steps: list[str]
) -> None:
    run(source, tmp_path / "out", **OPTIONS)
    with pytest.warns(UserWarning, match="will be replaced"):
        result = run(source, tmp_path / "out", **{**OPTIONS, **changed})
    assert list(result.seconds) == steps
    run(source, tmp_path / "whole", **{**OPTIONS, **changed})
    assert listing(tmp_path / "out") == listing(tmp_path / "whole")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"vocab_size": 200}, "vocab_size 200 is too small"),
        ({"vocab_size": 70_000, "format": "llmc", "doc_cap": 0}, "doc_cap is 0"),
        ({"pattern": "("}, "not valid"),
        ({"special_tokens": ["<|a|>", "<|a|>"]}, "<|a|>"),
        ({"bos": "<|no|>"}, "no special token <|no|>"),
        ({"format": "zip"}, "zip"),
        ({"tokens_per_shard": 0}, "tokens_per_shard is 0"),
    ],
)
def test_options_are_checked_before_anything_is_made(
    source: list[Path], tmp_path: Path, options: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        run(source, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file; pass a folder"):
        run(source, tmp_path / "file", **OPTIONS)


def test_the_pipeline_command(source: list[Path], tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "bytepair", "pipeline", *map(str, source),
        "--vocab-size", "600", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "600 ids" in out
    assert "all is as promised" in out
