"""Whatever a server does, a file under its final name is complete."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from bytepair.corpus import download
from bytepair.corpus.download import Remote, fetch, fetch_all
from bytepair.errors import DownloadError, NotAFolderError
from commands import run
from messages import told

DATA = bytes(range(256)) * 4000
SHA = hashlib.sha256(DATA).hexdigest()
QUICK: dict[str, Any] = {"timeout": 0.3, "pause": 0.001}


class Server(ThreadingHTTPServer):
    """Serves DATA, with the fault that the first part of the path names."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.tokens: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that close the connection, as these tests make them do."""


#: Where redirects lead that are refused, or lead to what is no address.
NOWHERE: Final = {
    "file": "file:///etc/hostname",
    "bracket": "http://[::1/x",
    "label": f"http://{'a' * 70}.com/x",
    "accent": "http://é.com/x",
}


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def promise(self) -> None:
        """The headers with which the Hub redirects to its storage."""
        self.send_response(302)
        self.send_header("X-Linked-Size", str(len(DATA)))
        self.send_header("X-Linked-Etag", f'"{SHA}"')
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self) -> None:
        if self.path.startswith(("/hub", "/datasets")):
            self.promise()
        else:
            self.send_error(405)

    def body(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        # Counted first: the client may have all bytes before this thread goes on.
        self.server.sent[self.path] += len(data)
        self.wfile.write(data)

    def tree(self) -> None:
        """The list of files of a data set, as the Hub gives it."""
        names = {"name": ["b/2.parquet", "README.md", "b/1.parquet", "b/long.parquet"]}
        names["evil"], names["foreign"] = ["../../x.parquet"], ["é %.parquet"]
        names["half"], names["parts"] = ["\ud800.parquet"], ["x.parquet"]
        repository = self.path.split("/")[4]
        paths = names.get(repository)
        lfs = {"oid": SHA, "size": len(DATA), "pointerSize": 1}
        files = [
            {"type": "file", "oid": "0", "size": len(DATA), "path": name, "lfs": lfs}
            for name in paths or []
        ]
        strange: dict[str, Any] = {
            "number": {"path": 5}, "text": {"size": "x"}, "list": {"size": [5]},
        }  # fmt: skip
        if repository in strange:
            one = {"type": "file", "oid": "0", "size": 5, "path": "x.parquet"}
            files = [one | strange[repository]]
        data = json.dumps([{"type": "directory", "oid": "1", "path": "b"}, *files]).encode()
        self.server.tokens.append(self.headers["Authorization"])
        if repository == "endless":
            self.body(200, b"[]", Link='<https://elsewhere/x?recursive=true>; rel="next"')
        elif repository == "large":
            self.body(200, b" " * 5_000_000)
        elif repository == "parts" and "cursor=2" not in self.path:
            self.body(200, b"[]", Link='<https://elsewhere/x?cursor=2>; rel="next"')
        elif repository == "negative":
            chunk = b"-1\r\n" + b" " * 5000 + data
            self.body(200, chunk, Transfer_Encoding="chunked")
            self.close_connection = True
        elif repository == "link":
            self.body(200, b"[]", Link='<http://[>; rel="next"')
        else:
            self.body(200 if files else 404, data, Content_Type="application/json")

    def do_GET(self) -> None:  # noqa: C901 - a list of misdeeds
        if self.path.startswith("/api/datasets/"):
            self.tree()
            return
        self.server.requests[self.path] += 1
        time_asked = self.server.requests[self.path]
        kind = self.path.split("/")[-2]
        start = int((self.headers["Range"] or "bytes=0-")[6:-1])
        status, rest = (206, DATA[start:]) if start else (200, DATA)
        half = rest[: len(rest) // 2 + 1]
        place = {"Content_Range": f"bytes {start}-{len(DATA) - 1}/{len(DATA)}"} if start else {}
        whole = str(len(rest))
        if kind == "nothing":
            self.body(200, b"")
        elif kind == "error" and time_asked < 4:
            self.body(503, b"", Retry_After="0")
        elif kind == "never":
            self.body(500, b"")
        elif kind in ("gone", "api"):
            self.body(404, b"")
        elif kind == "cut" and time_asked < 5:
            self.body(status, half, Content_Length=whole, ETag='"a"', **place)
            self.close_connection = True
        elif kind == "bare" and time_asked < 5:
            self.body(status, half, Content_Length=whole, **place)
            self.close_connection = True
        elif kind == "drip":
            self.body(200, b"x" * 100, Content_Length=whole, ETag='"a"')
            for _ in range(8):
                time.sleep(0.05)
                self.wfile.write(b"x")
            self.close_connection = True
        elif kind == "odd":
            self.body(200, DATA, Content_Length=whole, ETag='"a"', X_Linked_Size="\xb2")
        elif kind == "ftp":
            self.body(302, b"", Location="ftp://127.0.0.1/x")
        elif kind == "flood":
            self.body(302, b"x", Location="/ok/1", Content_Length=str(1 << 60))
        elif kind == "refused":
            self.body(416 if start else 200, half, Content_Length=whole)
            self.close_connection = True
        elif kind in NOWHERE:
            self.body(302, b"", Location=NOWHERE[kind])
        elif kind == "stall" and time_asked < 3:
            self.body(status, half, Content_Length=whole, ETag='"a"', **place)
            time.sleep(0.6)
            self.close_connection = True
        elif kind == "norange":
            cut = DATA if time_asked > 2 else DATA[:1000]
            self.body(200, cut, Content_Length=str(len(DATA)), ETag='"a"')
            self.close_connection = len(cut) < len(DATA)
        elif kind == "changed" and time_asked == 1:
            self.body(200, b"x" * 1000, Content_Length=str(len(DATA)), ETag='"old"')
            self.close_connection = True
        elif kind == "otherrange" and start:
            self.body(206, DATA[5:], Content_Range=f"bytes 5-{len(DATA) - 1}/{len(DATA)}")
        elif kind == "otherrange" and time_asked == 1:
            self.body(200, DATA[:1000], Content_Length=whole, ETag='"a"')
            self.close_connection = True
        elif "short" in self.path:
            self.body(200, DATA[:-1])
        elif "long" in self.path:
            self.body(200, DATA + b"x")
        elif "wrong" in self.path or ("once" in self.path and time_asked == 1):
            self.body(200, bytes(len(DATA)))
        else:
            self.body(status, rest, **place)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize(
    "kind",
    [
        "ok",
        "error",
        "cut",
        "bare",
        "odd",
        "stall",
        "norange",
        "changed",
        "flood",
        "hub/ok",
        "hub/cut",
        "hub/bare",
        "hub/stall",
        "hub/norange",
        "hub/changed",
        "hub/otherrange",
        "hub/once",
    ],
)
def test_successful_downloads(server: Server, tmp_path: Path, kind: str) -> None:
    path = fetch(Remote(f"{server.url}/{kind}/1", "file"), tmp_path / "file", **QUICK)
    assert path.read_bytes() == DATA
    assert left(tmp_path) == ["file"]
    if kind in {"hub/cut", "hub/bare", "hub/stall"}:
        assert server.sent[f"/{kind}/1"] == len(DATA)  # nothing was sent twice
    if kind in {"cut", "bare", "stall"}:
        assert server.sent[f"/{kind}/1"] > len(DATA)  # the versions might differ


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("gone", ["HTTP 404"]),
        ("never", ["after 3 attempts", "HTTP 500"]),
        ("hub/short", ["after 3 attempts", "1,023,999 bytes", "1,024,000"]),
        ("hub/long", ["1,024,000 bytes"]),
        ("drip", ["after 3 attempts", "bytes came in"]),
        ("hub/refused", ["after 3 attempts"]),
        ("ftp", ["'ftp://127.0.0.1/x'"]),
        ("file", ["'file:///etc/hostname'"]),
        ("bracket", ["Invalid IPv6 URL"]),
        ("label", ["label"]),
        ("accent", ["codec"]),
        ("hub/wrong", [SHA]),
    ],
)
def test_failing_downloads(server: Server, tmp_path: Path, kind: str, names: list[str]) -> None:
    with told(DownloadError, *names):
        fetch(Remote(f"{server.url}/{kind}/2", "file"), tmp_path / "file", attempts=3, **QUICK)
    assert not (tmp_path / "file").exists()


def test_the_next_run_resumes_an_interrupted_download(server: Server, tmp_path: Path) -> None:
    file = Remote(f"{server.url}/hub/cut/3", "file")
    gained: list[int] = []

    def interrupt(size: int) -> None:
        gained.append(size)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(file, tmp_path / "file", on_bytes=interrupt, **QUICK)
    assert 0 < gained[0] < len(DATA)
    first = server.requests["/hub/cut/3"]
    fetch(file, tmp_path / "file", on_bytes=gained.append, **QUICK)
    assert sum(gained) == len(DATA)
    assert server.requests["/hub/cut/3"] > first
    assert (tmp_path / "file").read_bytes() == DATA


@pytest.mark.parametrize("kind", ["ok", "cut", "hub/changed", "hub/ok"])
def test_who_downloads_a_file_at_once_takes_turns(
    server: Server, tmp_path: Path, kind: str
) -> None:
    file = Remote(f"{server.url}/{kind}/together", "file")
    with ThreadPoolExecutor(8) as pool:
        for path in pool.map(lambda _: fetch(file, tmp_path / "file", timeout=1), range(8)):
            assert path.read_bytes() == DATA
    assert left(tmp_path) == ["file"]


def test_existing_files_are_kept(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    fetch(Remote(f"{server.url}/never/4", "file"), tmp_path / "file", **QUICK)
    assert (tmp_path / "file").read_bytes() == b"mine"
    fetch(Remote(f"{server.url}/ok/4", "file", size=len(DATA)), tmp_path / "file", **QUICK)
    assert (tmp_path / "file").read_bytes() == DATA


def test_no_network(tmp_path: Path) -> None:
    with told(DownloadError, "check the network"):
        fetch(Remote("http://127.0.0.1:9/x", "x"), tmp_path / "x", attempts=2, **QUICK)


def test_no_network_is_said_soon(tmp_path: Path) -> None:
    with told(DownloadError, "after 2 attempts", "check the network"):
        fetch(Remote("http://127.0.0.1:9/x", "x"), tmp_path / "x", pause=0.001)


def test_names_that_lead_out_of_a_folder_on_some_system() -> None:
    for path in ("a.parquet", "a/b c.parquet", ".hidden", "com.parquet", "conx"):
        assert download.is_inside(path), path
    for path in (
        "", "/x", "../x", "a/../x", "a//b", ".", "C:/x", "C:\\x", "\\\\server\\share\\x", "a\\b",
        "x:stream", "nul", "CON.txt", "lpt1", "a/aux.parquet", "x.", "x ", "a\0b", "a\nb",
        "a\x9bb", "a\ud800b", "a/" * 1_000 + "a",
    ):  # fmt: skip
        assert not download.is_inside(path), path


def test_a_file_may_be_empty(server: Server, tmp_path: Path) -> None:
    path = fetch(Remote(f"{server.url}/nothing/1", "x", size=0), tmp_path / "x", **QUICK)
    assert path.read_bytes() == b""
    assert left(tmp_path) == ["x"]


@pytest.mark.parametrize("what", ["partial", "lock"])
def test_no_file_has_the_name_of_a_temporary_file_of_another(
    server: Server, tmp_path: Path, what: str
) -> None:
    names = ["b/x", f"b/.x.{what}"]
    with told(DownloadError, f"'b/.x.{what}'"):
        download.fetch_all([Remote(f"{server.url}/ok/1", name) for name in names], tmp_path)
    assert left(tmp_path) == []


def test_no_file_is_the_folder_of_another(server: Server, tmp_path: Path) -> None:
    for name in ("a.parquet/b.parquet", "a.parquet/b/c.parquet"):
        with told(DownloadError, "'a.parquet' is a file"):
            fetch_all([Remote(f"{server.url}/ok/1", one) for one in (name, "a.parquet")], tmp_path)
    assert left(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_folders_of_files_are_no_links(server: Server, tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    (out := tmp_path / "out").mkdir()
    (out / "b").symlink_to(other)
    with told(NotAFolderError):
        fetch_all([Remote(f"{server.url}/ok/1", "b/c/file")], out)
    assert left(other) == []


def test_the_shards_of_fineweb_edu(server: Server, tmp_path: Path) -> None:
    paths = download.download_dataset(n=3, dir=tmp_path, endpoint=server.url, progress=False)
    assert left(tmp_path) == ["shard_00000.parquet", "shard_00001.parquet", "shard_00002.parquet"]
    assert [p.read_bytes() for p in paths] == [DATA] * 3
    path = f"/datasets/karpathy/fineweb-edu-100b-shuffle/resolve/main/{paths[0].name}"
    assert server.requests[path] == 1
    download.download_dataset(n=3, dir=tmp_path, endpoint=server.url)
    assert server.requests[path] == 1


def test_the_shards_of_climbmix_with_the_one_for_validation(server: Server, tmp_path: Path) -> None:
    paths = download.download_dataset("climbmix", 2, dir=tmp_path, endpoint=server.url)
    assert [p.name for p in paths] == [f"shard_{i:05}.parquet" for i in (0, 1, 6542)]
    assert [p.read_bytes() for p in paths] == [DATA] * 3
    assert (
        server.requests["/datasets/karpathy/climbmix-400b-shuffle/resolve/main/shard_06542.parquet"]
        == 1
    )


def test_the_command_adds_the_one_for_validation(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    words = ["download", "climbmix", "-n", "1", "--out", str(tmp_path)]
    assert run(*words, cwd=tmp_path).stdout.startswith("2 files, ")
    assert left(tmp_path) == ["shard_00000.parquet", "shard_06542.parquet"]


@pytest.mark.parametrize(
    ("dataset", "n", "count", "last"),
    [
        ("climbmix", 170, 171, 6542),
        ("climbmix", 6542, 6543, 6542),
        ("climbmix", 6543, 6543, 6542),
        ("climbmix", 9999, 6543, 6542),
        ("climbmix", -1, 6543, 6542),
        ("fineweb-edu", 240, 240, 239),
        ("fineweb-edu", -1, 1823, 1822),
    ],
)
def test_which_shards_a_number_means(dataset: str, n: int, count: int, last: int) -> None:
    names = download.DATASETS[dataset].names(n)
    assert len(names) == len(set(names)) == count
    assert names == sorted(names)
    assert names[-1] == f"shard_{last:05}.parquet"


def test_the_data_sets_of_nanochat_have_folders_of_their_own() -> None:
    assert download.folder("climbmix") != download.folder() == download.folder("owner/name")


def test_a_missing_file_ends_the_other_downloads(server: Server, tmp_path: Path) -> None:
    names = ["ok/5", "gone/5", *(f"ok/{i}" for i in range(6, 9))]
    files = [Remote(f"{server.url}/{name}", name.replace("/", "-")) for name in names]
    with told(DownloadError, "404"):
        download.fetch_all(files, tmp_path, workers=2)
    again = [file for file in files if "gone" not in file.name]
    paths = download.fetch_all(again, tmp_path, workers=2)
    assert all(path.read_bytes() == DATA for path in paths)


@pytest.mark.parametrize("options", [{"n": 0}, {"n": -2}, {"workers": 0}])
def test_invalid_numbers(options: dict[str, int]) -> None:
    with told(DownloadError):
        download.download_dataset(**options)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no alarms")
@pytest.mark.timeout(30)
def test_an_interrupt_does_not_wait_for_the_server() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            download._run(lambda _: threading.Event().wait(60), 2, 2, threading.Event())
    finally:
        signal.signal(signal.SIGALRM, before)


def test_unknown_data_sets() -> None:
    with told(DownloadError):
        download.download_dataset("nothing")


def test_any_data_set_of_the_hub(server: Server, tmp_path: Path) -> None:
    paths = download.download_dataset(
        "owner/name", -1, dir=tmp_path, pattern="b/[0-9].parquet", endpoint=server.url
    )
    assert [str(p.relative_to(tmp_path)) for p in paths] == ["b/1.parquet", "b/2.parquet"]
    assert [p.read_bytes() for p in paths] == [DATA] * 2
    with told(DownloadError):
        download.download_dataset("owner/name", dir=tmp_path, pattern="*.x", endpoint=server.url)
    with told(DownloadError):
        download.download_dataset("owner/other", dir=tmp_path, endpoint=server.url)
    for name in ("evil", "half"):
        with told(DownloadError):
            download.download_dataset(f"owner/{name}", dir=tmp_path, endpoint=server.url)
    for name in ("number", "text", "list", "link"):
        with told(DownloadError):
            download.download_dataset(f"owner/{name}", dir=tmp_path, endpoint=server.url)
    (path,) = download.download_dataset("owner/foreign", dir=tmp_path, endpoint=server.url)
    assert path == tmp_path / "é %.parquet"


def test_a_list_of_files_comes_in_parts_from_the_same_server(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    server.tokens.clear()
    (path,) = download.download_dataset("owner/parts", dir=tmp_path, endpoint=server.url)
    assert path == tmp_path / "x.parquet"
    assert server.tokens == [None, None], "a token is sent over HTTPS only"
    for name in ("endless", "large"):
        with told(DownloadError):
            download.download_dataset(f"owner/{name}", dir=tmp_path, endpoint=server.url)


def test_a_list_of_files_has_a_limit_whatever_its_chunks_state(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "MOST_LIST_BYTES", 1000)
    with told(DownloadError):
        download.download_dataset("owner/negative", dir=tmp_path, endpoint=server.url)


@pytest.mark.parametrize("token", ["secret\nx", "secret\u2603"])
def test_an_error_does_not_show_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with told(DownloadError, "HF_TOKEN") as caught:
        download.download_dataset("owner/name", dir=tmp_path, endpoint="https://127.0.0.1:9")
    assert "secret" not in str(caught.value)
