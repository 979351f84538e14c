"""A split pattern is given by its name or as an expression; a mistyped name is an error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair.compat import rustbpe, tiktoken
from bytepair.errors import PatternError
from formats import small
from messages import told

ENCODINGS = {
    "r50k_base": "gpt2", "p50k_base": "gpt2", "p50k_edit": "gpt2", "cl100k_base": "gpt4",
    "o200k_base": "gpt4o", "o200k_harmony": "gpt4o",
}  # fmt: skip
BYTES = {bytes([byte]): byte for byte in range(256)}


def of_table(pattern: str, folder: Path) -> str:
    """Counts of another tool, which do not say their pattern."""
    file = folder / "counts.parquet"
    pq.write_table(pa.table({"pretoken": [b"one"], "count": [1]}), file)
    return bytepair.training.load_counts(file, pattern=pattern).pattern


def of_ranks(pattern: str, folder: Path) -> str:
    return bytepair.load(small().export(folder / "x.tiktoken", lossy=True), pattern=pattern).pattern


def of_rustbpe(pattern: str, folder: Path) -> str:
    tok = rustbpe.Tokenizer()
    tok.train_from_iterator(["one"], 256, pattern=pattern)
    return tok.get_pattern()


def of_ranks_of_a_job(pattern: str, folder: Path) -> str:
    (folder / "a.txt").write_text("one two")
    counts = bytepair.distributed.count(
        folder / "a.txt", folder / "c.parquet", rank=0, world_size=1, pattern=pattern
    )
    assert counts is not None
    return counts.pattern


#: Every function that takes a pattern, and the pattern of its result.
TAKERS: dict[str, Callable[[str, Path], str]] = {
    "train": lambda pattern, _: bytepair.train(["one"], 265, pattern=pattern).pattern,
    "count": lambda pattern, _: bytepair.count(["one"], pattern=pattern).pattern,
    "load_counts": of_table,
    "load": of_ranks,
    "from_ranks": lambda pattern, _: bytepair.Tokenizer.from_ranks(BYTES, pattern=pattern).pattern,
    "from_merges": lambda pattern, _: bytepair.Tokenizer.from_merges(
        BYTES, [], pattern=pattern
    ).pattern,
    "distributed.count": of_ranks_of_a_job,
    "rustbpe": of_rustbpe,
    "tiktoken": lambda pattern, _: tiktoken.Encoding(
        "x", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={}
    )._tokenizer.pattern,
}  # fmt: skip


@pytest.mark.parametrize("taker", TAKERS)
def test_a_mistyped_name_is_an_error_everywhere(taker: str, tmp_path: Path) -> None:
    for wrong in ["gpt-4", ""]:
        with told(PatternError):
            TAKERS[taker](wrong, tmp_path)
    assert TAKERS[taker]("cl100k_base", tmp_path) == bytepair.PATTERNS["gpt4"]


@pytest.mark.parametrize(
    "words",
    [
        ["train", "a.txt"],
        ["count", "a.txt"],
        ["count", "a.txt", "--rank", "0", "--world-size", "1"],
        ["convert", "x.tiktoken", "y.bytepair"],
    ],
)
def test_a_mistyped_name_is_an_error_of_every_command(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two")
    small().export(tmp_path / "x.tiktoken", lossy=True)
    command = [sys.executable, "-m", "bytepair", *words, "--pattern", "o200k"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "o200k_base" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "x.tiktoken"]


def test_encodings_are_names() -> None:
    for encoding, name in ENCODINGS.items():
        assert bytepair.PATTERNS[encoding] == bytepair.PATTERNS[name]
        assert f"pattern {name}," in repr(small(pattern=encoding))
        assert bytepair.reference.split("It's 2026", encoding) == bytepair.reference.split(
            "It's 2026", bytepair.PATTERNS[name]
        )


def test_a_literal_pattern_can_be_grouped() -> None:
    assert bytepair.count(["a gpt-4 b"], pattern="(?:gpt-4)").items() == [
        (b"a ", 1), (b"gpt-4", 1), (b" b", 1)
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["gpt4", "a", "gpt-4"])
def test_the_pattern_of_a_file_is_an_expression_whatever_it_looks_like(
    pattern: str, tmp_path: Path
) -> None:
    document = json.loads(bytepair.compat.to_huggingface(small()).to_str())
    document["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [
            {
                "type": "Split",
                "pattern": {"Regex": pattern},
                "behavior": "Isolated",
                "invert": False,
            },
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": False},
        ],
    }  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    tok = bytepair.load(tmp_path / "tokenizer.json")
    assert bytepair.pretokenize(f"x{pattern}y", tok) == ["x", pattern, "y"]
    assert bytepair.load(tok.save(tmp_path)) == tok
    again = bytepair.Tokenizer.from_bytes(tok.to_bytes())
    assert bytepair.pretokenize(f"x{pattern}y", again) == ["x", pattern, "y"]
    bytepair.evaluate.measure(tok, against=[])
