"""Names of data sets in, files on disk out: whole, or not there at all.

A file is loaded under another name, continued there after any break, checked against the size and
the SHA-256 that the server promises, and renamed. So a file that has its name is complete, and
running the same command again loads what is missing.
"""

from __future__ import annotations

import fnmatch
import hashlib
import http.client
import os
import random
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import Any, Final

from bytepair._internal.progress import Bar, Callback
from bytepair._internal.system import sync
from bytepair.errors import DownloadError

ENDPOINT: Final = "https://huggingface.co"

BLOCK: Final = 1 << 18
#: Failures in a row, without a byte gained, after which a file is given up.
ATTEMPTS: Final = 6
#: Seconds without a byte after which a connection counts as broken.
TIMEOUT: Final = 30.0
#: Seconds to wait after the first failure; twice as long after each further one.
PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0


@dataclass(frozen=True)
class Remote:
    """A file to load.

    Attributes:
        url: where it is.
        name: what it is called in the folder; may have folders of its own.
        size: in bytes; None if not known.
        sha256: of its content; None if not known.
    """

    url: str
    name: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Published:
    """A data set that has a short name: numbered shards, of which the last is for validation.

    Attributes:
        repository: its name on the Hugging Face Hub.
        shards: how many files it has.
        folder: where its files go, in `~/.cache/bytepair`.
        adds_last: whether the last file is always downloaded, beside those that are asked for.
    """

    repository: str
    shards: int
    folder: str
    adds_last: bool

    def names(self, n: int) -> list[str]:
        """The names of the first `n` files (all if `n` is -1), and of the last if it is added."""
        numbers = list(range(self.shards))[: n if n > 0 else None]
        if self.adds_last and numbers[-1] != self.shards - 1:
            numbers.append(self.shards - 1)
        return [f"shard_{number:05}.parquet" for number in numbers]


#: The data sets of nanochat: that of 2025 and that of 2026, each counted as nanochat does.
DATASETS: Final = {
    "fineweb-edu": Published("karpathy/fineweb-edu-100b-shuffle", 1823, "base_data", False),
    "climbmix": Published("karpathy/climbmix-400b-shuffle", 6543, "base_data_climbmix", True),
}


def folder(dataset: str = "fineweb-edu") -> Path:
    """Where a data set goes unless told otherwise.

    Example:
        >>> from bytepair.corpus import download
        >>> download.folder().name, download.folder("climbmix").name
        ('base_data', 'base_data_climbmix')
    """
    name = DATASETS[dataset].folder if dataset in DATASETS else "base_data"
    return Path("~/.cache/bytepair").expanduser() / name


def download_dataset(
    dataset: str = "fineweb-edu",
    n: int = 8,
    *,
    dir: str | os.PathLike[str] | None = None,
    pattern: str = "*.parquet",
    workers: int = 4,
    endpoint: str | None = None,
    progress: bool | Callback | None = None,
) -> list[Path]:
    """Load files of a data set; those that are there already are left alone.

    Args:
        dataset: "fineweb-edu", "climbmix", or the name of any data set of the Hugging Face Hub,
            such as "HuggingFaceFW/fineweb"; the latter needs the extra `hub`.
        n: the number of files, from the first; -1 means all. The last file of the two named data
            sets is for validation. With "climbmix" it is added to the `n` training files; of
            "fineweb-edu" it comes with -1 only.
        dir: the folder; None means `bytepair.corpus.download.folder(dataset)`.
        pattern: which files of a data set of the Hub, as a glob.
        workers: how many files at the same time.
        endpoint: where the Hub is; None means `HF_ENDPOINT`, or else huggingface.co.
        progress: as in `bytepair.train`; the stage is "load", and counts bytes.

    Returns:
        The paths of the files, in order.

    Raises:
        DownloadError: if a file cannot be had; those that were loaded stay.
        ImportError: if the package `huggingface_hub` is needed and not installed.
    """
    if n < -1 or n == 0 or workers < 1:
        raise DownloadError(f"n is {n} and workers {workers}; pass a positive number (or n=-1)")
    base = (endpoint or os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    if not re.match(r"https?://[^/\s]", base):
        raise DownloadError(f"the endpoint {base!r} is no URL, such as {ENDPOINT}")
    if dataset in DATASETS:
        if pattern != "*.parquet":
            raise DownloadError(
                f"pattern is {pattern!r}, but {dataset} is a fixed list of files; pass n, or name "
                "the data set of the Hub (owner/name)"
            )
        root = f"{base}/datasets/{DATASETS[dataset].repository}/resolve/main"
        files = [Remote(f"{root}/{name}", name) for name in DATASETS[dataset].names(n)]
    else:
        files = list(_listed(dataset, pattern, base))[: n if n > 0 else None]
        if not files:
            raise DownloadError(f"the data set {dataset} has no file that matches {pattern!r}")
    return fetch_all(files, Path(dir or folder(dataset)), workers=workers, progress=progress)


def _listed(dataset: str, pattern: str, endpoint: str) -> Iterator[Remote]:
    """The files of a data set of the Hub, with their sizes and hashes."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", dataset):
        known = ", ".join(DATASETS)
        raise DownloadError(
            f"{dataset!r} is no data set: pass {known}, or the name of one of the Hub (owner/name)"
        )
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise ImportError(
            "to list data sets of the Hub, install huggingface_hub: pip install 'bytepair[hub]'"
        ) from error
    api = HfApi(endpoint=endpoint)
    try:
        tree = list(api.list_repo_tree(dataset, repo_type="dataset", recursive=True))
    except Exception as error:  # its errors have no common base
        raise DownloadError(f"cannot list the data set {dataset}: {error}") from error
    for item in sorted(tree, key=lambda item: item.path):
        size, lfs = getattr(item, "size", None), getattr(item, "lfs", None)
        if {"", "..", "/"} & set(Path(item.path).parts):
            raise DownloadError(f"the data set {dataset} has a file {item.path!r}, outside of it")
        if size is not None and fnmatch.fnmatch(item.path, pattern):
            url = f"{endpoint}/datasets/{dataset}/resolve/main/{item.path}"
            yield Remote(url, item.path, size, None if lfs is None else lfs.sha256)


def fetch_all(
    files: list[Remote],
    dir: Path,
    *,
    workers: int = 4,
    progress: bool | Callback | None = None,
) -> list[Path]:
    """Load files, several at the same time; the first that cannot be had ends the rest.

    Raises:
        DownloadError: if one cannot be had.
    """
    stop = Event()
    with Bar(progress) as bar, ThreadPoolExecutor(workers, "bytepair-download") as pool:
        received = _Received(len(files), bar)

        def load(number: int) -> Path:
            def gained(size: int) -> None:
                if stop.is_set():
                    raise DownloadError("stopped, because another file cannot be had")
                received.add(number, size)

            def missing(size: int) -> None:
                received.expect(number, size)

            file = files[number]
            path = fetch(file, dir / file.name, on_bytes=gained, on_size=missing)
            received.end(number)
            return path

        tasks = [pool.submit(load, number) for number in range(len(files))]
        try:
            wait(tasks, return_when=FIRST_EXCEPTION)
        finally:
            failed = [task for task in tasks if task.done() and task.exception()]
            if failed or not all(task.done() for task in tasks):
                stop.set()
                pool.shutdown(cancel_futures=True)
        for task in failed:
            task.result()
        return [task.result() for task in tasks]


class _Received:
    """Adds up the bytes that several threads receive, and estimates the bytes of all files.

    A file whose size no server has said is taken to be as large as the others are on average. What
    was here before does not count.
    """

    def __init__(self, files: int, bar: Bar) -> None:
        self._files, self._bar, self._lock = files, bar, Lock()
        self._sizes: dict[int, int] = {}
        self._got: dict[int, int] = {}

    def expect(self, number: int, size: int) -> None:
        """The number of bytes of a file that are missing."""
        with self._lock:
            self._sizes[number] = self._got.get(number, 0) + size

    def add(self, number: int, size: int) -> None:
        """Bytes of a file came."""
        with self._lock:
            self._got[number] = self._got.get(number, 0) + size
            self._report()

    def end(self, number: int) -> None:
        """A file is complete."""
        with self._lock:
            self._sizes[number] = self._got.get(number, 0)
            if self._got:
                self._report()

    def _report(self) -> None:
        known = [size for size in self._sizes.values() if size]
        unknown = self._files - len(self._sizes)
        total = sum(known) + unknown * sum(known) // len(known) if known else None
        self._bar.update("load", sum(self._got.values()), total)


def fetch(
    file: Remote,
    path: Path,
    *,
    on_bytes: Callable[[int], object] = lambda _: None,
    on_size: Callable[[int], object] = lambda _: None,
    attempts: int = ATTEMPTS,
    timeout: float = TIMEOUT,
    pause: float = PAUSE,
) -> Path:
    """Load one file, with as many tries as it takes.

    Args:
        file: what to load.
        path: where it goes.
        on_bytes: called with the number of bytes that came.
        on_size: called with the number of bytes that are missing, before they come, if the server
            says it; again after a failure.
        attempts: failures in a row, without a byte gained, after which to give up.
        timeout: seconds without a byte after which to try again.
        pause: seconds to wait after a failure, twice as long after each further one.

    Raises:
        DownloadError: if it cannot be had, or is not what was promised.
    """
    if path.exists() and file.size in (None, path.stat().st_size):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    transfer = _Transfer(file, path, timeout, on_bytes, on_size)
    failures = 0
    while True:
        before = transfer.size
        try:
            return transfer.run()
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, DownloadError) and not isinstance(error, _AgainError):
                raise
            failures = 0 if transfer.size > before else failures + 1
            if failures >= attempts:
                raise DownloadError(
                    f"cannot load {file.url} after {attempts} tries: {_reason(error)}"
                ) from error
            longer = min(pause * 2**failures, LONGEST_PAUSE) * random.uniform(0.5, 1.0)
            time.sleep(max(longer, getattr(error, "wait", 0.0)))


class _AgainError(DownloadError):
    """What may go well next time."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = min(wait, LONGEST_PAUSE)


def _reason(error: BaseException) -> str:
    """What went wrong, for people."""
    if isinstance(error, urllib.error.URLError):
        return f"{error.reason} (is there a network?)"
    return str(error) or type(error).__name__


class _Transfer:
    """One file on its way, and what is known of it."""

    def __init__(
        self,
        file: Remote,
        path: Path,
        timeout: float,
        on_bytes: Callable[[int], object],
        on_size: Callable[[int], object],
    ) -> None:
        self._file, self._path, self._timeout = file, path, timeout
        self._on_bytes, self._on_size = on_bytes, on_size
        self._partial = path.with_name(f".{path.name}.partial")
        self._tag = path.with_name(f".{path.name}.etag")
        self._size, self._sha256 = file.size, file.sha256

    @property
    def size(self) -> int:
        """How many bytes are here."""
        return self._partial.stat().st_size if self._partial.exists() else 0

    def run(self) -> Path:
        """Load what is missing, check it, and give the file its name."""
        if self._size is None:
            self._size, self._sha256 = self._promised()
            if self._path.exists() and self._path.stat().st_size == self._size:
                return self._path
        if self._size is None or self.size != self._size:
            self._receive()
        self._check()
        self._partial.replace(self._path)
        self._tag.unlink(missing_ok=True)
        return self._path

    def _promised(self) -> tuple[int | None, str | None]:
        """The size and the hash that the server tells before anything is loaded."""
        try:
            answer, headers, _ = _opened(self._file.url, "HEAD", {}, self._timeout, follow=False)
            answer.close()
        except (OSError, http.client.HTTPException):
            return None, None
        tag = (headers.get("X-Linked-Etag") or "").strip('"')
        size = headers.get("X-Linked-Size")
        return (
            int(size) if size and size.isdigit() else None,
            tag if re.fullmatch(r"[0-9a-f]{64}", tag) else None,
        )

    def _receive(self) -> None:
        """Append what is missing; begin anew where the server cannot continue."""
        total, tag = self._remembered()
        have = self.size if total or tag else 0
        asked = {"Range": f"bytes={have}-"} if have else {}
        if have and tag:
            asked["If-Range"] = tag
        response, headers, status = _opened(self._file.url, "GET", asked, self._timeout)
        with response:
            if status == 416:
                self._partial.unlink(missing_ok=True)
                raise _AgainError(f"{self._file.url}: the server has fewer bytes than are here")
            if status == 206:
                self._check_range(headers.get("Content-Range") or "", have, total)
            start = have if status == 206 else 0
            length = headers.get("Content-Length")
            end = start + int(length) if length and length.isdigit() else None
            self._remember(headers, end)
            if end is not None:
                self._on_size(end - start)
            with self._partial.open("r+b" if start else "wb") as out:
                out.seek(start)
                out.truncate()
                while block := response.read1(BLOCK):
                    out.write(block)
                    self._on_bytes(len(block))
                out.flush()
                sync(out.fileno())
        if end is not None and self.size < end:
            raise _AgainError(f"the connection ended after {self.size:,} of {end:,} bytes")

    def _check_range(self, said: str, have: int, total: int) -> None:
        """The answer goes on where we stopped, in a file of the size that it had."""
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", said)
        if not found or int(found[1]) != have or (total and found[2] not in ("*", str(total))):
            self._tag.unlink(missing_ok=True)
            raise _AgainError(
                f"{self._file.url}: asked for bytes from {have} on, the server sent {said}"
            )

    def _remember(self, headers: Any, total: int | None) -> None:
        """Keep what identifies this version of the file, to continue it and no other."""
        tag = headers.get("ETag") or headers.get("Last-Modified") or ""
        self._tag.write_text(
            f"{total or 0} {'' if tag.startswith('W/') else tag}", encoding="utf-8"
        )

    def _remembered(self) -> tuple[int, str]:
        """The size and the tag of the version that is here in part; 0 and nothing if not known."""
        if not self._tag.exists():
            return 0, ""
        total, _, tag = self._tag.read_text(encoding="utf-8").partition(" ")
        return int(total) if total.isdigit() else 0, tag

    def _check(self) -> None:
        """Compare with what was promised; what is wrong is thrown away."""
        wrong = None
        if self._size is not None and self.size != self._size:
            wrong = f"it has {self.size:,} bytes, and {self._size:,} were promised"
        elif self._sha256 is not None:
            with self._partial.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != self._sha256:
                wrong = f"its SHA-256 is {found}, and {self._sha256} was promised"
        if wrong is not None:
            if self._size is None or self.size >= self._size:
                self._partial.unlink()
            raise _AgainError(f"{self._file.url} is not what it should be: {wrong}")


class _Stay(urllib.request.HTTPRedirectHandler):
    """Does not follow redirections: the headers of the first answer are wanted."""

    def redirect_request(self, *args: object) -> None:
        """Follow nothing."""


def _opened(
    url: str, method: str, headers: dict[str, str], timeout: float, *, follow: bool = True
) -> tuple[Any, Any, int]:
    """Ask a server; return the answer, its headers and its status.

    Raises:
        DownloadError: if asking again is of no use.
    """
    request = urllib.request.Request(url, method=method, headers=headers)
    request.add_header("User-Agent", "bytepair")
    if (token := os.environ.get("HF_TOKEN")) and url.startswith("https://"):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    handlers = [] if follow else [_Stay]
    try:
        response = urllib.request.build_opener(*handlers).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 or (not follow and 300 <= error.code < 400):
            return error, error.headers, error.code
        with suppress(OSError):
            error.close()
        message = f"{url}: the server says {error.code} {error.reason}"
        if error.code in (408, 425, 429) or error.code >= 500:
            after = error.headers.get("Retry-After") or ""
            raise _AgainError(message, float(after) if after.isdigit() else 0.0) from None
        raise DownloadError(f"{message}; is the name right, and is it open to you?") from None
    return response, response.headers, response.status
