"""Blends of shard folders: shares, rows, ranks, epochs and states, against one folder at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import shards
from bytepair.errors import ArgumentError, BytepairError, ShardError
from bytepair.shards.read import chosen_rows
from messages import told

TOK = bytepair.train(bytepair.sample.paths()[:2], 400)
WEIGHTS = {"a": 0.5, "b": 0.3, "c": 0.2}
B, T = 4, 16


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three folders; each row of a folder shows where it is from."""
    home = tmp_path_factory.mktemp("blend")
    paths = {}
    for number, name in enumerate(WEIGHTS):
        texts = [f"{name}{index} " * (3 + index % 7) for index in range(40 * (number + 1))]
        file = home / f"{name}.jsonl"
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        shards.write(file, TOK, home / name, bos=True, tokens_per_shard=500)
        paths[name] = home / name
    return paths


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.lists(st.integers(0, 9)))
def test_shares_are_exact_and_no_folder_is_ahead(shares: list[int], steps: list[int]) -> None:
    """In one go or in steps; and as in Megatron's blends, whose rule this is, in fractions."""
    total = sum(shares)
    chosen, rows = chosen_rows(shares, [0] * len(shares), 2 * total)
    assert rows == [2 * share for share in shares]
    counts = [0] * len(shares)
    for index, number in enumerate(chosen.tolist()):
        errors = [Fraction(share * max(index, 1), total) - count
                  for share, count in zip(shares, counts, strict=True)]  # fmt: skip
        assert number == errors.index(max(errors))
        counts[number] += 1
        assert all(count < Fraction(share * (index + 1), total) + 1
                   for share, count in zip(shares, counts, strict=True))  # fmt: skip
    rows, parts = [0] * len(shares), []
    for step in steps:
        part, rows = chosen_rows(shares, rows, step)
        parts += part.tolist()
    assert parts == chosen_rows(shares, [0] * len(shares), sum(steps))[0].tolist()


@pytest.mark.parametrize("packing", ["best-fit", "stream"])
@pytest.mark.parametrize("seed", [None, 3])
def test_rows_are_those_of_each_folder_in_its_order(
    folders: dict[str, Path], packing: Any, seed: int | None
) -> None:
    options: Any = {"packing": packing, "seed": seed, "buffer": 9}
    batches = shards.Blend(folders, WEIGHTS).batches(B, T, **options)
    alone = [
        shards.Dataset(path).batches(1, T, epochs=None, **options) for path in folders.values()
    ]
    chosen, _ = chosen_rows([5, 3, 2], [0, 0, 0], 60 * B)
    expected = [next(alone[number]) for number in chosen.tolist()]
    for start in range(0, len(expected), B):
        inputs, targets = next(batches)
        assert (inputs == np.concatenate([row[0] for row in expected[start : start + B]])).all()
        assert (targets == np.concatenate([row[1] for row in expected[start : start + B]])).all()
    assert batches.rows == {"a": 120, "b": 72, "c": 48}
    assert batches.epochs == {
        name: each.state["epoch"] + (each._place[1] == each._order.chunks)
        for name, each in zip(folders, alone, strict=True)
    }
    assert batches.epochs["a"] > batches.epochs["c"]


def test_ranks_share_the_rows_and_states_resume_with_any_number_of_ranks(
    folders: dict[str, Path],
) -> None:
    blend = shards.Blend(folders, WEIGHTS)
    one = blend.batches(2 * B, T, seed=1)
    two = [blend.batches(B, T, seed=1, rank=rank, world_size=2) for rank in (0, 1)]
    for _ in range(7):
        parts = [next(batches)[0] for batches in two]
        assert (next(one)[0] == np.concatenate(parts)).all()
    state = json.loads(json.dumps(two[0].state))
    assert state == one.state == two[1].state
    resumed = blend.batches(2 * B, T, seed=1, state=state)
    for _ in range(5):
        assert (next(resumed)[0] == next(one)[0]).all()
    assert resumed.epochs == one.epochs


def test_a_blend_of_epochs_ends_before_a_folder_repeats(folders: dict[str, Path]) -> None:
    blend = shards.Blend(folders, {"a": 1, "b": 1, "c": 2})
    batches = blend.batches(1, T, seed=None, packing="stream", epochs=1)
    count = sum(1 for _ in batches)
    rows = [len(list(shards.Dataset(p).batches(1, T, seed=None, packing="stream")))
            for p in folders.values()]  # fmt: skip
    assert all(size <= most for size, most in zip(batches.rows.values(), rows, strict=True))
    assert count == sum(batches.rows.values())
    assert any(most - size == 0 for size, most in zip(batches.rows.values(), rows, strict=True))


@pytest.mark.parametrize("state", [[], "x", 1, {}, {"seed": 1e999}])
def test_a_state_that_is_none_is_refused(folders: dict[str, Path], state: Any) -> None:
    blend = shards.Blend(folders, dict.fromkeys(folders, 1))
    wrong = {**blend.batches(1, 8).state, "rows": dict.fromkeys(folders, float("inf"))}
    uses: list[Callable[[], object]] = [
        lambda: blend.batches(1, 8, state=state),
        lambda: blend.batches(1, 8, state=wrong),
        lambda: next(iter(blend.datasets.values())).batches(1, 8, state=state),
    ]
    for use in uses:
        with told(BytepairError, "state"):
            use()


def test_what_cannot_be_blended_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    other = bytepair.train(["other"], 258, special_tokens=["<|bos|>"])
    shards.write([{"text": "one two"}], other, tmp_path / "other")
    with told(ShardError):
        shards.Blend({"a": folders["a"], "other": tmp_path / "other"}, {"a": 1, "other": 1})
    with told(ArgumentError):
        shards.Blend(folders, {"a": 1})
    for weight in (0, -1, float("nan"), float("inf"), None):
        with told(ArgumentError):
            shards.Blend({"a": folders["a"]}, {"a": weight})  # type: ignore[dict-item]
    blend = shards.Blend(folders, WEIGHTS)
    for length in (0, None):
        with told(ArgumentError):
            blend.batches(B, length)  # type: ignore[arg-type]
    state = blend.batches(B, T).state
    with told(ShardError):
        shards.Blend(folders, {"a": 1, "b": 1, "c": 1}).batches(B, T, state=state)
    with told(ShardError):
        blend.batches(B, T, seed=2, state=state)
    with told(ShardError):
        blend.batches(B, T, state={"epoch": 0})
