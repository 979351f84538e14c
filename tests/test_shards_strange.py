"""Folders with what others put there: nothing of theirs is read, written through or removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bytepair
from bytepair import shards
from bytepair.distributed import tasks
from bytepair.errors import ShardError
from bytepair.files.outputs import write_whole

FORMATS = ["bytepair", "llmc", "nanogpt", "megatron", "arrow"]


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(["some text, and some more text"] * 9, 270)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "a.jsonl"
    path.write_text('{"text": "some text, and some more text"}\n' * 50)
    return path


@pytest.mark.parametrize("name", [".shard_00000.parquet.partial", ".x.0123456789abcdef"])
def test_hidden_files_of_others_are_kept(
    tmp_path: Path, tok: bytepair.Tokenizer, source: Path, name: str
) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ShardError):
        shards.write(source, tok, tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    out = tmp_path / "out"
    shards.write(source, tok, out)
    (out / name).write_text("mine")
    shards.write(source, tok, out)
    assert (out / name).read_text() == "mine"


def test_files_of_killed_runs_of_the_job_are_removed(
    tmp_path: Path, tok: bytepair.Tokenizer, source: Path
) -> None:
    shards.write(source, tok, tmp_path)
    left = [f".{name}.0123456789abcdef" for name in ("manifest.json", "shard_000000.ends")]
    left.append(".shard_000000.bin.partial")
    for name in left:
        (tmp_path / name).write_text("")
    shards.write(source, tok, tmp_path)
    assert not any((tmp_path / name).exists() for name in left)


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")
@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
@pytest.mark.parametrize("suffix", [".partial", ".partial.arrow"])
@pytest.mark.parametrize("name", FORMATS)
def test_shards_are_written_through_no_link(
    tmp_path: Path, tok: bytepair.Tokenizer, source: Path, name: Any, suffix: str, kind: str
) -> None:
    folder, victim = tmp_path / "out", tmp_path / "victim"
    victim.write_text("theirs")
    # The folder of a killed run: the record of its job, and no finished shard.
    shards.write(source, tok, folder, format=name, tokens_per_shard=200)
    job = json.loads((folder / "manifest.json").read_text())["job"]
    (folder / ".progress").mkdir()
    (folder / ".progress" / "job.json").write_text(json.dumps(job))
    (folder / "manifest.json").unlink()
    data = next(path.name for path in folder.iterdir() if path.suffix in (".bin", ".arrow"))
    target = folder / f".{data}{suffix}"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "link":
        target.symlink_to(victim)
    else:
        os.link(victim, target)
    with suppress(ShardError, OSError):  # only if the name is one that is written
        shards.write(source, tok, folder, format=name, tokens_per_shard=200)
    assert victim.read_text() == "theirs"


def test_changed_arrow_shards_are_refused(
    tmp_path: Path, tok: bytepair.Tokenizer, source: Path
) -> None:
    shards.write(source, tok, tmp_path, format="arrow")
    path, record = tmp_path / "shard_000000.arrow", tmp_path / "manifest.json"
    data = bytearray(path.read_bytes())
    values = json.loads(record.read_text())
    count = values["tokens"] // values["documents"]
    at = data.index(np.array([0, count, 2 * count], "<i8").tobytes())
    data[at + 8 : at + 16] = np.array([1 << 40], "<i8").tobytes()
    path.write_bytes(data)
    values["shards"][0]["parts"][0]["crc32"] = f"{zlib.crc32(data):08x}"
    del values["crc32"]
    shown = json.dumps(values, indent=1, ensure_ascii=False).encode() + b"\n"
    values["crc32"] = f"{zlib.crc32(shown):08x}"
    write_whole(record, json.dumps(values, indent=1, ensure_ascii=False).encode() + b"\n")
    code = (
        "import sys; from bytepair import shards\n"
        "try: shards.Dataset(sys.argv[1])[0].sum(); print('read')\n"
        "except Exception as e:\n"
        "    print(type(e).__name__)\n"
        "print(bool(shards.verify(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True
    )
    assert done.stdout.split() == ["ShardError", "False"], done.stderr


@pytest.mark.parametrize("parts", ["none", "one", "twice", "other"])
def test_parts_that_a_mark_does_not_list_are_written_again(tmp_path: Path, parts: str) -> None:
    names = ["ids", "lengths"]
    task = tasks.Task(0, [])

    def work(_: tasks.Task, folder: Path) -> dict[str, object]:
        for name in names:
            (folder / name).write_text(name)
        return {}

    tasks.run(tmp_path, [task], names, work)
    mark = task.folder(tmp_path) / tasks.MARK
    values = json.loads(mark.read_text())
    first, second = values["parts"]
    values["parts"] = {
        "none": [], "one": [first], "twice": [first, first],
        "other": [first, {**second, "offset": 1}],
    }[parts]  # fmt: skip
    mark.write_text(json.dumps(values))
    again: list[Any] = []
    with pytest.warns(UserWarning, match="mark.json"):
        tasks.redo_broken(tmp_path, [task], names, again.append)
    assert again == [task]


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_part_that_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    task = tasks.Task(0, [])
    tasks.run(tmp_path, [task], ["ids"], lambda _, folder: {"n": (folder / "ids").write_text("x")})
    path = task.folder(tmp_path) / "ids"
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(__file__)
    with pytest.raises(ShardError):
        tasks.redo_broken(tmp_path, [task], ["ids"], lambda _: None)
