"""Download data sets. A file either exists completely or not at all.

A file is downloaded under a temporary name, resumed after an interruption, checked against the size
and SHA-256 announced by the server, and renamed. So a file with its final name is complete, and
running the same command again downloads what is missing. A download is resumed if the SHA-256 of
the file is known, which shows whether the parts are of one version; otherwise it begins again.
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
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Event, Lock, Thread
from typing import Any, Final
from urllib.parse import quote, urlsplit

from bytepair._internal.progress import Bar, Callback
from bytepair.errors import DownloadError, NotAFileError
from bytepair.files import outputs
from bytepair.files.safe import is_plain, parse_json

ENDPOINT: Final = "https://huggingface.co"

BLOCK_BYTES: Final = 1 << 18
#: The number of consecutive failures without progress after which to give up.
MOST_FAILURES: Final = 6
#: The number of failures after which to give up if the server never answered.
MOST_FAILURES_UNREACHED: Final = 2
#: The timeout of a connection without data, in seconds.
TIMEOUT_SECONDS: Final = 30.0
#: A connection with fewer bytes per second than this within the timeout counts as one without data.
LEAST_BYTES_PER_SECOND: Final = 1000
#: The wait for each thread after an interrupt, in seconds: it ends at its next block.
GRACE_SECONDS: Final = 1.0
#: The wait after the first failure, in seconds; it doubles with each further failure.
PAUSE_SECONDS: Final = 1.0
MOST_PAUSE_SECONDS: Final = 60.0

#: The most parts of a list of files, and the bytes that are read of each: 1,000 files are in one.
MOST_LISTED: Final = 1000
MOST_LIST_BYTES: Final = 1 << 22

#: The most folders in each other: the functions of `pathlib` call themselves for each.
MOST_LEVELS: Final = 100
#: What follows the name of a file in those of the files beside it, until it is complete.
TEMPORARY: Final = ("partial", "lock")

#: The error of a download that is stopped by another thread.
CANCELLED: Final = "cancelled, because another download failed"


@dataclass(frozen=True)
class Remote:
    """A file to download; its name is a path in the output folder. None means unknown."""

    url: str
    name: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Published:
    """A data set with a short name: numbered shards, of which the last is for validation."""

    repository: str
    shards: int
    folder: str
    adds_last: bool  # whether the last is downloaded in addition to the requested ones

    def names(self, n: int) -> list[str]:
        """The names of the first `n` files (-1 for all), and of the last file if it is added."""
        numbers = list(range(self.shards))[: n if n > 0 else None]
        if self.adds_last and numbers[-1] != self.shards - 1:
            numbers.append(self.shards - 1)
        return [f"shard_{number:05}.parquet" for number in numbers]


#: The data sets of nanochat: 2025 and 2026. `n` counts their files as nanochat does.
DATASETS: Final = {
    "fineweb-edu": Published("karpathy/fineweb-edu-100b-shuffle", 1823, "base_data", False),
    "climbmix": Published("karpathy/climbmix-400b-shuffle", 6543, "base_data_climbmix", True),
}


def folder(dataset: str = "fineweb-edu") -> Path:
    """The default folder of a data set."""
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
    """Download files of a data set; existing files are not downloaded again.

    Args:
        dataset: "fineweb-edu", "climbmix", or the name of any data set on the Hugging Face Hub,
            such as "HuggingFaceFW/fineweb".
        n: the number of files, starting with the first; -1 means all. The last file of the two
            named data sets is for validation. For "climbmix" it is always downloaded, in addition
            to the `n` training files; for "fineweb-edu" only with -1.
        dir: the output folder; None means `bytepair.corpus.download.folder(dataset)`.
        pattern: a glob that selects files of a data set on the Hub.
        workers: the number of parallel downloads.
        endpoint: the URL of the Hub; None means `HF_ENDPOINT`, or else huggingface.co.
        progress: as in `bytepair.train`; the stage is "load", the unit bytes.

    Returns:
        The paths of the files, in order.

    Raises:
        DownloadError: if a download fails; files that are complete are kept.
    """
    if n < -1 or n == 0 or workers < 1:
        raise DownloadError(
            f"n is {n} and workers {workers}", hint="pass a positive number (or -1 for n)"
        )
    base = (endpoint or os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    if not re.match(r"https?://[^/\s]", base):
        raise DownloadError(f"the endpoint {base!r} is not a URL such as {ENDPOINT}")
    if dataset in DATASETS:
        if pattern != "*.parquet":
            raise DownloadError(
                f"pattern is {pattern!r}, but {dataset} has a fixed list of files",
                hint="pass n, or the name of a data set on the Hub (owner/name)",
            )
        root = f"{base}/datasets/{DATASETS[dataset].repository}/resolve/main"
        files = [Remote(f"{root}/{name}", name) for name in DATASETS[dataset].names(n)]
    else:
        files = list(_files_on_hub(dataset, pattern, base))[: n if n > 0 else None]
        if not files:
            raise DownloadError(f"no file of the data set {dataset} matches {pattern!r}")
    return fetch_all(files, Path(dir or folder(dataset)), workers=workers, progress=progress)


def _files_on_hub(dataset: str, pattern: str, endpoint: str) -> Iterator[Remote]:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", dataset):
        names = ", ".join(DATASETS)
        raise DownloadError(
            f"unknown data set {dataset!r}",
            hint=f"pass {names}, or the name of a data set on the Hub (owner/name)",
        )
    for path, size, sha256 in sorted(_tree(dataset, endpoint)):
        if not is_inside(path):
            raise DownloadError(
                f"the data set {dataset} lists a file outside its folder, or with a name that not "
                f"every system has: {path!r}"
            )
        if size >= 0 and fnmatch.fnmatch(path, pattern):
            url = f"{endpoint}/datasets/{dataset}/resolve/main/{quote(path)}"
            yield Remote(url, path, size, sha256 or None)


def _tree(dataset: str, endpoint: str) -> list[tuple[str, int, str]]:
    """The path, the size and the SHA-256 of each file of a data set; -1 and "" where unknown."""
    url, query = f"{endpoint}/api/datasets/{dataset}/tree/main", "recursive=true"
    files: list[tuple[str, int, str]] = []
    for _ in range(MOST_LISTED):
        try:
            response, headers, _ = _opened(f"{url}?{query}", "GET", {}, TIMEOUT_SECONDS)
            with response:
                data = b""  # `read` of a chunk of size -1 would have no limit
                while len(data) < MOST_LIST_BYTES and (block := response.read1(BLOCK_BYTES)):
                    data += block
            files += map(_listed, parse_json(data[:MOST_LIST_BYTES], "the answer"))
            following = re.search('<([^<>]+)>; rel="next"', headers.get("Link") or "")
            if following is None:
                return files
            query = urlsplit(following[1]).query  # whatever address the server gives besides
        except DownloadError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise DownloadError(f"cannot list the data set {dataset}: {_reason(error)}") from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise DownloadError(f"{url} is no list of files: {error}") from error
    raise DownloadError(f"the list of the data set {dataset} has more than {MOST_LISTED:,} parts")


def _listed(item: Any) -> tuple[str, int, str]:
    match item["path"], item.get("size", -1), (item.get("lfs") or {}).get("oid", ""):
        case str(path), int(size), str(sha256):
            return path, size if item.get("type") == "file" else -1, sha256
    raise DownloadError(
        f"the Hub lists {item['path']!r} with a path, a size or a hash that is none"
    )


def is_inside(path: str) -> bool:
    r"""Whether a path with slashes stays in its folder, on every system."""
    names = path.split("/")
    return len(names) <= MOST_LEVELS and all(map(is_plain, names))


def fetch_all(
    files: list[Remote], dir: Path, *, workers: int = 4, progress: bool | Callback | None = None
) -> list[Path]:
    """Download files in parallel; the first failure cancels the others."""
    _check_names({file.name for file in files})
    stop, lock, sizes, got = Event(), Lock(), dict[int, int](), Counter[int]()
    with Bar(progress) as bar:

        def report(number: int, gained: int, missing: int | None) -> None:
            """Add what a file has gained; its size is known from what is still missing."""
            if gained and stop.is_set():
                raise DownloadError(CANCELLED)
            with lock:
                got[number] += gained
                if missing is not None:
                    sizes[number] = got[number] + missing
                # A file of unknown size is assumed to have the average size of the others.
                total = len(files) * sum(sizes.values()) // max(len(sizes), 1)
                if done := got.total():
                    bar.update("load", done, total or None)

        def load(number: int) -> None:
            path = dir / files[number].name
            outputs.check_inside(dir, path)
            fetch(
                files[number], path, stop=stop,
                on_bytes=lambda size: report(number, size, None),
                on_size=lambda size: report(number, 0, size),
            )  # fmt: skip
            report(number, 0, 0)

        _run(load, len(files), workers, stop)
    return [dir / file.name for file in files]


def _run(load: Callable[[int], object], count: int, workers: int, stop: Event) -> None:
    """Call `load` with each number below `count`; the first failure stops all and is raised."""
    numbers, lock, failures = iter(range(count)), Lock(), list[BaseException]()

    def work() -> None:
        try:
            while not stop.is_set():
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                load(number)
        except BaseException as error:
            failures.append(error)
            stop.set()

    # Daemons: a server may hold one for ever in a read, which must not keep Ctrl-C waiting.
    threads = [Thread(target=work, daemon=True) for _ in range(min(workers, count))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        for thread in filter(Thread.is_alive, threads):
            thread.join(GRACE_SECONDS)
    if failures:
        raise failures[0]


def _check_names(names: set[str]) -> None:
    """Check that no file has the name of a temporary file, or of a folder of another one."""
    for name in names:
        if re.fullmatch(rf"(?:.*/)?\.[^/]*\.(?:{'|'.join(TEMPORARY)})", name):
            raise DownloadError(f"{name!r} has the name of a temporary file")
        for parent in map(str, PurePosixPath(name).parents):
            if parent in names:
                raise DownloadError(f"{parent!r} is a file, and the folder of {name!r}")


def fetch(
    file: Remote,
    path: Path,
    *,
    on_bytes: Callable[[int], object] = lambda _: None,
    on_size: Callable[[int], object] = lambda _: None,
    attempts: int = MOST_FAILURES,
    timeout: float = TIMEOUT_SECONDS,
    pause: float = PAUSE_SECONDS,
    stop: Event | None = None,
) -> Path:
    """Download one file; give up after so many failures in succession without progress.

    `on_bytes` is called with the size of each block, `on_size` with what is still to be received,
    if the server announces it. Another thread may `stop` the wait after a failure.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    transfer = _Transfer(file, path, timeout, on_bytes, on_size)
    failures, size, stop = 0, transfer.size, stop or Event()
    while not (path.is_file() and file.size in (None, path.stat().st_size)):
        try:
            with outputs.locked(transfer.lock, _RetryError(f"another process downloads {path}")):
                transfer.run()
        except NotAFileError:
            raise
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, DownloadError) and not isinstance(error, _RetryError):
                raise
            if _is_of_disk(error):  # such as a full one, which no retry empties
                raise
            before, size = size, max(size, transfer.size)
            failures = 0 if size >= before + BLOCK_BYTES else failures + 1
            reached = transfer.has_answer or isinstance(error, _RetryError)
            most = attempts if reached else min(attempts, MOST_FAILURES_UNREACHED)
            if failures >= most:
                text = f"cannot download {file.url} after {most} attempts: {_reason(error)}"
                raise DownloadError(text) from error
            longer = min(pause * 2**failures, MOST_PAUSE_SECONDS) * random.uniform(0.5, 1.0)
            if stop.wait(max(longer, getattr(error, "wait", 0.0))):
                raise DownloadError(CANCELLED) from None
    if transfer.lock.exists():  # of a run that was killed after it renamed the file
        # Whoever releases the lock removes it.
        with suppress(BlockingIOError), outputs.locked(transfer.lock):
            pass
    return path


def _is_of_disk(error: Exception) -> bool:
    """Whether an error is about a file here; errors of the network name an address or nothing."""
    network = (urllib.error.URLError, DownloadError, http.client.HTTPException)
    return not isinstance(error, network) and getattr(error, "filename", None) is not None


class _RetryError(DownloadError):
    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = min(wait, MOST_PAUSE_SECONDS)


def _reason(error: BaseException) -> str:
    if isinstance(error, urllib.error.URLError):
        return f"{error.reason} (check the network connection)"
    return str(error) or type(error).__name__


@dataclass
class _Transfer:
    _file: Remote
    _path: Path
    _timeout: float
    _on_bytes: Callable[[int], object]
    _on_size: Callable[[int], object]
    has_answer: bool = False  # of the server

    def __post_init__(self) -> None:
        names = (f".{self._path.name}.{what}" for what in TEMPORARY)
        self._partial, self.lock = map(self._path.with_name, names)
        self._size, self._sha256 = self._file.size, self._file.sha256

    @property
    def size(self) -> int:
        """The number of bytes in the partial file."""
        with suppress(FileNotFoundError):
            return self._partial.stat().st_size
        return 0

    def run(self) -> None:
        """Download what is missing, check the file and rename it."""
        for path in (self._path, self._partial):
            outputs.check_alone(path)
        if self._size is None:
            self._size, self._sha256 = self._announced()
            if self._path.exists() and self._path.stat().st_size == self._size:
                return
        if self._size is None or self.size != self._size or not self._partial.exists():
            self._receive()  # also what is empty
        self._check()
        self._partial.replace(self._path)

    def _announced(self) -> tuple[int | None, str | None]:
        try:
            answer, headers, _ = _opened(self._file.url, "HEAD", {}, self._timeout, follow=False)
            answer.close()
        except (OSError, http.client.HTTPException):
            return None, None
        self.has_answer = True
        tag = (headers.get("X-Linked-Etag") or "").strip('"')
        sha256 = tag if re.fullmatch(r"[0-9a-f]{64}", tag) else None
        return _number(headers.get("X-Linked-Size")), sha256

    def _receive(self) -> None:
        """Append what is missing, if `_check` would find a mixture of versions; else all anew."""
        have = self.size if self._sha256 else 0
        request = {"Range": f"bytes={have}-"} if have else {}
        response, headers, status = _opened(self._file.url, "GET", request, self._timeout)
        self.has_answer = True
        with response:
            given = headers.get("Content-Range") or ""
            if status == 416 or (status == 206 and not given.startswith(f"bytes {have}-")):
                outputs.remove_own(self._partial)
                raise _RetryError(f"{self._file.url}: no bytes from {have} on, but {given!r}")
            start = have if status == 206 else 0
            length = _number(headers.get("Content-Length"))
            if length is not None:
                self._on_size(length)
            with outputs.open_own(self._partial) as out:
                out.seek(start)
                out.truncate()
                self._copy(response, out, start)
                with outputs.naming(self._partial):
                    out.flush()
                    outputs.sync(out.fileno())
        if length is not None and self.size < start + length:
            end = start + length
            raise _RetryError(f"the connection closed after {self.size:,} of {end:,} bytes")

    def _copy(self, response: Any, out: Any, size: int) -> None:
        """Append a response, at most to the announced size, unless the server is too slow."""
        since, before = time.monotonic(), size
        while block := response.read1(BLOCK_BYTES):
            size += len(block)
            if self._size is not None and size > self._size:
                out.truncate(0)
                raise _RetryError(
                    f"{self._file.url} is corrupt: it has more than the announced {self._size:,} "
                    "bytes"
                )
            with outputs.naming(self._partial):
                out.write(block)
            self._on_bytes(len(block))
            waited = time.monotonic() - since
            if waited >= self._timeout:
                if size - before < LEAST_BYTES_PER_SECOND * waited:
                    out.flush()
                    raise _RetryError(f"{size - before:,} bytes came in {waited:.0f} seconds")
                since, before = time.monotonic(), size

    def _check(self) -> None:
        wrong = None
        if self._size is not None and self.size != self._size:
            wrong = f"it has {self.size:,} bytes, but {self._size:,} were announced"
        elif self._sha256 is not None:
            with self._partial.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != self._sha256:
                wrong = f"its SHA-256 is {digest}, but {self._sha256} was announced"
        if wrong is not None:
            if self._size is None or self.size >= self._size:
                outputs.remove_own(self._partial)
            raise _RetryError(f"{self._file.url} is corrupt: {wrong}")


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,18}", text) else None


class _Redirect(urllib.request.HTTPRedirectHandler):
    """Follows redirects to HTTP and HTTPS, and from HTTPS to HTTPS only; or none at all."""

    def __init__(self, follow: bool) -> None:
        self._follow = follow

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        """Follow a redirect without its body, which urllib would read into memory."""
        fp.close()
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """The next request; `DownloadError` if the redirect must not be followed."""
        if not self._follow:  # the headers of the first response are needed
            return None
        allowed = ("https://",) if req.full_url.startswith("https://") else ("https://", "http://")
        if not newurl.lower().startswith(allowed):
            raise DownloadError(
                f"{req.full_url} redirects to {newurl[:200]!r}, which is not followed: only "
                f"{' and '.join(allowed)} are"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opened(
    url: str, method: str, headers: dict[str, str], timeout: float, *, follow: bool = True
) -> tuple[Any, Any, int]:
    """Send a request; return the response, its headers and its status."""
    request = urllib.request.Request(url, method=method, headers=headers)
    request.add_header("User-Agent", "bytepair")
    if (token := os.environ.get("HF_TOKEN", "").strip()) and url.startswith("https://"):
        if not re.fullmatch("[!-~]+", token):  # an error of the header would show it
            raise DownloadError("HF_TOKEN has a character that no token has")
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    opener = urllib.request.OpenerDirector()  # without the handlers of files and FTP
    for handler in (
        urllib.request.ProxyHandler(), urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(), _Redirect(follow),
    ):  # fmt: skip
        opener.add_handler(handler)
    try:
        response: Any = opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 or (not follow and 300 <= error.code < 400):
            return error, error.headers, error.code
        with suppress(OSError):
            error.close()
        message = f"{url}: HTTP {error.code} {error.reason}"
        if error.code in (408, 425, 429) or error.code >= 500:
            after = error.headers.get("Retry-After") or ""
            raise _RetryError(message, float(_number(after) or 0)) from None
        raise DownloadError(message, hint="check the name and your access") from None
    except (ValueError, OverflowError) as error:  # a redirect to what is no address
        raise DownloadError(f"{url}: {error}") from error
    return response, response.headers, response.status
