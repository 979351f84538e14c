"""A finished output is checked before it is believed; what is wrong is made again, and it grows."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair import distributed, shards
from bytepair.errors import (
    CorpusError,
    CountsError,
    NotAFileError,
    OverwriteError,
    ShardError,
)
from bytepair.shards import layout, manifest, read
from commands import run
from messages import told

writer: Any = import_module("bytepair.shards.writer")
counting: Any = import_module("bytepair.distributed.jobs")
sharding: Any = import_module("bytepair.distributed.jobs")
tasks: Any = import_module("bytepair.distributed.tasks")

OPTIONS: dict[str, Any] = {"tokens_per_shard": 6000, "bos": True}
FORMATS = sorted(shards.LAYOUTS)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    samples = [path.read_text(encoding="utf-8") for path in bytepair.sample.paths()[1:7]]
    return [text[i : i + 900] for text in samples for i in range(0, 9000, 900)]


@pytest.fixture
def source(tmp_path: Path, texts: list[str]) -> Path:
    """Parquet, and lines of which some cannot be read, at the ends of files too."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(0, len(texts), 10):
        if number in (20, 30):
            table = pa.table({"text": texts[number : number + 10]})
            pq.write_table(table, folder / f"{number:02}.parquet", row_group_size=3)
            continue
        lines = [json.dumps({"text": text}) for text in texts[number : number + 10]]
        lines = ["{no", *lines[:4], "{no", "{nor", *lines[4:], "{no"]
        (folder / f"{number:02}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def one(source: Any, tok: bytepair.Tokenizer, out: Path, **options: Any) -> Any:
    """The shards of one process."""
    return shards.write(source, tok, out, errors="skip", **{**OPTIONS, **options})


def ranks(source: Any, tok: bytepair.Tokenizer, out: Path, **options: Any) -> Any:
    """The shards of two ranks."""
    for rank in range(2):
        result = distributed.shard(
            source, tok, out, rank=rank, world_size=2, task_bytes=1, errors="skip",
            **{**OPTIONS, **options},
        )  # fmt: skip
    return result


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def damages(path: Path) -> dict[str, Callable[[], Any]]:
    """Ways to damage a file."""
    data = path.read_bytes()
    middle = len(data) // 2
    return {
        "gone": path.unlink,
        "cut": lambda: path.write_bytes(data[:-1]),
        "empty": lambda: path.write_bytes(b""),
        "changed": lambda: path.write_bytes(
            data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        ),
        "longer": lambda: path.write_bytes(data + b"\0"),
    }


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.is_file()}


posix = pytest.mark.skipif(sys.platform == "win32", reason="needs links")


class Killed(BaseException):
    """Raised where the process would end."""


# ------------------------------------------------------------------ shards that are not whole


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("write", [one, ranks])
def test_a_finished_shard_that_is_not_whole_is_written_again(
    format: str, write: Any, source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    result = one(source, trained, tmp_path / "whole", format=format)
    expected = listing(tmp_path / "whole")
    assert len(result.shards) > 3
    files = sorted({part.file for shard in result.shards[:3] for part in shard.parts})
    for name, kind in itertools.product(files, ("gone", "cut", "empty", "changed", "longer")):
        out = tmp_path / "out"
        shutil.copytree(tmp_path / "whole", out)
        damages(out / name)[kind]()
        assert not shards.verify(out), (name, kind)
        with told(UserWarning, name):
            again = write(source, trained, out, format=format)
        assert again == result
        assert listing(out) == expected, (name, kind)
        shutil.rmtree(out)


@pytest.mark.parametrize("format", FORMATS)
def test_a_shard_of_an_unfinished_run_that_is_not_whole_is_written_again(
    format: str, source: Path, tmp_path: Path, trained: bytepair.Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    result = one(source, trained, tmp_path / "whole", format=format)
    expected = listing(tmp_path / "whole")
    save = manifest.save_mark

    def dying(folder: Path, shard: Any) -> None:
        save(folder, shard)
        if shard.number == 3:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "save_mark", dying)
        with pytest.raises(Killed):
            one(source, trained, tmp_path / "half", format=format)
    names = {part.file for shard in result.shards[:4] for part in shard.parts}
    for name, kind in itertools.product(sorted(names), ("gone", "cut", "changed")):
        out = tmp_path / "out"
        shutil.copytree(tmp_path / "half", out)
        path = out / name if (out / name).exists() else out / layout.partial(name)
        damages(path)[kind]()
        with told(UserWarning, name):
            one(source, trained, out, format=format)
        assert listing(out) == expected, (name, kind)
        shutil.rmtree(out)


def test_a_rewriting_that_is_killed_is_continued(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for format in ("bytepair", "nanogpt", "arrow"):
        result = one(source, trained, tmp_path / format, format=format)
        expected = listing(tmp_path / format)
        for calls in itertools.count(1):
            out = tmp_path / f"{format}{calls}"
            shutil.copytree(tmp_path / format, out)
            (out / result.shards[2].parts[-1].file).write_bytes(b"")
            with monkeypatch.context() as patch:
                kill_at(patch, calls)
                try:
                    with told(UserWarning):
                        one(source, trained, out, format=format)
                    break
                except Killed:
                    pass
            finish_quietly(partial(one, source, trained, out, format=format))
            assert listing(out) == expected, (format, calls)
        assert calls > 3


def kill_at(patch: pytest.MonkeyPatch, calls: int) -> None:
    """End the process at the call of that number of those that make something durable."""
    left = itertools.count(1)

    def dying(function: Any) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            if next(left) == calls:
                raise Killed
            return function(*args, **keywords)

        return call

    patch.setattr(os, "fsync", dying(os.fsync))
    patch.setattr(Path, "replace", dying(Path.replace))
    patch.setattr(Path, "unlink", dying(Path.unlink))


def finish_quietly(call: Callable[[], Any]) -> Any:
    """Call a function whose warnings do not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def test_a_file_that_a_killed_run_left_replaces_no_whole_one(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = one(source, trained, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(writer, "finish", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            one(source, trained, tmp_path / "out")
    (tmp_path / "out" / layout.partial(result.shards[1].parts[0].file)).write_bytes(b"half")
    one(source, trained, tmp_path / "out")
    assert listing(tmp_path / "out") == listing(tmp_path / "whole")


def test_the_tokenizer_beside_the_shards_is_written_again(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    for write in (one, ranks):
        write(source, trained, tmp_path / "out")
        path = tmp_path / "out" / "tokenizer.bytepair"
        for damage in damages(path).values():
            damage()
            assert not shards.verify(tmp_path / "out")
            write(source, trained, tmp_path / "out")
            assert shards.verify(tmp_path / "out")


def test_one_function_says_what_is_whole() -> None:
    assert vars(read)["wrong_shards"] is writer.wrong_shards
    assert tasks.writer is writer


def test_a_damaged_manifest_has_a_way_out(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    result = one(source, trained, tmp_path / "out")
    path = tmp_path / "out" / manifest.NAME
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with told(ShardError):
        one(source, trained, tmp_path / "out")
    path.unlink()
    with told(ShardError):
        one(source, trained, tmp_path / "out")
    for change in ({"following": None}, {"following": [99, 0]}, {"number": 4}):
        values = json.loads(data)
        values["shards"][1] |= change
        del values["crc32"]
        manifest.write_json(path, values)
        with told(ShardError):
            one(source, trained, tmp_path / "out")
    assert result.shards[-1].following is None


def test_the_commands_write_again_and_say_so(tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    (tmp_path / "a.txt").write_text("some text " * 500)
    trained.save(tmp_path / "t")
    words = ("shard", "a.txt", "-t", "t", "-o", "out")
    run(*words, cwd=tmp_path)
    assert "out has all shards already" in run(*words, cwd=tmp_path).stderr
    (tmp_path / "out" / "shard_000000.bin").unlink()
    assert run("verify", "out", cwd=tmp_path, code=1).stdout == "shard_000000.bin is gone\n"
    again = run(*words, cwd=tmp_path)
    assert "warning: out is not as it was written: shard_000000.bin is gone" in again.stderr
    assert "all is as promised" in run("verify", "out", cwd=tmp_path).stdout


# ------------------------------------------------------------------ more inputs


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("write", [one, ranks])
@pytest.mark.parametrize("old", [1, 3, 5])
def test_new_inputs_are_added(
    format: str, write: Any, old: int, source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    files = sorted(source.iterdir())
    finish_quietly(lambda: write(files[:old], trained, tmp_path / "out", format=format))
    before = times(tmp_path / "out")
    first = shards.Manifest.load(tmp_path / "out")
    result = write(source, trained, tmp_path / "out", format=format)
    one(files, trained, tmp_path / "whole", format=format)
    assert listing(tmp_path / "out") == listing(tmp_path / "whole")
    assert result.shards[: len(first.shards) - 1] == first.shards[:-1]
    if format != "nanogpt":  # all shards of which are one file
        names = {part.file for shard in first.shards[:-1] for part in shard.parts}
        after = times(tmp_path / "out")
        assert all(before[name] == after[name] for name in names)
    assert write(source, trained, tmp_path / "out", format=format) == result


@pytest.mark.parametrize("format", ["bytepair", "nanogpt"])
def test_an_extension_that_is_killed_is_continued(
    format: str, source: Path, tmp_path: Path, trained: bytepair.Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    files = sorted(source.iterdir())
    one(files[:3], trained, tmp_path / "old", format=format)
    one(files[:4], trained, tmp_path / "new", format=format)
    for calls in itertools.count(1):
        for now, name in ((files[:4], "new"), (files[:3], "old")):
            out = tmp_path / f"{calls}{name}"
            shutil.copytree(tmp_path / "old", out)
            with monkeypatch.context() as patch:
                kill_at(patch, calls)
                try:
                    one(files[:4], trained, out, format=format)
                except Killed:
                    pass
                else:
                    assert calls > 10
                    return
            if name == "old" and (out / manifest.NAME).exists():
                continue  # it was finished, or not begun
            if name == "old" and not _is_part_of(out, files[:3]):
                with told(ShardError, "inputs["):
                    one(now, trained, out, format=format)
                continue
            one(now, trained, out, format=format)
            assert listing(out) == listing(tmp_path / name), (calls, name)


def _is_part_of(out: Path, files: list[Path]) -> bool:
    """Whether the finished shards of a run, and the next document, are in these inputs."""
    marks = manifest.load_marks(out)
    after = marks[-1].following if marks else (0, 0)
    return after is not None and after[0] < len(files)


def test_an_extension_that_fails_leaves_the_old_shards_to_the_old_command(
    tmp_path: Path, source: Path, trained: bytepair.Tokenizer
) -> None:
    good, also = tmp_path / "good.txt", tmp_path / "also.txt"
    bad = tmp_path / "in" / "zz.txt"
    for old in ([good], [good, also]):
        good.write_text("text " * 9000)
        also.write_text("text " * 9000)
        bad.write_bytes(b"\xff")
        shards.write(old, trained, tmp_path / "out", **OPTIONS)
        before = listing(tmp_path / "out")
        with told(CorpusError):
            shards.write([*old, bad], trained, tmp_path / "out", **OPTIONS)
        shards.write(old, trained, tmp_path / "out", **OPTIONS)
        assert listing(tmp_path / "out") == before
        shutil.rmtree(tmp_path / "out")


def test_ranks_encode_only_what_is_new(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(source.iterdir())
    options: dict[str, Any] = {"world_size": 2, "task_bytes": 1, "errors": "skip", **OPTIONS}
    first = one(files[:4], trained, tmp_path / "out")
    needed = first.shards[-2].following[0]
    assert needed > 0
    numbers: list[int] = []
    encode = sharding.encode_task

    def watched(task: Any, *rest: Any) -> None:
        numbers.append(task.number)
        encode(task, *rest)

    monkeypatch.setattr(sharding, "encode_task", watched)
    assert distributed.shard(source, trained, tmp_path / "out", rank=0, **options) is None
    assert distributed.shard(source, trained, tmp_path / "out", rank=1, **options) is not None
    assert sorted(numbers) == list(range(needed, len(files)))
    one(source, trained, tmp_path / "whole")
    assert listing(tmp_path / "out") == listing(tmp_path / "whole")


def test_an_unfinished_run_takes_new_inputs(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(source.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(writer, "finish", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            one(files[:3], trained, tmp_path / "out")
    one(files, trained, tmp_path / "out")
    one(files, trained, tmp_path / "whole")
    assert listing(tmp_path / "out") == listing(tmp_path / "whole")


@pytest.mark.parametrize("write", [one, ranks])
def test_inputs_that_do_not_come_after_the_old_ones(
    write: Any, source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    files = sorted(source.iterdir())
    write(files[1:3], trained, tmp_path / "out")
    before = listing(tmp_path / "out")
    for now in [
        files,
        [files[1], files[4], files[2]],
        [files[2], files[1], files[3]],
        files[1:2],
    ]:
        with told(ShardError, "inputs["):
            write(now, trained, tmp_path / "out")
    assert listing(tmp_path / "out") == before
    text = files[1].read_text(encoding="utf-8")
    files[1].write_text(text + "{}\n", encoding="utf-8")
    with told(ShardError, "inputs[0]"):
        write(files[1:4], trained, tmp_path / "out")
    assert listing(tmp_path / "out") == before


# ------------------------------------------------------------------ names of inputs


def test_an_input_is_the_same_by_any_name(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "sub").mkdir()
    result = one("in", trained, tmp_path / "out")
    for name in (source, "./in", "sub/../in", "link", tmp_path / "link"):
        assert one(name, trained, Path("out")) == result
        assert ranks(name, trained, Path("out")) == result
    monkeypatch.chdir(tmp_path / "sub")
    assert one("../in", trained, tmp_path / "out") == result
    more = source.parent / "in" / "99.txt"
    more.write_text("more")
    grown = one("../in", trained, Path("../out"))
    assert grown.documents == result.documents + 1
    monkeypatch.chdir("/")
    assert one(tmp_path / "link", trained, tmp_path / "out") == grown


def test_another_file_of_the_same_relative_name_is_another_input(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    shutil.copytree(source, tmp_path / "sub" / "in")
    monkeypatch.chdir(tmp_path)
    one("in", trained, tmp_path / "out")
    monkeypatch.chdir(tmp_path / "sub")
    with told(ShardError, "inputs_from"):
        one("in", trained, tmp_path / "out")


def test_a_record_of_inputs_may_name_no_possible_folder(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    made = one(source, trained, tmp_path / "out")
    job = {**made.job, "inputs_from": ["a" * 300, "../" * 300 + "\0"]}
    replace(made, job=job).save(tmp_path / "out")
    with told(ShardError, "inputs_from"):
        one(source, trained, tmp_path / "out")


def test_a_corpus_is_moved_with_its_shards_or_alone(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = one("in", trained, Path("out"))
    (tmp_path / "moved").mkdir()
    for name in ("in", "out"):
        shutil.move(name, tmp_path / "moved" / name)
    assert one("moved/in", trained, Path("moved/out")) == result
    assert one(tmp_path / "moved" / "in", trained, tmp_path / "moved" / "out") == result
    shutil.move("moved/in", "in")
    assert one("in", trained, Path("moved/out")) == result


def test_a_checkpoint_knows_its_files_by_any_name(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("some text " * 100)
    monkeypatch.chdir(tmp_path)
    names = [f"{number}.txt" for number in range(3)]
    expected = bytepair.count(
        bytepair.corpus.Paths(names), reading=bytepair.Reading(checkpoint="c.parquet")
    )
    absolute = [tmp_path / name for name in names]
    assert (
        bytepair.count(
            bytepair.corpus.Paths(absolute), reading=bytepair.Reading(checkpoint="c.parquet")
        )
        == expected
    )
    with told(CountsError):
        bytepair.count(
            bytepair.corpus.Paths(absolute[:2]), reading=bytepair.Reading(checkpoint="c.parquet")
        )


# ------------------------------------------------------------------ ranks


def test_a_rank_of_a_finished_count_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = bytepair.sample.paths()[1:4]
    options: dict[str, Any] = {"world_size": 5, "task_bytes": 1}
    out = tmp_path / "c.parquet"
    counts = [distributed.count(files, out, rank=rank, **options) for rank in range(5)]
    assert counts[2] == counts[3] == counts[4] == bytepair.count(files)  # two ranks have no task
    assert [path.name for path in tmp_path.iterdir()] == ["c.parquet"]
    before = out.stat().st_mtime_ns
    with monkeypatch.context() as patch:
        patch.setattr(counting, "count_task", None)  # would fail if it were called
        for rank in range(5):
            assert distributed.count(files, out, rank=rank, **options) == counts[2]
    assert [path.name for path in tmp_path.iterdir()] == ["c.parquet"]
    assert out.stat().st_mtime_ns == before
    # Another corpus, and a damaged output, are counted.
    again = distributed.count(files[:1], out, rank=0, world_size=1, task_bytes=1)
    assert again == bytepair.count(files[:1])
    for damage in ("cut", "empty", "changed"):
        damages(out)[damage]()
        assert distributed.count(files[:1], out, rank=0, world_size=1, task_bytes=1) == again


def test_counts_replace_counts_only(tmp_path: Path) -> None:
    files = bytepair.sample.paths()[1:3]
    counts = bytepair.count(files)
    texts, table = tmp_path / "notes.txt", tmp_path / "corpus.parquet"
    texts.write_text("precious", encoding="utf-8")
    pq.write_table(pa.table({"text": ["precious"]}), table)
    before = listing(tmp_path)
    for out in (texts, table):
        with pytest.raises(OverwriteError):
            counts.save(out)
        with pytest.raises(OverwriteError):
            distributed.count(files, out, rank=0, world_size=1)
    assert listing(tmp_path) == before


@posix
def test_counts_are_written_through_no_link_even_if_they_may_overwrite(tmp_path: Path) -> None:
    other, link, twin = tmp_path / "other", tmp_path / "link", tmp_path / "twin"
    other.write_text("precious", encoding="utf-8")
    link.symlink_to(other)
    twin.hardlink_to(other)
    for out in (link, twin):
        with pytest.raises(NotAFileError):
            bytepair.count(["a"]).save(out, overwrite=True)
    assert link.is_symlink()
    assert other.read_text(encoding="utf-8") == "precious"


def test_a_forged_job_of_counts_is_counted_again(tmp_path: Path) -> None:
    files = bytepair.sample.paths()[1:3]
    counts = bytepair.count(files)
    out = tmp_path / "c.parquet"
    forged = ["", "[]", "{}", "null", '{"job": 1}', '{"job": {}, "checksum": "0"}', "[" * 9999]
    for job in forged:
        counts.times(2).save(out, metadata={counting.JOB: job})
        assert distributed.count(files, out, rank=0, world_size=1) == counts


@pytest.mark.parametrize("first", [0, 4])
def test_more_ranks_than_tasks_leave_nothing(
    first: int, source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    files = sorted(source.iterdir())[:2]
    texts = bytepair.sample.paths()[1:3]
    order = [first, *({*range(5)} - {first})]
    options: dict[str, Any] = {"world_size": 5, "task_bytes": 1}
    for rank in order:
        distributed.count(texts, tmp_path / "c.parquet", rank=rank, **options)
        distributed.shard(
            files, trained, tmp_path / "out", rank=rank, errors="skip", **OPTIONS, **options
        )
    assert not (tmp_path / "out" / ".parts").exists()
    assert not (tmp_path / "c.parquet.parts").exists()
    one(files, trained, tmp_path / "whole")
    assert listing(tmp_path / "out") == listing(tmp_path / "whole")


def test_a_part_with_more_batches_than_its_mark_says_is_refused(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    options: dict[str, Any] = {"world_size": 2, "task_bytes": 1, "errors": "skip", **OPTIONS}
    assert distributed.shard(source, trained, tmp_path / "out", rank=0, **options) is None
    path = tmp_path / "out" / ".parts" / "000002" / "mark.json"
    values = json.loads(path.read_text())
    del values["crc32"]
    manifest.write_json(path, values | {"batches": values["batches"] - 1, "skipped": []})
    with told(ShardError):
        distributed.shard(source, trained, tmp_path / "out", rank=1, **options)


@pytest.mark.parametrize("name", ["documents", "mark.json"])
def test_a_finished_task_that_is_not_whole_is_run_again(
    name: str, source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    options: dict[str, Any] = {"world_size": 2, "task_bytes": 1, "errors": "skip", **OPTIONS}
    one(source, trained, tmp_path / "whole")
    for kind in ("gone", "cut", "changed"):
        out = tmp_path / kind
        assert distributed.shard(source, trained, out, rank=0, **options) is None
        path = out / ".parts" / "000002" / name
        if (name, kind) == ("mark.json", "changed"):
            path.write_text(path.read_text().replace('"crc32": "', '"crc32": "x'))
        else:
            damages(path)[kind]()
        if (name, kind) == ("mark.json", "gone"):
            assert distributed.shard(source, trained, out, rank=1, **options) is None
            distributed.shard(source, trained, out, rank=0, **options)
        elif (name, kind) == ("mark.json", "cut"):
            distributed.shard(source, trained, out, rank=1, **options)  # a line break is missing
        else:
            with told(UserWarning):
                distributed.shard(source, trained, out, rank=1, **options)
        assert listing(out) == listing(tmp_path / "whole")


def test_counts_of_a_task_that_are_not_whole_are_counted_again(tmp_path: Path) -> None:
    files = bytepair.sample.paths()[1:5]
    options: dict[str, Any] = {"world_size": 2, "task_bytes": 1}
    for kind in ("gone", "cut", "changed"):
        out = tmp_path / f"{kind}.parquet"
        assert distributed.count(files, out, rank=0, **options) is None
        damages(tmp_path / f"{kind}.parquet.parts" / "000000" / "counts.parquet")[kind]()
        with told(UserWarning):
            counts = distributed.count(files, out, rank=1, **options)
        assert counts == bytepair.count(files)


@posix
def test_a_task_writes_through_no_link(
    source: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    options: dict[str, Any] = {"rank": 0, "world_size": 2, "task_bytes": 1}
    calls: list[tuple[Path, str, Callable[[], Any]]] = [
        (
            tmp_path / "c.parquet.parts", "counts.parquet",
            lambda: distributed.count(
                source, tmp_path / "c.parquet", reading=bytepair.Reading(errors="skip"), **options
            ),
        ),
        (
            tmp_path / "out" / ".parts", "documents",
            lambda: distributed.shard(source, trained, tmp_path / "out", errors="skip", **options),
        ),
    ]  # fmt: skip
    for root, name, call in calls:
        assert call() is None
        (root / "000000" / "mark.json").unlink()
        (root / "000000" / name).unlink()
        (root / "000000" / name).symlink_to(mine)
        with told(NotAFileError):
            call()
        assert mine.read_bytes() == b"mine"
