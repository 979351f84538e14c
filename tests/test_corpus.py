"""Every kind of source gives the same documents; what cannot be read says why."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair.corpus import read as reader
from bytepair.corpus.column import strings
from bytepair.corpus.files import Paths
from bytepair.corpus.source import Reading, resolve
from bytepair.errors import ArgumentError, CorpusError
from messages import told
from texts import hard_text

TEXTS = ["one", "", "zwei é", "三\n三", "4" * 100]


def read(source: Any, **options: Any) -> list[str]:
    texts: list[str] = []
    for batch in reader.read_batches(source, **options):
        texts += strings(batch)
    return texts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(TEXTS))
    (tmp_path / "b.jsonl").write_text(lines, encoding="utf-8")
    pq.write_table(pa.table({"text": TEXTS, "id": range(len(TEXTS))}), tmp_path / "a.parquet")
    (tmp_path / "c.txt").write_text("plain", encoding="utf-8")
    (tmp_path / "ignored.png").write_bytes(b"\x89PNG")
    return tmp_path


def test_texts() -> None:
    assert read(TEXTS) == TEXTS
    assert read(iter(TEXTS)) == TEXTS
    assert read(tuple(TEXTS)) == TEXTS
    assert read([]) == []


def test_files(folder: Path) -> None:
    assert read(folder / "a.parquet") == TEXTS
    assert read(str(folder / "b.jsonl")) == TEXTS
    assert read([folder / "c.txt", folder / "b.jsonl"]) == ["plain", *TEXTS]
    assert read(resolve(Paths([str(folder / "c.txt")]))) == ["plain"]
    assert read(folder / name for name in ["c.txt"]) == ["plain"]
    assert read(folder) == [*TEXTS, *TEXTS, "plain"]


def test_globs_are_sorted(folder: Path) -> None:
    assert read(str(folder / "[ab].*")) == [*TEXTS, *TEXTS]


def test_compressed_files(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "compressed"
    out.mkdir()
    for name in ("a.parquet", "b.jsonl", "c.txt"):
        data = (folder / name).read_bytes()
        (out / f"{name}.gz").write_bytes(gzip.compress(data))
        (out / f"{name}.zst").write_bytes(pa.compress(data, "zstd", asbytes=True))
    assert read(out / "a.parquet.gz") == read(out / "a.parquet.zst") == TEXTS
    assert read(out / "b.jsonl.gz") == read(out / "b.jsonl.zst") == TEXTS
    assert read(out / "c.txt.gz") == read(out / "c.txt.zst") == ["plain"]
    assert read(out) == [*TEXTS, *TEXTS, *TEXTS, *TEXTS, "plain", "plain"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_arrow_data(kind: pa.DataType) -> None:
    array = pa.array(TEXTS, kind)
    assert read(array) == TEXTS
    assert read(array[1:3]) == TEXTS[1:3]
    assert read(array[:0]) == []
    assert read(pa.chunked_array([array, array[:1]])) == [*TEXTS, TEXTS[0]]
    table = pa.table({"x": array, "text": array})
    assert read(table) == read(table.to_reader()) == TEXTS
    assert read(table.to_batches()[0]) == TEXTS
    assert read(table, reading=Reading(column="x")) == TEXTS
    assert read(pa.array(["a", None, "b"], kind)) == ["a", "", "b"]


def test_counting_a_column_equals_counting_its_texts() -> None:
    texts = TEXTS * 50
    ours = bytepair.train(pa.array(texts), 266, special_tokens=[])
    assert ours == bytepair.train(texts, 266, special_tokens=[])


@pytest.mark.parametrize("item", [pa.array(["a column"]), "a long text " * 100_000])
def test_large_items_of_a_stream_are_not_collected(item: Any) -> None:
    items = iter([item, item])
    source = resolve(items)
    assert next(items, None) is item  # resolving took the first alone
    assert read(source) == read([item])


@pytest.mark.parametrize("as_arrow", [False, True])
def test_limits_of_characters(as_arrow: bool) -> None:
    source = pa.array(TEXTS) if as_arrow else TEXTS
    assert read(source, reading=Reading(doc_cap=3)) == ["one", "", "zwe", "三\n三", "444"]
    assert read(source, reading=Reading(max_chars=3)) == TEXTS[:3]
    assert read(source, reading=Reading(max_chars=2)) == TEXTS[:1]
    assert read(source, reading=Reading(max_chars=9, doc_cap=3)) == [
        "one",
        "",
        "zwe",
        "三\n三",
        "444",
    ]
    assert read(source, reading=Reading(max_chars=8, doc_cap=3)) == ["one", "", "zwe", "三\n三"]


def test_a_long_file_is_cut_where_it_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(p.read_text(encoding="utf-8") for p in bytepair.sample.paths())
    file = tmp_path / "long.txt"
    file.write_text(text, encoding="utf-8")
    whole = {name: bytepair.train([text], 300, pattern=name) for name in bytepair.PATTERNS}
    monkeypatch.setattr("bytepair.corpus.column.BLOCK_BYTES", 5_000)
    assert read(file) == [text]
    for name, expected in whole.items():
        assert bytepair.count(file, pattern=name) == bytepair.count([text], pattern=name)
        assert bytepair.train(file, 300, pattern=name) == expected


@given(hard_text | st.text(st.sampled_from("a7é中の。，、. ,\n\u3000\xa0'sก้")))
def test_blocks_of_a_text_have_the_pretokens_of_the_whole(text: str) -> None:
    text = text.encode(errors="replace").decode() * 3
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("bytepair.corpus.column.BLOCK_BYTES", 16)
        file = Path(folder, "a.txt")
        file.write_bytes(text.encode())
        for name in bytepair.PATTERNS:
            expected = bytepair.count(bytepair.corpus.Texts([text]), pattern=name, threads=1)
            assert bytepair.count(file, pattern=name, threads=2) == expected, name


def test_a_long_text_of_any_script_is_counted_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bytepair.corpus.column.BLOCK_BYTES", 5_000)
    for text in ("没有空格的文字，一句接一句。", "ข้อความ ยาว ", "слово за словом ", "1\n2\n"):
        (tmp_path / "a.txt").write_text(text * 2000, encoding="utf-8")
        # A block is all that is in memory, so the file may be longer than a document.
        counts = bytepair.count(
            tmp_path / "a.txt", reading=bytepair.Reading(max_document_bytes=10_000)
        )
        assert counts == bytepair.count([text * 2000])


@pytest.mark.parametrize(
    "source",
    [
        "no such file",
        "none/*.txt",
        ["missing.parquet"],
        b"bytes",
        5,
        [1, 2],
        pa.array([1, 2]),
        pa.table({"x": ["a"]}),
    ],
)
def test_unreadable_sources_are_errors_with_a_reason(source: Any) -> None:
    with told(CorpusError):
        read(source)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"good\xff")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n\n{"text": "b"}\n{oops\n')
    (tmp_path / "number.jsonl").write_text('{"text": "a"}\n{"text": 5}\n')
    (tmp_path / "other.jsonl").write_text('{"body": "x"}\n')
    (tmp_path / "bad.txt.gz").write_bytes(b"not gzip")
    pq.write_table(pa.table({"x": ["a"]}), tmp_path / "other.parquet")
    for name in [
        "bad.txt",
        "bad.parquet",
        "bad.jsonl",
        "number.jsonl",
        "other.jsonl",
        "other.parquet",
        "bad.txt.gz",
    ]:
        with told(CorpusError):
            read(tmp_path / name)


def test_an_empty_folder_and_a_list_of_both(tmp_path: Path) -> None:
    with told(CorpusError):
        read(tmp_path)
    (tmp_path / "a.txt").write_text("x")
    with told(CorpusError):
        read([str(tmp_path / "a.txt"), "some text"])


def test_a_column_that_is_not_utf8(tmp_path: Path) -> None:
    array = pa.StringArray.from_buffers(
        2, pa.py_buffer(b"\0\0\0\0\2\0\0\0\4\0\0\0"), pa.py_buffer(b"ab\xff\xff")
    )
    pq.write_table(pa.table({"text": array}), tmp_path / "bad.parquet")
    (tmp_path / "bad.jsonl").write_bytes(b'{"text":"ab"}\n{"text":"\xff\xff"}\n')
    for source in (array, tmp_path / "bad.parquet", tmp_path / "bad.jsonl"):
        for doc_cap in (None, 10):
            with told(CorpusError):
                bytepair.train(source, 300, reading=bytepair.Reading(doc_cap=doc_cap))


@pytest.mark.parametrize("name", ["max_chars", "doc_cap"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_below_one_is_an_error(name: str, value: int) -> None:
    limits: dict[str, Any] = {name: value}
    with told(ArgumentError):
        Reading(**limits)


def test_jsonl_of_any_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long objects, many nulls before the first text, blank lines, no end of the last line."""
    monkeypatch.setattr(reader, "BATCH_BYTES", 64)
    texts = ["", "", "", "é" * 200, "a", "b" * 61, "", "end"]
    lines = [json.dumps({"text": text or None}, ensure_ascii=False) for text in texts]
    for end in ("\n", "\r\n", "\n\n"):
        for last in ("", end):
            (tmp_path / "a.jsonl").write_bytes((end.join(lines) + last).encode())
            assert read(tmp_path / "a.jsonl") == texts
    (tmp_path / "blank.jsonl").write_bytes(b"\n" * 500)
    assert read(tmp_path / "blank.jsonl") == []
