"""Batches packed while text is read equal those of the plain rule, and of nanochat."""

from __future__ import annotations

import itertools
import json
import logging
import pickle
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
import nanochat_source
import reference_twins
from bytepair.compat import nanochat
from bytepair.errors import (
    ArgumentError,
    ConversationError,
    CorpusError,
    ShardError,
    SpecialTokenError,
)
from bytepair.shards import TextBatches
from bytepair.shards.order import WaitingDocuments
from loaders import conversation_batches, text_batches
from messages import told
from nanochat_source import FIRST, LAST_OF_2025, TODAY

B, T = 3, 24
#: Rows of the row groups of each file.
ROWS = {"a": [9, 9, 9, 4], "b": [20], "c": [6, 6, 5], "d": [5, 5]}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    text = bytepair.sample.paths()[0].read_text(encoding="utf-8")
    lengths = [(i * 7919 + 13) % 90 if i % 9 else 0 if i % 2 else 400 for i in range(90)]
    cuts = list(itertools.accumulate(lengths, initial=0))
    return [text[a:b] for a, b in itertools.pairwise(cuts)]


@pytest.fixture(scope="module")
def base(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], trained: bytepair.Tokenizer
) -> Path:
    """A folder as nanochat has it, with four files of small row groups, and a tokenizer."""
    folder = tmp_path_factory.mktemp("nanochat")
    coming = iter(texts)
    for data in ("base_data", "base_data_climbmix"):
        (folder / data).mkdir()
    for name, groups in ROWS.items():
        for data in ("base_data", "base_data_climbmix"):
            target = folder / data / f"{name}.parquet"
            if data == "base_data":
                schema = pa.schema([("text", pa.string())])
                with pq.ParquetWriter(target, schema) as out:
                    for rows in groups:
                        chunk = list(itertools.islice(coming, rows))
                        out.write_table(pa.table({"text": chunk}, schema), row_group_size=rows)
            else:
                target.write_bytes((folder / "base_data" / target.name).read_bytes())
    nanochat.RustBPETokenizer(trained, "<|bos|>").save(folder / "tokenizer")
    return folder


def read(
    base: Path, tok: bytepair.Tokenizer, split: str, group: int, rank: int = 0, world: int = 1
) -> Iterator[tuple[tuple[int, int, int], list[list[int]]]]:
    """Endless row groups of documents with their positions, read by pyarrow."""
    paths = sorted((base / "base_data").glob("*.parquet"))
    for epoch in itertools.count(1):
        for number, path in enumerate(paths[:-1] if split == "train" else paths[-1:]):
            file = pq.ParquetFile(path)
            for row_group in range(rank, file.num_row_groups, world):
                rows = file.read_row_group(row_group)["text"].to_pylist()
                for i in range(0, len(rows), group):
                    ids = tok.encode_batch(rows[i : i + group], prepend="<|bos|>")
                    yield (number, row_group, epoch), ids


def place_of(batches: TextBatches) -> tuple[int, int, int]:
    """The position of a loader, as nanochat has it."""
    state = batches.state or {}
    return state["pq_idx"], state["rg_idx"], state["epoch"]


@pytest.mark.parametrize("split", ["train", "val"])
@pytest.mark.parametrize(("buffer", "group"), [(10, 4), (1, 1), (25, 128), (200, 7)])
def test_best_fit_is_the_plain_rule(
    base: Path, trained: bytepair.Tokenizer, split: Any, buffer: int, group: int
) -> None:
    batches = text_batches(
        base / "base_data", trained, B, T, split=split, buffer=buffer, group=group
    )
    place = (0, 0, 0)

    def groups() -> Iterator[list[list[int]]]:
        nonlocal place
        for place, ids in read(base, trained, split, group):  # noqa: B007 - it is looked at below
            yield ids

    rows = reference_twins.packed_rows(groups(), T + 1, buffer)
    assert batches.state is None
    for _ in range(60):
        expected = np.array(list(itertools.islice(rows, B)))
        inputs, targets = next(batches)
        assert inputs.dtype == np.uint16
        assert (inputs == expected[:, :-1]).all()
        assert (targets == expected[:, 1:]).all()
        assert place_of(batches) == place
    assert place[2] > 1


@pytest.mark.parametrize("group", [1, 5, 128])
def test_a_stream_is_the_plain_rule(base: Path, trained: bytepair.Tokenizer, group: int) -> None:
    batches = text_batches(base / "base_data", trained, B, T, packing="stream", group=group)
    groups = (ids for _, ids in itertools.islice(read(base, trained, "train", group), 300))
    expected = reference_twins.stream_batches(groups, B, T)
    for (inputs, targets), batch in zip(batches, itertools.islice(expected, 50), strict=False):
        assert inputs.tolist() == batch[0]
        assert targets.tolist() == batch[1]


def test_ranks_read_row_groups_of_their_own(base: Path, trained: bytepair.Tokenizer) -> None:
    for rank in range(2):
        batches = text_batches(
            base / "base_data", trained, B, T, rank=rank, world_size=2, buffer=8, group=4
        )
        groups = (ids for _, ids in read(base, trained, "train", 4, rank, 2))
        rows = reference_twins.packed_rows(groups, T + 1, 8)
        for inputs, _ in itertools.islice(batches, 30):
            assert inputs.tolist() == [row[:-1] for row in itertools.islice(rows, B)]
    options: Any = {"rank": 2, "world_size": 3, "split": "val", "buffer": 2}
    with told(ShardError):
        next(text_batches(base / "base_data", trained, B, T, **options))


@pytest.mark.parametrize("packing", ["best-fit", "stream"])
@pytest.mark.parametrize("world", [1, 2])
def test_a_run_resumes_behind_the_last_row_group(
    base: Path, trained: bytepair.Tokenizer, packing: Any, world: int
) -> None:
    options: Any = {"packing": packing, "rank": world - 1, "world_size": world, "buffer": 2}
    batches = text_batches(base / "base_data", trained, 1, 4, group=1, **options)
    plain = read(base, trained, "train", 99, world - 1, world)
    places = [place for place, _ in itertools.islice(plain, 99)]
    seen = set()
    for _ in itertools.islice(batches, 300):
        assert batches.state is not None
        state = json.loads(json.dumps(batches.state))
        place = place_of(batches)
        if place in seen:
            continue
        seen.add(place)
        resumed = text_batches(base / "base_data", trained, 1, 1, state=state, group=1, **options)
        next(resumed)
        assert place_of(resumed) == places[places.index(place) + 1]
    assert len(seen) > 5


def test_the_first_rank_logs_what_all_read(
    base: Path, trained: bytepair.Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bytepair")
    for rank in range(2):
        text_batches(base / "base_data", trained, 1, 4, rank=rank, world_size=2, split="val")
    (line,) = caplog.messages
    assert line.startswith("reading 1 parquet file of the split val; skipped a.parquet (train), ")


def test_a_state_of_2025_has_no_epoch(base: Path, trained: bytepair.Tokenizer) -> None:
    state = {"pq_idx": 2, "rg_idx": 1}
    batches = text_batches(base / "base_data", trained, 1, 1, state=state, buffer=1, group=1)
    next(batches)
    assert place_of(batches) == (2, 2, 1)
    for wrong in ({"epoch": 1}, {"pq_idx": -1, "rg_idx": 0}, {"pq_idx": 0, "rg_idx": 1 << 70}):
        with told(ShardError):
            text_batches(base / "base_data", trained, B, T, state=wrong)


def test_a_state_of_other_files_is_refused(
    base: Path, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    files = sorted((base / "base_data").glob("*.parquet"))
    batches = text_batches(files, trained, 1, 4, split="all", buffer=1, group=1)
    next(batches)
    state = batches.state
    assert state is not None
    assert state["pq_idx"] == 0
    text_batches(files[:2], trained, 1, 4, split="all", state=state)  # more files may come later
    for others in (files[1:], files[::-1]):
        with told(ShardError):
            text_batches(others, trained, 1, 4, split="all", state=state)
    with told(ShardError):
        text_batches(files[:2], trained, 1, 4, split="all", state={"pq_idx": 2, "rg_idx": 0})


def test_batches_are_built_in_the_process_that_uses_them(
    base: Path, trained: bytepair.Tokenizer
) -> None:
    with pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(text_batches(base / "base_data", trained, 1, 4))


def test_invalid_options(base: Path, trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    data = base / "base_data"
    wrong: dict[str, Any] = {"rank": 1, "buffer": 0, "group": 0, "packing": "x"}
    for option, value in wrong.items():
        with pytest.raises((ArgumentError, ShardError)) as caught:
            text_batches(data, trained, B, T, **{option: value})
        assert caught.value.option == option
    with told(CorpusError):
        text_batches(data / "a.parquet", trained, B, T)
    (tmp_path / "a.txt").write_text("text")
    with told(ShardError):
        text_batches(tmp_path / "a.txt", trained, B, T, split=None)
    with told(SpecialTokenError):
        text_batches(data, trained, B, T, bos="<x>")
    with told(CorpusError):
        next(text_batches(data, trained, B, T, column="body"))


@given(
    st.lists(st.lists(st.text("ab", max_size=19), max_size=9), max_size=20),
    st.integers(19, 40),
    st.integers(1, 9),
    st.booleans(),
)
def test_rows_of_waiting_documents_are_packed_by_the_plain_rule(
    groups: list[list[str]], width: int, buffer: int, cut: bool
) -> None:
    waiting = WaitingDocuments[str](width, buffer, cut=cut)
    rows = list[list[str]]()
    for group in groups:
        for document in group:
            waiting.add(len(document), document)
        while (row := waiting.row()) is not None:
            letters = "".join(document[:length] for document, length in row)
            rows.append([*letters.ljust(width, "-")])
    assert rows == list(reference_twins.packed_rows(groups, width, buffer, None if cut else "-"))


@pytest.mark.parametrize("width", [1, 3])
def test_a_document_longer_than_a_row_is_cropped(width: int) -> None:
    waiting = WaitingDocuments[str](width, 2, cut=True)
    waiting.add(9, "long")
    assert waiting.row() is None
    waiting.add(8, "short")
    assert waiting.row() == [("short", width)]


# ---------------------------------------------------------------------------- conversations


def talk(number: int) -> dict[str, Any]:
    texts = [
        "x " * (number * 7 % 23 + 1),
        "yes",
        "why? " * (number % 5),
        "the quick " * (number % 9),
    ]
    roles = itertools.cycle(["user", "assistant"])
    count = 2 + 2 * (number % 2)
    return {"messages": [{"role": next(roles), "content": text} for text in texts[:count]]}


TALKS = [talk(number) for number in range(47)]


@pytest.mark.filterwarnings("ignore:.* are cut off:bytepair.errors.SkippedWarning")
@pytest.mark.parametrize(("rank", "world", "buffer"), [(0, 1, 100), (0, 1, 5), (1, 3, 8)])
def test_conversations_are_packed_by_the_plain_rule(
    trained: bytepair.Tokenizer, rank: int, world: int, buffer: int
) -> None:
    width = 65
    batches = conversation_batches(
        TALKS, trained, B, width - 1, rank=rank, world_size=world, buffer=buffer
    )

    def groups() -> Iterator[list[list[tuple[int, int]]]]:
        for number in itertools.count(rank, world):
            ids, mask = trained.render_conversation(
                TALKS[number % len(TALKS)], width - 1, on_untrained="keep"
            )
            yield [list(zip(ids, mask, strict=True))]

    bos = trained.special_tokens["<|bos|>"]
    rows = reference_twins.packed_rows(groups(), width, buffer, filler=(bos, 0))
    for inputs, targets in itertools.islice(batches, 40):
        some = list(itertools.islice(rows, B))
        assert inputs.tolist() == [[id for id, _ in row[:-1]] for row in some]
        assert targets.tolist() == [[id if m else -1 for id, m in row[1:]] for row in some]
    assert batches.progress > 1


@pytest.mark.filterwarnings("ignore:.* are cut off:bytepair.errors.SkippedWarning")
@pytest.mark.parametrize(("rank", "world", "buffer"), [(0, 1, 100), (0, 1, 5), (1, 3, 8)])
def test_conversations_go_on_from_a_state(
    trained: bytepair.Tokenizer, rank: int, world: int, buffer: int
) -> None:
    options: dict[str, Any] = {"rank": rank, "world_size": world, "buffer": buffer}
    batches = conversation_batches(TALKS, trained, B, 64, **options)
    for _ in range(12):
        state = json.loads(json.dumps(batches.state))
        resumed = conversation_batches(TALKS, trained, B, 64, state=state, **options)
        assert resumed.state == batches.state
        for _ in range(3):
            one, two = next(batches), next(resumed)
            assert all((a == b).all() for a, b in zip(one, two, strict=True))
            assert resumed.progress == batches.progress
            assert resumed.state == batches.state
    damaged: list[Any] = [
        {}, None, 5, state | {"next": -1}, state | {"waiting": ["x"]},
        state | {"waiting": [1 << 40]}, state | {"used": True}, state | {"conversations": 5},
        state | {"world_size": 9},
    ]  # fmt: skip
    for wrong in damaged:
        with pytest.raises(ShardError) if wrong is not None else nullcontext():
            conversation_batches(TALKS, trained, B, 64, state=wrong, **options)


@pytest.mark.filterwarnings("ignore:.* are cut off:bytepair.errors.SkippedWarning")
def test_invalid_options_of_conversations(trained: bytepair.Tokenizer) -> None:
    for options in ({"rank": 1}, {"buffer": 0}, {"max_tokens": 66}):
        with told((ArgumentError, ShardError)):
            conversation_batches(TALKS, trained, B, 64, **options)
    with told(ShardError):
        conversation_batches([], trained, B, 64)
    wrong = [*TALKS * 5, {"messages": [{"role": "nobody", "content": ""}]}]
    with told(ConversationError):
        list(itertools.islice(conversation_batches(wrong, trained, B, 64), 200))


# ---------------------------------------------------------------------------- nanochat's own


def loaded(base: Path, monkeypatch: pytest.MonkeyPatch, rank: int, world: int) -> None:
    """Give `compat.nanochat` the same data, the same rank, and arrays for tensors."""
    monkeypatch.setenv("NANOCHAT_BASE_DIR", str(base))
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world))
    monkeypatch.setitem(sys.modules, "torch", nanochat_source.torch())


@pytest.mark.parametrize(("rank", "world"), [(0, 1), (1, 2)])
@pytest.mark.parametrize("split", ["train", "val"])
def test_the_loader_of_2026(
    base: Path, monkeypatch: pytest.MonkeyPatch, split: Any, rank: int, world: int
) -> None:
    loaded(base, monkeypatch, rank, world)
    ours = nanochat.get_tokenizer()
    options: Any = {"device": "cpu", "tokenizer_batch_size": 7, "buffer_size": 12}
    state = None
    with nanochat_source.modules(
        TODAY, "tokenizer", "dataset", "dataloader", base=base, rank=rank, world_size=world
    ) as (theirs, _, loader):
        original = theirs.RustBPETokenizer.from_directory(base / "tokenizer")
        name = "tokenizing_distributed_data_loader_with_state_bos_bestfit"
        for count, tokenizer in zip((1, 5, 9, 40), itertools.cycle([ours, original])):
            pairs = zip(
                getattr(loader, name)(original, B, T, split, resume_state_dict=state, **options),
                getattr(nanochat, name)(tokenizer, B, T, split, resume_state_dict=state, **options),
                strict=True,
            )
            for expected, batch in itertools.islice(pairs, count):
                assert (expected[0] == batch[0]).all()
                assert (expected[1] == batch[1]).all()
                assert batch[2].items() >= expected[2].items()  # ours says which files, too
                assert expected[0].dtype == batch[0].dtype
                state = batch[2]


def test_the_loaders_of_2025(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(base, monkeypatch, 0, 1)
    names = ("tokenizer", "dataset", "dataloader")
    name = "tokenizing_distributed_data_loader"
    with nanochat_source.modules(FIRST, *names, base=base) as (_, _, loader):
        pairs = zip(
            getattr(loader, name)(B, T, "train", tokenizer_batch_size=7),
            getattr(nanochat, name)(B, T, "train", tokenizer_batch_size=7, device="cpu"),
            strict=True,
        )
        for expected, batch in itertools.islice(pairs, 40):
            assert (expected[0] == batch[0]).all()
            assert (expected[1] == batch[1]).all()
    state = None
    options: Any = {"tokenizer_batch_size": 7, "device": "cpu"}
    with nanochat_source.modules(LAST_OF_2025, *names, base=base) as (_, _, loader):
        for count in (1, 5, 9, 40):
            pairs = zip(
                getattr(loader, f"{name}_with_state")(
                    B, T, "train", resume_state_dict=state, **options
                ),
                getattr(nanochat, f"{name}_with_state")(
                    B, T, "train", resume_state_dict=state, **options
                ),
                strict=True,
            )
            for expected, batch in itertools.islice(pairs, count):
                assert (expected[0] == batch[0]).all()
                assert (expected[1] == batch[1]).all()
                state = expected[2]
                assert state == {key: batch[2][key] for key in state}


@pytest.mark.parametrize(("rank", "world"), [(0, 1), (1, 3)])
def test_the_fine_tuning_of_2026(
    base: Path, trained: bytepair.Tokenizer, rank: int, world: int
) -> None:
    class Arguments:
        max_seq_len, device_batch_size, num_iterations = 256, B, -1

    with nanochat_source.modules(TODAY, "tokenizer", base=base) as (theirs,):
        original = theirs.RustBPETokenizer.from_directory(base / "tokenizer")
        generator = nanochat_source.function(
            TODAY, "scripts/chat_sft.py", "sft_data_generator_bos_bestfit",
            args=Arguments, tokenizer=original, train_dataset=TALKS, val_dataset=TALKS,
            ddp_rank=rank, ddp_world_size=world, device="cpu", device_type="cpu",
        )  # fmt: skip
        ours = conversation_batches(
            TALKS, trained, B, Arguments.max_seq_len, rank=rank, world_size=world
        )
        for expected, batch in itertools.islice(zip(generator("train"), ours, strict=True), 30):
            assert (expected[0] == batch[0]).all()
            assert (expected[1] == batch[1]).all()
            assert generator.__globals__["approx_progress"] == ours.progress
