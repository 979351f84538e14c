"""Documents are read as they were written, wherever they are; errors name what is unreadable."""

from __future__ import annotations

import gzip
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
import memory
from bytepair.corpus import arrow, read, source
from bytepair.corpus.column import Column, strings
from bytepair.corpus.files import files_matching
from bytepair.errors import ArgumentError, BytepairError, CorpusError
from conftest import refused
from messages import told
from training_options import keywords

#: The module: `bytepair.corpus.read_documents` is the function in it.
documents_module: Any = import_module("bytepair.corpus.read")

TEXTS = [f"document {i} é" for i in range(100)]


def texts(source: Any, **options: Any) -> list[str]:
    return [
        t
        for b in bytepair.corpus.read_documents(source, **keywords(**options))
        for t in b.column(0).to_pylist()
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"text": TEXTS, "n": range(100)}), tmp_path / "a.parquet", 10)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:30])
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "c.txt").write_text("one", encoding="utf-8")
    (tmp_path / "d.txt.zst").write_bytes(pa.compress(b"two", "zstd", asbytes=True))
    return tmp_path


def test_files_folders_globs_and_urls(folder: Path) -> None:
    assert texts(folder) == [*TEXTS, *TEXTS[:30], "one", "two"]
    assert texts(str(folder / "*.txt*")) == ["one", "two"]
    assert texts([folder / "c.txt", folder / "a.parquet"]) == ["one", *TEXTS]
    assert texts(folder.as_uri()) == texts(folder)
    assert texts(folder.as_uri() + "/*.gz") == TEXTS[:30]
    assert texts((folder / "c.txt").as_uri()) == ["one"]
    with told(CorpusError):
        texts(folder.as_uri() + "/none.txt")


def test_train_and_validation_splits(folder: Path) -> None:
    assert texts(folder, split="val") == ["two"]
    assert texts(folder, split="train") == [*TEXTS, *TEXTS[:30], "one"]
    with told(CorpusError):
        texts(folder / "c.txt", split="train")
    assert texts(folder, split="all") == texts(folder)
    with told(ArgumentError):
        texts(folder, split="test")


@pytest.mark.parametrize("step", [1, 2, 3, 7, 11])
def test_ranks_share_the_row_groups(
    folder: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents_module, "COLUMN_BYTES", 200)
    shares = [texts(folder, start=rank, step=step) for rank in range(step)]
    assert sorted(t for share in shares for t in share) == sorted(texts(folder))
    assert texts(folder / "a.parquet", start=1, step=step)[:10] == TEXTS[10:20]


def test_limits_of_characters(folder: Path) -> None:
    assert texts(folder / "a.parquet", doc_cap=3)[:2] == ["doc", "doc"]
    for chars in (1, 12, 13, 500, 10**6):
        ours = texts(folder / "a.parquet", max_chars=chars, doc_cap=11)
        reading = source.Reading(max_chars=chars, doc_cap=11)
        theirs: list[str] = []
        for batch in read.read_batches(folder / "a.parquet", reading):
            theirs += strings(batch)
        assert ours == theirs


def test_training_on_batches_is_training_on_files(folder: Path) -> None:
    batches = bytepair.corpus.read_documents(folder)
    assert bytepair.train(batches, 300) == bytepair.train(folder, 300)


def pieces(path: Path, first: int = 0, **options: Any) -> list[Any]:
    (file,) = files_matching(path).files
    size = options.pop("batch_bytes", None)
    how = source.Reading(**{"errors": "skip", **options})
    selection = documents_module.DocumentSelection(first)
    return list(documents_module.read(file, how, selection, batch_bytes=size))


def flat(items: list[Any]) -> list[Any]:
    """(row, text) or (row, rows, reason) for each piece."""
    out: list[Any] = []
    for piece in items:
        if isinstance(piece, documents_module.Skip):
            out.append((piece.first, piece.rows, piece.reason))
        else:
            out += [(piece.first + i, t) for i, t in enumerate(strings(piece))]
    return out


@pytest.mark.parametrize("name", ["a.parquet", "b.jsonl.gz"])
def test_reading_from_a_row_on(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_module, "COLUMN_BYTES", 100)
    whole = flat(pieces(folder / name))
    assert [row for row, _ in whole] == list(range(len(whole)))
    for first in (0, 1, 9, 10, 25, len(whole)):
        assert flat(pieces(folder / name, first=first)) == whole[first:]


def test_a_reader_that_the_end_of_the_process_closes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the names of modules are None already."""
    (file,) = files_matching(folder / "a.parquet").files
    reader = documents_module.read(file, source.Reading())
    next(reader)
    monkeypatch.setattr(documents_module, "arrow", None)
    reader.close()


def test_bad_lines_are_skipped_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps({"text": text}) for text in TEXTS[:20]]
    lines[3] = "{oops"
    lines[11] = json.dumps({"text": "x" * 5000})
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    for size in (50, 1000, 1 << 24):
        monkeypatch.setattr(documents_module, "COLUMN_BYTES", size)
        items = flat(pieces(tmp_path / "a.jsonl", max_document_bytes=1000))
        assert [item[1] for item in items if len(item) == 2] == [
            t for i, t in enumerate(TEXTS[:20]) if i not in (3, 11)
        ]
        assert [item[:2] for item in items if len(item) == 3] == [(3, 1), (11, 1)]
    with told(CorpusError):
        texts(tmp_path / "a.jsonl")


def test_a_damaged_row_group_is_skipped_and_the_others_read(folder: Path) -> None:
    path = folder / "a.parquet"
    place = pq.ParquetFile(path).metadata.row_group(4).column(0)
    data = bytearray(path.read_bytes())
    start = place.dictionary_page_offset or place.data_page_offset
    data[start : start + 20] = b"\xff" * 20
    path.write_bytes(data)
    items = flat(pieces(path))
    assert [item[0] for item in items] == [*range(40), 40, *range(50, 100)]
    assert items[40][1] == 10
    assert flat(pieces(path, first=45))[0][:2] == (45, 5)
    path.write_bytes(data[:1000])
    ((row, rows, reason),) = flat(pieces(path))
    assert (row, rows) == (0, None)
    assert reason


def test_documents_that_are_no_text(tmp_path: Path) -> None:
    raw = [b"good", b"\xff\xfe", b"x" * 50, b"end"]
    texts_ = pa.array(raw, pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": texts_}), tmp_path / "a.parquet")
    assert flat(pieces(tmp_path / "a.parquet", max_document_bytes=20)) == [
        (0, "good"), (1, 1, "the document is not UTF-8 at byte 0"),
        (2, 1, "the document has 50 bytes, more than the limit of 20"), (3, "end"),
    ]  # fmt: skip
    (tmp_path / "b.txt").write_bytes(b"x" * 50)
    assert flat(pieces(tmp_path / "b.txt", max_document_bytes=49))[0][1:] == (
        1, "the document has more than the limit of 49 bytes",
    )  # fmt: skip
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n' * 1000)[:40])
    assert flat(pieces(tmp_path / "c.jsonl.gz"))[-1][1] is None


@pytest.mark.parametrize(
    "source",
    [
        [],
        [3],
        "no such",
    ],
)
def test_no_source(source: Any) -> None:
    with told(CorpusError):
        texts(source)
    with refused("start", -1):
        bytepair.corpus.read_documents(source, start=-1)


def of_pages(path: Path, rows: list[str], **options: Any) -> Path:
    """Write small pages: 16 rows or more each."""
    table = pa.table({"n": range(len(rows)), "text": rows})
    pq.write_table(table, path, data_page_size=500, write_batch_size=16, **options)
    return path


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("at", [0, 40, 99])
def test_a_page_that_is_too_large_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, compression: str, at: int
) -> None:
    monkeypatch.setattr("bytepair.corpus.column.PAGE_BYTES", 50_000)
    rows = [*TEXTS[:at], "x" * 100_000, *TEXTS[at + 1 :]]
    path = of_pages(
        tmp_path / "a.parquet", rows, compression=compression, use_dictionary=False,
        data_page_version=version, write_statistics=True,
    )  # fmt: skip
    for size in (100, 10_000, 1 << 24):
        monkeypatch.setattr(documents_module, "COLUMN_BYTES", size)
        items = flat(pieces(path, max_document_bytes=20_000))
        ((row, count, reason),) = [item for item in items if len(item) == 3]
        assert row <= at < row + count <= row + 64
        assert re.match(r"the page has 10\d,\d{3} bytes, more than the limit of 50,000$", reason)
        rest = [item for item in items if len(item) == 2]
        assert rest == [(n, t) for n, t in enumerate(rows) if not row <= n < row + count]
        for first in (0, 1, row, row + 1, row + count, 99, 100):
            later = flat(pieces(path, max_document_bytes=20_000, first=first))
            assert [i for i in later if len(i) == 2] == [i for i in rest if i[0] >= first]


def test_a_dictionary_that_is_too_large_takes_its_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bytepair.corpus.column.PAGE_BYTES", 50_000)
    rows = [*TEXTS[:15], "x" * 100_000, *TEXTS[16:]]
    path = of_pages(tmp_path / "a.parquet", rows, row_group_size=10)
    items = flat(pieces(path, max_document_bytes=20_000))
    assert [item[:2] for item in items if len(item) == 3] == [(10, 10)]
    assert [i for i in items if len(i) == 2] == [
        (n, t) for n, t in enumerate(rows) if not 10 <= n < 20
    ]
    with told(CorpusError):
        bytepair.shards.write(
            path, bytepair.train(["a"], 265), tmp_path / "out", max_document_bytes=20_000
        )


@given(
    rows=st.lists(st.sampled_from(["", "short", "é" * 40, "x" * 1000, "y" * 9000]), max_size=60),
    options=st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["none", "zstd", "gzip", "brotli", "lz4", "snappy"]),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "dictionary_pagesize_limit": st.sampled_from([100, 2000, 1 << 20]),
            "data_page_size": st.sampled_from([1, 3000, 1 << 20]),
            "write_batch_size": st.sampled_from([1, 8]),
            "row_group_size": st.sampled_from([1, 7, 1000]),
        },
        optional={"column_encoding": st.sampled_from(["DELTA_BYTE_ARRAY", "PLAIN"])},
    ),
    kind=st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]),
)
def test_parquet_of_any_form(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], options: dict[str, Any], kind: Any
) -> None:
    """Long texts next to each other among short ones, and texts that are written once for many."""
    path = tmp_path_factory.mktemp("parquet") / "a.parquet"
    plain = "column_encoding" in options
    texts_ = pa.array(rows, pa.string())
    table = pa.table({"text": texts_ if plain else texts_.cast(kind)})
    pq.write_table(table, path, use_dictionary=not plain, **options)
    columns = pieces(path, errors="strict", batch_bytes=2000)
    assert [text for column in columns for text in strings(column)] == rows
    assert all(column.text_bytes <= 2000 + 9000 for column in columns)


def test_columns_of_nothing_but_nulls(tmp_path: Path) -> None:
    for nulls in (pa.nulls(5), pa.nulls(5, pa.string()), pa.nulls(5, pa.string_view())):
        pq.write_table(pa.table({"text": nulls}), tmp_path / "a.parquet")
        assert texts(tmp_path / "a.parquet") == [""] * 5


def test_what_an_arrow_file_repeats_is_converted_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views may stand for far more text than the file has; nulls take no bytes at all."""
    repeated = pa.array(["x" * 1000] * 5000, pa.string_view())
    nulls = pa.Array.from_buffers(pa.null(), 1 << 40, [None])
    converted, strings = list[int](), arrow._strings

    def counted(array: Any) -> Any:
        converted.append(len(array))
        return strings(array)

    monkeypatch.setattr(arrow, "_strings", counted)
    for values in (repeated, nulls):
        batch = pa.RecordBatch.from_arrays([values], ["text"])
        options = pa.ipc.IpcWriteOptions(allow_64bit=True)
        with pa.ipc.new_file(tmp_path / "a.arrow", batch.schema, options=options) as sink:
            sink.write_batch(batch)
        if values is repeated:
            assert texts(tmp_path / "a.arrow") == ["x" * 1000] * 5000
            assert max(converted) <= 1024
        else:
            with told(CorpusError):
                texts(tmp_path / "a.arrow")


def test_a_batch_is_listed_once(tmp_path: Path) -> None:
    """The index of an Arrow file may list a batch often; it is the last part of the file."""
    batch = pa.RecordBatch.from_arrays([pa.array(["x"])], ["text"])
    with pa.ipc.new_file(tmp_path / "a.arrow", batch.schema) as sink:
        sink.write_batch(batch)
        sink.write_batch(batch)
    data = (tmp_path / "a.arrow").read_bytes()
    end = data.rindex(b"\xff\xff\xff\xff\0\0\0\0")  # of the stream
    second = data.rindex(b"\xff\xff\xff\xff", 0, end)
    (tmp_path / "a.arrow").write_bytes(data[:second] + data[end : end + 8] * 9 + data[end:])
    assert pa.ipc.open_file(tmp_path / "a.arrow").num_record_batches == 2
    with told(CorpusError):
        texts(tmp_path / "a.arrow")


def test_a_dictionary_is_refused(tmp_path: Path) -> None:
    """All batches of a file may share one, and each would check it again."""
    table = pa.table({"text": pa.array(["a", "b"]).dictionary_encode()})
    with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as sink:
        sink.write_table(table)
    tok = bytepair.train(["a text"], 265)
    for reads in (
        lambda: texts(tmp_path / "a.arrow"),
        lambda: bytepair.count(table),
        lambda: tok.encode_batch(table["text"]),
    ):
        with told(BytepairError, 'column.cast("string")'):
            reads()


def test_the_view_of_a_null_is_checked_too(tmp_path: Path) -> None:
    views = np.array([[3, 0, 0, 0], [-(1 << 31), 0, 0, 0]], np.int32)
    buffers = [pa.py_buffer(b"\1"), pa.py_buffer(views)]
    table = pa.table({"text": pa.Array.from_buffers(pa.string_view(), 2, buffers)})
    with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as sink:
        sink.write_table(table)
    with told(CorpusError, "is damaged"):
        texts(tmp_path / "a.arrow")


def test_the_bits_of_nulls_are_as_many_as_the_views() -> None:
    table = pa.table({"text": pa.array([None, *["x" * 20] * 4095]).cast(pa.string_view())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    bits, too_few = ((0).to_bytes(8, "little") + size.to_bytes(8, "little") for size in (512, 8))
    data = sink.getvalue().to_pybytes()
    assert data.count(bits) == 1
    column = pa.ipc.open_stream(data.replace(bits, too_few)).read_all().column(0)
    for reads in (bytepair.count, bytepair.train(["a"], 265).encode_batch):
        with told(BytepairError, "damaged"):
            reads(column)


def test_a_table_is_validated_before_anything_reads_it(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["a", "b", "c"])})
    with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as sink:
        sink.write_table(table)
    data, three = (tmp_path / "a.arrow").read_bytes(), (3).to_bytes(8, "little")
    of_batch, _, of_column = (at for at in range(0, len(data), 8) if data[at : at + 8] == three)
    for at in (of_batch, of_column):
        data = data[:at] + (1 << 55).to_bytes(8, "little") + data[at + 8 :]
    (tmp_path / "a.arrow").write_bytes(data)
    with told(BytepairError, "damaged"):
        bytepair.count(pa.ipc.open_stream(pa.memory_map(str(tmp_path / "a.arrow"))).read_all())


def test_the_nulls_of_all_batches_of_a_file_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "_MOST_NULLS", 50)
    batch = pa.RecordBatch.from_arrays([pa.nulls(30)], ["text"])
    with pa.ipc.new_stream(tmp_path / "a.arrow", batch.schema) as sink:
        for _ in range(2):
            sink.write_batch(batch)
    with told(CorpusError):
        texts(tmp_path / "a.arrow")
    with told(CorpusError):
        bytepair.count(pa.Table.from_batches([batch, batch]))


@pytest.mark.timeout(20)
def test_a_column_of_many_nulls_in_memory_is_refused() -> None:
    nulls = pa.Array.from_buffers(pa.null(), 1 << 40, [None])
    for data in (nulls, pa.chunked_array([nulls]), pa.table({"text": nulls})):
        with told(CorpusError, "all without a value"):
            bytepair.count(data)
    tok = bytepair.train(["a text"], 265)
    with told(CorpusError, "all without a value"):
        tok.encode_batch_to_numpy(nulls)
    with told(CorpusError, "all without a value"):
        bytepair.compat.encode_arrow(tok, nulls)


@given(rows=st.lists(st.text(max_size=9), max_size=9), start=st.integers(0, 9))
def test_characters_are_those_of_python(rows: list[str], start: int) -> None:
    data = np.frombuffer("".join(rows).encode(), np.uint8)
    ends = np.cumsum([0, *(len(text.encode()) for text in rows)])
    column = Column(data, ends, "texts")
    assert column.chars().tolist() == [len(text) for text in rows]
    assert column[start:].chars().tolist() == [len(text) for text in rows[start:]]
    assert strings(column[:start]) == rows[:start]


def test_packed_parquet_is_unpacked_on_disk(folder: Path) -> None:
    whole = texts(folder / "a.parquet")
    data = (folder / "a.parquet").read_bytes()
    (folder / "a.parquet.gz").write_bytes(gzip.compress(data))
    (folder / "a.parquet.zst").write_bytes(pa.compress(data, "zstd", asbytes=True))
    assert texts(folder / "a.parquet.gz") == texts(folder / "a.parquet.zst") == whole


@pytest.mark.slow
def test_memory_does_not_grow_with_row_groups_and_rows(tmp_path: Path) -> None:
    """200 MB in a row group, a text that is too long, and texts that are written as changes."""
    table = pa.table({"text": ["x" * 2000] * 100_000})
    pq.write_table(table, tmp_path / "a.parquet", compression="none", use_dictionary=False)
    pq.write_table(pa.table({"text": ["x" * 250_000_000]}), tmp_path / "b.parquet")
    program = """
        from bytepair.corpus.column import Skip
        from bytepair.corpus.read import read
        from bytepair.corpus.files import files_matching
        from bytepair.corpus.source import Reading
        how = Reading(errors="skip", max_document_bytes=1 << 27)
        pieces = list(read(files_matching(sys.argv[1]).files[0], how))[:0]
        before = peak_mb()
        rows = 0
        for file in files_matching(sys.argv[2:]).files:
            for piece in read(file, how):
                rows += piece.rows if isinstance(piece, Skip) else len(piece)
        print(rows, peak_mb() - before)
    """
    alike = pa.table({"text": ["x" * 1_000_000 + str(row) for row in range(300)]})
    plain = {"use_dictionary": False, "write_statistics": False, "compression": "zstd"}
    pq.write_table(alike, tmp_path / "c.parquet", column_encoding="DELTA_BYTE_ARRAY", **plain)
    assert (tmp_path / "c.parquet").stat().st_size < 100_000
    pq.write_table(pa.table({"text": ["x"]}), tmp_path / "small.parquet")
    files = [tmp_path / f"{name}.parquet" for name in ("small", "a", "b", "c")]
    rows, grown = memory.run(program, *files)
    assert int(rows) == 100_301
    assert float(grown) < 150
