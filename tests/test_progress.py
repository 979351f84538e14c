"""Progress: the arguments of callbacks, and the bar on a terminal."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import bytepair
from bytepair._internal.progress import Bar, ShareRead

TEXT = bytepair.sample.paths()[0].read_text(encoding="utf-8")
TEXTS = [TEXT[at : at + 2000] for at in range(0, len(TEXT), 2000)]


def _text(path: Path) -> None:
    path.write_text("".join(TEXTS))


def _packed(path: Path) -> None:
    path.write_bytes(gzip.compress("".join(TEXTS).encode()))


def _jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps({"id": 1, "text": text}) + "\n" for text in TEXTS))


def _parquet(path: Path) -> None:
    pq.write_table(pa.table({"text": TEXTS}), path, row_group_size=50)


KINDS = {"a.txt": _text, "a.txt.gz": _packed, "a.jsonl": _jsonl, "a.parquet": _parquet}
Seen = list[tuple[str, int, int | None]]


def lines_of(bar: Bar) -> list[str]:
    """The bar on a terminal of 80 columns."""
    assert bar._bars is not None
    assert bar._bars is not None
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    with console.capture() as shown:
        console.print(bar._bars.get_renderable())
    return [line.strip() for line in shown.get().splitlines() if line.strip()]


@pytest.mark.parametrize("name", KINDS)
def test_counting_says_the_total_of_files(tmp_path: Path, name: str) -> None:
    seen: Seen = []
    KINDS[name](tmp_path / name)
    counts = bytepair.count(tmp_path / name, progress=lambda *told: seen.append(told))
    assert seen[-1] == ("count", counts.text_bytes, counts.text_bytes)
    assert all(total and done <= total for _, done, total in seen)


def test_counting_many_files_knows_the_share_of_each(tmp_path: Path) -> None:
    seen: Seen = []
    for number in range(8):
        _text(tmp_path / f"{number}.txt")
    counts = bytepair.count(tmp_path, progress=lambda *told: seen.append(told))
    whole = 8 * sum(map(len, TEXTS))
    assert counts.text_bytes == whole
    assert seen == sorted(seen, key=lambda told: told[1])
    for _, done, total in seen:
        assert total is not None
        assert done <= total <= whole  # the reader is at most some files ahead of the count
    assert seen[-1][1:] == (whole, whole)


def test_counting_with_a_limit_goes_by_the_limit(tmp_path: Path) -> None:
    seen: Seen = []
    _parquet(tmp_path / "a.parquet")
    bytepair.count(
        tmp_path / "a.parquet",
        progress=lambda *told: seen.append(told),
        reading=bytepair.Reading(max_chars=200_000),
    )
    _, done, total = seen[0]
    assert total is not None
    assert 100_000 <= total <= 400_000
    assert done <= total


def test_texts_that_are_no_files_have_no_total() -> None:
    seen: Seen = []
    bytepair.count(TEXTS, progress=lambda *told: seen.append(told))
    assert seen[-1] == ("count", sum(map(len, TEXTS)), None)


@pytest.mark.parametrize("name", KINDS)
def test_sharding_says_the_total(tmp_path: Path, trained: bytepair.Tokenizer, name: str) -> None:
    seen: Seen = []
    folders = [tmp_path / number for number in "123"]
    for folder in folders:
        folder.mkdir()
        KINDS[name](folder / name)
    manifest = bytepair.shards.write(
        [folder / name for folder in folders],
        trained,
        tmp_path / "out",
        progress=lambda *told: seen.append(told),
    )
    assert seen[-1][:2] == ("shard", manifest.text_bytes)
    assert seen[-1][2] is not None or name == "a.txt.gz"
    bytepair.shards.verify(tmp_path / "out", progress=lambda *told: seen.append(told))
    assert seen[-1] == ("verify", 1, 1)


@pytest.mark.parametrize("size", [2000, 1 << 20])
def test_merging_ends_at_its_end(size: int) -> None:
    """Also where the text has fewer merges than were asked for."""
    seen: Seen = []
    counts = bytepair.count(TEXTS[:4])
    with pytest.warns(bytepair.errors.ExhaustedWarning):
        tok = bytepair.train(counts, size, progress=lambda *told: seen.append(told))
    assert seen[-1] == ("merge", len(tok.merges()), len(tok.merges()))
    bytepair.training.verify_merges(tok, counts, progress=lambda *told: seen.append(told))
    assert seen[-1] == ("verify", len(tok.merges()), len(tok.merges()))
    small = bytepair.train(counts, 300)
    bytepair.training.resume(small, counts, 310, progress=lambda *told: seen.append(told))
    assert seen[-1] == ("merge", 10, 10)
    bytepair.extend(small, counts, 5, progress=lambda *told: seen.append(told))
    assert seen[-1] == ("merge", 5, 5)


def test_a_bar_shows_share_amount_rate_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with Bar(True) as bar:
        for done in (0, 125_000_000, 250_000_000):
            bar.update("count", done, 1_000_000_000)
            now[0] += 5
        (line,) = lines_of(bar)
        assert line.endswith("25% 250.0 MB, 25.0 MB/s 0:00:30")
        for done in (0, 1000, 2000):
            bar.update("merge", done, 8000, "merges")
            now[0] += 0.5
        count, merge = lines_of(bar)
        assert "100%" in count
        assert merge.endswith("25% 2,000 of 8,000 merges, 2,000 merges/s 0:00:03")
    assert [" 100% " in line for line in lines_of(bar)] == [True, True]


def test_a_bar_without_a_total_shows_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with Bar(True) as bar:
        bar.update("count", 0, None)
        now[0] += 10
        bar.update("count", 50_000_000, None)
        (line,) = lines_of(bar)
        assert "50.0 MB, 5.0 MB/s" in line
        assert "%" not in line


def test_a_bar_that_is_broken_off_stays_where_it_was() -> None:
    bar = Bar(True)

    def interrupted() -> None:
        with bar:
            bar.update("count", 30, 100)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    (line,) = lines_of(bar)
    assert "30%" in line


def test_a_position_is_a_share_of_bytes() -> None:
    position = ShareRead(1000)
    assert position.total(5) is None
    position.enter(400)
    position.within(0.5)
    assert position.share == 0.2
    position.leave()
    position.enter(600)
    position.enter(400)
    position.within(2.0)
    assert position.share == 1.0
    position = ShareRead(None)
    position.enter(5)
    assert position.share is None
    position.limit(0.5)
    assert position.total(10) == 20
