"""`errors="skip"` leaves out the same documents, however they are read."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import training
from bytepair.errors import CorpusError, SkippedWarning
from commands import message_of, run
from messages import told
from training_options import keywords

GOOD = ["one two three", "", "zwei é 二 zwei", "one two", "the theme of the hour"]
LONG = "x" * 2000
#: The limit of the length of documents in these tests.
MOST = 1000

#: Every second document is bad: its bytes, and the error message.
BAD = {b"one \xff two": "not UTF-8 at byte 4", LONG.encode(): "1,000"}
ROWS = [*itertools.chain(*zip(map(str.encode, GOOD), itertools.cycle(BAD), strict=False))]


def lines(rows: list[bytes]) -> bytes:
    """JSON lines; in place of every second one that is too long there is one that is no JSON."""
    texts = [b'{"id": 1, "text": "' + row + b'"}\n' for row in rows]
    texts[3] = b"{oops\n"
    return b"".join(texts)


def column(rows: list[bytes]) -> pa.Array:
    return pa.array(rows, pa.binary()).view(pa.string())


def table(rows: list[bytes]) -> pa.Table:
    return pa.table({"text": column(rows)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("bad")
    (home / "a.jsonl").write_bytes(lines(ROWS))
    (home / "a.jsonl.gz").write_bytes(gzip.compress(lines(ROWS)))
    (home / "a.jsonl.zst").write_bytes(pa.compress(lines(ROWS), "zstd", asbytes=True))
    pq.write_table(table(ROWS), home / "a.parquet", row_group_size=4)
    pq.write_table(table(ROWS), home / "rare.parquet", compression="gzip")
    (home / "a.parquet.gz").write_bytes(gzip.compress((home / "a.parquet").read_bytes()))
    (home / "texts").mkdir()
    for number, row in enumerate(ROWS):
        data, ending = (gzip.compress(row), ".gz") if number % 3 == 2 else (row, "")
        (home / "texts" / f"{number:02}.txt{ending}").write_bytes(data)
    return home


FILES = [
    "a.jsonl",
    "a.jsonl.gz",
    "a.jsonl.zst",
    "a.parquet",
    "rare.parquet",
    "a.parquet.gz",
    "texts",
]


def count(source: Any, **options: Any) -> tuple[bytepair.Counts, str]:
    """The counts of readable documents, and the one warning about the others."""
    options = {"pattern": "gpt2", "max_document_bytes": MOST, "errors": "skip", **options}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        counts = bytepair.count(source, **keywords(**options))
    assert [one.category for one in caught] == [SkippedWarning] * len(caught)
    assert [one.filename for one in caught] == [__file__] * len(caught)
    assert len(caught) <= 1
    return counts, "".join(str(one.message) for one in caught)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"checkpoint": True}, {"max_chars": 10**6}, {"doc_cap": 10**6}, {"memory_limit": 1}],
    ids=str,
)
@pytest.mark.parametrize("name", FILES)
def test_invalid_documents_are_skipped_with_a_warning(
    name: str, options: dict[str, Any], threads: int, folder: Path, tmp_path: Path
) -> None:
    if "checkpoint" in options:
        options = {"checkpoint": tmp_path / "checkpoint"}
    counts, message = count(folder / name, threads=threads, **options)
    assert counts.items() == bytepair.count(GOOD, pattern="gpt2", threads=1).items()
    assert message.startswith("5 documents skipped as invalid: ")
    assert message.removesuffix("; raise max_document_bytes, or divide it").endswith("; and 2 more")
    named = re.findall(r"([\w.]+), row (\d+): ([^;]+)", message)
    places = [(place, int(row)) for place, row, _ in named]
    if name == "texts":
        assert places == [("01.txt", 0), ("03.txt", 0), ("05.txt.gz", 0)]
    else:
        assert places == [(name, row) for row in (1, 3, 5)]
    assert "not UTF-8 at byte 4" in named[0][2]
    assert "expected a key" in named[1][2] if "jsonl" in name else "1,000" in named[1][2]


@pytest.mark.parametrize("name", FILES)
def test_other_values_of_errors_stay_strict(name: str, folder: Path) -> None:
    for errors in ("strict", "replace"):
        with pytest.raises(CorpusError):
            bytepair.count(
                folder / name, reading=bytepair.Reading(errors=errors, max_document_bytes=MOST)
            )


def test_the_same_documents_are_skipped_in_a_cloud(folder: Path) -> None:
    for name in ("a.jsonl", "a.jsonl.gz", "a.parquet", "rare.parquet"):
        counts, message = count((folder / name).as_uri())
        assert counts.items() == bytepair.count(GOOD, pattern="gpt2").items()
        assert message.startswith("5 documents skipped")
        assert f"{name}, row 1: " in message


@pytest.mark.parametrize(
    "data",
    [
        column(ROWS), table(ROWS), pa.chunked_array([column(ROWS[:3]), column(ROWS[3:])]),
        [column(ROWS[:3]), column(ROWS[3:])], table([b"\xff", *ROWS]).slice(1),
        pa.array(ROWS, pa.large_binary()).view(pa.large_string()),
    ],
    ids=["array", "table", "chunks", "arrays", "slice", "large"],
)  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"max_chars": 10**6}, {"doc_cap": 10**6}], ids=str)
def test_arrow_data(data: Any, options: dict[str, Any]) -> None:
    """Documents in memory are never too long."""
    counts, message = count(data, **options)
    texts = [row.decode() for row in ROWS if b"\xff" not in row]
    assert counts.items() == bytepair.count(texts, pattern="gpt2").items()
    assert message.startswith("3 documents skipped as invalid: ")
    assert message.count("not UTF-8 at byte 4") == 3


row = st.text(max_size=12).map(lambda text: text.encode(errors="replace")) | st.binary(max_size=6)


@given(rows=st.lists(row, max_size=12), group=st.integers(1, 5), threads=st.integers(1, 3))
def test_any_rows(
    rows: list[bytes], group: int, threads: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each document is decoded by itself, as Python decodes it."""
    texts = [row.decode(errors="ignore") for row in rows]
    texts = [text for text, row in zip(texts, rows, strict=True) if text.encode() == row]
    expected = bytepair.count(bytepair.corpus.Texts(texts), pattern="gpt2", threads=1).items()
    file = tmp_path_factory.mktemp("rows") / "a.parquet"
    pq.write_table(table(rows), file, row_group_size=group)
    for source in (file, column(rows)):
        counts, message = count(source, threads=threads)
        assert counts.items() == expected
        match = re.match(r"\d+", message)
        assert int(match[0] if match else 0) == len(rows) - len(texts)
        if message:
            first = min(at for at, row in enumerate(rows) if row not in map(str.encode, texts))
            assert f"row {first}: the document is not UTF-8" in message


def test_documents_that_only_together_are_utf8() -> None:
    halves = [b"a\xc3", b"\xa9b", b"c"]
    counts, message = count(column(halves))
    assert counts.items() == [(b"c", 1)]
    assert "row 0: the document is not UTF-8 at byte 1" in message
    assert "row 1: the document is not UTF-8 at byte 0" in message


def test_lone_surrogates_in_memory_are_skipped() -> None:
    counts, message = count(["one", "a\ud800b", "two \ud83d\ude00", "\udc00"])
    assert counts.items() == bytepair.count(["one", "two \U0001f600"], pattern="gpt2").items()
    assert message == (
        r"2 documents skipped as invalid: the source, row 1: the text has the lone surrogate "
        r"\ud800, half of a character, at character 1; the source, row 3: the text has the lone "
        r"surrogate \udc00, half of a character, at character 0"
    )


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.jsonl.gz"])
@pytest.mark.parametrize("block", [1, 30, 1 << 20])
def test_limits_end_at_the_same_document(
    name: str, block: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bytepair.corpus.column.BLOCK_BYTES", block)
    for most in (1, 13, 14, 26, 27, 34, 100):
        counts, message = count(folder / name, max_chars=most)
        assert (
            counts.items()
            == bytepair.count(
                GOOD, pattern="gpt2", reading=bytepair.Reading(max_chars=most)
            ).items()
        )
        chars = list(itertools.accumulate(map(len, GOOD)))
        last = next((at for at, total in enumerate(chars) if total > most), None)
        skipped = 5 if last is None else last
        match = re.match(r"\d+", message)
        assert int(match[0] if match else 0) == skipped, most


def test_no_warning_if_all_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "one"}) + "\n")
    assert count(tmp_path / "a.jsonl")[1] == count(["one"])[1] == ""


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst", "a.parquet", "texts"])
@pytest.mark.parametrize("moment", range(1, 6))
def test_a_count_that_goes_on_says_all_that_was_left_out(
    name: str, moment: int, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bytepair.corpus.column.BLOCK_BYTES", 40)
    monkeypatch.setattr(training.counting, "SAVE_SECONDS", 0.0)
    checkpoint = tmp_path / "checkpoint"
    calls = itertools.count()

    def stop(*_: object) -> None:
        if next(calls) == moment:
            raise KeyboardInterrupt

    for progress in (stop, False):
        try:
            counts, message = count(folder / name, checkpoint=checkpoint, progress=progress)
        except KeyboardInterrupt:
            continue
    assert counts.items() == bytepair.count(GOOD, pattern="gpt2").items()
    assert message == count(folder / name)[1]
    assert message.startswith("5 documents")


def test_damaged_parquet_is_an_error_in_any_case(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "a.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with told(CorpusError):
        count(tmp_path / "cut.parquet")


@pytest.mark.parametrize("pack", ["gz", "zst"])
def test_what_precedes_the_damage_of_a_file_is_kept(pack: str, tmp_path: Path) -> None:
    texts = [f"{number * number * 7919}" for number in range(3000)]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    parts = [lines[: len(lines) // 2], lines[len(lines) // 2 :]]
    zstd = b"".join(pa.compress(part, "zstd", asbytes=True) for part in parts)
    whole = gzip.compress(lines) if pack == "gz" else zstd
    path = tmp_path / f"cut.jsonl.{pack}"
    path.write_bytes(whole[: len(whole) * 2 // 3])
    with told(CorpusError):
        bytepair.count(path)
    counts, message = count(path)
    with told(SkippedWarning):
        batches = list(bytepair.corpus.read_documents(path, bytepair.Reading(errors="skip")))
    total = sum(batch.num_rows for batch in batches)
    assert 0 < total < len(texts)
    assert counts.items() == bytepair.count(texts[:total], pattern="gpt2").items()
    assert f"cut.jsonl.{pack}, row {total}: the rest of the file cannot be read" in message
    tok = bytepair.train(texts, 300)
    manifest = bytepair.shards.write(path, tok, tmp_path / "out", errors="skip")
    assert (manifest.documents, manifest.skipped[0]["first"], manifest.skipped[0]["rows"]) == (
        total,
        total,
        None,
    )


def test_training_and_growing_skip(folder: Path) -> None:
    file, base = folder / "a.jsonl", bytepair.train(GOOD, 270)
    options = keywords(errors="skip", max_document_bytes=MOST)
    calls: list[tuple[Callable[[], bytepair.Tokenizer], bytepair.Tokenizer]] = [
        (lambda: bytepair.train(file, 270, **options), base),
        (lambda: bytepair.training.resume(bytepair.train(GOOD, 266), file, 270, **options), base),
        (lambda: bytepair.extend(base, file, 2, **options), bytepair.extend(base, GOOD, 2)),
    ]
    for call, expected in calls:
        with told(SkippedWarning) as caught:
            tok = call()
        assert tok == expected
        assert [one.filename for one in caught] == [__file__]


@pytest.mark.parametrize("command", ["count", "count --rank 0 --world-size 1", "train"])
def test_commands_skip(command: str, folder: Path, tmp_path: Path) -> None:
    words = [
        *command.split(),
        str(folder / "a.jsonl"),
        "--errors",
        "skip",
        "--max-document-bytes",
        str(MOST),
    ]
    words += [] if command.startswith("count") else ["--vocab-size", "270"]
    done = subprocess.run(
        [sys.executable, "-m", "bytepair", *words, "-o", str(tmp_path / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    messages = [
        line for line in done.stderr.splitlines() if "5 documents skipped as invalid" in line
    ]
    assert len(messages) == 1
    assert "row 1: the document is not UTF-8 at byte 4" in messages[0]


def test_two_objects_in_a_line_are_invalid(tmp_path: Path) -> None:
    rows = ['{"text": "a"}', '{"text": "b"} {"text": "c"}', '{"text": "d"}{"text": "e"}']
    (tmp_path / "two.jsonl").write_text("\n".join([*rows, '{"text": "f"}']))
    for read in (bytepair.count, lambda file: list(bytepair.corpus.read_documents(file))):
        with told(CorpusError):
            read(tmp_path / "two.jsonl")
    counts, message = count(tmp_path / "two.jsonl")
    assert counts.items() == [(b"a", 1), (b"f", 1)]
    assert message.startswith("2 documents skipped as invalid")
    assert "row 1: a second object begins at byte 14 of the line" in message


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_the_warning_says_how_to_read_longer_documents(name: str, tmp_path: Path) -> None:
    """In the words of Python, and in those of the command line."""
    texts, path = [LONG, "b"], tmp_path / name
    if name == "a.jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    else:
        pq.write_table(pa.table({"text": texts}), path)
    with told(SkippedWarning) as caught:
        bytepair.count(path, reading=bytepair.Reading(errors="skip", max_document_bytes=MOST))
    assert str(caught[0].message).endswith("; raise max_document_bytes, or divide it")
    limit = ("--errors", "skip", "--max-document-bytes", str(MOST))
    done = run("count", name, "-o", "out.parquet", "-q", *limit, cwd=tmp_path)
    assert message_of(done.stderr).endswith("; raise --max-document-bytes, or divide it")
