"""Names and links in the folders of others lead nowhere else."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair import shards
from bytepair.distributed import tasks
from bytepair.errors import ShardError
from bytepair.files.outputs import write_whole
from bytepair.files.safe import is_plain
from bytepair.shards import layout, manifest
from commands import run
from messages import told

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(["hello world hello"], 270)


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    (tmp_path / "corpus.txt").write_text("hello world")
    return str(tmp_path / "corpus.txt")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder of somebody else."""
    folder = tmp_path / "other"
    folder.mkdir()
    for name in ("job.json", "000000.json", "thesis.txt"):
        (folder / name).write_text("mine")
    return folder


def unchanged(folder: Path) -> bool:
    names = ("job.json", "000000.json", "thesis.txt")
    return {path.name: path.read_text() for path in folder.iterdir()} == dict.fromkeys(
        names, "mine"
    )


@posix
def test_a_link_in_place_of_the_marks_is_refused(
    tok: bytepair.Tokenizer, corpus: str, other: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o"
    out.mkdir()
    (out / ".progress").symlink_to(other)
    tok.save(tmp_path / "t")
    done = run("shard", "corpus.txt", "-t", "t", "-o", "o", cwd=tmp_path, code=1)
    assert "is a symbolic link" in done.stderr
    assert unchanged(other)
    with told(ShardError):
        shards.write(corpus, tok, out)
    assert unchanged(other)


@posix
@pytest.mark.parametrize("name", [".lock", "{data}"])
def test_a_link_in_place_of_a_file_to_write_is_not_followed(
    tok: bytepair.Tokenizer, corpus: str, other: Path, tmp_path: Path, name: str
) -> None:
    shards.write(corpus, tok, tmp_path / "made")
    file = manifest.Manifest.load(tmp_path / "made").shards[0].parts[0].file
    out = tmp_path / "o"
    out.mkdir()
    (out / name.format(data=layout.partial(file))).symlink_to(other / "thesis.txt")
    with pytest.raises((ShardError, OSError)):
        shards.write(corpus, tok, out)
    assert unchanged(other)


@posix
def test_what_is_no_mark_stays(tok: bytepair.Tokenizer, corpus: str, tmp_path: Path) -> None:
    out = tmp_path / "o"
    (out / ".progress").mkdir(parents=True)
    (out / ".progress" / "thesis.txt").write_text("mine")
    with told(ShardError):
        shards.write(corpus, tok, out)
    assert (out / ".progress" / "thesis.txt").read_text() == "mine"


def forged(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a manifest, and give it the right checksum."""
    path = folder / manifest.NAME
    values = json.loads(path.read_text())
    del values["crc32"]
    change(values)
    manifest.write_json(path, values)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", ".", "..", "", "a/b", "a\\b", "C:\\x", "\\\\server\\x", "x\0"]
)
def test_a_manifest_names_files_of_its_folder(
    tok: bytepair.Tokenizer, corpus: str, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "o"
    shards.write(corpus, tok, out)

    def change(values: dict[str, Any]) -> None:
        values["shards"][0]["parts"][0]["file"] = name

    forged(out, change)
    with told(ShardError):
        shards.Dataset(tmp_path / "o")
    with told(ShardError):
        shards.verify(tmp_path / "o")


@posix
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_a_shard_is_a_regular_file(
    tok: bytepair.Tokenizer, corpus: str, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "o"
    shards.write(corpus, tok, out)
    for name in (manifest.Manifest.load(out).shards[0].parts[0].file, manifest.NAME):
        path = out / name
        data = path.read_bytes()
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "link":
            path.symlink_to("/etc/hostname")
        else:
            path.mkdir()
        for call in (lambda: shards.Dataset(tmp_path / "o"), lambda: shards.verify(tmp_path / "o")):
            with told(ShardError):
                call()
        path.rmdir() if kind == "folder" else path.unlink()
        path.write_bytes(data)


def test_a_mark_names_files_of_its_folder(
    tok: bytepair.Tokenizer, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "o"

    def marked(folder: Path, _: Any, made: list[shards.Shard]) -> shards.Manifest:
        manifest.save_mark(folder, replace(made[0], following=manifest.Address(0, 1)))
        return manifest.Manifest({}, [])

    with monkeypatch.context() as patch:
        patch.setattr("bytepair.shards.writer.finish", marked)
        shards.write(corpus, tok, out)
    mark = out / ".progress" / "000000.json"
    values = json.loads(mark.read_text())
    del values["crc32"]
    values["parts"][0]["file"] = "x/../../moved.conf"
    manifest.write_json(mark, values)
    with told(ShardError):
        shards.write(corpus, tok, out)
    assert not (tmp_path / "moved.conf").exists()
    damaged: list[dict[str, Any]] = [
        {}, {"parts": [{}]}, {"parts": []}, values | {"parts": [], "following": [1]},
        values | {"parts": [], "skipped": [{}]}, values | {"parts": [], "number": 1},
        values | {"parts": [], "following": [7, 0]},
    ]  # fmt: skip
    for damage in damaged:
        manifest.write_json(mark, damage)
        with told(ShardError):
            shards.write(corpus, tok, out)


@posix
def test_the_folder_of_tasks_is_bytepairs_own(other: Path, tmp_path: Path) -> None:
    (tmp_path / "counts.parquet.parts").symlink_to(other)
    with told(ShardError):
        tasks.TaskFolder(tmp_path / "counts.parquet.parts", {}, "x").begin()
    (other / "job.json").unlink()
    with told(ShardError):
        tasks.TaskFolder(other, {}, "x").begin()
    assert (other / "thesis.txt").read_text() == "mine"


@posix
def test_a_replaced_file_keeps_its_permissions(tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text("old")
    path.chmod(0o600)
    write_whole(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    tok.save(tmp_path / "t")
    file = tmp_path / "t" / "tokenizer.bytepair"
    file.chmod(0o600)
    tok.save(tmp_path / "t")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@posix
def test_a_replaced_file_does_not_act_as_its_owner(tok: bytepair.Tokenizer, tmp_path: Path) -> None:
    """Somebody else may have put the old file into a shared folder, to run and to write to it."""
    saves: list[tuple[str, Callable[[Path], object]]] = [
        ("whole", lambda path: write_whole(path, b"new")),
        ("counts.parquet", lambda path: bytepair.count(["one"]).save(path)),
        ("tokenizer.bytepair", lambda path: tok.save(path.parent, overwrite=True)),
    ]
    for name, save in saves:
        save(tmp_path / name)
        (tmp_path / name).chmod(0o6755)
        save(tmp_path / name)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o755, name


def test_plain_names() -> None:
    assert all(map(is_plain, ("a.bin", "shard_00000.parquet", ".hidden", "a b", "conx", "é中")))
    refused = (
        "",
        ".",
        "..",
        "a/b",
        "a\\b",
        "C:x",
        "nul",
        "CON.txt",
        "x.",
        "x ",
        "a\0",
        "a\n",
        "a:b",
    )
    assert not any(map(is_plain, refused))
