"""Counting that is interrupted and resumed, text that is not UTF-8, text of unusual shape."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair import _core
from bytepair.corpus import read
from bytepair.corpus.column import ReadBounds, strings
from bytepair.corpus.files import corpus_file
from bytepair.errors import CorpusError, CountsError, InUseError, ShardError, SplitError
from bytepair.training import counting
from bytepair.training.counting import CheckpointWarning
from bytepair.training.counts import CountState, read_counts
from bytepair.training.options import Ties
from conftest import refused
from messages import told
from tables import write_tables
from training_options import keywords

TEXTS = [f"text {i % 7} of {i % 13}, number {i}" for i in range(30_000)]


class BrokenError(Exception):
    """The exception that interrupts a count in these tests."""


def broken(texts: list[str], at: int) -> Iterator[str]:
    yield from texts[:at]
    raise BrokenError


@pytest.mark.parametrize("at", [0, 1, 8192, 8193, 20_000, 30_000])
def test_a_count_that_was_broken_off_goes_on(tmp_path: Path, at: int) -> None:
    file = tmp_path / "partial.parquet"
    with pytest.raises(BrokenError):
        bytepair.count(broken(TEXTS, at), reading=bytepair.Reading(checkpoint=file))
    assert file.exists() == (at >= 8192)
    if file.exists():
        with told(CountsError):
            bytepair.training.load_counts(file)
    counts = bytepair.count(TEXTS, reading=bytepair.Reading(checkpoint=file))
    assert counts == bytepair.count(TEXTS) == bytepair.training.load_counts(file)
    assert bytepair.count(TEXTS, reading=bytepair.Reading(checkpoint=file)) == counts


def test_an_interrupt_between_counting_and_noting_the_place_counts_no_text_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_text('{"text": "some words"}\n' * 9 + '{"text": 5}\n')
    source = bytepair.corpus.Paths([tmp_path / f"{name}.jsonl" for name in "abc"])
    note, calls = counting._Count._note, []

    def interrupted(count: counting._Count) -> None:
        calls.append(count)
        if len(calls) == 1:
            raise KeyboardInterrupt
        note(count)

    monkeypatch.setattr(counting._Count, "_note", interrupted)
    reading = bytepair.Reading(errors="skip", checkpoint=tmp_path / "counts.parquet")
    with pytest.raises(KeyboardInterrupt):
        bytepair.count(source, reading=reading)
    with pytest.warns(bytepair.errors.BytepairWarning, match="3 documents"):
        counts = bytepair.count(source, reading=reading)
    assert dict(counts.most_common()) == {b"some": 27, b" words": 27}


def test_saving_all_the_time_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "SAVE_SECONDS", 0.0)
    file = tmp_path / "partial.parquet"
    assert bytepair.count(
        TEXTS, reading=bytepair.Reading(checkpoint=file, memory_limit=1)
    ) == bytepair.count(TEXTS)


def test_the_checkpoint_of_another_count_is_an_error(tmp_path: Path) -> None:
    file, text = tmp_path / "partial.parquet", tmp_path / "text.txt"
    bytepair.count(TEXTS, reading=bytepair.Reading(checkpoint=file))
    with told(CountsError):
        bytepair.count(["x" + TEXTS[0], *TEXTS[1:]], reading=bytepair.Reading(checkpoint=file))
    with told(CountsError):
        bytepair.count(TEXTS[:100], reading=bytepair.Reading(checkpoint=file))
    with told(CountsError):
        bytepair.count(TEXTS, reading=bytepair.Reading(checkpoint=file, doc_cap=10))
    with told(CountsError):
        bytepair.count(TEXTS, pattern="gpt4o", reading=bytepair.Reading(checkpoint=file))
    text.write_text("one", encoding="utf-8")
    with told(CountsError):
        bytepair.count(text, reading=bytepair.Reading(checkpoint=file))
    bytepair.count(TEXTS).save(file)
    with told(CountsError):
        bytepair.count(TEXTS, reading=bytepair.Reading(checkpoint=file))


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_count_that_was_killed_goes_on(tmp_path: Path, how: signal.Signals) -> None:
    source, file = tmp_path / "text.parquet", tmp_path / "partial.parquet"
    pq.write_table(pa.table({"text": TEXTS}), source, row_group_size=512)
    program = (
        "import sys, time, bytepair\nfrom bytepair.training import checkpoint\n"
        "counting.SAVE_SECONDS = 0.0\n"
        "def slow(*_): time.sleep(0.02)\n"
        "reading = bytepair.Reading(checkpoint=sys.argv[2])\n"
        "bytepair.count(sys.argv[1], reading=reading, progress=slow)\n"
    )
    command = [sys.executable, "-c", program, str(source), str(file)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not file.exists() and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(how)
    assert bytepair.count(source, reading=bytepair.Reading(checkpoint=file)) == bytepair.count(
        source
    )
    assert sorted(f.name for f in tmp_path.iterdir() if f.suffix == ".parquet") == [
        "partial.parquet",
        "text.parquet",
    ]


def pressed_at(moment: int) -> Callable[..., None]:
    """A progress callback that presses Ctrl-C when it is called for the nth time."""
    calls = itertools.count(1)

    def report(*_: object) -> None:
        if next(calls) == moment:
            signal.raise_signal(signal.SIGINT)

    return report


@pytest.mark.parametrize("moment", range(1, 5))
def test_ctrl_c_saves_all_that_was_counted(tmp_path: Path, moment: int) -> None:
    file = tmp_path / "partial.parquet"
    with pytest.raises(KeyboardInterrupt) as caught:
        bytepair.count(
            TEXTS, progress=pressed_at(moment), reading=bytepair.Reading(checkpoint=file)
        )
    (note,) = caught.value.__notes__
    texts = TEXTS[: moment * read.BATCH_TEXTS]
    assert read_counts(file) == bytepair.count(texts)
    size = sum(map(len, texts))
    assert note == (
        f"(the counts of {size:,} bytes of text are saved in {file}; "
        "run the same count again to resume)"
    )
    assert bytepair.count(TEXTS, reading=bytepair.Reading(checkpoint=file)) == bytepair.count(TEXTS)


@pytest.mark.parametrize("at", ["add", "finish", "save"])
@pytest.mark.parametrize("when", ["before", "behind"])
@pytest.mark.parametrize("moment", [1, 2, 3])
def test_ctrl_c_amid_a_batch_or_a_checkpoint(
    tmp_path: Path, at: str, when: str, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes before or after a step of the core, or of writing."""
    file, calls = tmp_path / "partial.parquet", itertools.count(1)

    def press(name: str, time: str) -> None:
        if (name, time) == (at, when) and next(calls) == moment:
            signal.raise_signal(signal.SIGINT)

    def pressing(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any, **options: Any) -> Any:
            press(name, "before")
            result = step(*arguments, **options)
            press(name, "behind")
            return result

        return stepped

    class Counter:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._counter = counter(*arguments, **options)
            self.add = pressing("add", self._counter.add)
            self.finish = pressing("finish", self._counter.finish)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._counter, name)

    counter = _core.Counter
    with monkeypatch.context() as patch:
        patch.setattr(_core, "Counter", Counter)
        patch.setattr(bytepair.Counts, "save", pressing("save", bytepair.Counts.save))
        patch.setattr(counting, "SAVE_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt) as caught:
            bytepair.count(TEXTS, reading=bytepair.Reading(checkpoint=file))
    batches = moment - (when == "before" and at == "add")
    if batches:
        assert "again to resume" in caught.value.__notes__[0]
        expected = bytepair.count(TEXTS[: batches * read.BATCH_TEXTS])
        assert read_counts(file) == expected
    assert file.exists() == (batches > 0)
    assert bytepair.count(TEXTS, reading=bytepair.Reading(checkpoint=file)) == bytepair.count(TEXTS)


def test_a_pattern_error_keeps_the_counts_so_far(tmp_path: Path) -> None:
    file, pattern = tmp_path / "partial.parquet", r"(x*)*\1y|[^x]+"
    bad = [*TEXTS[:20_000], "x" * 40]
    with pytest.raises(SplitError) as caught:
        bytepair.count(bad, pattern=pattern, threads=2, reading=bytepair.Reading(checkpoint=file))
    counted = 20_000 // read.BATCH_TEXTS * read.BATCH_TEXTS
    assert "again to resume" in caught.value.__notes__[0]
    assert read_counts(file) == bytepair.count(TEXTS[:counted], pattern=pattern)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("pause", [0.0, 0.01, 0.03])
@pytest.mark.slow
def test_a_command_that_is_pressed_several_times_saves(tmp_path: Path, pause: float) -> None:
    source, file = tmp_path / "text.jsonl", tmp_path / "partial.parquet"
    # Words that are all new take the longest to count.
    every = map("".join, itertools.product("abcdefgh", repeat=7))
    lines = (" ".join(itertools.islice(every, 4096)) for _ in range(512))
    source.write_text("".join(f'{{"text": "{line}"}}\n' for line in lines), encoding="utf-8")
    words = ["count", str(source), "-o", str(tmp_path / "c.parquet"), "--checkpoint", str(file)]
    program = (
        "import sys\nfrom bytepair import cli\nfrom bytepair.training import counting\n"
        "def told(self, size):\n    print(size, flush=True)\n"
        "counting._Count._show = told\ncli.main()\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert run.stdout is not None
    run.stdout.readline()
    time.sleep(pause)
    run.send_signal(signal.SIGINT)
    error = run.communicate(timeout=60)[1]
    assert (run.returncode, file.exists()) == (130, True)
    assert error.startswith("bytepair: interrupted (the counts of ")
    assert error.endswith(f" are saved in {file}; run the same count again to resume)\n")
    assert bytepair.count(source, reading=bytepair.Reading(checkpoint=file)) == bytepair.count(
        source
    )


def test_a_checkpoint_that_cannot_be_written_is_said_first(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "partial.parquet"):
        with told(OSError):
            bytepair.count(iter(lambda: 1 / 0, 0), reading=bytepair.Reading(checkpoint=path))


# ---------------------------------------------------------------------------- not UTF-8


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    raw = [b"good", b"b\xffad \xe4\xb8", b"", "中".encode()]
    replaced = [data.decode(errors="replace") for data in raw]
    text, table, lines = (tmp_path / name for name in ("a.txt", "b.parquet", "c.jsonl"))
    text.write_bytes(b" ".join(raw))
    column = pa.Array.from_buffers(pa.string(), 4, pa.array(raw, pa.binary()).buffers())
    pq.write_table(pa.table({"text": column}), table)
    lines.write_bytes(b"".join(b'{"text": "' + data + b'"}\n' for data in raw))
    with told(CorpusError):
        bytepair.count(text)
    with told(CorpusError):
        bytepair.count(table)
    expected = bytepair.count(replaced)
    assert bytepair.count(text, reading=bytepair.Reading(errors="replace")) == bytepair.count(
        [" ".join(replaced)]
    )
    assert bytepair.count(table, reading=bytepair.Reading(errors="replace")) == expected
    assert bytepair.count(column, reading=bytepair.Reading(errors="replace")) == expected
    assert bytepair.count(lines, reading=bytepair.Reading(errors="replace")) == expected
    assert bytepair.count(
        table, reading=bytepair.Reading(errors="replace", doc_cap=3)
    ) == bytepair.count([part[:3] for part in replaced])
    with refused("errors", "ignore"):
        bytepair.count(["x"], reading=bytepair.Reading(errors="ignore"))  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- parquet


def by_other_means(source: Any, **options: Any) -> bytepair.Counts:
    """Counts of files that pyarrow has read."""
    return bytepair.count(
        [text for batch in read.read_batches(source) for text in strings(batch)], **options
    )


WORDS = [f"word {i % 100} {'long ' * (i % 50)}{i * i}" for i in range(5_000)]
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "snappy": {"compression": "snappy"},
    "zstd, small pages": {"compression": "zstd", "data_page_size": 1000, "row_group_size": 999},
    "second version": {"data_page_version": "2.0", "compression": "snappy"},
    "differences": {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    "lengths": {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_parquet_is_counted_as_it_is_read(
    tmp_path: Path, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tables(tmp_path, WORDS, **SHAPES[shape])
    expected = by_other_means(tmp_path)
    assert len(expected) > 100
    monkeypatch.setattr(counting, "read_batches", None)
    for threads in (1, 2, 5):
        assert bytepair.count(tmp_path, threads=threads) == expected
    file, reading = tmp_path / "a.parquet", bytepair.Reading(memory_limit=1000)
    with told(UserWarning):
        twice = bytepair.count([file] * 2, reading=reading)
    assert twice == bytepair.count(file) * 2


def test_a_large_row_group_is_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.parquet"
    texts = [f"{i} " + "abcdefgh " * 250 for i in range(5_000)]
    pq.write_table(pa.table({"text": texts}), file, compression="zstd")
    assert pq.ParquetFile(file).num_row_groups == 1
    slow = r"(a)\1|\w+|\W"  # no automaton splits by it
    expected = bytepair.count(texts, pattern=slow)
    monkeypatch.setattr(counting, "read_batches", None)
    assert bytepair.count(file, pattern=slow, threads=2) == expected
    seen: list[int] = []
    counts = bytepair.count(
        file, pattern=slow, threads=1, progress=lambda _, done, __: seen.append(done)
    )
    assert counts == expected
    assert len({*seen}) > 2
    assert seen[-1] == sum(map(len, texts))


def test_threads_share_a_long_text_that_a_file_has_alone(tmp_path: Path) -> None:
    texts = ["short", "中文 words " * 200_000, None, "and short", "x" * 2_000_000, "end"]
    expected = bytepair.count([text or "" for text in texts])
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    for threads in (1, 2, 5):
        counts = bytepair.count(tmp_path / "a.parquet", threads=threads)
        assert counts.items() == expected.items()
        assert counts.text_bytes == expected.text_bytes


def test_a_page_that_is_too_large_is_an_error_unless_documents_may_be_longer(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.parquet"
    table = pa.table({"text": ["a" * 193_000_000]})
    pq.write_table(table, file, compression="none", use_dictionary=False, write_statistics=False)
    with told(CorpusError):
        bytepair.count(file)
    with told(CorpusError):
        list(bytepair.corpus.read_documents(file))
    assert (
        bytepair.count(file, reading=bytepair.Reading(max_document_bytes=193_000_000)).text_bytes
        == 193_000_000
    )


def test_parquet_of_other_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"text": WORDS})
    expected = bytepair.count(WORDS)
    for number, compression in enumerate(["gzip", "brotli", "lz4"]):
        pq.write_table(table, tmp_path / f"{number}.parquet", compression=compression)
        assert bytepair.count(tmp_path / f"{number}.parquet") == expected
    monkeypatch.setattr(counting, "OPEN_FILES", 2)
    pq.write_table(table, tmp_path / "3.parquet")
    assert bytepair.count(tmp_path) == expected * 4
    (tmp_path / "d.txt").write_text("one more", encoding="utf-8")
    assert bytepair.count(tmp_path) == expected * 4 + bytepair.count(["one more"])
    numbers = tmp_path / "e.parquet"
    pq.write_table(pa.table({"text": pa.array([1])}), numbers)
    with told(CorpusError):
        bytepair.count(numbers)


def test_texts_in_a_column_of_bytes_are_read(tmp_path: Path) -> None:
    texts = ["one two", "drei é"]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array([text.encode() for text in texts])}), path)
    assert bytepair.count(path) == bytepair.count(texts)
    pq.write_table(pa.table({"text": pa.array([b"one", b"\xff"])}), path)
    with told(CorpusError):
        bytepair.count(path)
    with told(bytepair.errors.SkippedWarning):
        assert bytepair.count(path, reading=bytepair.Reading(errors="skip")) == bytepair.count(
            ["one"]
        )


@pytest.mark.slow
def test_damage_that_the_parquet_crate_does_not_expect_is_not_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, damaged = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"text": WORDS}), whole, compression="none", data_page_version="2.0")
    picked, read = random.Random(1), 0
    for _ in range(2000):
        other = bytearray(whole.read_bytes())
        other[-1 - picked.randrange(600)] ^= 1 << picked.randrange(8)
        damaged.write_bytes(other)
        with contextlib.suppress(CorpusError, OSError):
            read += _core.Counter(_core.PATTERNS["gpt2"]).add_files(
                [corpus_file(damaged)], bytepair.Reading(), ReadBounds(1 << 27), lambda *_: None
            )
    assert 0 < read < 2000
    assert capfd.readouterr().err == ""


def test_what_stops_the_reading_of_parquet(tmp_path: Path) -> None:
    whole, damaged = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"text": WORDS}), whole, compression="zstd", row_group_size=500)
    data = bytearray(whole.read_bytes())
    data[5000:9000] = bytes(4000)
    damaged.write_bytes(data)
    with told(CorpusError):
        bytepair.count(damaged)

    picked = random.Random(7)
    for _ in range(100):
        other = bytearray(whole.read_bytes())
        for _ in range(
            picked.choice([1, 8])
        ):  # half of the changes are at the end, where the metadata is
            near = picked.randrange(1000) if picked.random() < 0.5 else picked.randrange(len(other))
            other[-1 - near] ^= 1 << picked.randrange(8)
        damaged.write_bytes(other)
        with contextlib.suppress(CorpusError, OSError):
            _core.Counter(_core.PATTERNS["gpt2"]).add_files(
                [corpus_file(damaged)], bytepair.Reading(), ReadBounds(1 << 27), lambda *_: None
            )

    def broken_report(*_: object) -> None:
        raise BrokenError

    with pytest.raises(BrokenError):
        bytepair.count(whole, progress=broken_report)


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
    assert counts == bytepair.count(
        texts, pattern="gpt2", threads=1, reading=bytepair.Reading(memory_limit=1_000_000)
    )
    small = bytepair.train(counts, 1000, special_tokens=[])
    assert bytepair.training.verify_merges(small, counts)


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
    return hashlib.sha256(repr(tok.merges()).encode()).hexdigest()


@pytest.mark.parametrize("ties", get_args(Ties))
@pytest.mark.parametrize("kind", ["english", "multilingual"])
def test_merges_do_not_depend_on_how_the_text_comes(
    documents: Callable[[str], list[str]], kind: str, ties: Ties
) -> None:
    texts = documents(kind)[:150]
    options: dict[str, Any] = {"ties": ties, "special_tokens": [], "pattern": "nanochat"}

    def train(source: Any, **more: Any) -> str:
        return digest(bytepair.train(source, 3000, **keywords(**options, **more)))

    expected = train(texts)
    for threads in (1, 2, 3, 8):
        assert train(texts, threads=threads) == expected
    assert train(iter(texts)) == expected
    assert train(pa.chunked_array([texts[:1], texts[1:70], texts[70:]])) == expected
    assert train(texts, memory_limit=100_000) == expected
    halves = bytepair.count(texts[:75]) + bytepair.count(texts[75:])
    assert digest(bytepair.train(halves, 3000, ties=ties, special_tokens=[])) == expected


# ---------------------------------------------------------------------------- URLs


def test_urls_are_counted_and_trained_on(tmp_path: Path) -> None:
    """Read as `bytepair.corpus.read_documents` reads them; here with the URL of a local folder."""
    source = tmp_path / "source"
    source.mkdir()
    pq.write_table(pa.table({"text": WORDS}), source / "a.parquet")
    expected = bytepair.count(WORDS)
    folder, file = source.as_uri(), (source / "a.parquet").as_uri()
    assert bytepair.count(folder) == expected
    for second in (file, source / "a.parquet"):
        with told(UserWarning):
            twice = bytepair.count(bytepair.corpus.Paths([file, second]))
        assert twice == expected * 2
    trained = bytepair.train(WORDS, 360)
    assert bytepair.train(f"{folder}/*.parquet", 360) == trained
    with told(CorpusError):
        bytepair.count((source / "b.parquet").as_uri())


def test_texts_that_look_like_urls_are_texts_if_that_is_said() -> None:
    urls = ["https://example.com/a", "https://example.com/b"]
    assert bytepair.count(bytepair.corpus.Texts(urls)).text_bytes == sum(map(len, urls))
    with told(CorpusError):
        bytepair.count(urls)
    assert bytepair.count(["s3://x.parquet is a name"]).text_bytes == 24


# ---------------------------------------------------------------------------- damaged, in use, full


def test_a_damaged_checkpoint_is_named_or_still_right(tmp_path: Path) -> None:
    """Nothing but a `CountsError` that names the file, or the same counts, for any damage."""
    file, whole = tmp_path / "partial.parquet", bytepair.count(TEXTS[:50])
    bytepair.count(TEXTS[:50], reading=bytepair.Reading(checkpoint=file))
    data, rng = file.read_bytes(), random.Random(7)
    start = data.index(b"bytepair.checkpoint")
    places = [
        *range(start, min(start + 400, len(data)), 3),
        *(rng.randrange(len(data)) for _ in range(200)),
    ]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.randrange(8)
        file.write_bytes(damaged)
        try:
            counts = bytepair.count(TEXTS[:50], reading=bytepair.Reading(checkpoint=file))
        except CountsError as error:
            wrong = "" if str(file) in str(error) else str(error)
        else:
            wrong = "" if counts.total == whole.total else f"{counts.total} pretokens"
        assert not wrong, place


@pytest.mark.parametrize(
    "wrong",
    [
        {"texts": "x"},
        {"reached": [1]},
        {"skips": 3},
        {"bytes": -1},
        {"job": 7},
        {"more": 1},
        {"reached": [0, 1 << 48, 0, 0, 0]},
        {"skips": {"documents": 1, "first": [[1, 2, 3, 4, 5]]}},
    ],
)
def test_a_forged_checkpoint_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    values = json.loads(CountState({}).to_json())
    del values["crc32"]
    values |= wrong
    values["crc32"] = f"{zlib.crc32(json.dumps(values).encode()):08x}"
    text = json.dumps(values)
    bytepair.count(TEXTS[:9]).save(tmp_path / "c", metadata={"bytepair.checkpoint": text})
    with told(CountsError):
        bytepair.training.load_counts(tmp_path / "c")
    with told(CountsError):
        bytepair.count(TEXTS[:9], reading=bytepair.Reading(checkpoint=tmp_path / "c"))


@pytest.mark.timeout(20)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", ["c", ".c.lock"])
def test_a_count_does_not_wait_for_a_pipe_in_place_of_its_checkpoint(
    tmp_path: Path, name: str
) -> None:
    os.mkfifo(tmp_path / name)
    other_end = os.open(tmp_path / name, os.O_RDWR)  # or a fault would stop this process
    reading = bytepair.Reading(checkpoint=tmp_path / "c")
    for call in (
        lambda: bytepair.count(TEXTS[:9], reading=reading),
        lambda: bytepair.train(TEXTS[:9], 300, reading=reading),
    ):
        with told(OSError if name == "c" else ShardError):
            call()
    os.close(other_end)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_counts_share_no_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "partial.parquet"

    def texts() -> Iterator[str]:
        yield from TEXTS[:10_000]  # more than is looked at to see what the source is
        with told(InUseError):
            bytepair.count(["two"], reading=bytepair.Reading(checkpoint=file))

    assert bytepair.count(texts(), reading=bytepair.Reading(checkpoint=file)) == bytepair.count(
        TEXTS[:10_000]
    )
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_count_whose_checkpoint_cannot_be_written_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, fails = bytepair.Counts.save, itertools.cycle([True, False, True])

    def full(self: bytepair.Counts, path: Path, **options: Any) -> None:
        if next(fails):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        save(self, path, **options)

    monkeypatch.setattr(counting, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(bytepair.Counts, "save", full)
    file = tmp_path / "partial.parquet"
    with told(CheckpointWarning), pytest.raises(BrokenError):
        bytepair.count(broken(TEXTS, 30_000), reading=bytepair.Reading(checkpoint=file))
    with told(CheckpointWarning):
        assert bytepair.count(TEXTS, reading=bytepair.Reading(checkpoint=file)) == bytepair.count(
            TEXTS
        )
