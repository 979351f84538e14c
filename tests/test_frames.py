"""Data frames, data sets and rows are read as lists of texts are, and so are their columns."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bytepair
from bytepair import compat
from bytepair.errors import ArgumentError, CorpusError
from bytepair.shards import Dataset
from messages import told

TEXTS = ["one two one", "three", None, "zwei é 🙂", ""] * 40
PLAIN = [text or "" for text in TEXTS]
TOK = bytepair.train(PLAIN, 275)
COLUMNS = {"id": list(range(len(TEXTS))), "text": TEXTS}


def documents(folder: Path) -> list[list[int]]:
    data = Dataset(folder, split=None)
    return [data[number].tolist() for number in range(len(data))]


def frame(package: str) -> Any:
    return pytest.importorskip(package)


def duck() -> Any:
    rows = frame("pyarrow").table(COLUMNS)  # noqa: F841 - DuckDB finds it by its name
    return frame("duckdb").sql("select * from rows")


#: How each source is made; some can be read once only.
SOURCES: dict[str, Callable[[], Any]] = {
    "datasets": lambda: frame("datasets").Dataset.from_dict(COLUMNS),
    "datasets, streamed": lambda: SOURCES["datasets"]().to_iterable_dataset(),
    "datasets, shuffled back": lambda: SOURCES["datasets"]().select(range(len(TEXTS))),
    "pyarrow": lambda: frame("pyarrow").table(COLUMNS),
    "pyarrow, a column": lambda: frame("pyarrow").table(COLUMNS)["text"],
    "pyarrow, batches": lambda: frame("pyarrow").table(COLUMNS).to_reader(max_chunksize=7),
    "polars": lambda: frame("polars").DataFrame(COLUMNS),
    "polars, a column": lambda: frame("polars").DataFrame(COLUMNS)["text"],
    "pandas": lambda: frame("pandas").DataFrame(COLUMNS),
    "duckdb": duck,
    "rows": lambda: [{"text": text} for text in TEXTS],
    "rows of a generator": lambda: ({"text": text} for text in TEXTS),
}


@pytest.fixture(scope="module")
def wanted() -> list[list[int]]:
    return TOK.encode_batch(PLAIN, prepend="<|bos|>")


@pytest.mark.parametrize("name", SOURCES)
def test_sources_are_read_as_texts_are(
    name: str, wanted: list[list[int]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make = SOURCES[name]
    make()  # skips the test if the package is missing
    pytest.importorskip("pyarrow")
    caplog.set_level(logging.INFO, "bytepair")
    assert bytepair.train(make(), 275) == TOK
    assert bytepair.count(make()) == bytepair.count(PLAIN)
    assert not caplog.records
    manifest = bytepair.shards.write(make(), TOK, tmp_path / "out", bos=True, tokens_per_shard=200)
    assert documents(tmp_path / "out") == wanted
    assert manifest.documents == len(TEXTS)
    assert manifest.job["inputs"][0][0] == "the source"
    assert (
        bytepair.shards.write(make(), TOK, tmp_path / "out", bos=True, tokens_per_shard=200)
        == manifest
    )


def test_shards_of_memory_are_written_again_where_they_are_damaged(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = SOURCES["rows"]()
    bytepair.shards.write(rows, TOK, tmp_path, tokens_per_shard=200)
    files = sorted(path for path in tmp_path.iterdir() if path.suffix not in {".json", ".bytepair"})
    whole = {path: path.read_bytes() for path in files if path.is_file()}
    files[1].unlink()
    with told(UserWarning):
        bytepair.shards.write(rows, TOK, tmp_path, tokens_per_shard=200)
    assert {path: path.read_bytes() for path in whole} == whole


@pytest.mark.parametrize("name", ["datasets", "datasets, streamed", "pyarrow", "polars", "rows"])
def test_a_column_that_is_missing_is_named(name: str) -> None:
    source = SOURCES[name]()
    with told(CorpusError):
        bytepair.count(source, reading=bytepair.Reading(column="content"))


def test_what_is_no_source_says_what_is(tmp_path: Path) -> None:
    with told(CorpusError):
        bytepair.count([{"text": "a"}, "b"])
    with told(CorpusError):
        bytepair.shards.write({"train": [{"text": "a"}]}, TOK, tmp_path / "out")
    bytepair.shards.write(["a b"], TOK, tmp_path / "out")
    assert documents(tmp_path / "out") == [TOK.encode("a b", prepend="<|bos|>")]
    with told(CorpusError):
        bytepair.shards.write(["a.txt"], TOK, tmp_path / "out")
    with told(CorpusError):
        bytepair.distributed.shard(["a b"], TOK, tmp_path / "out", rank=0, world_size=1)
    lazy = frame("polars").LazyFrame(COLUMNS)
    with told(CorpusError):
        bytepair.count(lazy)


def test_rows_have_no_validation_split(tmp_path: Path) -> None:
    with pytest.raises(CorpusError):
        bytepair.shards.write([{"text": "one"}], TOK, tmp_path / "wrong", split="val")


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_columns_of_data_frames_are_counted_and_encoded(package: str) -> None:
    column = frame(package).DataFrame({"text": PLAIN})["text"]
    assert (
        bytepair.tokenizer.count_batch(TOK, column).tolist()
        == bytepair.tokenizer.count_batch(TOK, PLAIN).tolist()
    )
    assert TOK.encode_batch(column) == TOK.encode_batch(PLAIN)


def test_columns_of_duckdb_are_counted_and_encoded() -> None:
    """The column of a relation is a relation of one column there."""
    relation = duck()
    full = relation.filter("text is not null")["text"]
    texts = [text for text in TEXTS if text is not None]
    assert (
        bytepair.tokenizer.count_batch(TOK, full).tolist()
        == bytepair.tokenizer.count_batch(TOK, texts).tolist()
    )
    assert TOK.encode_batch(full) == TOK.encode_batch(texts)
    lists = bytepair.compat.encode_arrow(TOK, relation["text"]).to_pylist()
    assert lists == [None if text is None else TOK.encode(text) for text in TEXTS]
    assert bytepair.compat.encode_arrow(TOK, relation.filter("false")["text"]).to_pylist() == []
    for call in (TOK.encode_batch, partial(bytepair.compat.encode_arrow, TOK)):
        with told(ArgumentError):
            call(relation)


def test_a_function_of_sql_counts_and_encodes() -> None:
    """As the page shows it; DuckDB passes no nulls to it."""
    pa, rows = frame("pyarrow"), duck()
    connection = frame("duckdb").connect()
    connection.register("rows", rows.to_arrow_table())
    for name, function, kind in (
        ("tokens", lambda text: pa.array(bytepair.tokenizer.count_batch(TOK, text)), "BIGINT"),
        ("ids", lambda text: bytepair.compat.encode_arrow(TOK, text), "USMALLINT[]"),
    ):
        connection.create_function(name, function, ["VARCHAR"], kind, type="arrow")
    results = connection.sql("select tokens(text), ids(text) from rows order by id").fetchall()
    expected = [None if text is None else TOK.encode(text) for text in TEXTS]
    assert [ids for _, ids in results] == expected
    assert [count for count, _ in results] == [ids if ids is None else len(ids) for ids in expected]


def damaged_columns() -> list[pa.Array]:
    """Columns whose offsets or views lead elsewhere, as in a mapped file."""
    offsets, views = [0, 1 << 30, 4], [100, 0, 77, 0, 0, 0, 0, 0]
    text = pa.py_buffer(b"text")
    parts = [(pa.string(), np.array(offsets, np.int32)), (pa.string_view(), np.array(views, "i4")),
             (pa.large_string(), np.array(offsets, np.int64))]  # fmt: skip
    return [pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(one), text]) for kind, one in parts]


@pytest.mark.parametrize("column", damaged_columns(), ids=lambda column: str(column.type))
def test_a_damaged_column_is_refused(column: pa.Array) -> None:
    tok = bytepair.train(["hello"], 266)
    for use in (tok.encode_batch, tok.encode_batch_to_numpy, partial(compat.encode_arrow, tok)):
        with told(ArgumentError):
            use(column)
    with told(CorpusError):
        bytepair.count(pa.table({"text": column}))
