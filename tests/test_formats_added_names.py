"""Tokens that only the files beside a `tokenizer.json` name: as `transformers` adds them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import bytepair
from bytepair.errors import BytepairError, UnsupportedError
from messages import told

transformers = pytest.importorskip("transformers")

TOK = bytepair.train(bytepair.sample.paths(), 300, special_tokens=["<|bos|>", "<|tool|>"])
NEXT = TOK.vocab_size
FIELDS = ("bos_token", "eos_token", "unk_token", "pad_token", "mask_token")
FILES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
TEXT = "Hi <|bos|> the <new><eot> <img>the <|tool|> <tool> <a b><old> <|pad|>x"


def folder(path: Path, **files: Any) -> Path:
    """A folder with our `tokenizer.json` and other files."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    TOK.export(path / "tokenizer.json", "huggingface", lossy=True)
    config = files.pop("tokenizer_config", {}) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    for name, fields in {"tokenizer_config": config, **files}.items():
        (path / f"{name}.json").write_text(json.dumps(fields))
    return path


def check_equal(path: Path) -> None:
    """The same added tokens, ids and roles as `transformers` has."""
    try:
        theirs = transformers.AutoTokenizer.from_pretrained(path)
    except RecursionError:  # its own, for several roles with empty names
        reject()
    ours = bytepair.load(path)
    tokens = json.loads(theirs.backend_tokenizer.to_str())["added_tokens"]
    flags = ("id", "content", "special", "lstrip", "rstrip", "single_word")
    assert [
        [getattr(token, flag) for flag in flags] for token in bytepair.tokenizer.added_tokens(ours)
    ] == [[token[flag] for flag in flags] for token in tokens]
    assert ours.encode(TEXT, special="all") == theirs(TEXT, add_special_tokens=False)["input_ids"]
    for field in FIELDS:
        name = getattr(theirs, field)
        assert (ours.notes.get(field) or None) == (name or None)
        if name:
            assert ours.special_tokens[name] == getattr(theirs, f"{field}_id")
    ours.export(path / "again", "huggingface")
    again = transformers.AutoTokenizer.from_pretrained(path / "again")
    assert json.loads(again.backend_tokenizer.to_str())["added_tokens"] == tokens
    assert bytepair.load(path / "again") == ours


def entry(name: str, **flags: bool) -> dict[str, Any]:
    return {"__type": "AddedToken", "content": name, **flags}


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config": {"eos_token": "<new>"}},
        {"tokenizer_config": {"eos_token": "<new>", "pad_token": "<|pad|>"}},
        {"tokenizer_config": {"pad_token": "the"}},
        {"tokenizer_config": {"pad_token": " the"}},
        {"tokenizer_config": {"eos_token": "<|tool|>"}},
        {"tokenizer_config": {"eos_token": entry("<new>", lstrip=True, normalized=False)}},
        {"tokenizer_config": {"added_tokens_decoder": {NEXT: entry("<new>", rstrip=True)}}},
        {"tokenizer_config": {"added_tokens_decoder": {
            NEXT + 1: {"content": "<img>", "special": True}, NEXT: {"content": "<new>"}},
            "pad_token": "<new>"}},
        {"tokenizer_config": {"added_tokens_decoder": {NEXT - 1: {"content": "<|tool|>",
            "special": False, "lstrip": True}}}},
        {"tokenizer_config": {"image_token": "<img>", "eot_token": entry("<eot>"),
            "mask_token": "<new>", "additional_special_tokens": ["<old>", entry("<a b>")]}},
        {"tokenizer_config": {"extra_special_tokens": {"tool_token": "<tool>"}}},
        {"tokenizer_config": {"extra_special_tokens": ["<tool>"],
            "additional_special_tokens": ["<old>"]}},
        {"special_tokens_map": {"eos_token": {"content": "<new>", "lstrip": True},
            "pad_token": "<|pad|>"}, "tokenizer_config": {"eos_token": "<old>"}},
        {"special_tokens_map": {"eos_token": "<new>"}, "tokenizer_config": {
            "eos_token": "<old>", "added_tokens_decoder": {}}},
        {"added_tokens": {"<new>": NEXT + 1, "<old>": NEXT}, "tokenizer_config": {
            "eos_token": "<new>"}},
    ],
)  # fmt: skip
def test_names_are_added_as_transformers_adds_them(files: Any, tmp_path: Path) -> None:
    check_equal(folder(tmp_path, **files))


NAMES = st.sampled_from(["<new>", "<|tool|>", "<|bos|>", "the", "<img>", " the", "<a b>", ""])
FLAGS = st.fixed_dictionaries({}, optional=dict.fromkeys(
    ("lstrip", "rstrip", "special", "normalized"), st.booleans()))  # fmt: skip
ROLES = st.dictionaries(st.sampled_from(FIELDS), NAMES, max_size=4)
ALL_ROLES = st.dictionaries(
    st.sampled_from([*FIELDS, "image_token", "eot_token"]), NAMES, max_size=4
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(config=ALL_ROLES, map_fields=ROLES, names=st.lists(st.tuples(NAMES, FLAGS), max_size=3),
       flags=st.dictionaries(NAMES, FLAGS, max_size=3), is_modern=st.booleans())  # fmt: skip
def test_any_files(
    config: Any, map_fields: Any, names: Any, flags: Any, is_modern: bool, tmp_path: Path
) -> None:
    """Ids are stated as `transformers` gives them, or loading refuses."""
    config, map_fields = (
        {field: entry(name, **flags[name]) if name in flags else name
         for field, name in fields.items()} for fields in (config, map_fields)
    )  # fmt: skip
    if is_modern:
        decoder = {NEXT + n: {"content": name} | more for n, (name, more) in enumerate(names)}
        config = {**config, "added_tokens_decoder": decoder}
    path = folder(tmp_path / "files", tokenizer_config=config, special_tokens_map=map_fields)
    try:
        bytepair.load(path)
    except UnsupportedError as error:
        assert "does not have this id" in str(error)  # noqa: PT017
        return
    check_equal(path)


def test_what_cannot_be_added_is_refused_by_name(tmp_path: Path) -> None:
    path = folder(tmp_path, tokenizer_config={"added_tokens_decoder": {"7": {"content": "<new>"}}})
    with told(UnsupportedError):
        bytepair.load(path)
    assert bytepair.load(path, lossy=True).special_tokens["<new>"] == NEXT
    wrong: list[dict[str, Any]] = [
        {"added_tokens_decoder": []},
        {"added_tokens_decoder": {"x": {"content": "<new>"}}},
        {"added_tokens_decoder": {"300": {"content": 1}}},
        {"added_tokens_decoder": {"300": {"content": "a", "lstrip": 1}}},
        {"eos_token": {"content": "<new>", "special": "yes"}},
        {"extra_special_tokens": [{"content": []}]},
    ]
    for fields in wrong:
        with told(BytepairError):
            bytepair.load(folder(tmp_path, tokenizer_config=fields))
    digits = {"added_tokens_decoder": {"1" * 5000: {"content": "<new>"}}}
    with told(BytepairError, "expected int, not str"):
        bytepair.load(folder(tmp_path, tokenizer_config=digits))
