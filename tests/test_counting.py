"""Counting that is broken off and goes on, text that is not UTF-8, and text of unusual shape."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair import counting
from bytepair.errors import CorpusError, CountsError
from bytepair.train import Ties

TEXTS = [f"text {i % 7} of {i % 13}, number {i}" for i in range(30_000)]


class BrokenError(Exception):
    """What breaks a count off in these tests."""


def broken(texts: list[str], at: int) -> Iterator[str]:
    yield from texts[:at]
    raise BrokenError


@pytest.mark.parametrize("at", [0, 1, 8192, 8193, 20_000, 30_000])
def test_a_count_that_was_broken_off_goes_on(tmp_path: Path, at: int) -> None:
    file = tmp_path / "partial.parquet"
    with pytest.raises(BrokenError):
        bytepair.count(broken(TEXTS, at), checkpoint=file)
    assert file.exists() == (at >= 8192)
    counts = bytepair.count(TEXTS, checkpoint=file)
    assert counts == bytepair.count(TEXTS)
    assert bytepair.count(TEXTS, checkpoint=file) == counts


def test_saving_all_the_time_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "SAVE_EVERY", 0.0)
    file = tmp_path / "partial.parquet"
    assert bytepair.count(TEXTS, checkpoint=file, memory_limit=1) == bytepair.count(TEXTS)


def test_the_checkpoint_of_another_count_is_an_error(tmp_path: Path) -> None:
    file, text = tmp_path / "partial.parquet", tmp_path / "text.txt"
    bytepair.count(TEXTS, checkpoint=file)
    with pytest.raises(CountsError, match="other text"):
        bytepair.count(["x" + TEXTS[0], *TEXTS[1:]], checkpoint=file)
    with pytest.raises(CountsError, match="other text"):
        bytepair.count(TEXTS[:100], checkpoint=file)
    with pytest.raises(CountsError, match="limits differ"):
        bytepair.count(TEXTS, checkpoint=file, doc_cap=10)
    with pytest.raises(CountsError, match="pattern"):
        bytepair.count(TEXTS, checkpoint=file, pattern="gpt4o")
    text.write_text("one", encoding="utf-8")
    with pytest.raises(CountsError, match="files differ"):
        bytepair.count(text, checkpoint=file)
    bytepair.count(TEXTS).save(file)
    with pytest.raises(CountsError, match="no checkpoint"):
        bytepair.count(TEXTS, checkpoint=file)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_count_that_was_killed_goes_on(tmp_path: Path, how: signal.Signals) -> None:
    source, file = tmp_path / "text.parquet", tmp_path / "partial.parquet"
    pq.write_table(pa.table({"text": TEXTS}), source, row_group_size=512)
    program = (
        "import sys, time, bytepair\nfrom bytepair import counting\ncounting.SAVE_EVERY = 0.0\n"
        "def slow(*_): time.sleep(0.02)\n"
        "bytepair.count(sys.argv[1], checkpoint=sys.argv[2], progress=slow)\n"
    )
    command = [sys.executable, "-c", program, str(source), str(file)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not file.exists() and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(how)
    assert bytepair.count(source, checkpoint=file) == bytepair.count(source)
    assert sorted(f.name for f in tmp_path.iterdir() if f.suffix == ".parquet") == [
        "partial.parquet",
        "text.parquet",
    ]


# ---------------------------------------------------------------------------- not UTF-8


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    raw = [b"good", b"b\xffad \xe4\xb8", b"", "中".encode()]
    replaced = [data.decode(errors="replace") for data in raw]
    text, table, lines = (tmp_path / name for name in ("a.txt", "b.parquet", "c.jsonl"))
    text.write_bytes(b" ".join(raw))
    column = pa.Array.from_buffers(pa.string(), 4, pa.array(raw, pa.binary()).buffers())
    pq.write_table(pa.table({"text": column}), table)
    lines.write_bytes(b"".join(b'{"text": "' + data + b'"}\n' for data in raw))
    with pytest.raises(CorpusError, match=r"a\.txt is not UTF-8 at byte 6; pass errors"):
        bytepair.count(text)
    with pytest.raises(CorpusError, match=r"b\.parquet.*document 1 is not UTF-8 at its byte 1"):
        bytepair.count(table)
    expected = bytepair.count(replaced)
    assert bytepair.count(text, errors="replace") == bytepair.count([" ".join(replaced)])
    assert bytepair.count(table, errors="replace") == expected
    assert bytepair.count(column, errors="replace") == expected
    assert bytepair.count(lines, errors="replace") == expected
    assert bytepair.count(table, errors="replace", doc_cap=3) == bytepair.count(
        [part[:3] for part in replaced]
    )
    with pytest.raises(ValueError, match="errors is 'ignore'"):
        bytepair.count(["x"], errors="ignore")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- unusual shapes


def test_a_million_empty_documents() -> None:
    empty = bytepair.count([""] * 1_000_000)
    assert len(empty) == 0
    assert bytepair.count(pa.array(["", "a b"] * 500_000)).items() == [
        (b"a", 500_000),
        (b" b", 500_000),
    ]


def test_every_document_is_unique() -> None:
    texts = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(100_000)]
    counts = bytepair.count(texts, pattern="gpt2", threads=3)
    assert counts.text_bytes == 64 * len(texts)
    assert counts == bytepair.count(texts, pattern="gpt2", threads=1, memory_limit=1_000_000)
    small = bytepair.train(counts, 1000, special_tokens=[])
    assert bytepair.verify(small, counts)


def test_a_document_of_100_megabytes_without_a_space() -> None:
    text = "abcdefghijklmnopqrst" * 5_000_000
    counts = bytepair.count([text], pattern="nanochat")
    assert len(counts) == 1
    assert counts.text_bytes == len(text)
    mixed = bytepair.count([text[:4_000_000] + "," + text[:4_000_000]], pattern="nanochat")
    tok = bytepair.train(mixed, 256 + 19, special_tokens=[])
    assert tok.token_bytes(256 + 18) == b"abcdefghijklmnopqrst"


# ---------------------------------------------------------------------------- one hash


def digest(tok: bytepair.Tokenizer) -> str:
    return hashlib.sha256(repr(tok.merges).encode()).hexdigest()


@pytest.mark.parametrize("ties", ["rustbpe", "hf", "first-seen", "bytes-max"])
@pytest.mark.parametrize("kind", ["english", "multilingual"])
def test_merges_do_not_depend_on_how_the_text_comes(
    documents: Callable[[str], list[str]], kind: str, ties: Ties
) -> None:
    texts = documents(kind)[:150]
    options: dict[str, Any] = {"ties": ties, "special_tokens": [], "pattern": "nanochat"}

    def train(source: Any, **more: Any) -> str:
        return digest(bytepair.train(source, 3000, **options, **more))

    expected = train(texts)
    for threads in (1, 2, 3, 8):
        assert train(texts, threads=threads) == expected
    assert train(iter(texts)) == expected
    assert train(pa.chunked_array([texts[:1], texts[1:70], texts[70:]])) == expected
    assert train(texts, memory_limit=100_000) == expected
    halves = bytepair.count(texts[:75]) + bytepair.count(texts[75:])
    assert digest(bytepair.train(halves, 3000, ties=ties, special_tokens=[])) == expected
