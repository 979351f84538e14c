"""The old ids that make up new tokens, and embeddings initialised from them."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import bytepair
from bytepair import _core
from bytepair.properties.tokens import all_tokens
from bytepair.tokenizer.vocabulary import TokenParts

ROOT = Path(__file__).resolve().parents[1]


def rows_of(parts: TokenParts) -> list[list[int]]:
    return [parts.ids[a:b].tolist() for a, b in zip(parts.offsets, parts.offsets[1:], strict=False)]


@pytest.fixture(scope="module")
def old() -> bytepair.Tokenizer:
    return bytepair.train(bytepair.sample.paths()[:1], 600)


def check(new: bytepair.Tokenizer, old: bytepair.Tokenizer) -> list[list[int]]:
    """The definition: encode the bytes of each token with the old tokenizer."""
    rows = rows_of(bytepair.tokenizer.parts_in(new, old))
    assert len(rows) == new.vocab_size
    names = set(old.special_tokens) & set(new.special_tokens)
    for id, row in enumerate(rows):
        token = all_tokens(new)[id]
        if token.decode(errors="replace") in names and id in new.special_tokens.values():
            assert row == [old.special_tokens[token.decode()]]
        else:
            assert row == (_core.encode_pretoken(old, token) if token else [])
            assert old.decode_bytes(row) == token
    return rows


def test_extended_vocabularies_keep_their_rows(old: bytepair.Tokenizer) -> None:
    korean = (Path(bytepair.sample.__file__).parent / "udhr" / "ko.txt").read_text("utf-8")
    new = bytepair.extend(old, [korean], 60).replace(special_tokens=["<|tool|>"])
    rows = check(new, old)
    assert rows[:600] == [[id] for id in range(600)]
    assert all(len(row) > 1 for row in rows[600:])
    # The parts of the tokens of a text are its old tokens, whose embeddings a model has learned.
    parts = [part for id in new.encode(korean) for part in rows[id]]
    assert parts == old.encode(korean)


@pytest.mark.parametrize("rule", ["ranks", "merges"])
def test_any_tokenizer_is_an_old_one(old: bytepair.Tokenizer, rule: str) -> None:
    ids = {bytes([byte]): byte for byte in range(256)} | {b"he": 300, b"hel": 301, b"\xc3\xa9": 302}
    special = {"<|bos|>": 299, "<s>": 310}
    if rule == "ranks":
        other = bytepair.Tokenizer.from_ranks(ids, pattern="gpt2", special_tokens=special)
    else:
        merges = [(b"h", b"e"), (b"he", b"l")]
        other = bytepair.Tokenizer.from_merges(
            ids, merges, pattern="gpt2", special_tokens=special, ignore_merges=True
        )
    check(old, other)
    rows = check(other, old)
    assert rows[299] == [old.special_tokens["<|bos|>"]]
    assert rows[303] == []
    assert rows[310] == _core.encode_pretoken(old, b"<s>")


def test_a_pruned_vocabulary_has_itself_as_parts(old: bytepair.Tokenizer) -> None:
    pruned = bytepair.prune(old, 500)
    rows = rows_of(bytepair.tokenizer.parts_in(pruned.tokenizer, old))
    assert [row[0] for row in rows] == np.flatnonzero(pruned.ids >= 0).tolist()
    assert {len(row) for row in rows} == {1}


def test_arrays(old: bytepair.Tokenizer) -> None:
    parts = bytepair.tokenizer.parts_in(old, old)
    assert (parts.offsets.dtype, parts.ids.dtype) == (np.dtype(np.int64), np.dtype(np.int64))
    assert parts.offsets.tolist() == list(range(601))
    bare = bytepair.Tokenizer.from_ranks({b"a": 0}, pattern="gpt2")
    with pytest.raises(bytepair.errors.SplitError):
        bytepair.tokenizer.parts_in(old, bare)


def test_the_example_in_torch() -> None:
    """Means of the rows of the parts give a lower loss than random rows, before any training."""
    torch = pytest.importorskip("torch")
    example = runpy.run_path(str(ROOT / "examples" / "resize_embeddings.py"))
    weight = torch.arange(12.0).view(4, 3)
    parts = TokenParts(np.array([0, 1, 3, 3]), np.array([2, 0, 1]))
    expected = torch.stack([weight[2], (weight[0] + weight[1]) / 2, torch.zeros(3)])
    assert torch.equal(example["means"](weight, parts), expected)
    losses = example["main"]()
    assert losses["means of parts"] < losses["random rows"]
