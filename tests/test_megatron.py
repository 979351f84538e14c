"""Shards and blends beside Megatron Core's own data sets, which run on a CPU."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import shards
from bytepair.shards.read import chosen_rows


def module(name: str) -> Any:
    """A module of Megatron Core; without the package, this file is skipped."""
    return pytest.importorskip(f"megatron.core.datasets.{name}", reason="needs megatron-core")


gpt_dataset, helpers = module("gpt_dataset"), module("helpers")
BlendedDataset = module("blended_dataset").BlendedDataset
IndexedDataset = module("indexed_dataset").IndexedDataset
TRAIN = module("utils").Split.train
NAMES, T = ("a", "b"), 16


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(bytepair.sample.paths()[:2], 400)


@pytest.fixture(scope="module")
def folders(tok: bytepair.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two folders in Megatron's format; the text of a row shows which one it is from."""
    home = tmp_path_factory.mktemp("megatron")
    for number, name in enumerate(NAMES, 1):
        texts = [{"text": f"{name}{name}{i} " * (4 + i % 7)} for i in range(300 * number)]
        shards.write(texts, tok, home / name, format="megatron", bos=True)
    return {name: home / name for name in NAMES}


def prefix(folder: Path) -> str:
    return str(folder / "tokens_000000_text_document")


def megatron_choices(shares: list[int], count: int) -> list[int]:
    chosen, places = np.zeros(count, np.int16), np.zeros(count, np.int64)
    weights = [share / sum(shares) for share in shares]
    helpers.build_blending_indices(chosen, places, weights, len(shares), count, False)
    return [int(number) for number in chosen]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_choices_differ_only_where_megatron_rounds(shares: list[int]) -> None:
    """Its weights are floats, so rounding decides between folders that are equally far below."""
    total, counts = sum(shares), [0] * len(shares)
    theirs = megatron_choices(shares, 2 * total)
    ours = chosen_rows(shares, [0] * len(shares), 2 * total)[0].tolist()
    for index, number in enumerate(theirs):
        below = [s * max(index, 1) - total * t for s, t in zip(shares, counts, strict=True)]
        assert below[number] == max(below)
        counts[number] += 1
        apart = [ours[: index + 1].count(n) - t for n, t in enumerate(counts)]
        assert max(map(abs, apart)) <= 1
    assert counts == [2 * share for share in shares]
    if total & (total - 1) == 0:  # then the floats are exact
        assert ours == theirs


def test_its_samples_of_documents_in_order_are_our_rows(folders: dict[str, Path]) -> None:
    data, theirs = shards.Dataset(folders["a"]), IndexedDataset(prefix(folders["a"]))
    assert len(data) == len(theirs)
    assert all((data[i] == theirs[i]).all() for i in range(len(data)))
    sizes = theirs.sequence_lengths.copy()
    order = np.arange(len(sizes), dtype=np.int32)
    samples = helpers.build_sample_idx(sizes, order, T, 1, int(sizes.sum()))
    starts = np.concatenate([[0], np.cumsum(sizes)])[samples[:, 0]] + samples[:, 1]
    ids = np.concatenate([theirs[i] for i in range(len(theirs))])
    rows = list(data.batches(1, T, seed=None, packing="stream", epochs=1))
    assert len(rows) == len(starts) - 1
    for (inputs, targets), start in zip(rows, starts, strict=False):
        assert (inputs[0] == ids[start : start + T]).all()
        assert (targets[0] == ids[start + 1 : start + T + 1]).all()


def blended(folders: dict[str, Path], weights: list[float], size: int, cache: Path) -> Any:
    """Megatron's blend of the folders."""
    tokenizer: Any = SimpleNamespace(vocab_size=400, eod=None, pad=0, unique_identifiers={})
    config = gpt_dataset.GPTDatasetConfig(
        random_seed=1, sequence_length=T, tokenizer=tokenizer, split="1", eod_mask_loss=False,
        blend=([prefix(folder) for folder in folders.values()], weights),
        reset_position_ids=False, reset_attention_mask=False, create_attention_mask=False,
    )  # fmt: skip
    parts = []
    for folder in folders.values():
        low = gpt_dataset.GPTDataset.build_low_level_dataset(prefix(folder), config)
        every = np.arange(len(low), dtype=np.int32)
        config.path_to_cache = str(cache)
        parts.append(gpt_dataset.GPTDataset(low, prefix(folder), every, size, TRAIN, config))
    config.path_to_cache = None  # without a cache it asks for no process group
    return BlendedDataset(parts, weights, size, config)


def test_a_blend_takes_the_folders_in_megatrons_order(
    folders: dict[str, Path], tok: bytepair.Tokenizer, tmp_path: Path
) -> None:
    weights, size = [0.75, 0.25], 120
    theirs = blended(folders, weights, size, tmp_path)
    ours = shards.Blend(folders, dict(zip(NAMES, weights, strict=True)))
    batches = ours.batches(size, T, packing="stream")
    inputs, _ = next(batches)
    for index, row in enumerate(inputs):
        sample = theirs[index]
        name = NAMES[sample["dataset_id"]]
        assert name in tok.decode(row)
        assert name in tok.decode(sample["tokens"].numpy())
    assert batches.rows == {"a": 90, "b": 30}
