"""Shards are equal whether threads read parts of tables, or one thread reads all documents."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair import _core, shards
from bytepair.errors import BytepairError
from bytepair.shards import encode, manifest
from bytepair.shards.manifest import ShardFormat
from tables import write_tables

#: The module: `bytepair.corpus.read_documents` is the function in it.
documents: Any = import_module("bytepair.corpus.read")

WORDS = [f"word {i % 100} {'long ' * (i % 50)}{i * i}" for i in range(2_000)]
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "snappy, row groups": {"compression": "snappy", "row_group_size": 99},
    "zstd, small pages": {
        "compression": "zstd",
        "use_dictionary": False,
        "data_page_size": 1000,
        "write_batch_size": 10,
        "row_group_size": 999,
    },
    "second version": {"data_page_version": "2.0", "compression": "snappy"},
    "differences": {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    "lengths": {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
}


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def in_order(source: Any, tok: bytepair.Tokenizer, out: Path, **options: Any) -> Any:
    """The files of shards, when one thread reads all documents; or the error that ended it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "_is_table", lambda *_: False)
        return written(source, tok, out, **options)


def written(source: Any, tok: bytepair.Tokenizer, out: Path, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            shards.write(source, tok, out, **options)
        except BytepairError as error:
            return str(error)
    return listing(out)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`written`, with reading in order made to fail."""

    def write(*args: Any, **options: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(encode, "encode_in_order", None)
            return written(*args, **options)

    return write


def write_corpus(folder: Path, shape: str) -> None:
    """Tables that are read in both ways, and repeated texts."""
    folder.mkdir()
    write_tables(folder, WORDS, **SHAPES[shape])
    repeated = pa.table({"text": ["the same", "another", ""] * 500})
    pq.write_table(repeated, folder / "d.parquet", **SHAPES[shape])


@pytest.mark.parametrize("shape", SHAPES)
def test_both_readers_give_the_same_shards(
    shape: str, tmp_path: Path, trained: bytepair.Tokenizer, in_parts: Callable[..., Any]
) -> None:
    write_corpus(tmp_path / "in", shape)
    for number, format in enumerate(get_args(ShardFormat)):
        options = {"format": format, "tokens_per_shard": 20_000, "bos": number % 2 == 0}
        expected = in_order(tmp_path / "in", trained, tmp_path / f"slow{number}", **options)
        assert len(expected) > 5
        out = tmp_path / f"fast{number}"
        result = in_parts(tmp_path / "in", trained, out, **options, threads=1 + number)
        assert result == expected


def test_ids_of_32_bits(
    tmp_path: Path, trained: bytepair.Tokenizer, in_parts: Callable[..., Any]
) -> None:
    write_corpus(tmp_path / "in", "zstd, small pages")
    pq.write_table(
        pa.table({"text": ["one text " * 100_000, "é <|far|>"]}), tmp_path / "in/e.parquet"
    )
    tok = bytepair.Tokenizer.from_ranks(
        trained.mergeable_ranks(), pattern=trained.pattern, special_tokens={"<|far|>": 1 << 16}
    )
    options = {"tokens_per_shard": 20_000, "bos": "<|far|>", "eos": "<|far|>"}
    expected = in_order(tmp_path / "in", tok, tmp_path / "slow", **options)
    assert b"uint32" in expected["manifest.json"]
    assert in_parts(tmp_path / "in", tok, tmp_path / "fast", **options) == expected


def test_more_files_than_are_open_at_once(
    tmp_path: Path, trained: bytepair.Tokenizer, in_parts: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    write_corpus(tmp_path / "in", "zstd, small pages")
    expected = in_order(tmp_path / "in", trained, tmp_path / "slow", tokens_per_shard=5000)
    for files in (1, 2, 64):
        monkeypatch.setattr(encode, "OPEN_FILES", files)
        out = tmp_path / f"fast{files}"
        assert in_parts(tmp_path / "in", trained, out, tokens_per_shard=5000) == expected


def test_to_shard_files_of_any_kind_arrow_is_not_imported(
    tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    write_corpus(tmp_path / "in", "zstd, small pages")
    (tmp_path / "in" / "e.txt").write_text("plain", encoding="utf-8")
    (tmp_path / "in" / "f.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}'))
    packed = gzip.compress((tmp_path / "in" / "d.parquet").read_bytes())
    (tmp_path / "in" / "g.parquet.gz").write_bytes(packed)
    trained.save(tmp_path / "tokenizer")
    code = """
import sys, bytepair
_, source, tokenizer, out = sys.argv
bytepair.shards.write(source, bytepair.load(tokenizer), out)
assert "pyarrow" not in sys.modules
"""
    paths = [str(tmp_path / name) for name in ("in", "tokenizer", "out")]
    subprocess.run([sys.executable, "-c", code, *paths], check=True)


class Killed(BaseException):
    """Raised where the process would end."""


def test_a_run_resumes_with_the_other_reader(
    tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted at any shard, amid its parts, in one way, and finished in the other."""
    write_corpus(tmp_path / "in", "snappy, row groups")
    options = {"tokens_per_shard": 20_000, "bos": True}
    expected = in_order(tmp_path / "in", trained, tmp_path / "whole", **options)
    count = len(shards.Manifest.load(tmp_path / "whole").shards)
    save = manifest.save_mark
    for last in range(0, count - 1, 3):
        for first, second in [(written, in_order), (in_order, written)]:
            out = tmp_path / f"{last}{first.__name__}"
            saved: list[Path] = []

            def dying(folder: Path, shard: Any, last: int = last, saved: Any = saved) -> None:
                save(folder, shard)
                saved.append(folder)
                if len(saved) > last:
                    raise Killed

            with monkeypatch.context() as patch:
                patch.setattr(manifest, "save_mark", dying)
                with pytest.raises(Killed):
                    first(tmp_path / "in", trained, out, **options)
            assert second(tmp_path / "in", trained, out, **options) == expected


def test_files_of_other_kinds_between(tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    """Files of both kinds in turn, one without the column and one with numbers in it."""
    write_corpus(tmp_path / "in", "plain")
    table = pa.table({"text": WORDS})
    for number, compression in enumerate(["gzip", "brotli", "zstd", "lz4"]):
        pq.write_table(table, tmp_path / "in" / f"b{number}.parquet", compression=compression)
    (tmp_path / "in" / "b5.txt").write_text("between", encoding="utf-8")
    pq.write_table(pa.table({"other": WORDS}), tmp_path / "in" / "d.parquet")
    pq.write_table(pa.table({"text": [1]}), tmp_path / "in" / "e.parquet")
    options: dict[str, Any] = {"errors": "skip", "tokens_per_shard": 10_000}
    expected = in_order(tmp_path / "in", trained, tmp_path / "slow", **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "OPEN_FILES", 2)
        assert written(tmp_path / "in", trained, tmp_path / "fast", **options) == expected
    assert len(shards.Manifest.load(tmp_path / "fast").skipped) == 2
    capped = {"doc_cap": 20, "tokens_per_shard": 1_000}
    expected = in_order(tmp_path / "in" / "a.parquet", trained, tmp_path / "slow2", **capped)
    result = written(tmp_path / "in" / "a.parquet", trained, tmp_path / "fast2", **capped)
    assert result == expected


@pytest.mark.parametrize("errors", ["strict", "skip"])
def test_what_the_core_cannot_read(
    errors: str, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that are too long or not UTF-8, and damage, amid a row group of many parts."""
    texts = [text.encode() for text in WORDS]
    texts[500], texts[1200] = b"x" * 60_000, b"no \xff text"
    whole = pa.array(texts, pa.binary()).view(pa.string())
    (tmp_path / "in").mkdir()
    for name, compression in [("a", "none"), ("b", "zstd"), ("c", "snappy")]:
        file = tmp_path / "in" / f"{name}.parquet"
        pq.write_table(pa.table({"text": whole}), file, compression=compression, data_page_size=500)
    data = bytearray((tmp_path / "in" / "b.parquet").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 50] = bytes(50)
    (tmp_path / "in" / "b.parquet").write_bytes(data)
    options = {"errors": errors, "max_document_bytes": 50_000, "tokens_per_shard": 7000}
    for size in (3000, 20_000, 10**6):
        monkeypatch.setattr(documents, "COLUMN_BYTES", size)
        expected = in_order(tmp_path / "in", trained, tmp_path / f"slow{size}", **options)
        assert written(tmp_path / "in", trained, tmp_path / f"fast{size}", **options) == expected
    if errors == "skip":
        reasons = [left["reason"] for left in shards.Manifest.load(tmp_path / "fast3000").skipped]
        assert any("60,000 bytes" in reason for reason in reasons)
        assert len(reasons) > 4


def test_damage_anywhere(tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    whole, damaged = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"text": WORDS}), whole, compression="zstd", row_group_size=300)
    picked = random.Random(7)
    for number in range(60):
        other = bytearray(whole.read_bytes())
        for _ in range(picked.choice([1, 8])):
            other[picked.randrange(len(other) - 3000)] ^= 1 << picked.randrange(8)
        damaged.write_bytes(other)
        options = {"errors": "skip", "tokens_per_shard": 9000}
        expected = in_order(damaged, trained, tmp_path / f"slow{number}", **options)
        assert written(damaged, trained, tmp_path / f"fast{number}", **options) == expected


def test_errors_of_the_encoder_are_the_same(tmp_path: Path) -> None:
    """A tokenizer that has no token for a byte cannot encode all texts."""
    ranks = {bytes([b]): b for b in range(255)}
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt2")
    texts = pa.array([b"fine", b"\xf4\x8f\xbf\xbf"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    expected = in_order(tmp_path / "a.parquet", tok, tmp_path / "slow")
    assert written(tmp_path / "a.parquet", tok, tmp_path / "fast") == expected


def test_texts_that_are_repeated_are_not_encoded_as_one_part(
    tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    """A few kilobytes that become 400 MB of text."""
    column = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(400, np.int32)), pa.array(["ab, cd. " * (1 << 17)])
    )
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet", compression="zstd")
    calls: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = shards.write(tmp_path / "a.parquet", trained, tmp_path / "out")
    assert result.documents == 400
    end = _core.encode_rows(
        trained, [str(tmp_path / "a.parquet")], "text", lambda *_: calls.append(1),
        most_bytes=1 << 30,
    )  # fmt: skip
    assert (end, calls) == ((0, 0), [])


def test_the_core_stops_at_unreadable_rows(tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    files = [str(tmp_path / f"{name}.parquet") for name in "abc"]
    for file in files[:2]:
        pq.write_table(pa.table({"text": ["a", "b", "c" * 10]}), file, row_group_size=1)
    batches: list[Any] = []

    def take(ids: Any, offsets: Any, text_ends: Any, parts: Any) -> None:
        batches.append((len(offsets) - 1, int(text_ends[-1]), parts))

    def encoded(files: list[str], column: str = "text", **options: Any) -> Any:
        batches.clear()
        return _core.encode_rows(
            trained, files, column, take, **{"most_bytes": 99, "threads": 1, **options}
        )

    assert encoded(files) == (2, 0)
    whole = [(0, 0, 1), (0, 1, 1), (0, 2, 1), (1, 0, 1), (1, 1, 1), (1, 2, 1)]
    assert batches == [(6, 24, whole)]
    assert encoded(files[:1], first=1) == (1, 0)
    assert batches == [(2, 11, whole[1:3])]
    assert encoded(files[:1], most_bytes=9) == (0, 2)
    assert encoded(files[:1], most_bytes=9, first=2) == (0, 2)
    assert batches == []
    assert encoded(files[2:], first=7) == (0, 7)
    assert encoded(files, "other") == (0, 0)
    with pytest.raises(ZeroDivisionError):
        _core.encode_rows(trained, files, "text", lambda *_: 1 // 0, most_bytes=9)
