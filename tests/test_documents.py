"""Documents come out as they went in, wherever they lie; what cannot be read is named."""

from __future__ import annotations

import gzip
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair.errors import CorpusError

#: The module: `bytepair.documents` is the function in it.
rooms: Any = import_module("bytepair.documents")

TEXTS = [f"document {i} é" for i in range(100)]


def texts(source: Any, **options: Any) -> list[str]:
    return [t for b in bytepair.documents(source, **options) for t in b.column(0).to_pylist()]


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
    assert texts([folder / "c.txt", str(folder / "a.parquet")]) == ["one", *TEXTS]
    assert texts(folder.as_uri()) == texts(folder)
    assert texts(folder.as_uri() + "/*.gz") == TEXTS[:30]
    assert texts((folder / "c.txt").as_uri()) == ["one"]
    with pytest.raises(CorpusError, match="no file at"):
        texts(folder.as_uri() + "/none.txt")


def test_splits(folder: Path) -> None:
    assert texts(folder, split="val") == ["two"]
    assert texts(folder, split="train") == [*TEXTS, *TEXTS[:30], "one"]
    with pytest.raises(CorpusError, match="is the only file"):
        texts(folder / "c.txt", split="train")
    with pytest.raises(CorpusError, match="'test'"):
        texts(folder, split="test")


@pytest.mark.parametrize("step", [1, 2, 3, 7, 11])
def test_ranks_share_the_row_groups(
    folder: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "BATCH_BYTES", 200)
    shares = [texts(folder, start=rank, step=step) for rank in range(step)]
    assert sorted(t for share in shares for t in share) == sorted(texts(folder))
    assert texts(folder / "a.parquet", start=1, step=step)[:10] == TEXTS[10:20]


def test_limits(folder: Path) -> None:
    assert texts(folder / "a.parquet", doc_cap=3)[:2] == ["doc", "doc"]
    for chars in (1, 12, 13, 500, 10**6):
        ours = texts(folder / "a.parquet", max_chars=chars, doc_cap=11)
        theirs: list[str] = []
        for batch in bytepair.corpus.batches(
            folder / "a.parquet", limits=bytepair.corpus.Limits(chars, 11)
        ):
            theirs += batch  # type: ignore[arg-type]
        assert ours == theirs


def test_training_on_batches_is_training_on_files(folder: Path) -> None:
    batches = bytepair.documents(folder)
    assert bytepair.train(batches, 300) == bytepair.train(folder, 300)


def pieces(path: Path, **options: Any) -> list[Any]:
    (file,) = rooms.inputs(path)
    return list(rooms.read(file, "text", **options))


def flat(found: list[Any]) -> list[Any]:
    """(row, text) or (row, rows, reason) for each piece."""
    out: list[Any] = []
    for piece in found:
        if isinstance(piece, rooms.Skip):
            out.append((piece.first, piece.rows, piece.reason))
        else:
            out += [(piece.first + i, t) for i, t in enumerate(piece.texts.to_pylist())]
    return out


@pytest.mark.parametrize("name", ["a.parquet", "b.jsonl.gz"])
def test_reading_from_a_row_on(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "BATCH_BYTES", 100)
    whole = flat(pieces(folder / name))
    assert [row for row, _ in whole] == list(range(len(whole)))
    for first in (0, 1, 9, 10, 25, len(whole)):
        assert flat(pieces(folder / name, first=first)) == whole[first:]


def test_bad_lines_are_skipped_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps({"text": text}) for text in TEXTS[:20]]
    lines[3] = "{oops"
    lines[11] = json.dumps({"text": "x" * 5000})
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    for size in (50, 1000, 1 << 24):
        monkeypatch.setattr(rooms, "BATCH_BYTES", size)
        found = flat(pieces(tmp_path / "a.jsonl", max_bytes=1000))
        assert [item[1] for item in found if len(item) == 2] == [
            t for i, t in enumerate(TEXTS[:20]) if i not in (3, 11)
        ]
        assert [item[:2] for item in found if len(item) == 3] == [(3, 1), (11, 1)]
    with pytest.raises(CorpusError, match=r"a\.jsonl, row 3: "):
        texts(tmp_path / "a.jsonl")


def test_a_damaged_row_group_is_skipped_and_the_others_read(folder: Path) -> None:
    path = folder / "a.parquet"
    place = pq.ParquetFile(path).metadata.row_group(4).column(0)
    data = bytearray(path.read_bytes())
    start = place.dictionary_page_offset or place.data_page_offset
    data[start : start + 20] = b"\xff" * 20
    path.write_bytes(data)
    found = flat(pieces(path))
    assert [item[0] for item in found] == [*range(40), 40, *range(50, 100)]
    assert found[40][1] == 10
    assert flat(pieces(path, first=45))[0][:2] == (45, 5)
    path.write_bytes(data[:1000])
    ((row, rows, reason),) = flat(pieces(path))
    assert (row, rows) == (0, None)
    assert reason


def test_documents_that_are_no_text(tmp_path: Path) -> None:
    raw = [b"good", b"\xff\xfe", b"x" * 50, b"end"]
    texts_ = pa.array(raw, pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": texts_}), tmp_path / "a.parquet")
    assert flat(pieces(tmp_path / "a.parquet", max_bytes=20)) == [
        (0, "good"), (1, 1, "it is not UTF-8 at its byte 0"), (2, 1, "it has 50 bytes"), (3, "end"),
    ]  # fmt: skip
    (tmp_path / "b.txt").write_bytes(b"x" * 50)
    assert flat(pieces(tmp_path / "b.txt", max_bytes=49))[0][1:] == (
        1, "the document has more than 49 bytes",
    )  # fmt: skip
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n' * 1000)[:40])
    assert flat(pieces(tmp_path / "c.jsonl.gz"))[-1][1] is None


@pytest.mark.parametrize(
    ("source", "message"),
    [([], "must be files"), (["a", 3], "must be files"), ("no such", "no file or folder")],
)
def test_no_source(source: Any, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        texts(source)
    with pytest.raises(CorpusError, match="start is -1"):
        bytepair.documents(source, start=-1)
