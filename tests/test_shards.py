"""Shards have the ids of the documents, in formats that others read, whatever interrupts a run."""

from __future__ import annotations

import cProfile
import gzip
import inspect
import itertools
import json
import os
import pstats
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
import memory
from bytepair import shards
from bytepair.errors import ArgumentError, CorpusError, ShardError, SpecialTokenError
from bytepair.shards import encode as job
from bytepair.shards import manifest
from bytepair.shards.manifest import ShardFormat
from messages import told

#: The module: `bytepair.shards.write` is the function in it.
write: Any = import_module("bytepair.shards.writer")

SMALL = 3000


@pytest.fixture(scope="module")
def texts() -> list[str]:
    samples = [p.read_text(encoding="utf-8") for p in bytepair.sample.paths()]
    return [
        t[i : i + 700] for t in [samples[0][:40_000], *samples[1:12]] for i in range(0, len(t), 700)
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    """Parquet with small row groups, jsonl, text; with empty documents between."""
    folder = tmp_path_factory.mktemp("corpus")
    third = len(texts) // 3
    pq.write_table(pa.table({"text": [*texts[:third], ""]}), folder / "a.parquet", 16)
    lines = "".join(json.dumps({"text": t}) + "\n" for t in [*texts[third:-1], ""])
    (folder / "b.jsonl").write_text(lines, encoding="utf-8")
    (folder / "c.txt").write_text(texts[-1], encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def wide() -> bytepair.Tokenizer:
    """A tokenizer whose ids do not fit 16 bits."""
    ranks = {bytes([b]): b for b in range(256)}
    return bytepair.Tokenizer.from_ranks(
        ranks, pattern="gpt4", special_tokens={"<|endoftext|>": 70_000}
    )


def expected(source: Path, tok: bytepair.Tokenizer, **options: Any) -> list[list[int]]:
    documents = [t for b in bytepair.corpus.read_documents(source) for t in b.column(0).to_pylist()]
    return [tok.encode(text, **options) for text in documents]


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ------------------------------------------------------------------ readers of other libraries


def read_llmc(folder: Path) -> list[np.ndarray[Any, Any]]:
    """Read a shard with the checks of llm.c."""
    arrays = []
    for path in sorted(folder.glob("*_val_*.bin")) + sorted(folder.glob("*_train_*.bin")):
        data = path.read_bytes()
        magic, version, count = struct.unpack_from("<3i", data)
        assert (magic, version) in {(20240520, 1), (20240801, 7)}
        width = 2 if version == 1 else 4
        assert len(data) == 256 * 4 + count * width
        arrays.append(np.frombuffer(data, f"<u{width}", count, 1024))
    return arrays


def read_nanogpt(folder: Path) -> list[np.ndarray[Any, Any]]:
    return [np.memmap(folder / name, np.uint16, "r") for name in ("val.bin", "train.bin")]


def read_megatron(folder: Path) -> list[np.ndarray[Any, Any]]:
    """Read shards by the layout of Megatron-LM's index; every document is one sequence."""
    arrays = []
    for path in sorted(folder.glob("*.idx")):
        index = path.read_bytes()
        assert index[:9] == b"MMIDIDX\x00\x00"
        version, code = struct.unpack_from("<QB", index, 9)
        sequences, borders = struct.unpack_from("<QQ", index, 18)
        assert version == 1
        assert borders == sequences + 1
        kind = {8: np.uint16, 4: np.int32}[code]
        sizes = np.frombuffer(index, np.int32, sequences, 34)
        pointers = np.frombuffer(index, np.int64, sequences, 34 + 4 * sequences)
        documents = np.frombuffer(index, np.int64, borders, 34 + 12 * sequences)
        assert len(index) == 34 + 12 * sequences + 8 * borders
        assert documents.tolist() == list(range(sequences + 1))
        data = path.with_suffix(".bin").read_bytes()
        assert sizes.sum() * np.dtype(kind).itemsize == len(data)
        arrays += [
            np.frombuffer(data, kind, size, pointer)
            for size, pointer in zip(sizes, pointers, strict=True)
        ]
    return arrays


def read_arrow(folder: Path) -> list[np.ndarray[Any, Any]]:
    rows = []
    for path in sorted(folder.glob("*.arrow")):
        # As `datasets.Dataset.from_file` does.
        rows += pa.ipc.open_stream(path).read_all()["input_ids"].to_numpy().tolist()
    return rows


def read_plain(folder: Path) -> list[np.ndarray[Any, Any]]:
    width = json.loads((folder / "manifest.json").read_text())["job"]["dtype"]
    return [np.fromfile(path, width) for path in sorted(folder.glob("*.bin"))]


READERS: dict[str, Callable[[Path], list[Any]]] = {
    "bytepair": read_plain, "llmc": read_llmc, "nanogpt": read_nanogpt,
    "megatron": read_megatron, "arrow": read_arrow,
}  # fmt: skip


@pytest.mark.parametrize("format", get_args(ShardFormat))
@pytest.mark.parametrize("bos", [False, True])
def test_other_readers_read_our_shards(
    format: ShardFormat, bos: bool, corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    result = shards.write(
        corpus, trained, tmp_path / "out", format=format, tokens_per_shard=SMALL, bos=bos
    )
    lists = expected(corpus, trained, prepend="<|bos|>" if bos else None)
    flat = list(itertools.chain.from_iterable(lists))
    read = READERS[format](tmp_path / "out")
    assert np.concatenate(read).tolist() == flat
    if format in {"megatron", "arrow"}:
        assert [list(document) for document in read] == lists
    assert result.dtype == np.uint16
    assert result.tokens == len(flat)
    assert result.documents == len(lists)
    assert len(result.shards) > 5
    first = "val" if format in {"llmc", "nanogpt"} else "train"
    assert [s.split for s in result.shards] == [first, *["train"] * (len(result.shards) - 1)]
    assert all(shard.tokens <= SMALL for shard in result.shards)
    assert shards.Manifest.load(tmp_path / "out") == result


@pytest.mark.parametrize("format", sorted(set(READERS) - {"nanogpt"}))
def test_ids_that_need_32_bits(
    format: ShardFormat, corpus: Path, tmp_path: Path, wide: bytepair.Tokenizer
) -> None:
    with told(UserWarning) if format == "llmc" else nullcontext():
        result = shards.write(
            corpus,
            wide,
            tmp_path / "out",
            format=format,
            tokens_per_shard=50_000,
            bos=False,
            eos=True,
        )
    flat = list(itertools.chain.from_iterable(expected(corpus, wide, append="<|endoftext|>")))
    assert np.concatenate(READERS[format](tmp_path / "out")).tolist() == flat
    assert result.dtype.name == ("int32" if format == "megatron" else "uint32")


def test_datasets_opens_arrow_shards(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    datasets = pytest.importorskip("datasets")
    shards.write(corpus, trained, tmp_path / "out", format="arrow", tokens_per_shard=SMALL)
    rows = []
    for path in sorted((tmp_path / "out").glob("*.arrow")):
        rows += [list(row["input_ids"]) for row in datasets.Dataset.from_file(str(path))]
    assert rows == expected(corpus, trained)


def test_shards_end_with_documents(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    """The cut is the greedy one, whatever the batches are; a long document has its own shard."""
    lengths = [len(ids) for ids in expected(corpus, trained)]
    for limit in (1, 100, SMALL, 10**9):
        cut: list[list[int]] = [[]]
        for length in lengths:
            if cut[-1] and sum(cut[-1]) + length > limit:
                cut.append([])
            cut[-1].append(length)
        result = shards.write(
            corpus, trained, tmp_path / str(limit), tokens_per_shard=limit, bos=False
        )
        assert [(s.tokens, s.documents) for s in result.shards] == [(sum(c), len(c)) for c in cut]


def test_one_parquet_file_passes_few_frames(
    tmp_path: Path, texts: list[str], trained: bytepair.Tokenizer
) -> None:
    """What a maintainer reads to follow one call."""
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    shards.write(tmp_path / "a.parquet", trained, tmp_path / "first")
    profile = cProfile.Profile()
    profile.runcall(shards.write, tmp_path / "a.parquet", trained, tmp_path / "second")
    package = str(Path(bytepair.__file__).parent)
    calls = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    assert sum(values[1] for (file, *_), values in calls if file.startswith(package)) <= 200


# ------------------------------------------------------------------ interruptions


class Killed(BaseException):
    """Raised where the process would end."""


@pytest.mark.parametrize("format", ["llmc", "nanogpt", "arrow"])
def test_a_run_killed_anywhere_is_continued_to_the_same_bytes(
    format: str, corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The run ends once before and once after each call that makes something durable."""
    options: dict[str, Any] = {"format": format, "tokens_per_shard": 25_000, "bos": True}
    shards.write(corpus, trained, tmp_path / "whole", **options)
    whole = listing(tmp_path / "whole")
    left = {"calls": 0}

    def dying(function: Any, after: bool) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            left["calls"] -= 1
            if left["calls"] == 0 and not after:
                raise Killed
            result = function(*args, **keywords)
            if left["calls"] == 0:
                raise Killed
            return result

        return call

    for after in (False, True):
        for calls in itertools.count(1):
            out = tmp_path / f"{after}{calls}"
            left["calls"] = calls
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", dying(lambda _: None, after))
                patch.setattr(Path, "replace", dying(Path.replace, after))
                patch.setattr(Path, "unlink", dying(Path.unlink, after))
                try:
                    shards.write(corpus, trained, out, **options)
                    break
                except Killed:
                    pass
            shards.write(corpus, trained, out, **options)
            assert listing(out) == whole, (after, calls)
        assert calls > 20


def test_a_killed_process(corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    trained.save(tmp_path)
    words = [
        sys.executable, "-m", "bytepair", "shard", str(corpus), "-t", str(tmp_path),
        "--tokens-per-shard", "500", "--bos", "--out",
    ]  # fmt: skip
    subprocess.run([*words, str(tmp_path / "whole")], check=True, capture_output=True)
    whole = listing(tmp_path / "whole")
    kills = 0
    for _ in range(30):
        run = subprocess.Popen([*words, str(tmp_path / "out")], stdout=subprocess.DEVNULL)
        marks = tmp_path / "out" / ".progress"
        before = len(list(marks.glob("0*"))) if marks.exists() else 0
        while run.poll() is None:
            if marks.exists() and len(list(marks.glob("0*"))) > before + 25:
                run.send_signal(signal.SIGKILL)
                run.wait()
            time.sleep(0.001)
        if run.returncode == 0:
            break
        kills += 1
    assert kills >= 1
    assert listing(tmp_path / "out") == whole


def test_nothing_is_done_twice(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards.write(corpus, trained, tmp_path / "out", tokens_per_shard=SMALL)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()}
    monkeypatch.setattr(write, "encode_all", None)  # would fail if it were called
    shards.write(corpus, trained, tmp_path / "out", tokens_per_shard=SMALL)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()} == before


def test_two_runs_cannot_share_a_folder(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    with manifest.locked(tmp_path), told(ShardError):
        shards.write(corpus, trained, tmp_path)
    shards.write(corpus, trained, tmp_path)


def test_another_job_is_refused(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer, wide: bytepair.Tokenizer
) -> None:
    shards.write(corpus, trained, tmp_path / "out")
    with told(ShardError):
        shards.write(corpus, trained, tmp_path / "out", tokens_per_shard=5)
    with told(ShardError):
        shards.write(corpus, wide, tmp_path / "out")
    with told(ShardError):
        shards.write(corpus / "a.parquet", trained, tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with told(ShardError):
        shards.write(corpus, trained, tmp_path / "full")


def test_a_full_disk(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards.write(corpus, trained, tmp_path / "whole", tokens_per_shard=SMALL)
    total = {"bytes": 0}
    add = write.DiskFile.add

    def limited(self: Any, ids: Any) -> None:
        total["bytes"] += len(ids)
        if total["bytes"] > 20_000:
            raise OSError(28, "No space left on device")
        add(self, ids)

    with monkeypatch.context() as patch:
        patch.setattr(write.DiskFile, "add", limited)
        with pytest.raises(OSError, match="No space left"):
            shards.write(corpus, trained, tmp_path / "out", tokens_per_shard=SMALL)
    with told(ShardError):
        shards.Manifest.load(tmp_path / "out")
    shards.write(corpus, trained, tmp_path / "out", tokens_per_shard=SMALL)
    assert listing(tmp_path / "out") == listing(tmp_path / "whole")


def test_a_finished_shard_that_is_gone(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(write, "finish", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            shards.write(corpus, trained, tmp_path, tokens_per_shard=SMALL)
    (tmp_path / "shard_000001.bin").unlink()
    with told(UserWarning):
        shards.write(corpus, trained, tmp_path, tokens_per_shard=SMALL)
    assert shards.verify(tmp_path)


def test_a_damaged_shard_is_written_again_with_all_behind_it(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    shards.write(corpus, trained, tmp_path, tokens_per_shard=SMALL)
    whole = listing(tmp_path)
    (tmp_path / "shard_000001.bin").write_bytes(b"cut off")
    kept = (tmp_path / "shard_000000.bin").stat().st_mtime_ns
    with told(UserWarning):
        shards.write(corpus, trained, tmp_path, tokens_per_shard=SMALL)
    assert listing(tmp_path) == whole
    assert (tmp_path / "shard_000000.bin").stat().st_mtime_ns == kept


# ------------------------------------------------------------------ what cannot be read


@pytest.fixture
def damaged(tmp_path: Path, texts: list[str]) -> Path:
    folder = tmp_path / "damaged"
    folder.mkdir()
    pq.write_table(pa.table({"text": texts[:40]}), folder / "a.parquet", 10)
    place = pq.ParquetFile(folder / "a.parquet").metadata.row_group(2).column(0)
    data = bytearray((folder / "a.parquet").read_bytes())
    start = place.dictionary_page_offset or place.data_page_offset
    data[start : start + 20] = b"\xff" * 20
    (folder / "a.parquet").write_bytes(data)
    (folder / "b.parquet").write_bytes(data[:500])
    rows = [texts[40], "x" * 100_000, texts[41]]
    (folder / "c.jsonl").write_text("{no\n" + "".join(json.dumps({"text": t}) + "\n" for t in rows))
    return folder


def test_an_error_names_the_place(
    damaged: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    with told(CorpusError):
        shards.write(damaged, trained, tmp_path / "out")


def test_skipped_documents_are_recorded(
    damaged: Path, tmp_path: Path, texts: list[str], trained: bytepair.Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    options: dict[str, Any] = {
        "errors": "skip", "max_document_bytes": 50_000, "tokens_per_shard": 2000, "bos": False,
    }  # fmt: skip
    result = shards.write(damaged, trained, tmp_path / "out", **options)
    places = [(Path(s["input"]).name, s["first"], s["rows"]) for s in result.skipped]
    assert places == [
        ("a.parquet", 20, 10), ("b.parquet", 0, None), ("c.jsonl", 0, 1), ("c.jsonl", 2, 1),
    ]  # fmt: skip
    assert "more than the limit of 50,000 bytes" in result.skipped[-1]["reason"]
    flat = np.concatenate(read_plain(tmp_path / "out")).tolist()
    rest = [*texts[:20], *texts[30:42]]
    assert flat == list(itertools.chain.from_iterable(trained.encode_batch(rest)))
    whole = listing(tmp_path / "out")
    save = manifest.save_mark
    for shard in range(len(result.shards) - 1):  # the last has no mark
        saves = itertools.count()

        def dying(folder: Path, mark: Any, last: int = shard, saves: Any = saves) -> None:
            save(folder, mark)
            if next(saves) == last:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(manifest, "save_mark", dying)
            with pytest.raises(Killed):
                shards.write(damaged, trained, tmp_path / f"{shard}", **options)
        shards.write(damaged, trained, tmp_path / f"{shard}", **options)
        assert listing(tmp_path / f"{shard}") == whole


def test_a_run_that_ended_with_an_error_goes_on_leaving_out(
    damaged: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    options: dict[str, Any] = {"tokens_per_shard": 2000}
    with told(CorpusError):
        shards.write(damaged, trained, tmp_path / "out", **options)
    assert (tmp_path / "out" / manifest.PROGRESS / "000000.json").exists()
    shards.write(damaged, trained, tmp_path / "out", errors="skip", **options)
    shards.write(damaged, trained, tmp_path / "whole", errors="skip", **options)
    assert listing(tmp_path / "out") == listing(tmp_path / "whole")
    with told(ShardError):
        shards.write(damaged, trained, tmp_path / "out", **options)


def test_a_run_that_finished_nothing_leaves_the_folder_to_others(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    with told(CorpusError):
        shards.write(corpus, trained, tmp_path / "out", column="body")
    shards.write(corpus, trained, tmp_path / "out")
    (tmp_path / "out" / ".gitattributes").write_text("*.bin -text")
    shards.write(corpus, trained, tmp_path / "out")
    assert (tmp_path / "out" / ".gitattributes").exists()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        ".gitattributes", "manifest.json", "shard_000000.bin", "shard_000000.ends",
        "tokenizer.bytepair",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl", "a.jsonl.gz", "a.parquet"])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_that_leaves_out_all_is_an_error(
    name: str, processes: int, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    data = {"a.txt.gz": gzip.compress(b"text " * 1000)[:40], "a.jsonl.gz": gzip.compress(b"[]")[:9]}
    (tmp_path / name).write_bytes(data.get(name, b"\xff"))
    out = tmp_path / "out"
    write: Any = shards.write
    if processes > 1:
        write = partial(bytepair.distributed.shard, rank=0, world_size=1)
    with told(CorpusError):
        write(tmp_path / name, trained, out, errors="skip")
    assert not (out / manifest.NAME).exists()
    if processes == 1:
        (tmp_path / "b.txt").write_text("text")
        result = shards.write([tmp_path / name, tmp_path / "b.txt"], trained, out, errors="skip")
        assert (result.documents, len(result.skipped)) == (1, 1)


def test_a_folder_that_is_refused_stays_as_it_is(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    (tmp_path / "mine").touch()
    with told(ShardError):
        shards.write(corpus, trained, tmp_path)
    with told(ShardError):
        bytepair.distributed.shard(corpus, trained, tmp_path, rank=0, world_size=2)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with told(NotADirectoryError):
        shards.write(corpus, trained, tmp_path / "mine" / "out")


def test_options_are_the_same_wherever_they_stand() -> None:
    fields = job.ShardOptions.__annotations__
    assert get_type_hints(job.ShardKeywords) == get_type_hints(job.ShardOptions)
    described = inspect.getdoc(job.ShardOptions) or ""
    assert all(f"\n    {name}: " in described for name in fields)


@pytest.mark.parametrize(
    ("option", "value"), [("format", "x"), ("tokens_per_shard", 0), ("errors", "ignore")]
)
def test_invalid_options(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer, option: str, value: Any
) -> None:
    with told((ArgumentError, ShardError)) as caught:
        shards.write(corpus, trained, tmp_path / "out", **{option: value})
    assert caught.value.option == option
    assert not (tmp_path / "out").exists()


def test_a_vocabulary_that_does_not_fit(
    corpus: Path, tmp_path: Path, wide: bytepair.Tokenizer
) -> None:
    with told(ShardError):
        shards.write(corpus, wide, tmp_path / "out", format="nanogpt")
    with told(SpecialTokenError):
        shards.write(corpus, wide, tmp_path / "out", bos="<|x|>")
    assert not (tmp_path / "out").exists()


def test_all_in_the_validation_shard_is_said(
    corpus: Path, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    with told(UserWarning):
        shards.write(corpus, trained, tmp_path / "out", format="nanogpt")


def test_many_small_files(tmp_path: Path, texts: list[str], trained: bytepair.Tokenizer) -> None:
    (tmp_path / "in").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "in" / f"{number:04}.txt").write_text(text, encoding="utf-8")
    result = shards.write(
        tmp_path / "in", trained, tmp_path / "out", tokens_per_shard=SMALL, bos=False
    )
    flat = np.concatenate(read_plain(tmp_path / "out")).tolist()
    assert flat == list(itertools.chain.from_iterable(trained.encode_batch(texts)))
    assert result.text_bytes == sum(len(t.encode()) for t in texts)


@pytest.mark.parametrize(
    "damage",
    [
        "{",
        '{"bytepair_shards": 2}',
        '{"bytepair_shards": 1}',
        "[]",
        r'{"bytepair_shards": 1, "\ud800": 0}',
    ],
)
def test_a_damaged_manifest(tmp_path: Path, damage: str) -> None:
    with told(ShardError):
        shards.Manifest.load(tmp_path)
    (tmp_path / "manifest.json").write_text(damage)
    with told(ShardError):
        shards.Manifest.load(tmp_path)
    if damage.startswith('{"'):
        manifest.write_json(tmp_path / "manifest.json", json.loads(damage))
        with told(ShardError):
            shards.Manifest.load(tmp_path)


def signed(values: dict[str, Any]) -> str:
    """A manifest with the right checksum."""
    bare = {name: value for name, value in values.items() if name != "crc32"}
    return json.dumps(bare | {"crc32": f"{zlib.crc32(manifest._dumped(bare)):08x}"})


def test_forged_manifests_and_indexes(tmp_path: Path) -> None:
    tok = bytepair.train(bytepair.sample.paths(), 400)
    shards.write(bytepair.sample.paths()[:3], tok, tmp_path, bos=True)
    path = tmp_path / "manifest.json"
    good = json.loads(path.read_text())
    for values in (
        good
        | {
            "shards": [
                good["shards"][0] | {"parts": [good["shards"][0]["parts"][0] | {"file": 1.5}]}
            ]
        },
        good | {"shards": [good["shards"][0] | {"tokens": -1}]},
        good | {"job": {name: good["job"][name] for name in ("dtype", "tokenizer")}},
        good | {"tokens": good["tokens"] + 1},
        good | {"checksum": "md5"},
        good | {"shards": [good["shards"][0] | {"following": [2, 1]}]},
    ):
        path.write_text(signed(values))
        with told(ShardError):
            shards.Manifest.load(tmp_path)
    path.write_text("[" * 100_000)
    with told(ShardError):
        shards.Manifest.load(tmp_path)
    path.write_text(signed(good | {"shards": [good["shards"][0] | {"parts": []}]}))
    with told(ShardError):
        shards.Dataset(tmp_path, split=None)[0]
    path.write_text(json.dumps(good))
    borders = tmp_path / good["shards"][0]["parts"][-1]["file"]
    borders.write_bytes(borders.read_bytes()[:-8] + b"\xff" * 8)
    with told(ShardError):
        shards.Dataset(tmp_path, split=None)[0]


# ------------------------------------------------------------------ memory


@pytest.mark.parametrize("name", ["long ones side by side", "one for all rows", "a huge one"])
@pytest.mark.slow
def test_memory_is_bounded_whatever_the_texts_of_a_row_group(
    name: str, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    million = ("The moth and the flame, again. " * 32_300)[:1_000_000]
    texts, expected, most_mb = {
        "long ones side by side": ([million * 20 + str(i) for i in range(6)], 2006, 220),
        "one for all rows": ([million] * 250, 2250, 450),
        "a huge one": ([million * 200], None, 100),
    }[name]
    rows = ["short"] * 1000
    table = pa.table({"text": pa.chunked_array([[text] for text in [*rows, *texts, *rows]])})
    trained.save(tmp_path)
    pq.write_table(
        table, tmp_path / "rows.parquet", compression="zstd", use_dictionary=len(texts) == 250
    )
    program = """
        import bytepair
        tok, source, out = bytepair.load(sys.argv[1]), sys.argv[2], sys.argv[2] + "-out"
        bytepair.shards.write(bytepair.sample.paths(), tok, out + "-small")
        before = peak_mb()
        options = dict(threads=2, errors="skip", max_document_bytes=32_000_000)
        manifest = bytepair.shards.write(source, tok, out, **options)
        print(manifest.documents, peak_mb() - before)
    """
    documents, grown = memory.run(program, tmp_path, tmp_path / "rows.parquet")
    # The huge text is skipped with the rows of its page.
    assert int(documents) == expected or (expected is None and 1000 <= int(documents) < 2000)
    assert float(grown) < most_mb
