"""Download the tokenizer files of a repository on the Hugging Face Hub, by `owner/name`.

The package `huggingface_hub` downloads them to its cache, where files are named by their hash,
which is checked here. A revision is a commit, a tag or a branch. Without a network, the cache is
used.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from bytepair.errors import FormatError

#: The files to download, as patterns: no weights.
FILES: Final = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "additional_chat_templates/*.jinja",
    "generation_config.json",
    "vocab.json",
    "merges.txt",
    "tekken.json",
)


def is_name(name: str) -> bool:
    """Whether this may be the name of a repository.

    Example:
        >>> is_name("Qwen/Qwen3-8B"), is_name("a/b/c"), is_name("../x")
        (True, False, False)
    """
    return bool(re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name))


def folder(name: str, revision: str | None) -> Path:
    """Download a repository's tokenizer, and check its files.

    Raises:
        ImportError: if the package `huggingface_hub` is not installed.
        FormatError: if a file does not match its hash.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError:
        raise ImportError(
            f"there is no file {name!r}; to download the repository of this name, install "
            "bytepair[hub]"
        ) from None
    try:
        found = snapshot_download(name, revision=revision, allow_patterns=list(FILES))
    except LocalEntryNotFoundError as error:
        raise FileNotFoundError(
            f"there is no file {name!r}, and the repository {name} is neither cached nor reachable"
        ) from error
    path = Path(found)
    for pattern in FILES:
        for file in path.glob(pattern):
            if file.is_file():
                check(file)
    return path


def check(file: Path) -> None:
    """Check a cached file against its hash, which is the name of the link target.

    Large files are named by their SHA-256, others by their git SHA-1.
    """
    blob = file.resolve().name
    data = file.read_bytes()
    if re.fullmatch("[0-9a-f]{64}", blob):
        found = hashlib.sha256(data).hexdigest()
    elif re.fullmatch("[0-9a-f]{40}", blob):
        found = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    else:
        return
    if found != blob:
        raise FormatError(
            str(file), f"its hash is {found}, not {blob}; remove it and download it again"
        )
