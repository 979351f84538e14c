"""A dataset gives back what was encoded, in an order that depends on the seed and nothing else."""

from __future__ import annotations

import itertools
import json
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import bytepair
from bytepair import shards
from bytepair.errors import ArgumentError, ShardError
from bytepair.shards import order
from bytepair.shards.manifest import ShardFormat
from messages import told

read: Any = import_module("bytepair.shards.read")
B, T = 4, 32


@pytest.fixture(scope="module")
def documents() -> list[str]:
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")
    cuts = [0]
    while cuts[-1] < 150_000:
        cuts.append(cuts[-1] + 1 + (cuts[-1] * 7919 + 13) % 300)
    return [text[a:b] for a, b in itertools.pairwise(cuts)]


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory, documents: list[str], trained: bytepair.Tokenizer
) -> Path:
    path = tmp_path_factory.mktemp("data")
    lines = "".join(json.dumps({"text": text}) + "\n" for text in documents)
    (path / "in.jsonl").write_text(lines, encoding="utf-8")
    for name in get_args(ShardFormat):
        shards.write(
            path / "in.jsonl", trained, path / name, format=name, tokens_per_shard=7000, bos=True
        )
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, so that there are many chunks."""
    monkeypatch.setattr(order, "BLOCK_UNITS", 16)
    monkeypatch.setattr(order, "CHUNK_BLOCKS", 3)
    monkeypatch.setattr(read, "MAPPED_SHARDS", 2)


@pytest.mark.parametrize("name", sorted(shards.LAYOUTS))
def test_documents(
    name: str, folder: Path, documents: list[str], trained: bytepair.Tokenizer
) -> None:
    data = shards.Dataset(folder / name, split=None, tokenizer=trained)
    assert data.manifest.dtype == np.dtype("uint16")
    lists = trained.encode_batch(documents, prepend="<|bos|>")
    assert len(data) == len(lists)
    assert data.tokens == sum(map(len, lists))
    assert [data[i].tolist() for i in range(len(data))] == lists
    assert data[-1].tolist() == lists[-1]
    assert data.tokenizer == trained
    train = len(shards.Dataset(folder / name, split="train"))
    if name in {"llmc", "nanogpt"}:
        val = len(shards.Dataset(folder / name, split="val"))
        assert (val > 0, train + val) == (True, len(lists))
    else:
        assert train == len(lists)
        with told(ShardError):
            shards.Dataset(folder / name, split="val")
    with told(IndexError):
        data[len(data)]


def naive(lists: list[list[int]], width: int, buffer: int) -> list[list[int]]:
    """Best-fit packing, with the loop of nanochat."""
    coming = [ids for ids in lists if ids]
    waiting: list[list[int]] = []
    rows: list[list[int]] = []
    while True:
        row: list[int] = []
        while len(row) < width:
            while len(waiting) < buffer and coming:
                waiting.append(coming.pop(0))
            if not waiting:
                return rows
            free = width - len(row)
            fitting = [len(ids) for ids in waiting if len(ids) <= free]
            size = max(fitting) if fitting else min(map(len, waiting))
            place = next(i for i, ids in enumerate(waiting) if len(ids) == size)
            row += waiting.pop(place)[:free]
        rows.append(row)


def rows_of(batches: Any) -> list[list[int]]:
    rows = []
    for inputs, targets in batches:
        assert inputs.shape == targets.shape == (B, T)
        assert (inputs[:, 1:] == targets[:, :-1]).all()
        rows += np.concatenate([inputs, targets[:, -1:]], axis=1).tolist()
    return rows


@pytest.mark.parametrize("buffer", [1, 10, 1000])
def test_packing_in_order_is_that_of_nanochat(
    folder: Path, documents: list[str], trained: bytepair.Tokenizer, buffer: int
) -> None:
    data = shards.Dataset(folder / "bytepair")
    expected = naive(trained.encode_batch(documents, prepend="<|bos|>"), T + 1, buffer)
    ours = rows_of(data.batches(B, T, seed=None, buffer=buffer))
    assert ours == expected[: len(expected) // B * B]
    bos = trained.special_tokens["<|bos|>"]
    assert all(row[0] == bos for row in ours)


@pytest.mark.parametrize("packing", ["best-fit", "stream"])
def test_the_rows_do_not_depend_on_the_ranks(small: None, folder: Path, packing: Any) -> None:
    data = shards.Dataset(folder / "llmc")
    whole = rows_of(data.batches(B, T, seed=3, packing=packing))
    assert len(whole) > 400
    for world in (2, 3, 5):
        ranks = [
            rows_of(data.batches(B, T, seed=3, packing=packing, rank=r, world_size=world))
            for r in range(world)
        ]
        steps = len(ranks[0]) // B
        dealt = [
            row for step in range(steps) for rank in ranks for row in rank[step * B : step * B + B]
        ]
        assert dealt == whole[: len(dealt)]
        assert len(whole) - len(dealt) < world * B


@pytest.mark.parametrize("packing", ["best-fit", "stream"])
@pytest.mark.parametrize("name", sorted(shards.LAYOUTS))
def test_a_state_resumes_exactly(small: None, folder: Path, packing: Any, name: str) -> None:
    data = shards.Dataset(folder / name)
    options: dict[str, Any] = {"seed": 1, "packing": packing, "epochs": 2}
    whole = rows_of(data.batches(B, T, **options))
    for done in (0, 1, 7, 60):
        batches = data.batches(B, T, **options)
        before = [row for _ in range(done) for row in rows_of([next(batches)])]
        state = json.loads(json.dumps(batches.state))
        assert len(json.dumps(state)) < 200
        assert before + rows_of(data.batches(B, T, state=state, **options)) == whole
        pickled = pickle.dumps(batches)
        assert len(pickled) < 10_000
        assert before + rows_of(pickle.loads(pickled)) == whole
    ranks = [data.batches(B, T, state=state, rank=rank, world_size=2, **options) for rank in (0, 1)]
    assert rows_of([next(r) for r in ranks]) == whole[60 * B : 62 * B]
    with told(ShardError):
        data.batches(B, T, seed=2, packing=packing, state=state)
    with told(ShardError):
        data.batches(B, T - 1, seed=1, packing=packing, state=state)


def test_a_stream_uses_every_id_once(small: None, folder: Path) -> None:
    data = shards.Dataset(folder / "bytepair")
    batches = data.batches(1, T, packing="stream")
    rows = [[*inputs[0].tolist(), int(targets[0, -1])] for inputs, targets in batches]
    expected = []
    for number in range(len(data.shards)):
        ids = data.mapped(number)[0].tolist()
        expected += [ids[i : i + T + 1] for i in range(0, len(ids) - T, T)]
    assert sorted(rows) == sorted(expected)


def test_epochs_and_seeds_differ(small: None, folder: Path) -> None:
    data = shards.Dataset(folder / "bytepair")
    options: dict[str, Any] = {"packing": "stream"}
    first = rows_of(data.batches(B, T, seed=1, **options))
    both = rows_of(data.batches(B, T, seed=1, epochs=2, **options))
    assert both[: len(first)] == first
    assert both[len(first) : 2 * len(first)] != first
    assert rows_of(data.batches(B, T, seed=2, **options)) != first
    endless = data.batches(B, T, seed=1, epochs=None, **options)
    assert rows_of(next(endless) for _ in range(1000))[: len(both)] == both
    assert first != rows_of(data.batches(B, T, seed=None, **options))


def test_a_shuffle_is_the_same_for_ever() -> None:
    assert order.shuffled(8, 0, 0, 0).tolist() == order.shuffled(8, 0, 0, 0).tolist()
    assert order.shuffled(8, 42, 1, 2).tolist() == [0, 2, 7, 5, 6, 4, 3, 1]
    counts = np.zeros((50, 50), int)
    for seed in range(2000):
        counts[np.arange(50), order.shuffled(50, seed, 1)] += 1
    assert 10 < counts.min() <= counts.max() < 80  # 40 each, if all places are equally likely


def test_shards_with_the_wrong_tokenizer(
    folder: Path, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    other = bytepair.train(["other"], 266)
    with told(ShardError):
        shards.Dataset(folder / "llmc", tokenizer=other)
    with told(ShardError):
        shards.Dataset(tmp_path)
    with told((ArgumentError, ShardError)) as caught:
        shards.Dataset(folder / "llmc", split="test")  # type: ignore[arg-type]
    assert caught.value.option == "split"
    data = shards.Dataset(folder / "llmc")
    wrong: dict[str, Any] = {"rank": 1, "buffer": 0, "epochs": 0, "packing": "x"}
    for option, value in wrong.items():
        with pytest.raises((ArgumentError, ShardError)) as caught:
            data.batches(B, T, **{option: value})
        assert caught.value.option == option
        if option != "rank":
            with pytest.raises((ArgumentError, ShardError)):
                shards.Blend({"one": data}, {"one": 1.0}).batches(B, T, **{option: value})
    with told(ShardError):
        next(data.batches(1, 10**6, epochs=None))
    assert list(data.batches(1, 10**6)) == []


def test_tensors(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    data = shards.Dataset(folder / "llmc")
    arrays = next(data.batches(B, T))
    tensors = next(data.batches(B, T, torch=True))
    assert [t.dtype for t in tensors] == [torch.int32, torch.int64]
    for array, tensor in zip(arrays, tensors, strict=True):
        assert (tensor.numpy() == array).all()
