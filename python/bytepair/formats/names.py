"""The names of the formats of tokenizers; `registry` has the reader and the writer of each."""

from __future__ import annotations

from typing import Literal, TypeAlias

#: The formats that are written.
WrittenFormat: TypeAlias = Literal[
    "bytepair", "huggingface", "tiktoken", "gpt2", "nanochat", "llama2c", "qwen3", "gguf", "llmc"
]
