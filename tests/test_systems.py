"""Differences of Windows and macOS, imitated on this system."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import io
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import bytepair
from bytepair.cli import messages as output
from bytepair.errors import InUseError
from bytepair.files import outputs
from bytepair.files.outputs import locked
from bytepair.shards import manifest
from bytepair.shards.manifest import ShardFormat
from bytepair.training import counting
from messages import told

TEXTS = [f"text number {number}, which is not long" for number in range(300)]


def _held() -> set[str]:
    """The files of /tmp that this process has open or mapped."""
    opened = {os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()}
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return opened | {line.split(maxsplit=5)[5] for line in lines if line.count("/")}


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files as on Windows: none is removed or replaced while it is open or mapped, none that is
    read is synced, no folder is opened, and locks are those of another module.
    """

    def refusing(action: Callable[..., Any], which: slice) -> Callable[..., Any]:
        def checked(*paths: Any, **options: Any) -> Any:
            for path in paths[which]:
                if os.path.realpath(path) in _held():
                    raise PermissionError(errno.EACCES, "it is used by another process", str(path))
            return action(*paths, **options)

        return checked

    sync = os.fsync

    def sync_writable(file: int) -> None:
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "bad file descriptor")
        sync(file)

    def locking(file: int, mode: int, size: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "permission denied") from None

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refusing(os.unlink, slice(0, 1)))
        patch.setattr(os, "replace", refusing(os.replace, slice(0, 2)))
        patch.setattr(os, "fsync", sync_writable)
        patch.delattr(os, "O_DIRECTORY")
        patch.setitem(sys.modules, "fcntl", None)
        patch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
        yield


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
@pytest.mark.usefixtures("windows")
class TestWindows:
    def test_files_that_are_open_or_mapped_stay(self, tmp_path: Path) -> None:
        """The imitation of Windows refuses what Windows refuses."""
        np.zeros(100_000, np.uint8).tofile(tmp_path / "a")
        mapped = np.memmap(tmp_path / "a", np.uint8, "r")
        with pytest.raises(PermissionError):
            (tmp_path / "a").unlink()
        del mapped
        with (tmp_path / "a").open("rb") as file, pytest.raises(OSError, match="descriptor"):
            os.fsync(file.fileno())
        (tmp_path / "a").unlink()

    @pytest.mark.parametrize("format", get_args(ShardFormat))
    def test_shards_are_written_and_read(self, format: ShardFormat, tmp_path: Path) -> None:
        tok = bytepair.train(TEXTS, vocab_size=300)
        source, out = tmp_path / "texts.jsonl", tmp_path / "shards"
        source.write_text("".join(f'{{"text": "{text}"}}\n' for text in TEXTS), encoding="utf-8")
        result = bytepair.shards.write(source, tok, out, format=format, tokens_per_shard=2_000)
        assert result.documents == len(TEXTS)
        assert len(result.shards) > 1
        bytepair.shards.verify(out)
        assert not [path for path in out.iterdir() if path.name.startswith(".")]

    def test_a_lock_keeps_a_second_run_out_and_is_removed(self, tmp_path: Path) -> None:
        with manifest.locked(tmp_path):
            with told(InUseError), manifest.locked(tmp_path):
                pass
            assert (tmp_path / manifest.LOCK).exists()
        assert not any(tmp_path.iterdir())
        with manifest.locked(tmp_path):
            pass

    def test_a_lock_that_the_next_run_has_opened_stays_for_it(self, tmp_path: Path) -> None:
        with manifest.locked(tmp_path):
            next_run = os.open(tmp_path / manifest.LOCK, os.O_RDWR)
        assert (tmp_path / manifest.LOCK).exists()
        os.close(next_run)

    def test_a_tokenizer_is_saved_twice(self, tmp_path: Path) -> None:
        tok = bytepair.train(TEXTS, vocab_size=300)
        tok.save(tmp_path)
        tok.save(tmp_path)
        tok.export(tmp_path / "tokenizer.json")
        assert bytepair.load(tmp_path / "tokenizer.json").vocab_size == tok.vocab_size

    def test_a_count_with_a_checkpoint_and_little_memory(self, tmp_path: Path) -> None:
        whole = bytepair.count(TEXTS)
        counts = bytepair.count(
            TEXTS, reading=bytepair.Reading(checkpoint=tmp_path / "c.parquet", memory_limit=1 << 20)
        )
        assert counts == whole


def test_a_lock_is_held_by_one_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path), pytest.raises(BlockingIOError), locked(path):
        pass
    assert not path.exists()


def test_macos_syncs_through_the_cache_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda _, what: calls.append(what))
    monkeypatch.setattr(os, "fsync", lambda _: calls.append(-1))
    with (tmp_path / "a").open("wb") as file:
        outputs.sync(file.fileno())
        assert calls == [51]

        def unknown(_: int, __: int) -> None:
            raise OSError(errno.ENOTSUP, "not supported")

        monkeypatch.setattr(fcntl, "fcntl", unknown)
        outputs.sync(file.fileno())
        assert calls == [51, -1]

        def broken(_: int, __: int) -> None:
            raise OSError(errno.EIO, "input/output error")

        monkeypatch.setattr(fcntl, "fcntl", broken)
        with pytest.raises(OSError, match="input/output"):
            outputs.sync(file.fileno())


def test_the_memory_of_a_container_is_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = counting.memory()
    for limit, expected in (("123456\n", 123_456), ("max\n", None), (str(1 << 63), None)):
        (tmp_path / "memory.max").write_text(limit, encoding="ascii")
        monkeypatch.setattr(counting, "_LIMITS", (tmp_path / "memory.max", tmp_path / "missing"))
        assert counting.memory() == expected if expected else counting.memory() >= machine


def test_the_memory_where_there_is_no_sysconf(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(status: Any) -> int:
        assert status._obj.length == ctypes.sizeof(status._obj) == 64
        status._obj.total = 1 << 34
        return 1

    kernel = types.SimpleNamespace(GlobalMemoryStatusEx=fill)
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(ctypes, "windll", types.SimpleNamespace(kernel32=kernel), raising=False)
    assert counting.memory() == 1 << 34
    monkeypatch.delattr(ctypes, "windll")
    assert counting.memory() == 0


def test_a_closed_pipe_is_invalid_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    invalid = OSError(errno.EINVAL, "invalid argument")
    assert output.is_closed_pipe(BrokenPipeError())
    assert not output.is_closed_pipe(invalid)
    monkeypatch.setattr(sys, "platform", "win32")
    assert output.is_closed_pipe(invalid)
    assert not output.is_closed_pipe(OSError(errno.EINVAL, "invalid argument", "a file"))


def test_output_of_any_encoding_takes_all_characters() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "cp1252", newline="\r\n")
    output.use_output(stream)
    stream.write("é█\n")
    stream.flush()
    assert raw.getvalue() == b"\xe9\\u2588\n"
    output.use_output(None)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_training_works_with_any_output_encoding(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("héllo wörld, 你好 world\n" * 200, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "bytepair", "train", "a.txt", "--vocab-size", "280", "-o", "tok"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    assert ("█" if encoding == "utf-8" else "#") in run.stdout.decode(encoding)
    assert b"Error" not in run.stderr


def test_a_closed_pipe_ends_a_command_quietly(tmp_path: Path) -> None:
    """Also if all output fits the buffer, which is written at the end."""
    bytepair.train(TEXTS, vocab_size=300).save(tmp_path / "tok")
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(
        [sys.executable, "-m", "bytepair", "encode", "-t", str(tmp_path / "tok"), "--text", "a"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (run.returncode, run.stderr) == (0, b"")


def test_lines_of_windows_are_encoded_without_their_ends(tmp_path: Path) -> None:
    bytepair.train(TEXTS, vocab_size=300).save(tmp_path / "tok")
    ids = [
        subprocess.run(
            [sys.executable, "-m", "bytepair", "encode", "-t", str(tmp_path / "tok"), "--lines"],
            input=text,
            capture_output=True,
            check=True,
        ).stdout
        for text in (b"one\ntwo\nthree\n", b"one\r\ntwo\r\nthree\r\n", b"one\r\ntwo\r\nthree")
    ]
    assert ids[0] == ids[1] == ids[2]
    assert ids[0].count(b"\n") == 3
