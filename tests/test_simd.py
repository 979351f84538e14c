"""The same ids and the same merges with every set of instructions."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import bytepair
from conftest import VOCABULARIES
from texts import hard_text

WORKER = Path(__file__).with_name("simd_worker.py")
#: The instruction sets of a kind of processor, widest first; missing ones are skipped.
TIERS = {"x86_64": ["avx512", "avx2"], "AMD64": ["avx512", "avx2"]}.get(
    platform.machine(), ["neon"]
)


class Worker:
    """A process that answers questions with a given instruction set."""

    def __init__(self, tier: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            env=os.environ | {"BYTEPAIR_SIMD": tier},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *question: object) -> None:
        assert self.process.stdin
        print(json.dumps(question), file=self.process.stdin, flush=True)

    def answer(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


def error(tier: str) -> str:
    """The last line on stderr of a first use with these instructions; empty if it works."""
    done = subprocess.run(
        [sys.executable, "-c", "import bytepair; bytepair.Tokenizer"],
        env=os.environ | {"BYTEPAIR_SIMD": tier},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip().rpartition("\n")[2]


@pytest.fixture(scope="module")
def workers() -> Iterator[dict[str, Worker]]:
    """A worker for each instruction set of this processor."""
    tiers = ["portable", *(tier for tier in TIERS if not error(tier))]
    workers = {tier: Worker(tier) for tier in tiers}
    yield workers
    for worker in workers.values():
        worker.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, trained: bytepair.Tokenizer) -> list[str]:
    """A tokenizer for each way to split, and one that merges as Hugging Face does."""
    folder = tmp_path_factory.mktemp("simd")
    ranks = trained.mergeable_ranks()
    patterns = [
        *bytepair.PATTERNS.values(),
        r"\p{L}+|\p{N}{1,2}|[^\p{L}\p{N}]",
        r"\w+(?=\W\W)|\W|\w",
    ]
    tokenizers = [bytepair.Tokenizer.from_ranks(ranks, pattern=pattern) for pattern in patterns]
    tokenizers.append(bytepair.Tokenizer.from_merges(ranks, trained.merges(), pattern="gpt4"))
    paths = [folder / f"{number}.bytepair" for number in range(len(tokenizers))]
    for tok, path in zip(tokenizers, paths, strict=True):
        path.write_bytes(tok.to_bytes())
    return [str(path) for path in paths]


def answers(workers: dict[str, Worker], *question: object) -> dict[str, str]:
    """The answer of each worker, as text; they work at the same time."""
    for worker in workers.values():
        worker.ask(*question)
    return {tier: json.dumps(worker.answer()) for tier, worker in workers.items()}


def test_the_tokenizer_says_what_is_used(workers: dict[str, Worker], files: list[str]) -> None:
    results = [answers(workers, "splitter", file) for file in files]
    for tier in workers:
        assert {'"table"', '"regex"'} < {one[tier] for one in results}
        assert results[0][tier] == json.dumps(tier)
    assert not error("")


@pytest.mark.parametrize("tier", ["avx1024", "AVX2", "neon" if TIERS != ["neon"] else "avx2"])
def test_unavailable_instructions_are_an_error(tier: str) -> None:
    message = error(tier)
    assert message.startswith(
        f'ValueError: BYTEPAIR_SIMD: the instructions "{tier}" cannot be used'
    )
    assert message.endswith("portable")


@given(hard_text)
@settings(max_examples=100)
def test_any_text(workers: dict[str, Worker], files: list[str], text: str) -> None:
    for file in files:
        assert len(set(answers(workers, "ids", file, text).values())) == 1, file


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_all_shared_text(
    workers: dict[str, Worker], shared: Path, tmp_path: Path, name: str
) -> None:
    pytest.importorskip("pyarrow")
    rank_file = shared / "vocabularies" / f"{name}.tiktoken"
    tok = bytepair.load(rank_file, pattern=VOCABULARIES[name])
    path = tmp_path / "tokenizer.bytepair"
    path.write_bytes(tok.to_bytes())
    large = ["large"] if name == "cl100k_base" else []
    for folder in ["english", "multilingual", "code", "udhr", "sample", *large]:
        hashes = answers(workers, "hash_of_ids", str(path), str(shared / folder))
        assert len(set(hashes.values())) == 1, (folder, hashes)


@pytest.mark.parametrize("pattern", ["gpt2", "gpt4o", r"\p{L}+|\p{N}{1,2}|[^\p{L}\p{N}]"])
def test_training_on_every_tier(workers: dict[str, Worker], shared: Path, pattern: str) -> None:
    sources = [str(shared / folder) for folder in ("english", "multilingual", "code", "udhr")]
    hashes = answers(workers, "hash_of_training", sources, pattern)
    assert len(set(hashes.values())) == 1, hashes
