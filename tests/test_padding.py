"""Rows of equal width, tensors and other types of ids, against lists of ids padded one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair.errors import ArgumentError, CorpusError, SpecialTokenError
from messages import told
from texts import hard_text

TOK = bytepair.train(bytepair.sample.paths()[:2], 400)
NO_PAD = bytepair.train(["hello hello"], 260, special_tokens=["<|x|>"])
PAD = TOK.special_tokens["<|bos|>"]


@given(st.lists(hard_text, max_size=6), st.integers(0, 9), st.sampled_from(["right", "left"]))
def test_rows_equal_lists_padded_one_by_one(texts: list[str], extra: int, side: Any) -> None:
    lists = TOK.encode_batch(texts)
    width = max(map(len, lists), default=0) + extra
    ids, mask = [], []
    for row in lists:
        fill = width - len(row)
        ids.append(row + [PAD] * fill if side == "right" else [PAD] * fill + row)
        ones = [1] * len(row)
        mask.append(ones + [0] * fill if side == "right" else [0] * fill + ones)
    batch = bytepair.compat.pad(TOK, lists, width, side=side)
    assert batch["input_ids"].tolist() == ids
    assert batch["attention_mask"].tolist() == mask
    assert [str(rows.dtype) for rows in batch.values()] == ["int32", "uint8"]
    wide = bytepair.compat.pad(TOK, lists, width, side=side, tensors="np")
    assert wide.keys() == batch.keys()
    assert all(
        rows.dtype == np.int64 and (rows == batch[name]).all() for name, rows in wide.items()
    )


def test_tensors_are_those_of_transformers() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    texts, theirs = ["To be, or not", "to", ""], bytepair.compat.to_transformers(TOK)
    sides: list[Any] = ["right", "left"]
    for side in sides:
        theirs.padding_side = side
        expected = theirs(texts, padding=True, return_tensors="pt")
        batch = bytepair.compat.pad(TOK, TOK.encode_batch(texts), side=side, tensors="pt")
        assert batch.keys() == set(expected) - {"token_type_ids"}
        for name in batch:
            assert batch[name].dtype == torch.int64
            assert (batch[name] == expected[name]).all()
    embedding = torch.nn.Embedding(TOK.vocab_size, 2)
    ids = TOK.encode_batch_to_numpy(texts, dtype="int64")[0]
    assert embedding(torch.from_numpy(ids)).shape == (len(ids), 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [("tensors", "tf"), ("side", "up"), ("width", 1), ("width", -1), ("width", "short"),
     ("rows", "ab"), ("rows", {"a": [1]}), ("rows", [["a"]])],
)  # fmt: skip
def test_wrong_options_are_named(name: str, value: Any) -> None:
    options: dict[str, Any] = {"rows": [[97, 98], [97]], name: value}
    with pytest.raises(ArgumentError) as refused:
        bytepair.compat.pad(TOK, **options)
    assert refused.value.option == name


def test_padding_needs_a_token_for_it() -> None:
    assert bytepair.compat.pad(NO_PAD, [[97], [98]], tensors="np")["input_ids"].shape == (2, 1)
    with told(SpecialTokenError):
        bytepair.compat.pad(NO_PAD, [[97], [98, 98]])


@given(hard_text, st.sampled_from(["u2", "i4", "u4", "i8", "u8", np.int64]))
def test_ids_of_another_type_are_the_same(text: str, dtype: Any) -> None:
    assert TOK.encode_batch_to_numpy([text], dtype=dtype).ids.tolist() == TOK.encode(text)
    assert TOK.encode_batch_to_numpy([text], dtype=dtype).ids.dtype == np.dtype(dtype)
    ids, offsets = TOK.encode_batch_to_numpy([text, text], dtype=dtype)
    assert (ids.dtype, ids.tolist()) == (np.dtype(dtype), TOK.encode(text) * 2)
    assert offsets.dtype == np.int64


@pytest.mark.parametrize("dtype", ["u1", "i1", "f8", "?", "O", "no type", 3])
def test_a_type_without_room_is_refused(dtype: Any) -> None:
    with told(ArgumentError):
        TOK.encode_batch_to_numpy(["a"], dtype=dtype)


def columns(texts: list[str]) -> Iterable[Any]:
    pa = pytest.importorskip("pyarrow")
    yield from (pa.array(texts, pa.string()), pa.array(texts, pa.large_string()))
    yield pa.chunked_array([texts[:1], texts[1:]], pa.string())
    yield pa.array(["before", *texts], pa.string_view())[1:]


@given(st.lists(st.text(), max_size=6))
def test_columns_are_texts(texts: list[str]) -> None:
    for column in columns(texts):
        assert TOK.encode_batch(column) == TOK.encode_batch(texts)
        assert (
            bytepair.tokenizer.count_batch(TOK, column)
            == bytepair.tokenizer.count_batch(TOK, texts)
        ).all()
        for ours, expected in zip(
            TOK.encode_batch_to_numpy(column), TOK.encode_batch_to_numpy(texts), strict=True
        ):
            assert ours.tolist() == expected.tolist()


def test_a_column_that_is_none_of_text_is_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    with told(ArgumentError):
        bytepair.tokenizer.count_batch(TOK, pa.array(["a", None]))
    with told(ArgumentError):
        TOK.encode_batch(pa.table({"text": ["a"]}))
    with told(ArgumentError):
        TOK.encode_batch(pa.array([1]))
    broken = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a", b"\xff"]).buffers())
    with told(CorpusError):
        TOK.encode_batch(broken)
