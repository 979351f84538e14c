"""The names of the native file and of the formats; `registry` has what reads and writes each."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

#: The name of the native file in a folder.
FILE_NAME: Final = "tokenizer.bytepair"

#: The formats that are written.
WrittenFormat: TypeAlias = Literal[
    "bytepair", "huggingface", "tiktoken", "gpt2", "nanochat", "llama2c", "qwen3", "gguf"
]
