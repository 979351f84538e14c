"""Text that no token covers: an error, or left out before merging as tokenizers does."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair import _core, errors
from conftest import refused
from messages import told

tokenizers = pytest.importorskip("tokenizers")

LETTERS = "ab1 é\n"


def document(ignore_merges: bool = False, **model: Any) -> dict[str, Any]:
    """A byte-level file without tokens for `x`, the vertical tab and most other bytes."""
    names = ["a", "b", "1", "Ġ", "Ã", "©", "Ċ", "ab", "Ġa", "Ġab", "bab", "ÃŠ", "aa", "aaaa"]
    merges = [["a", "b"], ["Ġ", "a"], ["Ġ", "ab"], ["b", "ab"], ["a", "a"], ["aa", "aa"]]
    if ignore_merges:
        names.append("b1")
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
            "use_regex": True,
        },
        "post_processor": None, "decoder": {
            "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
            "use_regex": True,
        },
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": ignore_merges, "vocab": {name: i for i, name in enumerate(names)},
            "merges": merges, **model,
        },
    }  # fmt: skip


def both(folder: Path, values: dict[str, Any]) -> tuple[bytepair.Tokenizer, Any]:
    """A file in both libraries."""
    values["model"]["merges"] = [
        pair for pair in values["model"]["merges"] if "".join(pair) in values["model"]["vocab"]
    ]
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(values))
    return bytepair.load(file, uncovered="drop"), tokenizers.Tokenizer.from_file(str(file))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytepair.Tokenizer, Any]:
    return both(tmp_path_factory.mktemp("uncovered"), document())


texts = st.text(st.sampled_from("aab1 xé\x0b\n日"), max_size=60) | st.builds(
    lambda one, count: one * count,
    st.text(st.sampled_from("abx \x0b日"), max_size=5),
    st.integers(0, 200),
)


@given(text=texts)
def test_ids_equal_those_of_tokenizers(pair: tuple[bytepair.Tokenizer, Any], text: str) -> None:
    ours, theirs = pair
    expected = theirs.encode(text).ids
    assert ours.encode(text) == expected
    assert ours.count(text) == len(expected)
    assert list(ours.encode_stream([text[:3], text[3:]])) == expected
    session = bytepair.tokenizer.Session(ours)
    for piece in (text[:5], text[5:]):
        session.append(piece)
    assert session.ids == expected
    numbers, offsets = ours.encode_batch_to_numpy([text, text])
    assert numbers[: offsets[1]].tolist() == expected
    ids, _, spans = ours.encode_offsets(text)
    assert ids == expected  # the general way is the slow twin
    kept = [text[start:end] for start, end in spans.tolist()]
    assert all(set(piece) & {*LETTERS, "日"} for piece in kept)
    assert ours.count(bytepair.tokenizer.truncate_text(ours, text, 3)) <= 3


def test_names_and_whole_pretokens(tmp_path: Path) -> None:
    names = document(
        end_of_word_suffix="</w>", merges=[],
        vocab={"a": 0, "b": 1, "a</w>": 2, "b</w>": 3},
    )  # fmt: skip
    ours, theirs = both(tmp_path, names)
    for text in ("abxa", "axb", "xxa", "axx", "x", ""):
        assert ours.encode(text) == theirs.encode(text).ids == ours.encode_offsets(text)[0]
    with told(errors.BytepairError):
        both(tmp_path, document(ignore_merges=True))


def test_the_value_is_part_of_the_tokenizer(
    pair: tuple[bytepair.Tokenizer, Any], tmp_path: Path
) -> None:
    dropping, _ = pair
    dropping.save(tmp_path / "saved")
    failing = bytepair.load(tmp_path / "saved", uncovered="error")
    with told(errors.SplitError):
        failing.encode("x")
    assert failing != dropping
    assert failing.fingerprint != dropping.fingerprint
    assert bytepair.load(tmp_path / "saved") == dropping == pickle.loads(pickle.dumps(dropping))
    more = dropping.replace(special_tokens=["<s>"])
    assert more.encode("axb") == dropping.encode("ab") == [7]
    assert bytepair.load(tmp_path / "saved").replace(repeats=0).encode("axb") == [7]
    assert not bytepair.tokenizer.is_lossless(dropping)
    gguf = "the error for bytes that no token covers (0x00, 0x01, 0x02 and"
    assert any(loss.startswith(gguf) for loss in bytepair.compat.export_losses(failing, "gguf"))
    assert not any("covers" in loss for loss in bytepair.compat.export_losses(dropping, "gguf"))
    with refused("uncovered", "skip"):
        bytepair.load(tmp_path / "saved", uncovered="skip")  # type: ignore[arg-type]
    assert not _core.text_rules(failing).drops_uncovered
