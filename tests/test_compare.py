"""Where two tokenizers differ: a test for each value that may, with one of them changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair.evaluate import comparison
from bytepair.properties.tokens import all_pairs
from commands import run
from messages import told
from texts import hard_text

BYTES = {bytes([byte]): byte for byte in range(256)}
RANKS = BYTES | {b"he": 256, b"ll": 257, b"hell": 258, b"lo": 259, b" w": 260, b"12": 261}


def ranked(**changes: Any) -> bytepair.Tokenizer:
    values = {"pattern": "gpt4", "special_tokens": {"<s>": 270}} | changes
    return bytepair.Tokenizer.from_ranks(values.pop("ranks", RANKS), **values)


def merged(merges: list[tuple[bytes, bytes]], *, ignore_merges: bool = False) -> Any:
    return bytepair.Tokenizer.from_merges(
        RANKS, merges, pattern="gpt4", special_tokens={"<s>": 270}, ignore_merges=ignore_merges
    )


MERGES = list(all_pairs(RANKS))

#: Two tokenizers, a text on which they first differ, the byte, and the value that differs.
CASES = {
    "vocabulary": (
        ranked(), ranked(ranks=BYTES | {b"he": 256, b"ll": 257}, special_tokens={"<s>": 270}),
        "a hello", 2, "tokens of one only",
    ),
    "ids": (
        ranked(), ranked(ranks={**BYTES, b"he": 256, b"ll": 257, b"hell": 300, b"lo": 301}),
        "oh hello", 3, "tokens of another id",
    ),
    "pattern": (ranked(), ranked(pattern=r"\d|\D+"), "a 12", 2, "pattern"),
    "normalizer": (ranked(), ranked(normalizer="NFC"), "he e\u0301", 3, ""),
    "special token": (
        ranked(), ranked(special_tokens={"<s>": 270, "<e>": 271}), "he<s>l<e>", 6,
        "special tokens",
    ),
    "special id": (ranked(), ranked(special_tokens={"<s>": 280}), "he<s>", 2, "special tokens"),
    "merge rule": (ranked(), merged([(b"l", b"o"), *MERGES]), "hello", 0, "merge rule"),
    "order": (merged(MERGES), merged([(b"l", b"o"), *MERGES]), "hello", 0, ""),
    "whole": (
        merged(MERGES[:2]), merged(MERGES[:2], ignore_merges=True), "a hell", 2, "merge rule",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("swapped", [False, True])
def test_the_first_difference_is_found(name: str, swapped: bool) -> None:
    one, two, text, byte, _ = CASES[name]
    text = text if name != "whole" else "a\nhell"
    pair = (two, one) if swapped else (one, two)
    result = bytepair.evaluate.compare(
        *pair, bytepair.corpus.Texts(["", "zzz", "e e e", text, text])
    )
    assert not result
    assert (result.texts, result.differing) == (5, 2)
    first = result.first
    assert first is not None
    assert (first.source, first.row, first.byte) == ("texts", 3, byte), first
    for tok, tokens, ids in zip(pair, first.tokens, first.ids, strict=True):
        assert [tok.token_bytes(id) for id in ids] == tokens
    assert f"row 3, byte {byte}" in str(result)


def test_a_comparison_shows_a_few_tokens() -> None:
    one, two, text, *_ = CASES["pattern"]
    result = bytepair.evaluate.compare(one, two, bytepair.corpus.Texts([text * 20]))
    lines = str(result).splitlines()
    assert lines[0].startswith("1 of 1 text differs")
    assert max(map(len, lines)) < 200


def test_equal_tokenizers_are_equal(trained: bytepair.Tokenizer) -> None:
    assert bytepair.evaluate.compare(trained, trained).texts == 61
    for other in (bytepair.compat.to_tiktoken(trained), bytepair.compat.to_huggingface(trained)):
        result = bytepair.evaluate.compare(trained, other)
        assert result
        assert result.tokens == sum(bytepair.tokenizer.count_batch(trained,
            [path.read_text("utf-8") for path in bytepair.sample.paths()]
        ))  # fmt: skip
        assert "equal on 61 texts" in str(result)
        texts = ["a<|bos|>b", "<|user_start|>"]
        assert bytepair.evaluate.compare(other, trained, bytepair.corpus.Texts(texts))


@settings(max_examples=60)
@given(st.lists(hard_text, max_size=5), st.sampled_from(sorted(CASES)))
def test_all_differences_are_counted_and_placed(texts: list[str], name: str) -> None:
    """The plain way: encode both, walk along the tokens."""
    one, two, *_ = CASES[name]
    result = bytepair.evaluate.compare(one, two, bytepair.corpus.Texts(texts))
    expected = []
    for row, text in enumerate(texts):
        a, b = one.encode(text, special="all"), two.encode(text, special="all")
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
            at = min(len(a), len(b)) if at is None else at
            expected.append((row, len(one.decode_bytes(a[:at]))))
    assert [(one.row, one.byte) for one in [result.first] if one] == expected[:1]
    assert result.differing == len(expected)


def test_tokens_of_other_ids(trained: bytepair.Tokenizer) -> None:
    texts = [path.read_text("utf-8") for path in bytepair.sample.paths()[:20]]
    pruned = bytepair.prune(trained, bytepair.count(texts, pattern=trained.pattern)).tokenizer
    assert bytepair.evaluate.compare(trained, pruned, bytepair.corpus.Texts(texts), by="tokens")
    result = bytepair.evaluate.compare(trained, pruned, bytepair.corpus.Texts(texts))
    assert not result
    assert "--by tokens" in str(result)
    result = bytepair.evaluate.compare(trained, pruned, by="tokens")
    assert "--by tokens" not in str(result)
    with told(ValueError):
        bytepair.evaluate.compare(trained, pruned, by="words")  # type: ignore[arg-type]


def test_files_have_names_and_rows(tmp_path: Path) -> None:
    lines = ["zz", "a hello", "hello"]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    one, two, *_ = CASES["vocabulary"]
    result = bytepair.evaluate.compare(one, two, bytepair.corpus.Paths([file]))
    assert result.differing == 2
    assert result.first is not None
    assert result.first.source.endswith("a.jsonl")
    assert result.first.row == 1


def test_the_command_has_an_exit_code(tmp_path: Path) -> None:
    one, two, *_ = CASES["vocabulary"]
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    one.export(tmp_path / "tokenizer.json")
    (tmp_path / "a.txt").write_text("a hello")
    output = run("compare", "one", "tokenizer.json", "a.txt", cwd=tmp_path).stdout
    assert "equal on 1 text, 4 tokens" in output
    output = run("compare", "one", "two", "a.txt", cwd=tmp_path, code=1).stdout
    assert "'hell'" in output
    assert "--by tokens" not in output
    result = json.loads(
        run("compare", "one", "two", "a.txt", "--json", cwd=tmp_path, code=1).stdout
    )
    assert result["equal"] is False
    assert result["first"]["byte"] == 2
    assert result["first"]["tokens"][0] == ["hell", "o"]
    # What could not be compared is not a difference.
    run("compare", "one", "none", "a.txt", cwd=tmp_path, code=2)
    run("compare", "one", "two", "none.txt", cwd=tmp_path, code=2)
    run("compare", "one", "two", "--max-chars", "5", cwd=tmp_path, code=2)


def test_the_ids_of_a_side_are_arrays() -> None:
    _, encode = comparison._side(ranked())
    first, second = encode(["he<s>", ""])
    assert (first.tolist(), second.tolist()) == ([256, 270], [])
    assert first.dtype == np.dtype(np.int64)
