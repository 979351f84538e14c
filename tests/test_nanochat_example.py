"""The example of a whole run writes a tokenizer and shards that can be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import bytepair

EXAMPLE = Path(__file__).resolve().parents[1] / "examples/nanochat.py"


def run(folder: Path, *words: str) -> str:
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *words],
        cwd=folder, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def check(folder: Path, train: int, val: int) -> None:
    assert bytepair.load(folder / "tokenizer").vocab_size == 600
    for name, documents in (("train", train), ("val", val)):
        report = bytepair.shards.verify(folder / name)
        assert report
        assert report.manifest.documents == documents


def test_it_takes_the_splits_of_a_data_set(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    texts = [path.read_text("utf-8")[:2000] for path in bytepair.sample.paths()[:6]]
    for number in range(3):
        rows = pa.table({"text": texts[2 * number : 2 * number + 2]})
        pq.write_table(rows, data / f"shard_{number:05}.parquet")
    output = run(tmp_path, "data", "run", "600")
    assert "a batch for training: (4, 128)" in output
    check(tmp_path / "run", train=4, val=2)


def test_it_takes_the_sample_texts(tmp_path: Path) -> None:
    run(tmp_path, "", "run", "600")
    check(tmp_path / "run", train=len(bytepair.sample.paths()) - 1, val=1)
