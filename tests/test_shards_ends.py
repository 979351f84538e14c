"""Loaders end: a state beyond the last epoch and data without tokens are errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair import shards
from bytepair.errors import ShardError
from loaders import text_batches


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(["some text, and some more text"] * 9, 270)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, tok: bytepair.Tokenizer) -> shards.Dataset:
    folder = tmp_path_factory.mktemp("data")
    source = folder / "a.txt"
    source.write_text("some text, and some more text " * 50)
    shards.write(source, tok, folder / "out", bos=True)
    return shards.Dataset(folder / "out")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("packing", ["stream", "best-fit"])
@pytest.mark.parametrize("epoch", [1, 2, 7, 1 << 40])
def test_a_state_beyond_the_last_epoch_is_an_error(
    data: shards.Dataset, packing: Any, epoch: int
) -> None:
    state = data.batches(1, 4, packing=packing, epochs=None).state | {"epoch": epoch}
    with pytest.raises(ShardError) as caught:
        data.batches(1, 4, packing=packing, epochs=1, state=state)
    assert caught.value.option == "epochs"
    next(data.batches(1, 4, packing=packing, epochs=epoch + 1, state=state))


@pytest.mark.parametrize("place", [{"chunk": -1}, {"chunk": 99}, {"row": -1}, {"epoch": "x"}])
def test_a_state_with_an_impossible_place_is_an_error(
    data: shards.Dataset, place: dict[str, object]
) -> None:
    state = data.batches(1, 4).state | place
    with pytest.raises(ShardError):
        data.batches(1, 4, epochs=None, state=state)


def test_a_state_at_the_end_of_the_last_epoch_yields_nothing(data: shards.Dataset) -> None:
    batches = data.batches(1, 4, packing="stream")
    assert len(list(batches)) > 3
    assert list(data.batches(1, 4, packing="stream", state=batches.state)) == []


@pytest.mark.parametrize("packing", ["stream", "best-fit"])
def test_rows_that_fill_no_batch_are_counted(
    data: shards.Dataset, packing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rows = len(list(data.batches(1, 4, packing=packing)))
    caplog.set_level("INFO", "bytepair")
    for size in (1, 2, 5, 7):
        caplog.clear()
        assert len(list(data.batches(size, 4, packing=packing))) == rows // size
        left = rows % size
        said = [f"the last {left} rows do not fill a batch and are left out"]
        assert caplog.messages == (said if left else [])


@pytest.mark.timeout(30)
@pytest.mark.parametrize("count", [1, 5000])
@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("packing", ["stream", "best-fit"])
def test_a_corpus_without_tokens_is_an_error_on_the_first_pass(
    tmp_path: Path, tok: bytepair.Tokenizer, packing: Any, bos: bool, count: int
) -> None:
    pq.write_table(pa.table({"text": [""] * count}), tmp_path / "a.parquet")
    batches = text_batches(tmp_path / "a.parquet", tok, 1, 4, split="all", packing=packing, bos=bos)
    with pytest.raises(ShardError):
        next(batches)


def test_empty_documents_before_the_first_text_are_kept(
    tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    texts = [""] * 20 + ["some text"] * 20
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", 4)
    batches = text_batches(
        tmp_path / "a.parquet", tok, 1, 8, split="all", packing="stream", group=4
    )
    bos = tok.special_tokens["<|bos|>"]
    assert next(batches)[0].tolist() == [[bos] * 8]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("epochs", [1, None])
def test_shards_without_tokens_have_no_batches(
    tmp_path: Path, tok: bytepair.Tokenizer, bos: bool, epochs: int | None
) -> None:
    pq.write_table(pa.table({"text": ["", ""]}), tmp_path / "a.parquet")
    shards.write(tmp_path / "a.parquet", tok, tmp_path / "out", bos=bos)
    data = shards.Dataset(tmp_path / "out")
    if epochs == 1:
        assert list(data.batches(1, 4, epochs=1)) == []
    else:
        with pytest.raises(ShardError):
            next(data.batches(1, 4, epochs=None))


def test_documents_begin_with_the_begin_token_unless_it_is_refused(
    tmp_path: Path, tok: bytepair.Tokenizer
) -> None:
    pq.write_table(pa.table({"text": ["some", "more text"]}), tmp_path / "a.parquet")
    ways: dict[str, dict[str, Any]] = {"default": {}, "without": {"bos": False}}
    for name, options in ways.items():
        shards.write(tmp_path / "a.parquet", tok, tmp_path / name, **options)
        data = shards.Dataset(tmp_path / name)
        bos = [] if options else [tok.special_tokens["<|bos|>"]]
        expected = [[*bos, *tok.encode(text)] for text in ("some", "more text")]
        assert [data[number].tolist() for number in range(len(data))] == expected
