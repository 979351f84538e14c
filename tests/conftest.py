"""What several tests need: shared data, the vocabularies there, and tiktoken's view of them."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tiktoken
from hypothesis import settings

import bytepair

settings.register_profile("default", deadline=None, derandomize=True, max_examples=200)
settings.load_profile("default")

#: The rank files and the name of the pattern of each.
VOCABULARIES = {"gpt2": "gpt2", "cl100k_base": "gpt4", "o200k_base": "gpt4o", "qwen3": "qwen2"}


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

    def read(name: str) -> list[str]:
        files = sorted((shared / name).glob("*.parquet"))
        return [text for file in files for text in pq.read_table(file)["text"].to_pylist()]

    return read


@pytest.fixture(scope="session", params=sorted(VOCABULARIES))
def pair(
    request: pytest.FixtureRequest, shared: Path
) -> tuple[bytepair.Tokenizer, tiktoken.Encoding]:
    """A published vocabulary in bytepair and in tiktoken."""
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
        found = manager.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()
