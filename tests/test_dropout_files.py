"""BPE-dropout of files by the command line is that of one batch of all documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

import bytepair
from bytepair.cli import command
from test_dropout import rows_of

DROPOUT: dict[str, Any] = {"dropout": 0.3, "seed": 5}


def test_the_command_line(tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")
    texts = [*(text[i : i + 300] for i in range(0, 15_000, 300)), "", text[:300]]
    pq.write_table(pa.table({"text": texts[:20]}), tmp_path / "a.parquet", 4)
    lines = "".join(json.dumps({"text": t}) + "\n" for t in texts[20:])
    (tmp_path / "b.jsonl").write_text(lines, encoding="utf-8")
    trained.save(tmp_path / "tok")
    files = [str(tmp_path / name) for name in ("a.parquet", "b.jsonl")]
    arguments = ["-t", str(tmp_path / "tok"), "--dropout", "0.3", "--seed", "5", "--json"]
    result = CliRunner().invoke(command, ["encode", *files, *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    ids = [json.loads(line) for line in result.stdout.splitlines()]
    assert ids == rows_of(trained.encode_batch_to_numpy(texts, **DROPOUT))
    for option, other in (("--dropout", "--seed"), ("--seed", "--dropout")):
        words = ["encode", "--text", "a", "-t", str(tmp_path / "tok"), option, "1"]
        result = CliRunner().invoke(command, words)
        assert result.exit_code == 2
        assert f"{option} needs {other}" in result.output
