"""Names in, tokenizers out: the published vocabularies that everyone compares with.

Their ranks come through tiktoken, which fetches each once and keeps it (`TIKTOKEN_CACHE_DIR` says
where). Without a network, and without that file, there is a `NotFetchedError` that says what to do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bytepair.errors import BytepairError
from bytepair.tokenizer import Tokenizer, load

#: The names that tiktoken knows, and the models that made them known.
PUBLISHED: Final[dict[str, str]] = {
    "gpt2": "GPT-2",
    "r50k_base": "GPT-3",
    "p50k_base": "Codex",
    "cl100k_base": "GPT-4",
    "o200k_base": "GPT-4o",
}


class NotFetchedError(BytepairError, OSError):
    """A published vocabulary is not on this machine, and could not be fetched."""


def published(name: str) -> Tokenizer:
    """Get a published tokenizer.

    Args:
        name: a name of `PUBLISHED`.

    Raises:
        ValueError: if there is no such name.
        NotFetchedError: if its file is not on this machine and cannot be fetched.
    """
    if name not in PUBLISHED:
        raise ValueError(f"{name!r} is no published tokenizer; there are {', '.join(PUBLISHED)}")
    import tiktoken

    try:
        encoding = tiktoken.get_encoding(name)
    except OSError as error:  # what requests raises is one, too
        raise NotFetchedError(
            f"{name} is not on this machine and could not be fetched "
            f"({type(error).__name__}); with a network tiktoken fetches it once, or point "
            "TIKTOKEN_CACHE_DIR at a folder that has it"
        ) from None
    return Tokenizer.from_ranks(
        encoding._mergeable_ranks,
        pattern=encoding._pat_str,
        special_tokens=encoding._special_tokens,
    )


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
