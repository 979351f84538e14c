"""Names in, tokenizers out: the published vocabularies that everyone compares with.

Their rank files are looked for in the folder of `TIKTOKEN_CACHE_DIR`; what is not there tiktoken
fetches once and keeps. Without a network a `NotFetchedError` says which file would do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bytepair.errors import ArgumentError
from bytepair.formats import published as encodings
from bytepair.tokenizer import Tokenizer, load

#: The names that tiktoken knows, and the models that made them known.
PUBLISHED: Final[dict[str, str]] = {
    "gpt2": "GPT-2",
    "r50k_base": "GPT-3",
    "p50k_base": "Codex",
    "cl100k_base": "GPT-4",
    "o200k_base": "GPT-4o",
}


def published(name: str) -> Tokenizer:
    """Get a published tokenizer.

    Args:
        name: a name of `PUBLISHED`.

    Raises:
        ArgumentError: if there is no such name.
        NotFetchedError: if its file is not on this machine and cannot be fetched.
    """
    if name not in PUBLISHED:
        raise ArgumentError(f"{name!r} is no published tokenizer; there are {', '.join(PUBLISHED)}")
    parts = encodings.of_name(name)
    return Tokenizer(parts.model())


def open_tokenizer(name: str | os.PathLike[str]) -> Tokenizer:
    """Get a tokenizer by its path, or by its published name if there is no such path.

    Args:
        name: a folder, a file `tokenizer.bytepair`, or a name of `PUBLISHED`.

    Raises:
        FileNotFoundError: if there is no such path, and no such name.
        FileFormatError: if the file is damaged or of another kind.
        NotFetchedError: if a published vocabulary cannot be fetched.
    """
    if not Path(name).exists() and os.fspath(name) in PUBLISHED:
        return published(os.fspath(name))
    return load(name)
