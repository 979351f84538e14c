"""What the tests of formats share: small tokenizers, and the options to read each format with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bytepair
from bytepair.formats import huggingface
from bytepair.formats.parts import LoadOptions

#: Where each format is written, below a folder of the test.
TARGETS = {
    "bytepair": "out.bytepair",
    "huggingface": "tokenizer.json",
    "tiktoken": "out.tiktoken",
    "gpt2": "gpt2",
    "nanochat": "nanochat",
    "llama2c": "tokenizer.bin",
    "qwen3": "out.tokenizer",
    "gguf": "out-vocab.gguf",
}


def load_options(tok: bytepair.Tokenizer, format: str) -> dict[str, Any]:
    """The options that the caller must pass because the format does not store them."""
    options: dict[str, Any] = {"allow_pickle": True} if format == "nanochat" else {}
    if format in {"tiktoken", "llama2c", "qwen3"}:
        options["pattern"] = tok.pattern
    if format in {"tiktoken", "llama2c", "qwen3", "gpt2"}:
        options["special_tokens"] = tok.special_tokens
    return options


def written(tok: bytepair.Tokenizer, folder: Path, format: str) -> Path:
    """Write a tokenizer of any format, whatever is lost."""
    return tok.export(folder / TARGETS[format], format, lossy=True)


def json_of(tok: bytepair.Tokenizer) -> dict[str, Any]:
    """The content of the `tokenizer.json` of a tokenizer."""
    document: dict[str, Any] = json.loads(huggingface.text(tok))
    return document


def small(**changes: Any) -> bytepair.Tokenizer:
    """A tokenizer of the 256 bytes, three merges and two special tokens."""
    tokens = {bytes([byte]): byte for byte in range(256)}
    tokens |= {b"he": 256, b"ll": 257, b"hell": 258}
    values: dict[str, Any] = {
        "pattern": "gpt2",
        "special_tokens": {"<|endoftext|>": 259, "<|bos|>": 260},
        **changes,
    }
    return bytepair.Tokenizer.from_ranks(tokens, **values)


def load(document: dict[str, Any], **options: Any) -> bytepair.Tokenizer:
    """The tokenizer of a `tokenizer.json`."""
    data = json.dumps(document).encode()
    return bytepair.Tokenizer(huggingface.parse(data, LoadOptions(**options)))
