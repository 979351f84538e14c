"""Files that expand to far more than their size: errors that name them, with bounded memory."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import _core
from bytepair.corpus import column, read
from bytepair.corpus.column import ReadBounds
from bytepair.corpus.files import CorpusFile
from bytepair.corpus.read import ahead, check_stopped
from bytepair.errors import CorpusError
from messages import told

MOST = 1_000_000
LONG = 40_000_000
OWN = r"[ab]+|[^ab]+"


@pytest.fixture(scope="module")
def trained() -> bytepair.Tokenizer:
    return bytepair.train(["a"], 265)


def long_files(folder: Path) -> Iterator[Path]:
    """A document of 40 MB in every kind of file, of some kilobytes mostly."""
    text = b"a" * LONG
    (folder / "a.txt.gz").write_bytes(gzip.compress(text, 1))
    (folder / "b.txt.zst").write_bytes(pa.compress(text, "zstd", asbytes=True))
    (folder / "c.txt").write_bytes(text)
    line = b'{"text": "' + text + b'"}\n'
    (folder / "d.jsonl.gz").write_bytes(gzip.compress(b'{"text": "b"}\n' + line, 1))
    (folder / "e.jsonl").write_bytes(line)
    table = pa.table({"text": ["b", "a" * LONG]})
    pq.write_table(table, folder / "f.parquet", compression="zstd", use_dictionary=False)
    pq.write_table(table, folder / "g.parquet", compression="gzip", use_dictionary=False)
    yield from sorted(folder.iterdir())


@pytest.mark.filterwarnings("ignore::bytepair.corpus.column.ExpansionWarning")
def test_a_document_has_a_bound_on_every_path(tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    options: dict[str, Any] = {"max_document_bytes": MOST}
    reading = bytepair.Reading(max_document_bytes=MOST)
    for path in long_files(folder):
        uses: list[Callable[[], Any]] = [
            lambda: bytepair.count(path, reading=reading),  # noqa: B023 - called in this round
            lambda: bytepair.count(path, pattern=OWN, reading=reading),  # noqa: B023
            lambda: bytepair.count(path, reading=replace(reading, max_chars=5)),  # noqa: B023
            lambda: bytepair.train(path, 300, reading=reading),  # noqa: B023
            lambda: list(bytepair.corpus.read_documents(path, reading)),  # noqa: B023
            lambda: bytepair.evaluate.documents(path, **options),  # noqa: B023
            lambda: bytepair.shards.write(path, trained, tmp_path / "out", **options),  # noqa: B023
        ]
        for use in uses:
            with told(CorpusError, path.name, "1,000,000", "max_document_bytes"):
                use()
        assert bytepair.count(
            path, reading=bytepair.Reading(max_document_bytes=2 * LONG)
        ).text_bytes in (LONG, LONG + 1)


def test_a_long_text_in_which_nothing_can_be_cut_is_read_once(tmp_path: Path) -> None:
    """The search for a place to cut resumes where it stopped; else this would take minutes."""
    path = tmp_path / "a.txt"
    text = "ab" * 50_000_000 + " end"
    path.write_text(text, encoding="utf-8")
    assert bytepair.count(path).items() == [(b"ab" * 50_000_000, 1), (b" end", 1)]


class Dying(BaseException):
    """An error that `except Exception` does not catch."""


def dying(error: BaseException) -> Iterator[int]:
    yield 1
    raise error


@pytest.mark.parametrize("error", [MemoryError(), Dying(), OSError("gone"), SystemExit(3)])
def test_a_reader_that_dies_ends_the_call_with_its_error(error: BaseException) -> None:
    for stream in (ahead(dying(error)), ahead(ahead(dying(error)))):
        assert next(stream) == 1
        with pytest.raises(type(error)) as caught:
            next(stream)
        assert caught.value is error


def test_a_reader_that_dies_without_a_word_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read._Reader, "run", lambda _: None)
    with told(MemoryError):
        next(ahead(iter([1])))


def test_a_reader_ends_when_nobody_waits() -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless() -> Iterator[int]:
        yield 1
        try:
            begun.set()
            while True:
                check_stopped()
                time.sleep(0.001)
        finally:
            ended.set()

    for stream in (ahead(endless()), ahead(ahead(endless()))):
        begun.clear()
        ended.clear()
        assert next(stream) == 1
        assert begun.wait(10)
        stream.close()
        assert ended.wait(10)


def repeated(path: Path, text: str, rows: int) -> None:
    """A parquet file of a few kilobytes in which a text is a row again and again."""
    numbers = pa.array(np.zeros(rows, np.int32))
    column = pa.DictionaryArray.from_arrays(numbers, pa.array([text]))
    pq.write_table(pa.table({"text": column}), path, compression="zstd", write_statistics=False)


def test_what_a_file_expands_to_is_said_once(
    tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column, "HARMLESS_BYTES", 1_000_000)
    folder = tmp_path / "in"
    folder.mkdir()
    repeated(folder / "a.parquet", "ab, cd. " * 1000, 5000)
    line = b'{"text": "' + b"ab, cd. " * 1000 + b'"}\n'
    (folder / "b.jsonl.zst").write_bytes(pa.compress(line * 5000, "zstd", asbytes=True))
    (folder / "c.txt.zst").write_bytes(pa.compress(b"ab, cd. " * 5_000_000, "zstd", asbytes=True))
    packed = pa.compress((folder / "a.parquet").read_bytes() + bytes(40_000_000), "zstd")
    (tmp_path / "d.parquet.zst").write_bytes(memoryview(packed))
    for number, path in enumerate(sorted(folder.iterdir())):
        uses: list[Callable[[], Any]] = [
            lambda: bytepair.count(path),  # noqa: B023 - called in this round
            lambda: bytepair.count([path], reading=bytepair.Reading(doc_cap=10**8)),  # noqa: B023
            lambda: list(bytepair.corpus.read_documents(path)),  # noqa: B023
            lambda: bytepair.shards.write(path, trained, tmp_path / f"{number}"),  # noqa: B023
        ]
        for use in uses:
            with told(column.ExpansionWarning, "1,000 times", path.name) as caught:
                use()
            assert len(caught) == 1
    with told(column.ExpansionWarning, "d.parquet.zst"), pytest.raises(CorpusError):
        bytepair.count(tmp_path / "d.parquet.zst")


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("use", ["count", "count --checkpoint", "documents", "shard"])
def test_ctrl_c_ends_the_reading_of_a_terabyte(
    use: str, groups: int, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    path = tmp_path / "a.parquet"
    repeated(path, "ab, cd. " * (1 << 17), 1_000_000)
    if groups == 2:
        table = pq.read_table(path, read_dictionary=["text"])
        pq.write_table(table, path, 500_000, compression="zstd", write_statistics=False)
    assert path.stat().st_size < 10_000
    trained.save(tmp_path / "tok")
    words = {
        "count": ["count", path, "-o", tmp_path / "c"],
        "count --checkpoint": ["count", path, "-o", tmp_path / "c", "--checkpoint", tmp_path / "p"],
        "shard": ["shard", path, "-t", tmp_path / "tok", "-o", tmp_path / "out"],
    }
    code = f"import bytepair\nfor _ in bytepair.corpus.read_documents({str(path)!r}): pass"
    command = ["-m", "bytepair", *map(str, words[use])] if use in words else ["-c", code]
    run = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    try:
        while "1,000 times as many" not in (line := run.stderr.readline()):
            assert line, "it ended without a warning"
        run.send_signal(signal.SIGINT)
        error = run.communicate(timeout=60)[1]
    finally:
        run.kill()  # if it did not end, it would read on for hours
    assert run.returncode in (130, -signal.SIGINT)
    assert "KeyboardInterrupt" in error or "interrupted" in error


@settings(max_examples=200)
@given(
    sizes=st.lists(st.integers(1, 500), max_size=60),
    block=st.integers(1, 400),
    has_end=st.booleans(),
)
def test_lines_between_lines_that_are_too_long_are_kept(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], block: int, has_end: bool
) -> None:
    most = 200
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_text("\n".join("a" * size for size in sizes) + "\n" * (has_end and bool(sizes)))
    reader = _core.DocumentReader(
        CorpusFile(str(path), "lines", None), bytepair.Reading(errors="skip"),
        ReadBounds(most, block), size=path.stat().st_size,
    )  # fmt: skip
    lengths: list[int] = []
    skipped: list[int] = []
    for _, _, _, offsets, skips in reader:
        lengths += np.diff(offsets).tolist()
        skipped += [row for _, row, *_ in skips]
    assert lengths == [size for size in sizes if size <= most]
    assert skipped == [row for row, size in enumerate(sizes) if size > most]


@pytest.mark.parametrize("content", ['{"text": "a"}\n{oops\n{"text": "b"}\n', '{"text": "a"}\n'])
def test_a_reader_has_ended_after_an_error(tmp_path: Path, content: str) -> None:
    class Failing(io.BytesIO):
        """A file whose second read fails, as one of a network may."""

        reads = 0

        def read(self, size: int | None = -1) -> bytes:
            self.reads += 1
            if self.reads == 2:
                raise TimeoutError
            return super().read(size)

    file = CorpusFile(str(tmp_path / "a.jsonl"), "jsonl", None)
    source = Failing(content.encode())
    reader = _core.DocumentReader(
        file, bytepair.Reading(), ReadBounds(100, 16), source=source, size=len(content)
    )
    with pytest.raises((bytepair.errors.CorpusError, TimeoutError)):
        list(reader)
    assert list(reader) == []


def test_rows_that_are_skipped_fill_a_batch_too(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array([b"\xff"] * 900, pa.binary())}), path)
    reader = _core.DocumentReader(
        CorpusFile(str(path), "parquet", None), bytepair.Reading(errors="skip"),
        ReadBounds(100, 50), size=path.stat().st_size,
    )  # fmt: skip
    assert [len(skips) for *_, skips in reader] == [50] * 18
