"""Files that the counting threads read: limits, checkpoints and resuming, as if streamed."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair.errors import ArgumentError, CorpusError, CountsError, SplitError
from bytepair.training import counting
from bytepair.training.counts import read_counts
from commands import run
from messages import told
from tables import write_tables
from training_options import keywords

TEXTS = [f"word {i % 50} é {'long ' * (i % 30)}{i * i}" for i in range(2_000)]


class BrokenError(Exception):
    """The exception that interrupts a count in these tests."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of all kinds; some of their documents are invalid."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    write_tables(folder, TEXTS, row_group_size=70, data_page_size=500, use_dictionary=False)
    (folder / "aa.txt").write_text("a text between tables", encoding="utf-8")
    lines = [json.dumps({"text": text}) for text in TEXTS[:300]]
    lines[100] = '{"text": "\\ud83d"}'
    (folder / "bb.jsonl").write_text("\n".join(lines), encoding="utf-8")
    invalid = [b"ab", b"\xff\xfe", b"cd"] * 40
    array = pa.Array.from_buffers(
        pa.string(), len(invalid), pa.array(invalid, pa.binary()).buffers()
    )
    pq.write_table(pa.table({"text": array}), folder / "d.parquet", row_group_size=7)
    return folder


def count(source: Path, **options: Any) -> tuple[bytepair.Counts, list[str]]:
    """Counts, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        counts = bytepair.count(source, **keywords(**options))
    return counts, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("errors", ["replace", "skip"])
@pytest.mark.parametrize("doc_cap", [None, 9])
@pytest.mark.parametrize("max_chars", [None, 1, 5_000, 90_000, 155_000, 10_000_000])
def test_limits_are_those_of_a_stream(
    folder: Path,
    errors: str,
    doc_cap: int | None,
    max_chars: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: dict[str, Any] = {"errors": errors, "doc_cap": doc_cap, "max_chars": max_chars}
    with monkeypatch.context() as patched:
        patched.setattr(counting._Count, "_core_reads", lambda *_: False)
        expected, messages = count(folder, **options)
    monkeypatch.setattr(counting, "read_batches", None)
    for threads in (1, 2, 5):
        counts, also_said = count(folder, threads=threads, **options)
        assert counts.items() == expected.items()
        assert counts.text_bytes == expected.text_bytes
        assert also_said == messages


def breaking(at: int) -> Callable[..., None]:
    """A progress callback that breaks off at the nth call."""
    calls = iter(range(at))

    def report(*_: object) -> None:
        if next(calls, None) is None:
            raise BrokenError

    return report


@pytest.mark.parametrize("options", [{}, {"max_chars": 60_000}, {"doc_cap": 20}])
@pytest.mark.parametrize("threads", [1, 3])
def test_counts_that_are_broken_off_again_and_again(
    folder: Path, tmp_path: Path, options: dict[str, Any], threads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    expected, messages = count(folder, errors="skip", **options)
    monkeypatch.setattr(counting, "read_batches", None)
    monkeypatch.setattr(counting, "SAVE_SECONDS", 0.0)
    file, pick = tmp_path / "partial.parquet", random.Random(threads)
    options = options | {"errors": "skip", "checkpoint": file, "threads": threads}
    broken = 0
    while broken < 100:
        try:
            counts, also_said = count(folder, progress=breaking(pick.randrange(1, 4)), **options)
            break
        except BrokenError:
            broken += 1
    else:
        counts, also_said = count(folder, **options)
    assert broken
    assert sorted(counts.items()) == sorted(expected.items())
    assert also_said == messages
    assert count(folder, **options)[0] == expected  # complete: nothing is left to count


def test_what_is_counted_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = tmp_path / "corpus", tmp_path / "partial.parquet"
    folder.mkdir()
    for name in "abc":
        table = pa.table({"text": TEXTS})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=100, compression="none")
    expected = bytepair.count(folder)
    monkeypatch.setattr(counting, "OPEN_FILES", 1)
    monkeypatch.setattr(counting, "SAVE_SECONDS", 0.0)

    def broken_after_a(_: str, done: int, __: int | None) -> None:
        if done > expected.text_bytes // 3:
            raise BrokenError

    with pytest.raises(BrokenError):
        bytepair.count(folder, progress=broken_after_a, reading=bytepair.Reading(checkpoint=file))
    data = bytearray((folder / "a.parquet").read_bytes())
    data[100 : len(data) * 3 // 4] = bytes(len(data) * 3 // 4 - 100)
    (folder / "a.parquet").write_bytes(data)
    with told(CorpusError):
        bytepair.count(folder)
    assert bytepair.count(folder, reading=bytepair.Reading(checkpoint=file)) == expected


def test_an_invalid_text_keeps_the_ranges_before_it(tmp_path: Path) -> None:
    source, file = tmp_path / "text.parquet", tmp_path / "partial.parquet"
    pq.write_table(pa.table({"text": [*TEXTS, "x" * 40]}), source, row_group_size=100)
    pattern = r"(x*)*\1y|[^x]+"
    for threads in (1, 4):
        file.unlink(missing_ok=True)
        with pytest.raises(SplitError) as caught:
            bytepair.count(
                source, pattern=pattern, threads=threads, reading=bytepair.Reading(checkpoint=file)
            )
        assert "again to resume" in caught.value.__notes__[0]
        assert read_counts(file) == bytepair.count(TEXTS, pattern=pattern)


def test_a_range_that_expands_is_counted_in_parts(tmp_path: Path) -> None:
    """In this encoding, a text shares a prefix with the one before, so 50 MB take few bytes."""
    texts = [f"{'ab c' * 250_000} {i}" for i in range(50)]
    source, file = tmp_path / "text.parquet", tmp_path / "partial.parquet"
    pq.write_table(
        pa.table({"text": texts}), source,
        use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"},
    )  # fmt: skip
    assert source.stat().st_size < 3_000_000
    for most, number in [(None, 50), (40_000_000, 40), (1, 1)]:
        counts = bytepair.count(source, reading=bytepair.Reading(max_chars=most, checkpoint=file))
        assert counts == bytepair.count(texts[:number])
        file.unlink()


# ---------------------------------------------------------------------------- train


def test_training_takes_a_checkpoint(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "partial.parquet"
    reading = bytepair.Reading(errors="replace", checkpoint=file)
    with pytest.raises(BrokenError):
        bytepair.train(folder, 300, progress=breaking(2), reading=reading)
    expected = bytepair.train(folder, 300, reading=bytepair.Reading(errors="replace"))
    assert bytepair.train(folder, 300, reading=reading) == expected
    with told(CountsError):
        bytepair.train(folder, 300, reading=bytepair.Reading(checkpoint=file))
    counts = bytepair.count(TEXTS)
    with told(CountsError):
        bytepair.train(counts, 300, reading=bytepair.Reading(checkpoint=file))
    recipes = (
        bytepair.training.Mixture({"a": 1}),
        bytepair.training.Parity(ratios={"a": 1.0}),
        bytepair.training.Superwords(),
    )
    for recipe in recipes:
        with told(ArgumentError):
            bytepair.train({"a": TEXTS}, 300, reading=reading, recipe=recipe)


def test_the_command_removes_the_checkpoint_when_it_has_saved(folder: Path, tmp_path: Path) -> None:
    file, source = tmp_path / "partial.parquet", folder / "a.parquet"
    words = ["train", str(source), "--vocab-size", "300", "--checkpoint", str(file)]
    with pytest.raises(BrokenError):
        bytepair.count(source, progress=breaking(1), reading=bytepair.Reading(checkpoint=file))
    assert file.exists()
    run(*words, cwd=tmp_path)
    assert not file.exists()
    assert bytepair.load(tmp_path / "tokenizer") == bytepair.train(source, 300)
    output = run(*words, "--weight", "a.parquet=2", cwd=tmp_path, code=2).stderr
    assert "--weight would be ignored: a checkpoint is for one count" in output
