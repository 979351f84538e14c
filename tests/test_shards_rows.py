"""It does not show in shards whether the core read the documents or Arrow did."""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair import _core, shards
from bytepair.corpus import parquet
from bytepair.corpus.bounds import Expansion
from bytepair.corpus.pages import Chunk
from bytepair.errors import BytepairError
from bytepair.shards import columns, manifest, rows
from tables import write_tables

#: The module: `bytepair.read_documents` is the function in it.
documents: Any = import_module("bytepair.corpus.documents")

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


def through_arrow(source: Any, tok: bytepair.Tokenizer, out: Path, **options: Any) -> Any:
    """The files of shards, when all documents come through Arrow; or the error that ended it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_parts", lambda *_: None)
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
def by_core(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`written`, which would fail if anything came through Arrow."""

    def write(*args: Any, **options: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(columns, "encoded", None)
            return written(*args, **options)

    return write


def write_corpus(folder: Path, shape: str) -> None:
    """What is read in two ways, and texts that are repeated."""
    folder.mkdir()
    write_tables(folder, WORDS, **SHAPES[shape])
    repeated = pa.table({"text": ["the same", "another", ""] * 500})
    pq.write_table(repeated, folder / "d.parquet", **SHAPES[shape])


@pytest.mark.parametrize("shape", SHAPES)
def test_both_ways_give_the_same_shards(
    shape: str, tmp_path: Path, trained: bytepair.Tokenizer, by_core: Callable[..., Any]
) -> None:
    write_corpus(tmp_path / "in", shape)
    for number, format in enumerate(["bytepair", "llmc", "nanogpt", "megatron", "arrow"]):
        options = {"format": format, "tokens_per_shard": 20_000, "bos": number % 2 == 0}
        expected = through_arrow(tmp_path / "in", trained, tmp_path / f"slow{number}", **options)
        assert len(expected) > 5
        out = tmp_path / f"fast{number}"
        found = by_core(tmp_path / "in", trained, out, **options, threads=1 + number)
        assert found == expected


def test_ids_of_32_bits(
    tmp_path: Path, trained: bytepair.Tokenizer, by_core: Callable[..., Any]
) -> None:
    write_corpus(tmp_path / "in", "zstd, small pages")
    pq.write_table(
        pa.table({"text": ["one text " * 100_000, "é <|far|>"]}), tmp_path / "in/e.parquet"
    )
    tok = bytepair.Tokenizer.from_ranks(
        trained.mergeable_ranks(), pattern=trained.pattern, special_tokens={"<|far|>": 1 << 16}
    )
    options = {"tokens_per_shard": 20_000, "bos": "<|far|>", "eos": "<|far|>"}
    expected = through_arrow(tmp_path / "in", tok, tmp_path / "slow", **options)
    assert b"uint32" in expected["manifest.json"]
    assert by_core(tmp_path / "in", tok, tmp_path / "fast", **options) == expected


def test_small_and_large_parts(
    tmp_path: Path, trained: bytepair.Tokenizer, by_core: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Row groups that are read in several parts, parts that are joined, and files beyond a plan."""
    write_corpus(tmp_path / "in", "zstd, small pages")
    expected = through_arrow(tmp_path / "in", trained, tmp_path / "slow", tokens_per_shard=5000)
    for number, (batch, joined, files) in enumerate(
        [(10_000, 30_000, 1), (20_000, 1, 2), (10**6, 10**6, 64)]
    ):
        monkeypatch.setattr(rows, "BATCH_BYTES", batch)
        monkeypatch.setattr(rows, "JOIN_BYTES", joined)
        monkeypatch.setattr(rows, "FILES", files)
        out = tmp_path / f"fast{number}"
        assert by_core(tmp_path / "in", trained, out, tokens_per_shard=5000) == expected


def test_to_shard_parquet_files_of_this_machine_arrow_is_not_imported(
    tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    write_corpus(tmp_path / "in", "zstd, small pages")
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
    """What stands for the end of the process."""


def test_a_run_goes_on_in_the_other_way(
    tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken off at any shard, in the midst of parts, in one way, and finished in the other."""
    write_corpus(tmp_path / "in", "snappy, row groups")
    options = {"tokens_per_shard": 20_000, "bos": True}
    expected = through_arrow(tmp_path / "in", trained, tmp_path / "whole", **options)
    count = len(shards.Manifest.load(tmp_path / "whole").shards)
    save = manifest.Mark.save
    for last in range(0, count - 1, 3):
        for first, second in [(written, through_arrow), (through_arrow, written)]:
            out = tmp_path / f"{last}{first.__name__}"
            saved: list[Path] = []

            def dying(mark: Any, folder: Path, last: int = last, saved: Any = saved) -> None:
                save(mark, folder)
                saved.append(folder)
                if len(saved) > last:
                    raise Killed

            with monkeypatch.context() as patch:
                patch.setattr(manifest.Mark, "save", dying)
                with pytest.raises(Killed):
                    first(tmp_path / "in", trained, out, **options)
            assert second(tmp_path / "in", trained, out, **options) == expected


def test_other_files_come_through_arrow(tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    """Files of both kinds in turn, and one without the column."""
    write_corpus(tmp_path / "in", "plain")
    table = pa.table({"text": WORDS})
    for number, compression in enumerate(["gzip", "brotli", "zstd", "lz4"]):
        pq.write_table(table, tmp_path / "in" / f"b{number}.parquet", compression=compression)
    (tmp_path / "in" / "b5.txt").write_text("between", encoding="utf-8")
    pq.write_table(pa.table({"other": WORDS}), tmp_path / "in" / "d.parquet")
    pq.write_table(pa.table({"text": pa.array([b"a"])}), tmp_path / "in" / "e.parquet")
    options: dict[str, Any] = {"errors": "skip", "tokens_per_shard": 10_000}
    expected = through_arrow(tmp_path / "in", trained, tmp_path / "slow", **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "FILES", 2)
        assert written(tmp_path / "in", trained, tmp_path / "fast", **options) == expected
    assert len(shards.Manifest.load(tmp_path / "fast").skipped) == 2
    capped = {"doc_cap": 20, "tokens_per_shard": 10_000}
    expected = through_arrow(tmp_path / "in" / "a.parquet", trained, tmp_path / "slow2", **capped)
    found = written(tmp_path / "in" / "a.parquet", trained, tmp_path / "fast2", **capped)
    assert found == expected


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
        monkeypatch.setattr(rows, "BATCH_BYTES", size)
        monkeypatch.setattr(documents, "BATCH_BYTES", size)
        expected = through_arrow(tmp_path / "in", trained, tmp_path / f"slow{size}", **options)
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
        expected = through_arrow(damaged, trained, tmp_path / f"slow{number}", **options)
        assert written(damaged, trained, tmp_path / f"fast{number}", **options) == expected


def test_an_error_of_the_encoder_is_said_as_ever(tmp_path: Path) -> None:
    """A tokenizer that has no token for a byte cannot encode all texts."""
    known = {bytes([b]): b for b in range(255)}
    tok = bytepair.Tokenizer.from_ranks(known, pattern="gpt2")
    texts = pa.array([b"fine", b"\xf4\x8f\xbf\xbf"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    expected = through_arrow(tmp_path / "a.parquet", tok, tmp_path / "slow")
    assert written(tmp_path / "a.parquet", tok, tmp_path / "fast") == expected


def parts(file: Path, size: int) -> list[parquet.RowBatch] | None:
    """The parts of a file, as pyarrow's metadata tell them and as the core's."""
    groups = core_groups(file)
    with parquet.open_parquet(pa.OSFile(str(file)), Expansion("a", 10**9)) as table:
        count = table.metadata.num_row_groups
        asked = [table.row_group(unit, "text") for unit in range(count)]
        expected = parquet.parts(pa.OSFile(str(file)), asked, size, 10**9)
    with parquet.LocalFile(file) as source:
        assert parquet.parts(source, groups, size, 10**9) == expected
    return expected


def core_groups(file: Path) -> list[parquet.Group]:
    footer = parquet.footer_of(str(file), "text")
    assert footer is not None
    assert footer.is_read
    return footer.groups


def facts(chunks: list[Chunk]) -> list[Any]:
    names = [field.name for field in fields(Chunk) if field.name != "encodings"]
    return [[*(getattr(c, name) for name in names), set(c.encodings)] for c in chunks]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_core_says_of_a_file_what_arrow_says(shape: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "in", shape)
    for file in sorted((tmp_path / "in").glob("*.parquet")):
        with parquet.open_parquet(pa.OSFile(str(file)), Expansion("a", 10**9)) as table:
            for unit, group in enumerate(core_groups(file)):
                expected = table.row_group(unit, "text")
                assert group.rows == expected.rows
                assert facts(group.chunks) == facts(expected.chunks)
    assert parquet.footer_of(str(file), "no such column") is None


def test_parts_are_the_batches_of_arrow(tmp_path: Path) -> None:
    write_corpus(tmp_path / "in", "zstd, small pages")
    for file in sorted((tmp_path / "in").glob("*.parquet")):
        with parquet.open_parquet(pa.OSFile(str(file)), Expansion("a", 10**9)) as table:
            for size in (10_000, 20_000, 10**6):
                made = parts(file, size)
                assert made is not None
                read = table.batches("text", size, 10**9)
                found = [len(b) for b in read if not isinstance(b, parquet.Heavy)]
                assert [part.rows for part in made] == found
                starts = [sum(found[:number]) for number in range(len(found))]
                assert [part.first for part in made] == starts


def test_odd_row_groups_are_left_to_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page has several batches, and where a text that is repeated would make them small."""
    long, repeated = tmp_path / "long.parquet", tmp_path / "repeated.parquet"
    table = pa.table({"text": ["short"] * 5000 + ["long" * 100_000] * 3 + ["short"] * 5000})
    pq.write_table(table, long, use_dictionary=False)
    pq.write_table(pa.table({"text": ["long" * 10_000] * 2000}), repeated)
    assert parts(long, 10**5) is None
    assert parts(long, 10**7) is not None
    assert parts(repeated, 10**8) is not None
    monkeypatch.setattr(parquet, "MOST_BYTES", 10**6)
    assert parts(repeated, 10**8) is None


def test_the_core_is_asked_for_rows_that_are_not_there(
    tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    file = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a", "b"]}), file)
    for part in [(1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 0, 3), (0, 0, 2, 1)]:
        assert not _core.encode_rows(trained, [file], "text", [[part]], print, most_bytes=9)
    assert not _core.encode_rows(trained, [file], "other", [], print, most_bytes=9)
    with pytest.raises(ZeroDivisionError):
        _core.encode_rows(
            trained, [file], "text", [[(0, 0, 0, 1)]], lambda *_: 1 // 0, most_bytes=9
        )
