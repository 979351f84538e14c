"""Counts as a value: files, sums, weights, and errors."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import _core, reference
from bytepair.errors import CorpusError, CountOverflowError, CountsError
from conftest import refused
from messages import told

some_texts = st.lists(st.text(st.sampled_from("ab 1é中\n"), max_size=40), max_size=10)


@given(some_texts, some_texts)
def test_counts_equal_the_reference_and_add_up(one: list[str], two: list[str]) -> None:
    pattern = bytepair.PATTERNS["nanochat"]
    a, b = bytepair.count(one), bytepair.count(two)
    assert dict(a.items()) == reference.count(one, pattern)
    assert a + b == bytepair.count(one + two)
    assert a * 3 == bytepair.count(one * 3) == 3 * a
    assert a.text_bytes == sum(len(text.encode()) for text in one)
    assert a.total == sum(n for _, n in a.items())
    assert len(a) == len(a.items())


@given(some_texts)
def test_training_from_counts_is_training_from_text(texts: list[str]) -> None:
    counts = bytepair.count(["aa bb aa", *texts], pattern="gpt2")
    tok = bytepair.train(counts, 257, special_tokens=[])
    assert tok == bytepair.train(["aa bb aa", *texts], 257, special_tokens=[], pattern="gpt2")


def test_a_memory_limit_does_not_change_the_counts() -> None:
    texts = [
        " ".join(f"w{i * i % 99991:x}" for i in range(n, n + 4000)) for n in range(0, 80000, 4000)
    ]
    unlimited = bytepair.count(texts)
    for limit in (1, 400_000, 10**12):
        for threads in (1, 3):
            assert (
                bytepair.count(texts, threads=threads, reading=bytepair.Reading(memory_limit=limit))
                == unlimited
            )


def test_counts_that_stay_on_disk_are_like_any_others(tmp_path: Path) -> None:
    texts = [" ".join(f"w{i * i % 99991:x}" for i in range(n, n + 4000)) for n in (0, 4000, 8000)]
    stored, plain = (
        bytepair.count(texts, reading=bytepair.Reading(memory_limit=1)),
        bytepair.count(texts),
    )
    for counts in (stored, plain):
        counts.save(tmp_path / "counts.parquet")
        assert bytepair.training.load_counts(tmp_path / "counts.parquet") == plain
        assert counts.items() == plain.items()
    assert stored.times(2.5) + stored == plain.times(2.5) + plain
    tok = bytepair.train(stored, 400)
    assert tok == bytepair.train(plain, 400)
    assert bytepair.training.resume(tok, stored, 450) == bytepair.train(plain, 450)
    assert bytepair.training.verify_merges(tok, stored)


def test_spilled_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    counts = bytepair.count(["one two"], reading=bytepair.Reading(memory_limit=1))
    assert counts == bytepair.count(["one two"])
    with pytest.raises(CorpusError):
        bytepair.count(tmp_path / "missing.txt", reading=bytepair.Reading(memory_limit=1))
    assert not list(tmp_path.iterdir())


def test_a_memory_limit_is_positive() -> None:
    with refused("memory_limit", 0):
        bytepair.count(["one"], reading=bytepair.Reading(memory_limit=0))


def test_most_common() -> None:
    counts = bytepair.count(["a b a c b d"], pattern="gpt2")
    assert counts.most_common(2) == [(b" b", 2), (b"a", 1)]
    assert len(counts.most_common()) == 5
    assert repr(counts) == "<bytepair.Counts: 5 distinct pretokens of 6>"


def test_save_and_load(tmp_path: Path) -> None:
    file = tmp_path / "counts.parquet"
    for counts in (bytepair.count(bytepair.sample.paths()), bytepair.count([])):
        counts.save(file)
        again = bytepair.training.load_counts(file)
        assert again == counts
        assert again.pattern == counts.pattern
        assert hash(again) == hash(counts)
    assert [f.name for f in tmp_path.iterdir()] == ["counts.parquet"]


def test_arrow_reads_the_file_and_writes_such_files(tmp_path: Path) -> None:
    file = tmp_path / "counts.parquet"
    counts = bytepair.count(bytepair.sample.paths())
    counts.save(file, metadata={"corpus": "é"})
    table = pq.read_table(file)
    assert table.schema.names == ["pretoken", "count"]
    assert list(table.schema.types) == [pa.binary(), pa.uint64()]
    assert list(zip(*table.to_pydict().values(), strict=True)) == counts.items()
    assert table.schema.metadata == {
        b"bytepair.training.counts": b"1", b"bytepair.pattern": counts.pattern.encode(),
        b"bytepair.unicode": _core.UNICODE_VERSION.encode(), b"corpus": "é".encode(),
    }  # fmt: skip
    large = table.set_column(0, "pretoken", table["pretoken"].cast(pa.large_binary()))
    for codec in ("none", "snappy", "zstd", "gzip", "lz4", "brotli"):
        for options in ({}, {"use_dictionary": False, "version": "1.0"}, {"row_group_size": 100}):
            pq.write_table(large, file, compression=codec, **options)
            assert bytepair.training.load_counts(file) == counts


def test_counts_are_not_saved_where_nothing_can_be(tmp_path: Path) -> None:
    counts = bytepair.count(["a"])
    with told(NotADirectoryError):
        counts.save(tmp_path / "none" / "counts.parquet")
    with told(IsADirectoryError):
        counts.save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_another_tool_may_make_the_file(tmp_path: Path) -> None:
    file = tmp_path / "made.parquet"
    table = pa.table({"n": [1, 1], "count": pa.array([3, 2], pa.int32()), "pretoken": ["ab", "é"]})
    pq.write_table(table, file)
    with told(CountsError):
        bytepair.training.load_counts(file)
    counts = bytepair.training.load_counts(file, pattern="gpt2")
    assert counts.items() == [(b"ab", 3), ("é".encode(), 2)]
    assert counts + bytepair.count(["ab"], pattern="gpt2")


@pytest.mark.parametrize(
    "columns",
    [
        {"pretoken": [b"a"]},
        {"pretoken": [b"a", b"a"], "count": [1, 2]},
        {"pretoken": [b"a", b""], "count": [1, 2]},
        {"pretoken": [b"a"], "count": [0]},
        {"pretoken": [b"a"], "count": [-1]},
        {"pretoken": [b"a"], "count": ["x"]},
        {"pretoken": [b"a", None], "count": [1, 2]},
        {"pretoken": [[1]], "count": [1]},
    ],
)
def test_what_is_no_table_of_counts_says_why(columns: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "bad.parquet"
    pq.write_table(pa.table(columns), file)
    with told(CountsError):
        bytepair.training.load_counts(file, pattern="gpt2")


def test_a_file_that_is_no_parquet_or_of_another_version(tmp_path: Path) -> None:
    file = tmp_path / "bad.parquet"
    file.write_bytes(b"no")
    with told(CountsError):
        bytepair.training.load_counts(file)
    file.unlink()
    bytepair.count(["a b c"]).save(file)
    good = file.read_bytes()
    for at in range(4, len(good), 7):  # damaged anywhere
        file.write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        with contextlib.suppress(CountsError):
            bytepair.training.load_counts(file)
    with pytest.raises(FileNotFoundError):
        bytepair.training.load_counts(tmp_path / "none.parquet")
    bytepair.count(["a"]).save(file)
    table = pq.read_table(file)
    metadata = {**table.schema.metadata, b"bytepair.unicode": b"1.0"}
    pq.write_table(table.replace_schema_metadata(metadata), file)
    with told(CountsError):
        bytepair.training.load_counts(file)
    bytepair.count(["a"]).save(file)
    with told(CountsError):
        bytepair.training.load_counts(file, pattern="gpt2")


def test_patterns_do_not_mix() -> None:
    one, two = bytepair.count(["a"], pattern="gpt2"), bytepair.count(["a"], pattern="gpt4")
    with told(CountsError):
        one + two
    with told(CountsError):
        bytepair.train(one, 300, pattern="gpt4")
    with told(CountsError):
        bytepair.train(one, 300, reading=bytepair.Reading(max_chars=5))


def test_weights_are_positive_and_fit() -> None:
    counts = bytepair.count(["a a"])
    with told(CountsError):
        counts * 0
    with told(CountsError):
        counts * -1
    with pytest.raises(CountOverflowError):
        counts * (2**63 - 1) + counts * (2**63 - 1) + counts * 2


@pytest.mark.parametrize(
    "option",
    [
        {"max_chars": 5}, {"doc_cap": 5}, {"column": "body"}, {"errors": "replace"},
        {"memory_limit": 10**6},
    ],
)  # fmt: skip
def test_options_of_reading_are_refused_with_counts(option: dict[str, Any]) -> None:
    with told(CountsError):
        bytepair.train(bytepair.count(["a"]), 265, reading=bytepair.Reading(**option))


def test_the_default_pattern_is_that_of_the_counts() -> None:
    counts = bytepair.count(["a"], pattern="gpt2")
    assert bytepair.train(counts, 265).pattern == counts.pattern
    with told(CountsError):
        bytepair.train(counts, 265, pattern="nanochat")


@pytest.mark.parametrize(
    "steps",
    ["[" * 100_000, "1", '["a", 2]', "[1e999]", "[" + "9" * 9999, '["\\ud800"]', '{"a": 1}'],
)
def test_steps_of_a_pattern_that_are_none(steps: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.parquet"
    bytepair.count(["one two"]).save(path)
    table = pq.read_table(path)
    metadata = {**(table.schema.metadata or {}), b"bytepair.pattern_steps": steps.encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with told(CountsError):
        bytepair.training.load_counts(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_counts_are_not_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "counts.parquet")
    with told(CountsError):
        bytepair.training.load_counts(tmp_path / "counts.parquet")
