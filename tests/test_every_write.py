"""Every path that a command opens for writing, as the system sees it, and what may stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import bytepair

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("strace") is None, reason="needs strace"
    ),
]

TALK: Final = (
    '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}\n'
)
HUB_FILE: Final = b"some bytes of a data set" * 100
DOWNLOAD: Final = "shard_00000.parquet"
CONVERT: Final = ["convert", "tok.bytepair"]
SHARD: Final = ["shard", "-t", "tok.bytepair", "text.txt", "-o", "out"]

#: Commands that write; all in one folder.
COMMANDS: Final[dict[str, list[str]]] = {
    "train": ["train", "text.txt", "--vocab-size", "300", "-o", "out", "--checkpoint", "c"],
    "count": ["count", "text.txt", "-o", "out.parquet", "--checkpoint", "c"],
    "count ranks": ["count", "text.txt", "-o", "out.parquet", "--rank", "0", "--world-size", "1"],
    "encode": ["encode", "text.txt", "-t", "tok.bytepair"],
    "evaluate": ["evaluate", "tok.bytepair", "--val", "text.txt", "--sizes", "out.csv"],
    "evaluate --token-bytes": [
        "evaluate", "tok.bytepair", "--val", "text.txt", "--token-bytes", "out.npy",
    ],
    "explore": ["explore", "tok.bytepair", "--export", "out.html"],
    "render": ["render", "talk.jsonl", "-t", "tok.bytepair", "-o", "out.parquet"],
    "extend": ["extend", "tok.bytepair", "text.txt", "--extra", "3", "-o", "out"],
    "prune": ["prune", "tok.bytepair", "--vocab-size", "300", "-o", "out", "--ids", "ids.npy"],
    "convert huggingface": [*CONVERT, "out", "--format", "huggingface"],
    "convert tiktoken": [*CONVERT, "out.tiktoken", "--format", "tiktoken", "--lossy"],
    "convert gguf": [*CONVERT, "out.gguf", "--format", "gguf", "--lossy"],
    "convert nanochat": [*CONVERT, "out", "--format", "nanochat"],
    "shard": SHARD,
    "shard nanogpt": [*SHARD, "--format", "nanogpt"],
    "shard arrow": [*SHARD, "--format", "arrow"],
    "shard megatron": [*SHARD, "--format", "megatron"],
    "shard llmc": [*SHARD, "--format", "llmc"],
    "download": ["download", "fineweb-edu", "-n", "1", "-o", "out"],
    "download resumed": ["download", "fineweb-edu", "-n", "1", "-o", "half"],
}  # fmt: skip


class Write(NamedTuple):
    """A file that was opened for writing, or a name that a file was renamed to."""

    path: str
    flags: str


class HubHandler(BaseHTTPRequestHandler):
    """Files of a data set, as the Hub serves them."""

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(HUB_FILE)))
        self.send_header("ETag", '"first"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(HUB_FILE)


@contextmanager
def hub() -> Iterator[str]:
    """The URL of a server that answers as the Hub does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), HubHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(
    tmp_path: Path, trained: bytepair.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The working folder, with what the commands read."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    Path("text.txt").write_text("one two three\n" * 50, encoding="utf-8")
    Path("talk.jsonl").write_text(TALK, encoding="utf-8")
    trained.export("tok.bytepair")
    Path("half").mkdir()
    Path("half", f".{DOWNLOAD}.partial").write_bytes(HUB_FILE[:9])
    with hub() as url:
        monkeypatch.setenv("HF_ENDPOINT", url)
        yield work


def writes(words: list[str], folder: Path) -> list[Write]:
    """Run a command, and list what it writes in the folder, with relative paths."""
    log = folder.parent / "strace.log"
    calls = "trace=open,openat,creat,rename,renameat,renameat2"
    command = ["strace", "-f", "-y", "-s", "4096", "-e", calls, "-o", str(log), sys.executable]
    subprocess.run([*command, "-m", "bytepair", *words], check=True, capture_output=True)
    pattern = re.compile(
        r'(?:open|openat|creat)\((?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)", ([A-Z_|]+)'
        r'|rename\w*\(.*?(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)"(?:, \w+)?\) += 0'
    )
    found = []
    for match in map(pattern.search, log.read_text().splitlines()):
        if match is None:
            continue
        base, name, flags, to_base, to_name = match.groups()
        if flags is not None and not re.search("O_WRONLY|O_RDWR", flags):
            continue
        path = Path(base or to_base or folder, name or to_name)
        if path.is_relative_to(folder):
            found.append(Write(str(path.relative_to(folder)), flags or "rename"))
    return found


def is_random(path: str) -> bool:
    """Whether nobody could have put something at a path before."""
    return re.search(r"[0-9a-f]{12,}", path) is not None


@pytest.mark.parametrize("name", COMMANDS)
def test_files_are_new_or_are_opened_without_following_a_link(name: str, folder: Path) -> None:
    found = writes(COMMANDS[name], folder)
    assert found or name == "encode"
    for path, flags in found:
        assert is_random(path) or re.search("O_EXCL|O_NOFOLLOW|rename", flags), (path, flags)


def put(kind: str, path: Path, other: Path) -> None:
    """Put something at a path that is no file of one name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
        (path / "inside").write_text("precious")
    elif kind == "link":
        path.symlink_to(other)
    else:
        path.hardlink_to(other)


def contents(folder: Path) -> dict[str, bytes | None]:
    files = [path for path in folder.rglob("*") if not path.is_fifo()]
    return {str(path): path.read_bytes() if path.is_file() else None for path in files}


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_written_through_what_stands_there(
    name: str, kind: str, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "clean")
    paths = {path for path, _ in writes(COMMANDS[name], folder) if not is_random(path)}
    other = tmp_path / "other"
    other.write_text("precious")
    for path in sorted(paths):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "clean", folder)
        put(kind, folder / path, other)
        os.chdir(folder)
        command = [sys.executable, "-m", "bytepair", *COMMANDS[name]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert other.read_text() == "precious", path
        assert kind != "folder" or (folder / path / "inside").read_text() == "precious", path
        if kind in ("link", "hard link") and Path(path).name == DOWNLOAD:
            continue  # a file that is there is complete: nothing is written
        assert done.returncode in (1, 2), (path, done.stderr)
        assert "this is a bug" not in done.stderr, path
        assert path.split("/")[0] in done.stderr or Path(path).name in done.stderr, path
