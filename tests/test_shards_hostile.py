"""Whatever stands in place of a file of shards or of ranks, and whatever it says, is an error."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bytepair
from bytepair import distributed, shards
from bytepair.distributed import tasks
from bytepair.errors import BytepairError, ShardError
from bytepair.shards import layout, manifest, writer
from bytepair.shards.layout import LAYOUTS
from messages import told
from training_options import keywords

pytestmark = [pytest.mark.timeout(60)]
posix = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")
KINDS = ["link", "hard link", "pipe", "folder"]
#: What a damaged value may be in JSON.
VALUES = [
    "null", "true", "-1", "1.5", "1e400", "NaN", "9" * 400, "9" * 9999, '"x"', "[]", "{}", "[[[]]]",
    f'"{"x" * 999}"', "[" * 5000 + "]" * 5000, '"\\ud800"', "[-1, 0]", "[1]", "[true, true]",
    '[{"a": 1}]',
]  # fmt: skip


@pytest.fixture(scope="module")
def tok() -> bytepair.Tokenizer:
    return bytepair.train(["some text, and some more text"] * 9, 270)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("sources")
    files = [folder / f"{number}.jsonl" for number in range(4)]
    for file in files:
        file.write_text('{"text": "some text, and some more text"}\n{no\n' * 10)
    return files


class Killed(BaseException):
    """Raised where the process would end."""


def put(kind: str, path: Path, mine: Path) -> None:
    """Put something at a path, in place of what is there."""
    if path.exists():
        path.unlink()
    if kind == "link":
        path.symlink_to(mine)
    elif kind == "hard link":
        os.link(mine, path)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
        (path / "mine").write_text("mine")


def error_of(call: Callable[[], object], kinds: Any = (BytepairError, OSError)) -> str:
    """The message of the error of ours, or of the system, that a call raises, if any."""
    try:
        call()
    except kinds as error:
        return str(error)
    return ""


def check_refused(call: Callable[[], object], path: Path, mine: Path) -> None:
    """Check that a call raises an error that names a path, or does nothing to what is there."""
    before = path.lstat()
    assert path.name in (error_of(call) or path.name)
    after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert mine.read_text() == "mine"


def paths_of_an_unfinished_run(name: str) -> list[str]:
    how = LAYOUTS[name]
    files = [form.format(number=n, split=split) for form in (how.data_file, how.index_file)
             for n in (0, 2) for split in ("train", "val")]  # fmt: skip
    data = [file for file in files if file.endswith((".bin", ".arrow"))]
    hidden = [layout.partial(file) + more for file in data for more in ("", Path(file).suffix)]
    own = [".lock", ".progress/.lock", ".progress/job.json", ".progress/000001.json"]
    return sorted({*files, *hidden, *own, "manifest.json", "tokenizer.bytepair"})


def write_half(
    sources: list[Path], tok: bytepair.Tokenizer, out: Path, name: Any, monkeypatch: Any
) -> None:
    """The folder of a run that was killed after two shards."""
    save = manifest.save_mark

    def dying(folder: Path, shard: Any) -> None:
        save(folder, shard)
        if shard.number == 1:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "save_mark", dying)
        with pytest.raises(Killed):
            write(sources, tok, out, name)


def write(sources: list[Path], tok: bytepair.Tokenizer, out: Path, name: Any) -> object:
    return shards.write(sources, tok, out, format=name, errors="skip", tokens_per_shard=200)


@posix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(LAYOUTS))
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_written_through_what_stands_in_place_of_a_file(
    name: str, kind: str, tmp_path: Path, sources: list[Path], tok: bytepair.Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    half, mine = tmp_path / "half", tmp_path / "mine"
    write_half(sources, tok, half, name, monkeypatch)
    mine.write_text("mine")
    for number, path in enumerate(paths_of_an_unfinished_run(name)):
        out = tmp_path / str(number)
        shutil.copytree(half, out)
        put(kind, out / path, mine)
        check_refused(partial(write, sources, tok, out, name), out / path, mine)


@posix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_written_through_what_stands_in_place_of_a_file_of_ranks(
    kind: str, tmp_path: Path, sources: list[Path], tok: bytepair.Tokenizer
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    options: dict[str, Any] = {"world_size": 2, "task_bytes": 1, "errors": "skip"}

    def shard(rank: int, out: Path) -> object:
        return distributed.shard(sources, tok, out, rank=rank, **options)

    def count(rank: int, out: Path) -> object:
        return distributed.count(sources, out / "c", rank=rank, **keywords(**options))

    for call, root, files in (
        (shard, ".parts", ["documents"]), (count, "c.parts", ["counts.parquet"]),
    ):  # fmt: skip
        (half := tmp_path / root / "half").mkdir(parents=True)
        assert call(0, half) is None
        inside = [f"000000/{file}" for file in (*files, "mark.json", ".lock")]
        for number, path in enumerate(["job.json", ".lock", *inside]):
            for rank in (0, 1):
                out = tmp_path / root / f"{number}-{rank}"
                shutil.copytree(half, out)
                put(kind, out / root / path, mine)
                check_refused(partial(call, rank, out), out / root / path, mine)


@posix
@pytest.mark.parametrize("kind", ["file", *KINDS])
def test_what_no_task_writes_is_kept(
    kind: str, tmp_path: Path, sources: list[Path], tok: bytepair.Tokenizer
) -> None:
    mine, out = tmp_path / "mine", tmp_path / "out"
    mine.write_text("mine")
    options: dict[str, Any] = {"world_size": 2, "task_bytes": 1, "errors": "skip"}
    distributed.shard(sources, tok, out, rank=0, **options)
    for folder in ("", "000000"):
        path = out / ".parts" / folder / "thesis"
        path.write_text("mine") if kind == "file" else put(kind, path, mine)
        for rank in (0, 1):
            with told(BytepairError):
                distributed.shard(sources, tok, out, rank=rank, **options)
        assert path.is_fifo() or (path / "mine" if path.is_dir() else path).read_text() == "mine"
        shutil.rmtree(path) if path.is_dir() and kind == "folder" else path.unlink()
    assert distributed.shard(sources, tok, out, rank=1, **options) is not None
    assert not (out / ".parts").exists()


# ------------------------------------------------------------------ values


def members(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in JSON."""
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from members(value, (*path, key))


def changed(text: str, place: tuple[Any, ...], value: str) -> str:
    """JSON with another value at a place."""
    values = json.loads(text)
    inner = values
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = "\0here"
    return json.dumps(values).replace(json.dumps("\0here"), value)


def signed(text: str) -> str:
    """A file of JSON with the right checksum, if it can have one."""
    try:
        values = json.loads(text)
        values.pop("crc32", None)
        data = json.dumps(values, indent=1, ensure_ascii=False).encode(errors="surrogatepass")
    except (ValueError, RecursionError):
        return text
    crc = zlib.crc32(data + b"\n")
    return json.dumps({**values, "crc32": f"{crc:08x}"})


def check_values(file: Path, call: Callable[[], object]) -> None:
    """Check that a call raises our errors whatever a file says, and no others."""
    whole = file.read_text()
    for place in members(json.loads(whole)):
        for value in VALUES:
            file.write_text(signed(changed(whole, place, value)), errors="surrogatepass")
            assert len(error_of(call, BytepairError)) < 1000
    file.write_text(whole)
    call()


def test_impossible_values_of_manifests(
    tmp_path: Path, sources: list[Path], tok: bytepair.Tokenizer
) -> None:
    write(sources, tok, tmp_path / "out", "bytepair")
    values = json.loads((tmp_path / "out" / "manifest.json").read_text())
    shard = values["shards"][0]
    shard["following"] = None
    sums = {name: shard[name] for name in ("tokens", "documents", "text_bytes")}
    values |= {"shards": [shard], **sums}
    (tmp_path / "out" / "manifest.json").write_text(signed(json.dumps(values)))

    def read() -> None:
        data = shards.Dataset(tmp_path / "out", split=None)
        assert 0 <= len(data) < 1 << 48
        for number in range(min(len(data), 3)):
            assert len(data[number]) < 1000
        list(zip(data.batches(1, 4), range(3), strict=False))
        shards.verify(tmp_path / "out")

    check_values(tmp_path / "out" / "manifest.json", read)


@pytest.mark.parametrize("format", ["bytepair", "nanogpt", "arrow", "megatron"])
def test_ids_begin_at_a_multiple_of_their_size(
    tmp_path: Path, sources: list[Path], tok: bytepair.Tokenizer, format: Any
) -> None:
    write(sources, tok, tmp_path / "out", format)
    file = tmp_path / "out" / "manifest.json"
    values = json.loads(file.read_text())
    part = max(
        (part for shard in values["shards"] for part in shard["parts"]), key=lambda x: x["bytes"]
    )
    data = (tmp_path / "out" / part["file"]).read_bytes()
    moved = data[: part["offset"]] + b"x" + data[part["offset"] :]
    (tmp_path / "out" / part["file"]).write_bytes(moved)
    part["offset"] += 1
    file.write_text(signed(json.dumps(values)))
    with told(ShardError):
        shards.Dataset(tmp_path / "out", split=None)[0]


@pytest.mark.parametrize("file", ["job.json", "000000.json"])
@pytest.mark.filterwarnings("ignore")
def test_impossible_values_of_marks(
    file: str, tmp_path: Path, sources: list[Path], tok: bytepair.Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    write_half(sources, tok, tmp_path, "bytepair", monkeypatch)
    job = json.loads((tmp_path / ".progress" / "job.json").read_text())
    del job["crc32"]

    def read() -> None:
        there = writer.state_of(tmp_path, job)
        for _, wrong in writer.wrong_shards(tmp_path, there.shards, is_finished=False):
            assert all(isinstance(one, str) for one in wrong)
        writer.temporary_files(tmp_path, writer._recorded(tmp_path), 9)

    check_values(tmp_path / ".progress" / file, read)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_impossible_values_of_marks_of_ranks(
    tmp_path: Path, sources: list[Path], tok: bytepair.Tokenizer
) -> None:
    """The job, and the mark of a task that is whole: its files are right, its numbers are not."""
    options: dict[str, Any] = {"world_size": 2, "task_bytes": 1, "errors": "skip"}
    some = sources[:2]
    half, half_count = tmp_path / "half", tmp_path / "half-count"
    half_count.mkdir()
    assert distributed.shard(some, tok, half, rank=0, **options) is None
    assert distributed.count(some, half_count / "c", rank=0, **keywords(**options)) is None

    def run_shard() -> None:
        shutil.copytree(half, tmp_path / "out")
        try:
            distributed.shard(some, tok, tmp_path / "out", rank=1, **options)
        finally:
            shutil.rmtree(tmp_path / "out")

    def run_count() -> None:
        shutil.copytree(half_count, tmp_path / "out")
        try:
            distributed.count(some, tmp_path / "out" / "c", rank=1, **keywords(**options))
        finally:
            shutil.rmtree(tmp_path / "out")

    check_values(half_count / "c.parts" / "000000" / "mark.json", run_count)
    check_values(half / ".parts" / "000000" / "mark.json", run_shard)


@pytest.mark.filterwarnings("ignore")
def test_files_of_killed_runs_are_removed_by_the_next(
    tmp_path: Path, sources: list[Path], tok: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever call is the last, nothing but the shards is there after the same call again."""
    options: dict[str, Any] = {"world_size": 1, "task_bytes": 1, "errors": "skip", "rank": 0}
    distributed.shard(sources, tok, tmp_path / "whole", **options)
    whole = sorted(path.name for path in (tmp_path / "whole").iterdir())
    replace, unlink = os.replace, os.unlink
    for calls in range(1, 100):
        out = tmp_path / str(calls)
        left = iter(range(calls))
        with monkeypatch.context() as patch:

            def dying(*values: Any, left: Iterator[int] = left, **names: Any) -> None:
                if next(left, None) is None:
                    raise Killed
                replace(*values, **names)

            def keeping(*values: Any, left: Iterator[int] = left, **names: Any) -> None:
                if next(left, None) is None:
                    raise Killed
                unlink(*values, **names)

            patch.setattr(os, "replace", dying)
            patch.setattr(os, "unlink", keeping)
            try:
                distributed.shard(sources, tok, out, **options)
            except Killed:
                pass
            else:
                break
        for name in (".mark.json.0123456789abcdef", ".documents.0123456789abcdef"):
            if (out / ".parts" / "000000").exists():
                (out / ".parts" / "000000" / name).write_text("half")
        distributed.shard(sources, tok, out, **options)
        assert sorted(path.name for path in out.iterdir()) == whole
        assert not [path for path in out.rglob("*") if re.search("[0-9a-f]{16}", path.name)]
    assert calls > 5


# ------------------------------------------------------------------ other folders


@pytest.mark.parametrize("name", [".shard_00000.parquet.partial", ".x.0123456789abcdef"])
def test_hidden_files_of_others_are_kept(
    tmp_path: Path, tok: bytepair.Tokenizer, sources: list[Path], name: str
) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ShardError):
        shards.write(sources[0], tok, tmp_path, errors="skip")
    assert (tmp_path / name).read_text() == "mine"
    out = tmp_path / "out"
    shards.write(sources[0], tok, out, errors="skip")
    (out / name).write_text("mine")
    shards.write(sources[0], tok, out, errors="skip")
    assert (out / name).read_text() == "mine"


def test_files_of_killed_runs_of_the_job_are_removed(
    tmp_path: Path, tok: bytepair.Tokenizer, sources: list[Path]
) -> None:
    shards.write(sources[0], tok, tmp_path, errors="skip")
    left = [f".{name}.0123456789abcdef" for name in ("manifest.json", "shard_000000.ends")]
    left.append(".shard_000000.bin.partial")
    for name in left:
        (tmp_path / name).write_text("")
    shards.write(sources[0], tok, tmp_path, errors="skip")
    assert not any((tmp_path / name).exists() for name in left)


def exchange(folder: Path, data: bytes) -> None:
    """Exchange the only Arrow shard of a folder, and make its manifest right."""
    record = folder / "manifest.json"
    values = json.loads(record.read_text())
    parts = values["shards"][0]["parts"]
    (folder / parts[0]["file"]).write_bytes(data)
    for part, end in zip(parts, [*(part["offset"] for part in parts[1:]), len(data)], strict=True):
        start, end = (min(place, len(data)) for place in (part["offset"], end))
        crc = f"{zlib.crc32(data[start:end]):08x}"
        part.update(offset=start, bytes=end - start, crc32=crc)
    del values["crc32"]
    manifest.write_json(record, values)


@pytest.mark.parametrize("change", ["tokens", "documents", "same file"])
def test_numbers_that_no_file_holds_take_no_memory(
    tmp_path: Path, tok: bytepair.Tokenizer, sources: list[Path], change: str
) -> None:
    shards.write(sources[:2], tok, tmp_path, errors="skip", tokens_per_shard=100)
    record = tmp_path / "manifest.json"
    values = json.loads(record.read_text())
    one, other = values["shards"][1:3]
    if change == "same file":
        other["parts"] = one["parts"]
    else:
        other[change] = (1 << 48) - 1
    record.write_text(signed(json.dumps(values)))
    with told(ShardError):
        shards.Dataset(tmp_path)


def test_a_part_beyond_its_file_takes_no_memory(
    tmp_path: Path, tok: bytepair.Tokenizer, sources: list[Path]
) -> None:
    shards.write(sources[:2], tok, tmp_path, errors="skip", tokens_per_shard=100)
    record = tmp_path / "manifest.json"
    values = json.loads(record.read_text())
    one = values["shards"][1]
    values["tokens"] += (1 << 46) - one["tokens"]
    one["tokens"], one["parts"][0]["bytes"] = 1 << 46, 1 << 47
    record.write_text(signed(json.dumps(values)))
    data = shards.Dataset(tmp_path)
    with told(ShardError):
        data.batches(1, 4, packing="stream")


def test_changed_arrow_shards_are_refused(
    tmp_path: Path, tok: bytepair.Tokenizer, sources: list[Path]
) -> None:
    shards.write(sources[0], tok, tmp_path, format="arrow", errors="skip")
    data = bytearray((tmp_path / "shard_000000.arrow").read_bytes())
    values = json.loads((tmp_path / "manifest.json").read_text())
    count = values["tokens"] // values["documents"]
    at = data.index(np.array([0, count, 2 * count], "<i8").tobytes())
    data[at + 8 : at + 16] = np.array([1 << 40], "<i8").tobytes()
    exchange(tmp_path, bytes(data))
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


def test_an_arrow_file_without_a_schema_is_refused(
    tmp_path: Path, tok: bytepair.Tokenizer, sources: list[Path]
) -> None:
    shards.write(sources[0], tok, tmp_path, format="arrow", errors="skip")
    data = bytearray((tmp_path / "shard_000000.arrow").read_bytes())
    schema = int.from_bytes(data[4:8], "little")
    exchange(tmp_path, bytes(data[8 + schema :]))  # the batch comes first
    with pytest.raises(ShardError):
        shards.Dataset(tmp_path)[0]
    assert not shards.verify(tmp_path)


def test_a_shard_without_files_is_refused(
    tmp_path: Path, tok: bytepair.Tokenizer, sources: list[Path]
) -> None:
    shards.write(sources[0], tok, tmp_path, errors="skip")
    record = tmp_path / "manifest.json"
    values = json.loads(record.read_text())
    values["shards"][0]["parts"] = []
    del values["crc32"]
    manifest.write_json(record, values)
    for read in (shards.verify, shards.Dataset):
        with pytest.raises(ShardError):
            read(tmp_path)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_arrow_shards_are_refused_before_they_are_decompressed(
    compression: str, tmp_path: Path, tok: bytepair.Tokenizer, sources: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shards.write(sources[0], tok, tmp_path, format="arrow", errors="skip")
    path = tmp_path / "shard_000000.arrow"
    sink, options = io.BytesIO(), pa.ipc.IpcWriteOptions(compression=compression)
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_stream(file).read_all()
        with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
            stream.write_table(table)
        del table
    exchange(tmp_path, sink.getvalue())
    monkeypatch.setattr(pa.ipc, "open_stream", None)  # would fail if it were called
    with pytest.raises(ShardError):
        shards.Dataset(tmp_path)[0]
    assert not shards.verify(tmp_path)


@pytest.mark.parametrize("part", ["none", "name", "offset"])
def test_parts_that_a_mark_does_not_list_are_written_again(tmp_path: Path, part: str) -> None:
    task, folder = tasks.Task(0, []), tasks.TaskFolder(tmp_path, {}, "ids")
    folder.begin()
    folder.run(task, lambda path: {"n": path.write_text("x")})
    mark = folder.of(task) / tasks.MARK
    values = json.loads(mark.read_text())
    del values["crc32"]
    right = values["part"]
    values["part"] = {
        "none": None, "name": {**right, "file": tasks.MARK}, "offset": {**right, "offset": 1},
    }[part]  # fmt: skip
    manifest.write_json(mark, values)
    again: list[Any] = []
    with told(UserWarning):
        folder.redo_broken([task], again.append)
    assert again == [task]


@posix
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_part_that_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    task, folder = tasks.Task(0, []), tasks.TaskFolder(tmp_path, {}, "ids")
    folder.begin()
    folder.run(task, lambda path: {"n": path.write_text("x")})
    path = folder.of(task) / "ids"
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(__file__)
    with pytest.raises(ShardError):
        folder.redo_broken([task], lambda _: None)
