"""Published vocabularies on this machine: caches and packages that the tests lay out."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

import bytepair
from bytepair.errors import FormatError
from bytepair.formats import published
from commands import run
from formats import small
from messages import told

COMMIT = "a" * 40


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No caches but those of the test."""
    for name in ("DATA_GYM_CACHE_DIR", "HUGGINGFACE_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tiktoken"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
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
    assert bytepair.tokenizer.list_vocabularies().files == {}
    digest = hashlib.sha1(f"{published.URL}r50k_base.tiktoken".encode()).hexdigest()
    file = tmp_path / "tiktoken" / digest
    file.parent.mkdir()
    file.write_bytes(data)
    vocabularies = bytepair.tokenizer.list_vocabularies()
    assert vocabularies.files == dict.fromkeys(["gpt2", "r50k_base"], file)
    assert vocabularies.searched[file.parent] == "the cache of tiktoken (TIKTOKEN_CACHE_DIR)"
    tok = bytepair.load("gpt2")
    assert tok.special_tokens == {"<|endoftext|>": 50256}
    assert tok.encode("hello") == small(pattern="gpt2").encode("hello")
    (tmp_path / "tiktoken/gpt2.tiktoken").write_bytes(data + b" ")  # a name comes first
    with told(FormatError):
        bytepair.load("gpt2")
    assert "this is not the rank file" in bytepair.tokenizer.list_vocabularies().broken["gpt2"]


def test_known_packages_bring_rank_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brings_ranks/below").mkdir(parents=True)
    (tmp_path / "brings_ranks/__init__.py").write_text("raise AssertionError('it is not imported')")
    data = ranks_of(small(pattern="gpt2"), tmp_path, monkeypatch)
    (tmp_path / "brings_ranks/below/r50k_base.tiktoken").write_bytes(data)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(published, "_PACKAGES", {"brings_ranks": "below", "not_there": "x"})
    assert set(bytepair.tokenizer.list_vocabularies().files) == {"gpt2", "r50k_base"}


def test_repositories_are_found_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    tok = small()
    folder = cached(tmp_path / "hub", "owner/name", tok)
    (tmp_path / "hub/models--owner--weights/snapshots" / COMMIT).mkdir(parents=True)
    assert bytepair.load("owner/name") == bytepair.load("owner/name", revision=COMMIT) == tok
    assert bytepair.tokenizer.list_vocabularies().files == {"owner/name": folder}
    for revision in ("v2", "../refs/main", "b" * 40, "/etc"):
        with told(FileNotFoundError):
            bytepair.load("owner/name", revision=revision)
    with told(FileNotFoundError):
        bytepair.load("owner/other")


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"HF_HUB_CACHE": "/a"}, "/a"), ({"HF_HOME": "/b"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"), ({}, "~/.cache/huggingface/hub"),
        ({"HF_HOME": "/b", "HUGGINGFACE_HUB_CACHE": "/d"}, "/d"),
        ({"HF_HOME": "~nobody-here"}, "~nobody-here/hub"),
    ],
)  # fmt: skip
def test_the_cache_is_where_the_library_has_it(
    variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert published.hub_place().path == Path(os.path.expanduser(folder))  # noqa: PTH111


def test_the_command_lists_what_is_here_and_where_it_looked(tmp_path: Path) -> None:
    done = run("vocabularies", cwd=tmp_path)
    assert done.stdout.startswith("No published vocabulary is on this machine.\n")
    assert (
        f"{tmp_path / 'tiktoken'} (there is no such folder): the cache of tiktoken" in done.stdout
    )
    cached(tmp_path / "hub", "owner/name", small())
    assert run("vocabularies", cwd=tmp_path).stdout.startswith("owner/name  ")
    assert os.environ["HF_HUB_CACHE"] in run("vocabularies", cwd=tmp_path).stdout
