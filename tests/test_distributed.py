"""Many processes give, byte for byte, what one gives, whichever of them dies."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair import distributed, shards
from bytepair.corpus import files as files_module
from bytepair.corpus.column import Errors
from bytepair.distributed import jobs
from bytepair.errors import CorpusError, ShardError
from bytepair.files.outputs import remove_own
from bytepair.shards import manifest, writer
from bytepair.shards.encode import EncodedRows
from bytepair.shards.manifest import Address
from messages import told

shard_room: Any = import_module("bytepair.distributed.jobs")
tasks: Any = import_module("bytepair.distributed.tasks")

OPTIONS: dict[str, Any] = {"tokens_per_shard": 40_000, "bos": True}
SMALL: dict[str, Any] = {"task_bytes": 60_000}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files, one of which cannot be read in part."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "bad.jsonl").write_text('{"text": "one"}\n{no\n{"text": "two"}\n')
    paths = bytepair.sample.paths()[1:40]
    return [*paths[:20], folder / "bad.jsonl", *paths[20:]]


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def whole(
    source: list[Path], trained: bytepair.Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The shards of one process."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    shards.write(source, trained, folder, errors="skip", **OPTIONS)
    return listing(folder)


def test_ranks_are_found() -> None:
    place = distributed.place
    assert place(1, 3, {}) == (1, 3)
    slurm = {"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_MAX": "9"}
    assert place(None, None, slurm) == (1, 6)
    assert place(0, 2, slurm) == (0, 2)
    assert place(None, None, {"SGE_TASK_ID": "1", "SGE_TASK_FIRST": "1", "SGE_TASK_LAST": "4"}) == (
        0, 4,
    )  # fmt: skip
    assert place(None, None, {"LSB_JOBINDEX": "4", "LSB_JOBINDEX_END": "4"}) == (3, 4)
    assert place(None, None, {"SLURM_PROCID": "2", "SLURM_NTASKS": "4"}) == (2, 4)
    assert place(None, None, {"RANK": "2", "WORLD_SIZE": "4"}) == (2, 4)
    assert place(None, 8, {"RANK": "2"}) == (2, 8)
    for rank, world in [(None, None), (None, 4), (1, None), (3, 3)]:
        with told(ShardError):
            place(rank, world, {})
    wrong = [{"RANK": "²"}, {"RANK": "9" * 5000}, {"RANK": "1", "WORLD_SIZE": "x"}]
    for environment in [*wrong, {**slurm, "SLURM_ARRAY_TASK_MIN": "\x1b[2J"}]:
        with pytest.raises(ShardError) as caught:
            place(None, None, environment)
        assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("rank", "number"),
    [("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"),
     ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE")],
)  # fmt: skip
def test_the_place_is_read_from_the_environment_itself(
    rank: str, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(rank, "1")
    with told(ShardError, "unknown"):
        distributed.place(None, None)
    monkeypatch.setenv(number, "2")
    assert distributed.place(None, None) == (1, 2)


@pytest.mark.parametrize("world", [1, 2, 5])
def test_shards_of_ranks(
    world: int, source: list[Path], trained: bytepair.Tokenizer, whole: dict[str, bytes],
    tmp_path: Path,
) -> None:  # fmt: skip
    results = [
        distributed.shard(
            source, trained, tmp_path / "out", rank=rank, world_size=world, errors="skip",
            **OPTIONS, **SMALL,
        )
        for rank in reversed(range(world))
    ]  # fmt: skip
    assert [m is not None for m in results] == [False] * (world - 1) + [True]
    assert listing(tmp_path / "out") == whole
    again = distributed.shard(
        source, trained, tmp_path / "out", rank=0, world_size=world, errors="skip",
        **OPTIONS, **SMALL,
    )  # fmt: skip
    assert again == results[-1]


@pytest.mark.parametrize("world", [1, 3])
def test_counts_of_ranks(world: int, source: list[Path], tmp_path: Path) -> None:
    files = [path for path in source if path.suffix == ".txt"]
    bytepair.count(files).save(tmp_path / "whole.parquet")
    for rank in range(world):
        counts = distributed.count(
            files, tmp_path / "out.parquet", rank=rank, world_size=world, **SMALL
        )
    assert counts is not None
    assert counts.items() == bytepair.count(files).items()
    one, many = (pq.ParquetFile(tmp_path / f"{name}.parquet") for name in ("whole", "out"))
    assert (
        many.read().replace_schema_metadata(None).equals(one.read().replace_schema_metadata(None))
    )
    metadata = dict(many.schema_arrow.metadata)
    assert metadata.pop(b"bytepair.job")
    assert metadata == one.schema_arrow.metadata
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.parquet", "whole.parquet"]
    record = json.dumps({"job": json.loads(many.schema_arrow.metadata[b"bytepair.job"])["job"]})
    counts.save(tmp_path / "out.parquet", metadata={"bytepair.job": record}, overwrite=True)
    again = distributed.count(
        files, tmp_path / "out.parquet", rank=0, world_size=1, overwrite=True, **SMALL
    )
    assert again is not None  # a record without a checksum is none
    assert again.items() == counts.items()


@pytest.mark.parametrize(("errors", "left_out"), [("skip", 5), ("replace", None)])
def test_ranks_leave_out_what_one_process_does(
    errors: Errors, left_out: int | None, tmp_path: Path
) -> None:
    for number, rows in enumerate(["ab", "a?c", "?b", "d??"]):
        lines = [b'{"text": "%s"}\n' % (b"\xff" if row == "?" else row.encode()) for row in rows]
        (tmp_path / f"{number}.jsonl").write_bytes(b"".join([b"{}\n", *lines]))
    if left_out:
        (tmp_path / "4.jsonl").write_text('{"text": "x"} {"text": "y"}\n')
    files = sorted(tmp_path.glob("*.jsonl"))
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        expected = bytepair.count(files, reading=bytepair.Reading(errors=errors))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rank in range(2):
            counts = distributed.count(
                files,
                tmp_path / "c",
                rank=rank,
                world_size=2,
                task_bytes=1,
                reading=bytepair.Reading(errors=errors),
            )
    assert counts == expected
    assert [str(one.message) for one in caught] == [str(one.message) for one in messages]
    assert [one.filename for one in caught] == [__file__] * bool(left_out)
    assert all(str(one.message).startswith(f"{left_out} documents") for one in caught)
    with told(CorpusError):
        distributed.count(files, tmp_path / "d", rank=0, world_size=1)


@pytest.mark.parametrize("rows", ['{"x": "a"}\n', '{"text": null}\n{}\n', "{}\n{oops\n"])
@pytest.mark.parametrize("errors", ["strict", "skip"])
def test_ranks_name_the_file_without_text_as_one_process_does(
    rows: str, errors: Errors, tmp_path: Path
) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file, lines in zip(files, ['{"text": "hi"}\n', rows], strict=True):
        file.write_text(lines)
    with told(CorpusError) as expected:
        bytepair.count(files, reading=bytepair.Reading(errors=errors))
    with pytest.raises(CorpusError) as error:
        distributed.count(
            files,
            tmp_path / "c",
            rank=0,
            world_size=1,
            task_bytes=1,
            reading=bytepair.Reading(errors=errors),
        )
    assert str(error.value) == str(expected.value)


def test_a_few_words_in_many_tasks(tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.txt" for i in range(3)]
    for path, text in zip(files, ["", "one two", "two three"], strict=True):
        path.write_text(text)
    counts = distributed.count(files, tmp_path / "c.parquet", rank=0, world_size=1, task_bytes=1)
    assert counts == bytepair.count(files)
    nothing = distributed.count(files[:1], tmp_path / "n.parquet", rank=0, world_size=1)
    assert nothing == bytepair.count(files[:1])


def test_tasks_and_what_they_take_can_be_sent(
    source: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Ray does, in this process."""

    def run(items: Any, function: Any, arguments: Any) -> None:
        for item in items:
            function(*pickle.loads(pickle.dumps((item, *arguments))))

    files = [path for path in source if path.suffix == ".txt"]
    monkeypatch.setitem(sys.modules, "ray", types.ModuleType("ray"))
    monkeypatch.setattr(tasks, "run_on_ray", run)
    expected = bytepair.count(files)
    for some in (files, files[:2], files[:1]):
        counts = distributed.count(some, tmp_path / "c.parquet", ray=True, task_bytes=1)
        assert counts is not None
        assert counts.items() == bytepair.count(some).items()
    assert distributed.count(files, tmp_path / "d.parquet", ray=True, task_bytes=9999) == expected


class Killed(BaseException):
    """Raised where the process would end."""


def test_combining_the_parts_is_resumed(
    source: list[Path], trained: bytepair.Tokenizer, whole: dict[str, bytes], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    save = manifest.save_mark
    shards_made = len([name for name in whole if name.endswith(".bin")])
    for last in range(shards_made - 1):  # the last has no mark
        out = tmp_path / str(last)
        saved: list[Any] = []

        def dying(folder: Path, shard: Any, last: int = last, saved: Any = saved) -> None:
            save(folder, shard)
            saved.append(shard)
            if len(saved) > last:
                raise Killed

        def run(out: Path = out) -> None:
            distributed.shard(
                source, trained, out, rank=0, world_size=1, errors="skip", **OPTIONS, **SMALL
            )

        with monkeypatch.context() as patch:
            patch.setattr(manifest, "save_mark", dying)
            with pytest.raises(Killed):
                run()
        run()
        assert listing(out) == whole


def test_a_rank_that_is_killed(
    source: list[Path], trained: bytepair.Tokenizer, whole: dict[str, bytes], tmp_path: Path
) -> None:
    trained.save(tmp_path)
    command = [
        sys.executable, "-m", "bytepair", "shard", *map(str, source), "-t", str(tmp_path),
        "--tokens-per-shard", "40000", "--bos", "--errors", "skip", "-o", str(tmp_path / "out"),
        "--world-size", "2",
    ]  # fmt: skip
    slurm = {**os.environ, "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "1"}
    dead = subprocess.Popen([*command, "--rank", "0"], stderr=subprocess.DEVNULL)
    while dead.poll() is None and not (tmp_path / "out" / ".parts").exists():
        time.sleep(0.001)
    dead.send_signal(signal.SIGKILL)
    dead.wait()
    for rank in ("1", "0"):
        subprocess.run(
            command, env={**slurm, "SLURM_ARRAY_TASK_ID": rank}, check=True, capture_output=True
        )
    assert listing(tmp_path / "out") == whole


def test_parts_that_cannot_be_removed_are_a_warning(
    source: list[Path], trained: bytepair.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user may have written them, in a folder where only their owner removes files."""

    def denied(path: Path) -> None:
        if ".parts" in str(path):
            raise PermissionError(errno.EPERM, "not permitted", str(path))
        remove_own(path)

    monkeypatch.setattr(writer, "remove_own", denied)
    options: dict[str, Any] = {"rank": 0, "world_size": 1}
    for _ in range(2):
        with told(UserWarning):
            counts = distributed.count(source[:2], tmp_path / "c", **options)
        assert counts == bytepair.count(source[:2])
        with told(UserWarning):
            manifest_of_all = distributed.shard(source[:2], trained, tmp_path / "out", **options)
        assert manifest_of_all is not None


def test_a_rank_that_is_killed_before_its_first_task(tmp_path: Path) -> None:
    """What it leaves is an incomplete job file, which is no file of the user."""
    root = tmp_path / ".parts"
    root.mkdir()
    (root / ".job.json.0123456789abcdef").write_text("{")
    tasks.TaskFolder(root, {"a": 1}, ()).begin()
    tasks.TaskFolder(root, {"a": 1}, ()).begin()
    with told(ShardError):
        tasks.TaskFolder(root, {"a": 2}, ()).begin()


def test_an_empty_folder_of_a_rank_that_was_killed_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".parts").mkdir()
    tasks.TaskFolder(tmp_path / ".parts", {"a": 1}, "ids").clear()
    assert not (tmp_path / ".parts").exists()


def test_jobs_do_not_mix(source: list[Path], trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    options: dict[str, Any] = {"rank": 0, "world_size": 2, "errors": "skip", **SMALL}
    assert distributed.shard(source, trained, tmp_path / "out", **options) is None
    with told(ShardError):
        distributed.shard(source, trained, tmp_path / "out", tokens_per_shard=7, **options)
    work = tasks.split(files_module.files_matching(source).files, SMALL["task_bytes"])
    with (
        manifest.locked(tasks.TaskFolder(tmp_path / "out" / ".parts", {}, ()).of(work[1])),
        told(ShardError),
    ):
        distributed.shard(source, trained, tmp_path / "out", **{**options, "rank": 1})


def test_a_rank_takes_no_parts_of_another_job(
    source: list[Path], trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    """Neither the rank that finds no task of its own, nor the one that began before the other."""
    other = bytepair.train(bytepair.sample.paths(), 300)
    work = tasks.split(files_module.files_matching(source).files)
    with pytest.MonkeyPatch.context() as patch:  # killed before its last step
        patch.setattr(jobs, "_assemble", lambda *_: None)
        distributed.shard(source, trained, tmp_path / "a", rank=0, world_size=2, errors="skip")
    before = listing(tmp_path / "a" / ".parts")
    with told(ShardError):
        distributed.shard(source, other, tmp_path / "a", rank=1, world_size=2, errors="skip")
    assert listing(tmp_path / "a" / ".parts") == before
    mine, theirs = (tasks.TaskFolder(tmp_path / "b", {"a": job}, "ids") for job in range(2))
    mine.begin()
    remove_own(tmp_path / "b" / manifest.JOB)
    theirs.begin()
    with told(ShardError):
        mine.run(work[0], lambda _: pytest.fail("it writes into the folder of another job"))
    with told(ShardError):
        mine.redo_broken(work, lambda _: pytest.fail("it writes into the folder of another job"))


def test_of_jobs_that_begin_at_once_one_has_the_folder(tmp_path: Path) -> None:
    jobs = [tasks.TaskFolder(tmp_path / "parts", {"a": job}, "ids") for job in range(8)]
    with ThreadPoolExecutor(len(jobs)) as pool:
        ends = [pool.submit(job.begin) for job in jobs]
    errors = [end.exception() for end in ends]
    assert errors.count(None) == 1
    assert all(isinstance(error, ShardError) for error in errors if error is not None)


@pytest.fixture(scope="module")
def cluster() -> Any:
    ray = pytest.importorskip("ray")
    quiet: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
    ray.init(address="local", num_cpus=2, logging_level="ERROR", **quiet)
    yield ray
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_ray_cluster(
    cluster: Any, source: list[Path], trained: bytepair.Tokenizer, whole: dict[str, bytes],
    tmp_path: Path, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    distributed.shard(
        source, trained, tmp_path / "out", ray=True, errors="skip", **OPTIONS, **SMALL
    )
    assert "INFO" not in "".join(capfd.readouterr()), "no progress where there is no terminal"
    assert listing(tmp_path / "out") == whole
    files = [path for path in source if path.suffix == ".txt"]
    counts = distributed.count(files, tmp_path / "c.parquet", ray=True, **SMALL)
    expected = bytepair.count(files)
    assert counts == expected
    assert distributed.count(files, tmp_path / "d.parquet", ray=True, **SMALL) == expected
    assert pq.read_table(tmp_path / "c.parquet").num_rows == len(expected)
    assert bytepair.train(counts, 900) == bytepair.train(files, 900)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_of_the_cluster_that_dies(
    cluster: Any, source: list[Path], trained: bytepair.Tokenizer, whole: dict[str, bytes],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The first worker that comes to the third task kills itself, and Ray takes another."""
    work = shard_room.encode_task
    flag = tmp_path / "died"

    def dying(task: Any, *rest: Any) -> None:
        if task.number == 2 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        work(task, *rest)

    monkeypatch.setattr(shard_room, "encode_task", dying)
    distributed.shard(
        source, trained, tmp_path / "out", ray=True, errors="skip", **OPTIONS, **SMALL
    )
    assert flag.exists()
    assert listing(tmp_path / "out") == whole


@pytest.mark.parametrize("format", sorted(shards.LAYOUTS))
@pytest.mark.parametrize("texts", [[], ["", ""], ["hello"], ["", "hello", "", "x" * 999, ""]])
@pytest.mark.filterwarnings("ignore:all .* tokens are in the first shard")
def test_empty_corpora_and_tiny_shards(format: str, texts: list[str], tmp_path: Path) -> None:
    """No documents, documents without ids, and shards of one id, written and read in every way."""
    tok = bytepair.train(["hello hello"], 269)
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    for bos, limit in [(False, 1), (True, 3), (True, 10**6)]:
        one, many = tmp_path / f"one{bos}{limit}", tmp_path / f"many{bos}{limit}"
        options: dict[str, Any] = {"format": format, "bos": bos, "tokens_per_shard": limit}
        shards.write(source, tok, one, **options)
        distributed.shard(source, tok, many, rank=0, world_size=1, **options)
        assert listing(many) == listing(one)
        assert shards.verify(one)
        data = shards.Dataset(one, split=None)
        expected = tok.encode_batch(texts, prepend="<|bos|>" if bos else None)
        assert [data[i].tolist() for i in range(len(data))] == expected
        for packing in ("best-fit", "stream"):
            for inputs, targets in data.batches(1, 2, packing=packing):
                assert inputs.shape == targets.shape == (1, 2)


def test_documents_are_taken_from_an_address_on() -> None:
    ends = np.array([0, 1, 2])
    batches = [
        EncodedRows(
            np.array([2 * n, 2 * n + 1]), ends, ends, np.array([0]), [Address(0, 3 * n + 1)]
        )
        for n in range(100)
    ]
    skipped = [(n, {"input": "a", "first": 3 * n}) for n in range(101)]

    def rows(start: Address) -> list[int]:
        """The ids, and the rows that were skipped as negative numbers."""
        found: list[int] = []
        for item in jobs.documents_from(start, batches, skipped):
            if isinstance(item, dict):
                found.append(-item["first"])
            else:
                found += item.ids[item.offsets[0] : item.offsets[-1]].tolist()
                assert item.place(0) >= start
        return found

    everything = [one for n in range(100) for one in (-3 * n, 2 * n, 2 * n + 1)]
    assert rows(Address(0, 0)) == [*everything, -300]
    assert rows(Address(0, 299)) == [199, -300], "within a batch"
    assert rows(Address(0, 298)) == [198, 199, -300], (
        "what was skipped before it is of a shard before"
    )
    assert rows(Address(1, 0)) == []
