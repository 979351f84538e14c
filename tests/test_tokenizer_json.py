"""The table of small `tokenizer.json` files that the tests of the Rust crate read too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair.errors import FormatError
from bytepair.formats import huggingface
from formats import json_of, small

tokenizers = pytest.importorskip("tokenizers")

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data/tokenizer_json.json").read_text(encoding="utf-8")
)
#: What training scripts leave behind.
TRUNCATION = {
    "direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0,
}  # fmt: skip
PADDING = {
    "strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
    "pad_type_id": 0, "pad_token": "!",
}  # fmt: skip


def read(document: dict[str, Any], folder: Path) -> bytepair.Tokenizer:
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return bytepair.load(file, "huggingface")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_table_of_files(case: dict[str, Any], tmp_path: Path) -> None:
    if "error" in case:
        place, reason = case["error"]
        with pytest.raises(FormatError) as caught:
            read(case["document"], tmp_path)
        assert caught.value.place.endswith(place)
        assert reason in caught.value.reason
        return
    tok = read(case["document"], tmp_path)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(case["document"]))
    theirs.no_padding()
    theirs.no_truncation()
    for text, ids in case["ids"]:
        assert tok.encode(text, special="all") == ids
        assert theirs.encode(text, add_special_tokens=False).ids == ids
    assert read(json.loads(huggingface.text(tok)), tmp_path) == tok


def test_truncation_and_padding_are_kept_and_not_applied(tmp_path: Path) -> None:
    document = json_of(small()) | {"truncation": TRUNCATION, "padding": PADDING}
    tok = read(document, tmp_path)
    assert tok == small()
    assert tok.encode("hello the world") == small().encode("hello the world")
    written = json_of(tok)
    assert (written["truncation"], written["padding"]) == (TRUNCATION, PADDING)
    native = bytepair.load(tok.save(tmp_path / "own"))
    assert json_of(native)["truncation"] == TRUNCATION


@pytest.mark.parametrize("name", ["byte level", "spaces of a normalizer", "spaces of Metaspace"])
def test_without_a_decoder_ids_become_text(name: str, tmp_path: Path) -> None:
    document = next(case["document"] for case in CASES if case["name"] == name)
    tok = read(document | {"decoder": None}, tmp_path)
    assert tok == read(document, tmp_path)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(document | {"decoder": None}))
    for text in ("hello he\n", "hell", ""):
        ids = tok.encode(text)
        assert ids == theirs.encode(text, add_special_tokens=False).ids
        assert tok.decode(ids) == text
    assert json_of(tok)["decoder"] is None


def test_steps_that_become_one_pattern_are_written_back(tmp_path: Path) -> None:
    steps = [
        {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}"}, "behavior": "Isolated",
         "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ]  # fmt: skip
    document = json_of(small()) | {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
    }
    tok = read(document, tmp_path)
    assert tok.pattern.startswith(r"\p{N}{1,3}|'s|")
    assert json_of(tok)["pre_tokenizer"] == document["pre_tokenizer"]
    assert tok.export_losses("huggingface") == []


def test_steps_of_a_pattern_stay_steps(tmp_path: Path) -> None:
    tok = small(pattern=r"\p{N}(?#then)" + bytepair.PATTERNS["gpt2"])
    assert json_of(tok)["model"]["bytepair"] == {"pattern": tok.pattern}
    assert read(json_of(tok), tmp_path) == tok
    other = json_of(tok)
    del other["model"]["bytepair"]
    assert "(?#then)" not in read(other, tmp_path).pattern
