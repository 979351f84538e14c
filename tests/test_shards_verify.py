"""`verify` finds any byte that differs from the manifest."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bytepair
from bytepair import shards
from bytepair.errors import ShardError
from bytepair.shards import writer
from messages import told


@pytest.fixture(params=sorted(shards.LAYOUTS))
def folder(request: pytest.FixtureRequest, tmp_path: Path, trained: bytepair.Tokenizer) -> Path:
    shards.write(
        bytepair.sample.paths()[1:8], trained, tmp_path / "out", format=request.param,
        tokens_per_shard=12_000, bos=True,
    )  # fmt: skip
    return tmp_path / "out"


def test_shards_as_written(folder: Path, trained: bytepair.Tokenizer) -> None:
    report = shards.verify(folder, samples=2)
    assert report
    assert "all is as promised" in str(report)
    first, last = bytepair.sample.paths()[1], bytepair.sample.paths()[7]
    beginnings = [text.removeprefix("<|bos|>")[:20] for _, text in report.samples]
    assert beginnings == [p.read_text(encoding="utf-8")[:20] for p in (first, last)]
    assert [number for number, _ in report.samples] == [0, 6]


def test_one_wrong_byte_anywhere(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        if path.name == "manifest.json":
            continue
        whole = path.read_bytes()
        places = np.unique(np.linspace(0, len(whole) - 1, 8, dtype=int))
        for place in places.tolist():
            damaged = bytearray(whole)
            damaged[place] ^= 1
            path.write_bytes(damaged)
            assert not shards.verify(folder), (path, place)
        for wrong in (whole[:-1], whole + b"\0", b""):
            path.write_bytes(wrong)
            assert not shards.verify(folder), path
        path.unlink()
        report = shards.verify(folder)
        assert not report
        assert path.name in str(report)
        path.write_bytes(whole)
    assert shards.verify(folder)


def test_one_wrong_bit_anywhere_in_the_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with told(ShardError, str(path)):
            shards.Manifest.load(folder)


def test_another_tokenizer(folder: Path) -> None:
    bytepair.train(["other"], 266).save(folder, overwrite=True)
    assert "and the ids were made by" in str(shards.verify(folder))


def test_ids_that_are_no_tokens(folder: Path) -> None:
    """They are found even if all checksums are correct."""
    manifest = shards.Manifest.load(folder)
    if manifest.format != "bytepair":
        pytest.skip("the ids of one format are enough")
    name = "shard_000001.bin"
    ids = np.fromfile(folder / name, np.uint16)
    ids[77] = 60_000
    ids.tofile(folder / name)
    parts = manifest.shards[1].parts
    parts[0] = replace(parts[0], crc32=writer.part_of(folder, name).crc32)
    manifest.save(folder)
    assert "id 60000 at token 77 is not a token" in str(shards.verify(folder))


def test_the_verify_command(folder: Path, trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "bytepair", "verify", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    assert run(str(folder))[0] == 0
    next(folder.glob("*.bytepair")).unlink()
    code, out = run(str(folder))
    assert code == 1
    assert "there is no tokenizer" in out
    trained.save(tmp_path / "tok")
    code, out = run(str(tmp_path / "tok"))
    assert code == 0
    assert "all tables are correct" in out
