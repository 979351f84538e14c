"""Fixtures of several tests: shared data, its vocabularies, and these in tiktoken.

A file of tests that imports a package which is not installed is skipped, and so is a test that
comes to need one; both say so. Processes that tests start have the default signal handlers, also
where the tests run in the background; temporary folders lie in memory where there is room.
"""

from __future__ import annotations

import ast
import base64
import os
import re
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

import bytepair
import messages
from bytepair.errors import ArgumentError

if TYPE_CHECKING:
    import tiktoken

settings.register_profile("default", deadline=None, derandomize=True, max_examples=200)
settings.register_profile("quick", settings.get_profile("default"), max_examples=20)
settings.load_profile("default")

#: The rank files and the name of the pattern of each.
VOCABULARIES = {"gpt2": "gpt2", "cl100k_base": "gpt4", "o200k_base": "gpt4o", "qwen3": "qwen2"}

#: A folder in memory. Many tests write thousands of small files, for each of which a disk waits.
MEMORY_FOLDER = Path("/dev/shm")
#: How many bytes must be free in it: several times what all tests write.
MEMORY_FOLDER_BYTES = 6_000_000_000


def pytest_configure() -> None:
    """Handle signals, and put temporary folders into memory, unless the caller chose a place."""
    handle_ignored_signals()
    if has_room(MEMORY_FOLDER):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_FOLDER))


def handle_ignored_signals() -> None:
    """Have the processes that tests start end by signals that this process was told to ignore.

    A shell has its background jobs ignore SIGINT, and `nohup` has a command ignore SIGHUP. A new
    process inherits what is ignored; where its parent has a handler, it has the default instead.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGHUP", "SIGTERM", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # the tests themselves still ignore it


def has_room(folder: Path) -> bool:
    """Whether temporary files may lie in a folder, and programs be run there."""
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return False
    system = os.statvfs(folder)
    free = system.f_bavail * system.f_frsize
    return free >= MEMORY_FOLDER_BYTES and not system.f_flag & os.ST_NOEXEC


class TestFile(pytest.Module):
    """A file of tests."""

    def collect(self) -> Any:
        """The tests of the file; it is skipped if a package is missing."""
        if missing := missing_packages(self.path):
            pytest.skip(f"needs {' and '.join(sorted(missing))}", allow_module_level=True)
        return super().collect()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    """Have pytest collect files as `TestFile`."""
    return TestFile.from_parent(parent, path=module_path)


def missing_packages(file: Path) -> set[str]:
    """The missing packages that a test file, or a module beside it that it imports, imports."""
    missing = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in {name.partition(".")[0] for name in names}:
            beside = file.with_name(f"{name}.py")
            if beside.is_file():
                missing |= missing_packages(beside)
            elif find_spec(name) is None:
                missing.add(name)
    return missing


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Any:
    """Skip tests whose fixtures need a package that is missing."""
    return (yield from skipped_without_packages())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Any:
    """Skip tests that need a package that is missing."""
    messages.SEEN.clear()
    return (yield from skipped_without_packages())


def skipped_without_packages() -> Generator[None, Any, Any]:
    try:
        return (yield)
    except Exception as error:
        names = re.findall(r"needs the package (\w+)", str(error))
        names += [error.name] if isinstance(error, ImportError) and error.name else []
        missing = [name for name in names if find_spec(name.partition(".")[0]) is None]
        if missing:
            pytest.skip(f"needs {missing[0]}")
        raise


@contextmanager
def refused(option: str, value: object) -> Iterator[None]:
    """The block raises an `ArgumentError` about this value of this option."""
    with pytest.raises(ArgumentError) as wrong:
        yield
    assert (wrong.value.option, wrong.value.value) == (option, value)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data; tests that need it are skipped where it is not."""
    beside = Path(__file__).resolve().parents[1].parent / "shared"
    folder = Path(os.environ.get("BYTEPAIR_SHARED", beside)) / "data"
    if not folder.is_dir():
        pytest.skip("needs the shared data beside the repository, which is not here")
    return folder


@pytest.fixture(scope="session")
def documents(shared: Path) -> Callable[[str], list[str]]:
    """The documents of a folder of parquet files."""
    pq = pytest.importorskip("pyarrow.parquet")

    def read(name: str) -> list[str]:
        files = sorted((shared / name).glob("*.parquet"))
        return [text for file in files for text in pq.read_table(file)["text"].to_pylist()]

    return read


@pytest.fixture(scope="session", params=sorted(VOCABULARIES))
def pair(
    request: pytest.FixtureRequest, shared: Path
) -> tuple[bytepair.Tokenizer, tiktoken.Encoding]:
    """A published vocabulary in bytepair and in tiktoken."""
    tiktoken = pytest.importorskip("tiktoken")
    name: str = request.param
    lines = (shared / "vocabularies" / f"{name}.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    special = {"<|endoftext|>": len(ranks) + 1, "<|fim|>": len(ranks) + 5}
    pattern = bytepair.PATTERNS[VOCABULARIES[name]]
    ours = bytepair.Tokenizer.from_ranks(ranks, pattern=pattern, special_tokens=special)
    theirs = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    return ours, theirs


@pytest.fixture(scope="session")
def trained() -> bytepair.Tokenizer:
    """A tokenizer of the sample text, with nanochat's special tokens."""
    return bytepair.train(bytepair.sample.paths(), vocab_size=3000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium without a window; tests that need it are skipped where it is not."""
    playwright = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("needs a Chromium on the path")
    with playwright.sync_playwright() as manager:
        instance = manager.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield instance
        instance.close()
