"""Memory and time of reading a file are in proportion to its size, whatever the file states."""

from __future__ import annotations

import json
import random
import string
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import bytepair
from bytepair._core import to_characters

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs limits of Linux")

#: Bytes of address space for each byte of a file, and beside it; seconds of processor time.
PER_BYTE, BESIDE, SECONDS = 64, 256 << 20, 30

WORKER = """
import resource, sys
import bytepair, numpy
from bytepair.formats import registry
from bytepair.formats import huggingface
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
    "a long name above many values": lambda: json.dumps(
        document([]) | {"normalizer": {"type": "NFC", "x" * 500_000: [0] * 500_000}}
    ),
    "many small objects": lambda: json.dumps(
        document([]) | {"normalizer": {"type": "NFC", "x": [{"a": 0}] * 1_500_000}}
    ),
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
    names = [letters(4096, seed) for seed in range(250)]
    ranks = {bytes([byte]): byte for byte in range(256)}
    special = {name: 256 + at for at, name in enumerate(names)}
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4", special_tokens=special)
    assert read(tok.save(tmp_path / "t")) == ""


# ---------------------------------------------------------------------------- binary files


def gguf_text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_file(*values: tuple[str, int, bytes], stated: int | None = None) -> bytes:
    """A GGUF file with keys, each with the number of its type and its bytes."""
    count = len(values) if stated is None else stated
    body = b"".join(gguf_text(key) + struct.pack("<I", kind) + data for key, kind, data in values)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, count) + body


def gguf_list(kind: int, items: Sequence[bytes], stated: int | None = None) -> bytes:
    count = len(items) if stated is None else stated
    return struct.pack("<IQ", kind, count) + b"".join(items)


TEXT, ARRAY, UINT8 = 8, 9, 0
MODEL = ("tokenizer.ggml.model", TEXT, gguf_text("gpt2"))


def of_tokens(names: Sequence[str], stated: int | None = None) -> bytes:
    tokens = gguf_list(TEXT, [gguf_text(name) for name in names], stated)
    merges = gguf_list(TEXT, [])
    return gguf_file(
        MODEL, ("tokenizer.ggml.tokens", ARRAY, tokens), ("tokenizer.ggml.merges", ARRAY, merges)
    )


BYTES = [to_characters(bytes([byte])) for byte in range(256)]
GGUF: dict[str, Callable[[], bytes]] = {
    "2^60 keys": lambda: gguf_file(MODEL, stated=1 << 60),
    "2^60 tokens": lambda: of_tokens(BYTES, 1 << 60),
    "a text of 2^60 bytes": lambda: gguf_file(("a", TEXT, struct.pack("<Q", 1 << 60))),
    "2^60 bytes in a list": lambda: gguf_file(("a", ARRAY, gguf_list(UINT8, [], 1 << 60))),
    "deep lists": lambda: gguf_file(("a", ARRAY, struct.pack("<IQ", ARRAY, 1) * 500_000)),
    "tokens of a megabyte": lambda: of_tokens([*BYTES, *(letters(10**6, n) for n in range(5))]),
    "many tokens": lambda: of_tokens([*BYTES, *(f"{letters(6, n)}{n}" for n in range(100_000))]),
    "empty tokens": lambda: of_tokens([*BYTES, *[""] * 500_000]),
}


@pytest.mark.parametrize("name", GGUF)
def test_a_gguf_file_takes_memory_in_proportion(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.gguf"
    path.write_bytes(GGUF[name]())
    assert len(read(path)) < 400


def varint(number: int) -> bytes:
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def field(number: int, data: bytes) -> bytes:
    """A field of a protocol buffer with bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def piece(text: str, kind: int = 1) -> bytes:
    """A piece of a SentencePiece model: its text, its score, and its type."""
    score = varint(2 << 3 | 5) + struct.pack("<f", -1.0)
    return field(1, field(1, text.encode()) + score + varint(3 << 3) + varint(kind))


def model(pieces: Sequence[bytes]) -> bytes:
    """A model of the type BPE with byte fallback."""
    start = [piece("<unk>", 2), piece("<s>", 3), piece("</s>", 3)]
    fallback = [piece(f"<0x{byte:02X}>", 6) for byte in range(256)]
    trainer = field(2, varint(3 << 3) + varint(2) + varint(35 << 3) + varint(1))
    return b"".join([*start, *fallback, *pieces]) + trainer


MODELS: dict[str, Callable[[], bytes]] = {
    "a length of 2^60": lambda: varint(1 << 3 | 2) + varint(1 << 60) + b"a" * 100,
    "deep groups": lambda: varint(1 << 3 | 3) * 1_000_000,
    "an endless number": lambda: b"\xff" * 1_000_000,
    "many empty fields": lambda: field(1, b"") * 500_000,
    "pieces of a megabyte": lambda: model([piece(letters(10**6, n)) for n in range(5)]),
    "long user-defined pieces": lambda: model([piece(letters(10**6, n), 4) for n in range(5)]),
    "many pieces": lambda: model([piece(f"{letters(6, n)}{n}") for n in range(100_000)]),
    "one letter, doubled": lambda: model([piece("a" * n) for n in range(1, 2_000)]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_sentencepiece_model_takes_memory_in_proportion(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(MODELS[name]())
    assert len(read(path)) < 400
