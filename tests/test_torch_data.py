"""Workers of a `DataLoader` give the rows of `Dataset.batches` and its relatives, each once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair import shards
from loaders import text_batches

torch = pytest.importorskip("torch")
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


class Rows(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined, unused-ignore]
    """The data set of `docs/batches.md`, with targets and a state."""

    def __init__(
        self, batches: Any, length: int, rank: int = 0, world_size: int = 1, **options: Any
    ) -> None:
        self.batches, self.length, self.options = batches, length, options
        self.rank, self.world_size = rank, world_size
        self.current: Any = None
        self.state: Any = None

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        options = {**self.options, "torch": True, "state": self.state}
        self.current = self.batches(
            1, self.length, rank=self.rank * count + number,
            world_size=self.world_size * count, **options,
        )  # fmt: skip
        for inputs, targets in self.current:
            yield inputs[0].long(), targets[0]

    def state_dict(self) -> Any:
        return self.current.state if self.current else self.state

    def load_state_dict(self, state: Any) -> None:
        self.state = state


class Labelled(Rows):
    """Rows as the models of `transformers` expect them."""

    def __iter__(self) -> Iterator[Any]:
        for inputs, _ in super().__iter__():
            yield {"input_ids": inputs, "labels": inputs}


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_ranks_and_workers_share_a_stream(data: shards.Dataset, workers: int) -> None:
    expected = plain(data.batches(1, LENGTH, seed=3))
    for world_size in (1, 2):
        parts = [
            plain(loader(
                Rows(data.batches, LENGTH, seed=3, rank=rank, world_size=world_size),
                num_workers=workers,
            ))
            for rank in range(world_size)
        ]  # fmt: skip
        readers = world_size * max(workers, 1)
        count = len(expected) // readers * readers
        assert sum(map(len, parts)) == count
        assert sorted(row for part in parts for row in part) == sorted(expected[:count])


def test_a_worker_that_is_spawned_reads_the_same(data: shards.Dataset) -> None:
    stream = Rows(data.batches, LENGTH, seed=3)
    rows = plain(loader(stream, num_workers=1, multiprocessing_context="spawn"))
    assert rows == plain(stream)


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_a_loader_with_a_state_resumes(data: shards.Dataset) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    for workers in (0, 2):
        options = {"batch_size": None, "num_workers": workers}
        loader = stateful(Rows(data.batches, LENGTH, seed=3), **options)
        rows = iter(loader)
        for _ in range(7):
            next(rows)
        state = loader.state_dict()
        rest = plain(rows)
        again = stateful(Rows(data.batches, LENGTH, seed=3), **options)
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
def test_the_trainer_of_transformers_takes_rows(data: shards.Dataset, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    rows = Labelled(data.batches, LENGTH)
    expected = [row["input_ids"].tolist() for row in rows]
    steps = len(expected) // 4
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=steps, per_device_train_batch_size=4, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    model = Recorder()
    transformers.Trainer(model, arguments, train_dataset=rows).train()
    assert len(model.rows) == 4 * steps
    assert model.rows == expected[: 4 * steps]


def test_texts_are_encoded_by_the_workers(rows_file: Path, tok: bytepair.Tokenizer) -> None:
    options: dict[str, Any] = {"split": "all", "buffer": 9}
    batches = partial(shards.TextBatches, rows_file, tok)
    stream = Labelled(batches, LENGTH, options=shards.TextOptions(**options))
    rows = iter(torch.utils.data.DataLoader(stream, batch_size=3, num_workers=2))
    parts = [
        text_batches(rows_file, tok, 3, LENGTH, rank=rank, world_size=2, **options)
        for rank in (0, 1)
    ]
    for _ in range(3):
        for part in parts:
            batch, (inputs, _) = next(rows), next(part)
            assert batch["input_ids"].tolist() == batch["labels"].tolist() == inputs.tolist()


def test_a_blend_is_a_stream(data: shards.Dataset) -> None:
    blend = shards.Blend({"a": data, "b": data}, {"a": 2, "b": 1})
    stream, batches = Rows(blend.batches, LENGTH, seed=1), blend.batches(1, LENGTH, seed=1)
    rows = iter(stream)
    head = [next(rows) for _ in range(30)]
    assert plain(head) == plain(next(batches) for _ in range(30))
    resumed = Rows(blend.batches, LENGTH, seed=1)
    resumed.load_state_dict(stream.state_dict())
    assert plain([next(iter(resumed))]) == plain([next(batches)])
