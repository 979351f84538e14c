"""Memory and time of reading a file are in proportion to its size, whatever the file states."""

from __future__ import annotations

import json
import random
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair.formats.charmap import to_characters

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs limits of Linux")

#: Bytes of address space for each byte of a file, and beside it; seconds of processor time.
PER_BYTE, BESIDE, SECONDS = 64, 256 << 20, 30

WORKER = """
import resource, sys
import bytepair, numpy
from bytepair.formats import huggingface, registry
path, most = sys.argv[1], int(sys.argv[2])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + most, used + most))
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]), int(sys.argv[3])))
try:
    tok = bytepair.load(path)
    tok.encode("hello", special="all")
except bytepair.errors.BytepairError as error:
    print(str(error)[:200])
"""


def read(path: Path) -> str:
    """Load a file within the limits; the message of its error, if any."""
    most = BESIDE + PER_BYTE * path.stat().st_size
    command = [sys.executable, "-c", WORKER, str(path), str(most), str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr[-500:]
    assert "Traceback" not in done.stderr
    return done.stdout


def letters(count: int, seed: int = 0) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters, k=count))


def document(added: list[tuple[str, bool]]) -> dict[str, Any]:
    """A `tokenizer.json` with added tokens, each with `normalized`."""
    vocabulary = {to_characters(bytes([byte])): byte for byte in range(256)}
    tokens = [
        {"id": 256 + at, "content": name, "special": True, "normalized": normalized}
        for at, (name, normalized) in enumerate(added)
    ]
    return {
        "added_tokens": tokens,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }


def nested(depth: int) -> str:
    return '{"model": ' + "[" * depth + "]" * depth + "}"


FILES: dict[str, Callable[[], str]] = {
    "a long added token": lambda: json.dumps(document([(letters(100_000), False)])),
    "long tokens of both kinds": lambda: json.dumps(
        document([(letters(200_000), False), (letters(200_000, 1), True)])
    ),
    "equal letters of both kinds": lambda: json.dumps(
        document([("a" * 200_000, False), ("a" * 100_000 + "b", True)])
    ),
    "some tokens of a megabyte": lambda: json.dumps(
        document([(letters(1_000_000, seed), False) for seed in range(5)])
    ),
    "many added tokens": lambda: json.dumps(
        document([(f"<{letters(8, seed)}{seed}>", False) for seed in range(30_000)])
    ),
    "deep lists": lambda: nested(1_000_000),
    "a long pattern": lambda: json.dumps(
        document([])
        | {
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [
                    {
                        "type": "Split",
                        "pattern": {"Regex": "(?:" + "ab|" * 100_000 + "c)"},
                        "behavior": "Isolated",
                        "invert": False,
                    },
                    {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
                ],
            }
        }
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_json_file_takes_memory_in_proportion(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(FILES[name]())
    assert len(read(path)) < 400


def test_a_native_file_takes_memory_in_proportion(tmp_path: Path) -> None:
    names = [letters(200_000, seed) for seed in range(5)]
    ranks = {bytes([byte]): byte for byte in range(256)}
    special = {name: 256 + at for at, name in enumerate(names)}
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4", special_tokens=special)
    assert read(tok.save(tmp_path / "t")) == ""
