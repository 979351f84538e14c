"""Data sets of torch give the rows of `Dataset.batches` and its relatives, each once."""

from __future__ import annotations

import json
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair import shards
from bytepair.errors import ArgumentError
from conftest import refused
from loaders import text_batches
from messages import told

torch = pytest.importorskip("torch")
torch_data: Any = import_module("bytepair.shards.torch_data")
TorchRows, TorchStream = torch_data.TorchRows, torch_data.TorchStream
LENGTH = 24


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(bytepair.sample.paths()[:2], 400)


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")[:60_000]
    path = tmp_path_factory.mktemp("texts") / "rows.parquet"
    parquet.write_table(pa.table({"text": text.split("\n")}), path, row_group_size=50)
    return path


@pytest.fixture(scope="module")
def data(rows_file: Path, tok: bytepair.Tokenizer) -> shards.Dataset:
    shards.write(rows_file, tok, rows_file.parent / "shards", bos=True, tokens_per_shard=5000)
    return shards.Dataset(rows_file.parent / "shards")


def plain(batches: Any) -> list[tuple[list[int], list[int]]]:
    return [(inputs.ravel().tolist(), targets.ravel().tolist()) for inputs, targets in batches]


def loader(rows: Any, **options: Any) -> Any:
    return torch.utils.data.DataLoader(rows, batch_size=None, **options)


def test_rows_by_number_are_those_of_a_stream_without_shuffle(data: shards.Dataset) -> None:
    rows: Any = TorchRows(data, LENGTH)
    expected = plain(data.batches(1, LENGTH, seed=None, packing="stream"))
    assert len(rows) == len(expected)
    assert plain(rows[index] for index in range(len(rows))) == expected
    assert plain([rows[-1]]) == expected[-1:]
    assert rows[0][0].dtype == torch.int64
    labelled: Any = TorchRows(data, LENGTH, labels=True)[3]
    assert labelled["input_ids"].tolist() == labelled["labels"].tolist() == expected[3][0]
    with told(IndexError, f"no row {len(rows)}"):
        rows[len(rows)]
    with told(ArgumentError, "the index of a row is"):
        rows[0:2]


def test_workers_shuffle_rows_by_number(data: shards.Dataset) -> None:
    rows = TorchRows(data, LENGTH)
    batches = torch.utils.data.DataLoader(rows, batch_size=4, shuffle=True, num_workers=2)
    shuffled = [row.tolist() for inputs, _ in batches for row in inputs]
    assert sorted(shuffled) == sorted(inputs for inputs, _ in plain(rows))


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_ranks_and_workers_share_a_stream(data: shards.Dataset, workers: int) -> None:
    expected = plain(data.batches(1, LENGTH, seed=3))
    for world_size in (1, 2):
        parts = [
            plain(loader(
                TorchStream(data.batches, LENGTH, seed=3, rank=rank, world_size=world_size),
                num_workers=workers,
            ))
            for rank in range(world_size)
        ]  # fmt: skip
        readers = world_size * max(workers, 1)
        count = len(expected) // readers * readers
        assert sum(map(len, parts)) == count
        assert sorted(row for part in parts for row in part) == sorted(expected[:count])


def test_a_worker_that_is_spawned_reads_the_same(data: shards.Dataset) -> None:
    stream = TorchStream(data.batches, LENGTH, seed=3)
    rows = plain(loader(stream, num_workers=1, multiprocessing_context="spawn"))
    assert rows == plain(stream)


def test_epochs_have_orders_of_their_own_and_states_resume(data: shards.Dataset) -> None:
    stream = TorchStream(data.batches, LENGTH, seed=3)
    first = plain(stream)
    stream.set_epoch(1)
    second = plain(stream)
    assert first + second == plain(data.batches(1, LENGTH, seed=3, epochs=2))
    rows = iter(stream)
    for _ in range(5):
        next(rows)
    state = json.loads(json.dumps(stream.state_dict()))
    resumed = TorchStream(data.batches, LENGTH, seed=3)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert plain(resumed) == second[5:] == plain(rows)


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_a_loader_with_a_state_resumes(data: shards.Dataset) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    for workers in (0, 2):
        options = {"batch_size": None, "num_workers": workers}
        loader = stateful(TorchStream(data.batches, LENGTH, seed=3), **options)
        rows = iter(loader)
        for _ in range(7):
            next(rows)
        state = loader.state_dict()
        rest = plain(rows)
        again = stateful(TorchStream(data.batches, LENGTH, seed=3), **options)
        again.load_state_dict(state)
        assert plain(again) == rest


class Recorder(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
    """A model of `transformers` that keeps the rows on which it is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.rows: list[list[int]] = []

    def forward(self, input_ids: Any, labels: Any) -> dict[str, Any]:
        assert (input_ids == labels).all()
        self.rows += input_ids.tolist()
        return {"loss": self.scale * input_ids.sum()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_stream", [False, True])
def test_the_trainer_of_transformers_takes_rows(
    data: shards.Dataset, is_stream: bool, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    kind, source = (TorchStream, data.batches) if is_stream else (TorchRows, data)
    rows = kind(source, LENGTH, labels=True)
    expected = [row["input_ids"].tolist() for row in rows]
    steps = len(expected) // 4
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=steps, per_device_train_batch_size=4, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    model = Recorder()
    transformers.Trainer(model, arguments, train_dataset=rows).train()
    assert len(model.rows) == 4 * steps
    if is_stream:
        assert model.rows == expected[: 4 * steps]
    else:  # the trainer shuffles it
        assert model.rows != expected[: 4 * steps]
        assert all(row in expected for row in model.rows)


def test_texts_are_encoded_by_the_workers(rows_file: Path, tok: bytepair.Tokenizer) -> None:
    options: dict[str, Any] = {"split": "all", "buffer": 9}
    batches = partial(shards.TextBatches, rows_file, tok)
    stream = TorchStream(batches, LENGTH, options=shards.TextOptions(**options), labels=True)
    rows = iter(torch.utils.data.DataLoader(stream, batch_size=3, num_workers=2))
    parts = [
        text_batches(rows_file, tok, 3, LENGTH, rank=rank, world_size=2, **options)
        for rank in (0, 1)
    ]
    for _ in range(3):
        for part in parts:
            batch, (inputs, _) = next(rows), next(part)
            assert batch["input_ids"].tolist() == batch["labels"].tolist() == inputs.tolist()
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        TorchStream(batches, LENGTH, nope=1)
    with refused("rank", 2):
        TorchStream(batches, LENGTH, rank=2, world_size=2)


def test_a_blend_is_a_stream(data: shards.Dataset) -> None:
    blend = shards.Blend({"a": data, "b": data}, {"a": 2, "b": 1})
    stream, batches = TorchStream(blend.batches, LENGTH, seed=1), blend.batches(1, LENGTH, seed=1)
    rows = iter(stream)
    head = [next(rows) for _ in range(30)]
    assert plain(head) == plain(next(batches) for _ in range(30))
    resumed = TorchStream(blend.batches, LENGTH, seed=1)
    resumed.load_state_dict(stream.state_dict())
    assert plain([next(iter(resumed))]) == plain([next(batches)])
