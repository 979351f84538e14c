"""Temporary folders: removed at the end, and by the next run if a process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bytepair
from bytepair.files import outputs as module
from bytepair.files.outputs import scratch


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary ones, which are never too young."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(module, "YOUNG_SECONDS", -1.0)
    return tmp_path


def test_a_folder_ends_with_its_block(root: Path) -> None:
    with scratch() as folder:
        (folder / "a").write_text("text")
        with scratch():  # another run removes nothing that is in use
            assert len(list(root.iterdir())) == 2
    assert not list(root.iterdir())


def test_a_folder_ends_with_an_error(root: Path) -> None:
    with pytest.raises(KeyError), scratch():
        raise KeyError
    assert not list(root.iterdir())


def test_only_folders_without_an_owner_are_removed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scratch() as folder:
        prefix = folder.name[:18]
    beside = [root / "bytepair-mine", root / f"{prefix}file", root / "other"]
    beside[0].mkdir()
    beside[1].write_text("text")
    beside[2].mkdir()
    (root / f"{prefix}link").symlink_to(root / "other")
    (root / f"{prefix}left" / "0").mkdir(parents=True)
    monkeypatch.setattr(module, "YOUNG_SECONDS", 3600.0)
    with scratch():
        assert (root / f"{prefix}left").exists()  # its owner may be about to lock it
    monkeypatch.setattr(module, "YOUNG_SECONDS", -1.0)
    with scratch():
        pass
    assert sorted(root.iterdir()) == sorted([*beside, root / f"{prefix}link"])


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_the_folder_of_a_killed_count_is_removed_by_the_next(root: Path) -> None:
    reading = "bytepair.Reading(memory_limit=1)"
    code = f"import bytepair\nbytepair.count(iter(lambda: 'text', 0), reading={reading})"
    run = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(root)})
    while not list(root.glob("bytepair-*/0")):
        assert run.poll() is None
        time.sleep(0.01)
    bytepair.count(["text"])
    assert len(list(root.iterdir())) == 1
    run.send_signal(signal.SIGKILL)
    run.wait()
    bytepair.count(["text"])
    assert not list(root.iterdir())
