"""Published vocabularies on this machine: caches and packages that the tests lay out."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import bytepair
from bytepair.errors import FormatError
from bytepair.formats import published
from formats import small
from messages import told

COMMIT = "a" * 40


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No caches but those of the test."""
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tiktoken"))
    monkeypatch.setattr(published, "_PACKAGES", {})


def ranks_of(tok: bytepair.Tokenizer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The rank file of a tokenizer, which is published from now on as that of gpt2."""
    data = tok.export(folder / "x.tiktoken", lossy=True).read_bytes()
    monkeypatch.setitem(published.RANK_FILES, "r50k_base", hashlib.sha256(data).hexdigest())
    return data


def cached(folder: Path, name: str, tok: bytepair.Tokenizer) -> Path:
    """A repository as `huggingface_hub` lays it out, without links."""
    repo = folder / f"models--{name.replace('/', '--')}"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs/main").write_text(COMMIT)
    tok.export(repo / "snapshots" / COMMIT, "huggingface")
    return repo / "snapshots" / COMMIT


def test_rank_files_are_found_in_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = ranks_of(small(pattern="gpt2"), tmp_path, monkeypatch)
    digest = hashlib.sha1(f"{published.URL}r50k_base.tiktoken".encode()).hexdigest()
    file = tmp_path / "tiktoken" / digest
    file.parent.mkdir()
    file.write_bytes(data)
    assert published.rank_file("gpt2") == published.rank_file("r50k_base") == file
    assert published.rank_file("cl100k_base") is None
    tok = bytepair.load("gpt2")
    assert tok.special_tokens == {"<|endoftext|>": 50256}
    assert tok.encode("hello") == small(pattern="gpt2").encode("hello")
    (tmp_path / "tiktoken/gpt2.tiktoken").write_bytes(data + b" ")  # a name comes first
    with told(FormatError):
        bytepair.load("gpt2")


def test_known_packages_bring_rank_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brings_ranks/below").mkdir(parents=True)
    (tmp_path / "brings_ranks/__init__.py").write_text("raise AssertionError('it is not imported')")
    data = ranks_of(small(pattern="gpt2"), tmp_path, monkeypatch)
    (tmp_path / "brings_ranks/below/r50k_base.tiktoken").write_bytes(data)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(published, "_PACKAGES", {"brings_ranks": "below", "not_there": "x"})
    assert bytepair.load("gpt2") == bytepair.load("r50k_base")


def test_repositories_are_found_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    tok = small()
    cached(tmp_path / "hub", "owner/name", tok)
    assert bytepair.load("owner/name") == bytepair.load("owner/name", revision=COMMIT) == tok
    for revision in ("v2", "../refs/main", "b" * 40, "/etc"):
        with told(FileNotFoundError):
            bytepair.load("owner/name", revision=revision)
    with told(FileNotFoundError):
        bytepair.load("owner/other")
