"""Repositories of the Hub, from a cache that the test makes: nothing is downloaded."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bytepair
from bytepair.errors import FormatError
from bytepair.formats import published
from formats import small
from messages import told

COMMITS = {"main": "a" * 40, "v2": "b" * 40}


def make_cache(home: Path, tokenizers: dict[str, bytepair.Tokenizer]) -> None:
    """A cache as `huggingface_hub` lays it out: files link to blobs named by their hash."""
    repo = home / "hub/models--owner--name"
    for folder in ("blobs", "refs"):
        (repo / folder).mkdir(parents=True)
    for revision, tok in tokenizers.items():
        data = tok.export(home / "tokenizer.json", overwrite=True).read_bytes()
        if revision == "main":  # stored as a large file
            blob = hashlib.sha256(data).hexdigest()
        else:
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        (repo / "blobs" / blob).write_bytes(data)
        (repo / "refs" / revision).write_text(COMMITS[revision])
        snapshot = repo / "snapshots" / COMMITS[revision]
        snapshot.mkdir(parents=True)
        (snapshot / "tokenizer.json").symlink_to(repo / "blobs" / blob)


def load(home: Path, *words: str, code: int = 0) -> str:
    script = (
        "import sys, bytepair\n"
        "try: print(bytepair.load(sys.argv[1], revision=(sys.argv[2:] or [None])[0]).fingerprint)\n"
        "except (ValueError, OSError) as error: sys.exit(f'{type(error).__name__}: {error}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        env={**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"},
        capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stderr.strip().splitlines()[-1] if code else done.stdout.strip()


@pytest.mark.skipif(os.name != "posix", reason="the cache has links")
def test_revisions_come_from_the_cache_and_are_checked(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    versions = {"main": small(), "v2": small(pattern="qwen2")}
    make_cache(tmp_path, versions)
    assert load(tmp_path, "owner/name") == versions["main"].fingerprint
    assert load(tmp_path, "owner/name", "v2") == versions["v2"].fingerprint
    assert load(tmp_path, "owner/name", COMMITS["v2"]) == versions["v2"].fingerprint
    error = load(tmp_path, "owner/other", code=1)
    assert error.startswith("NotFoundError: there is no file 'owner/other'")
    for blob in (tmp_path / "hub/models--owner--name/blobs").iterdir():
        data = blob.read_bytes()
        blob.write_bytes(data.replace(b"false", b"true ", 1))
        revision = "main" if len(blob.name) == 64 else "v2"
        assert "its hash is" in load(tmp_path, "owner/name", revision, code=1)
        blob.write_bytes(data)


def test_cached_files_are_checked_against_their_hashes(tmp_path: Path) -> None:
    blob = tmp_path / hashlib.sha256(b"x").hexdigest()
    blob.write_bytes(b"x")
    published.check(blob)
    blob.write_bytes(b"y")
    with told(FormatError):
        published.check(blob)
    (tmp_path / "plain").write_bytes(b"z")
    published.check(tmp_path / "plain")


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with told(ImportError):
        bytepair.load("owner/name-that-is-not-there")
