"""Added tokens of `tokenizer.json`: found as `tokenizers` finds them, whatever their flags."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bytepair
from bytepair.errors import UnsupportedError
from formats import json_of, load, small
from messages import told

tokenizers = pytest.importorskip("tokenizers")

TOK = bytepair.train(bytepair.sample.paths(), 1500, special_tokens=["<|bos|>", "<|tool|>"])


def test_added_tokens_and_their_flags() -> None:
    document = json_of(small())
    document["added_tokens"][1] |= {"special": False, "normalized": True}
    ours, theirs = load(document), tokenizers.Tokenizer.from_str(json.dumps(document))
    text = "<|bos|>hello<|endoftext|><|bos|"
    assert ours.encode(text, special="all") == theirs.encode(text, add_special_tokens=False).ids
    again = json_of(ours)
    assert again["added_tokens"] == document["added_tokens"]


STRIPPING = [
    {"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True},
    {"lstrip": True, "rstrip": True, "normalized": True},
]  # fmt: skip


@pytest.mark.parametrize("flags", STRIPPING, ids=json.dumps)
@pytest.mark.parametrize("names", [["<|endoftext|>", "<|bos|>"], ["<m>", " <n> "], ["<m>", "  "]])
def test_tokens_that_take_the_white_space_beside_them(
    flags: dict[str, bool], names: list[str], tmp_path: Path
) -> None:
    document = json_of(small(special_tokens={name: 259 + n for n, name in enumerate(names)}))
    document["added_tokens"][0] |= flags
    theirs = tokenizers.Tokenizer.from_str(json.dumps(document))
    ours = load(document)
    piece = st.sampled_from([*names, " ", "\n", "\u3000", "\x1c", "\u200b", "a", "he", "  "])

    @given(st.lists(piece, max_size=12))
    def check(pieces: list[str]) -> None:
        text = "".join(pieces)
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, special="all") == ids
        assert ours.encode_batch([text], special="all", threads=2) == [ids]
        assert ours.count(text, special="all") == len(ids)
        assert ours.decode(ours.encode(text)) == text  # as text, nothing is taken

    check()
    assert json_of(ours)["added_tokens"] == document["added_tokens"]
    for path in (ours.export(tmp_path / "tokenizer.json"), ours.save(tmp_path / "native")):
        assert bytepair.load(path) == ours
    assert ours != small(special_tokens=ours.special_tokens)
    assert any("white space" in lost for lost in bytepair.compat.export_losses(ours, "gguf"))
    with told(ValueError):
        bytepair.compat.to_tiktoken(ours)


def test_overlapping_kinds_of_added_tokens() -> None:
    document = json_of(small(special_tokens={"<a>": 259, "b<": 260}))
    # b< could match the < of <a>, but normalized ones are searched second.
    for normalized in itertools.product([False, True], repeat=2):
        for token, is_normalized in zip(document["added_tokens"], normalized, strict=True):
            token["normalized"] = is_normalized
        theirs = tokenizers.Tokenizer.from_str(json.dumps(document))
        assert load(document).special_tokens == {"<a>": 259, "b<": 260}
        for text in ("b<a>", "<a>b<", "<ab<a>"):
            ids = theirs.encode(text, add_special_tokens=False).ids
            assert load(document).encode(text, special="all") == ids


@pytest.mark.parametrize("special", [False, True])
def test_an_added_token_may_look_like_the_bytes_of_a_merge(special: bool) -> None:
    document = json_of(TOK)
    name = next(name for name in document["model"]["vocab"] if name.startswith("Ġ") and name[1:])
    token = {"id": document["model"]["vocab"][name], "content": name, "special": special}
    document["added_tokens"] = [token]
    document["added_tokens"][0] |= dict.fromkeys(
        ["single_word", "lstrip", "rstrip", "normalized"], False
    )
    if special:
        with told(UnsupportedError):
            load(document)
        return
    ours, theirs = load(document), tokenizers.Tokenizer.from_str(json.dumps(document))
    for text in (name, name.replace("Ġ", " "), f"x{name} {name}"):
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, special="all") == ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.timeout(20)
def test_many_tokens_of_a_configuration_are_added_in_time(tmp_path: Path) -> None:
    names = [f"<|{number}|>" for number in range(40_000)]
    (tmp_path / "tokenizer.json").write_text(json.dumps(json_of(small())))
    config = {"additional_special_tokens": names}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    special = bytepair.load(tmp_path).special_tokens
    assert [special[name] for name in names[:3]] == [261, 262, 263]
