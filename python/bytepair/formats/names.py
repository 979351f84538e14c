"""The names of the native file and of the formats; `registry` has what reads and writes each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

#: The name of the native file in a folder.
FILE_NAME: Final = "tokenizer.bytepair"

#: What a GGUF file begins with.
GGUF_MAGIC: Final = b"GGUF"

#: The formats that are written.
WrittenFormat: TypeAlias = Literal[
    "bytepair", "huggingface", "tiktoken", "gpt2", "nanochat", "llama2c", "qwen3", "gguf"
]


class Losses(list[str]):
    """The losses of writing a tokenizer in a format, one sentence each.

    Attributes:
        hint: what to do about them; may be empty.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 258, special_tokens=["<a>"])
        >>> print(bytepair.compat.export_losses(tok, "gguf").hint)
        give a special token this role with Tokenizer.replace(roles={"eos": ...})
    """

    def __init__(self, losses: Iterable[str] = (), hint: str = "") -> None:
        super().__init__(losses)
        self.hint = hint
