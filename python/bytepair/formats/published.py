"""Finds the files of published vocabularies by name, on this machine or on the network.

Encodings of tiktoken are rank files, which are searched for in its cache and in packages, under
their names and under the hash that tiktoken uses as a name, and checked against their SHA-256.
tiktoken downloads and caches missing files. Repositories of the Hugging Face Hub are folders of its
cache, to which `huggingface_hub` downloads them; files there are named by their hash, which is
checked here. A revision is a commit, a tag or a branch.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from bytepair import _core
from bytepair.errors import FormatError, NotFetchedError, NotFoundError
from bytepair.files.safe import read_file
from bytepair.formats import tiktoken
from bytepair.formats.parts import build

URL: Final = "https://openaipublic.blob.core.windows.net/encodings/"

#: The published rank files and their SHA-256.
RANK_FILES: Final = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}


class PublishedEncoding(NamedTuple):
    """A published encoding: a file of `RANK_FILES`, a named pattern, special tokens."""

    ranks: str
    pattern: str
    special_tokens: dict[str, int]


_END: Final = "<|endoftext|>"

ENCODINGS: Final = {
    "gpt2": PublishedEncoding("r50k_base", "gpt2", {_END: 50256}),
    "r50k_base": PublishedEncoding("r50k_base", "gpt2", {_END: 50256}),
    "p50k_base": PublishedEncoding("p50k_base", "gpt2", {_END: 50256}),
    "p50k_edit": PublishedEncoding(
        "p50k_base", "gpt2",
        {_END: 50256, "<|fim_prefix|>": 50281, "<|fim_middle|>": 50282, "<|fim_suffix|>": 50283},
    ),
    "cl100k_base": PublishedEncoding(
        "cl100k_base", "gpt4",
        {_END: 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259,
         "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276},
    ),
    "o200k_base": PublishedEncoding(
        "o200k_base", "gpt4o", {_END: 199999, "<|endofprompt|>": 200018},
    ),
}  # fmt: skip

#: Encodings that only tiktoken can make.
_BY_TIKTOKEN: Final = ("o200k_harmony",)


def is_name(name: str) -> bool:
    """Whether there is an encoding of this name, here or in tiktoken."""
    if name in ENCODINGS or find_spec("tiktoken") is None:
        return name in (*ENCODINGS, *_BY_TIKTOKEN)
    from bytepair._internal.extras import tiktoken

    return name in tiktoken.list_encoding_names()


def of_name(name: str) -> _core.Model:
    """Load the encoding of this name from a local rank file, or else from tiktoken."""
    if name in ENCODINGS and (path := rank_file(name)):
        encoding = ENCODINGS[name]
        ranks, notes = tiktoken.read_ranks(read_file(path))
        regex = _core.PATTERNS[encoding.pattern]
        return build(ranks, regex, encoding.special_tokens, notes=notes | {"name": name})
    try:
        from bytepair._internal.extras import tiktoken as library

        return tiktoken.of_encoding(library.get_encoding(name))
    except ImportError as error:
        raise _missing(name, str(error)) from None
    except ValueError as error:
        raise FormatError(name, f"tiktoken cannot give this encoding: {error}") from error
    except OSError as error:  # includes the exceptions of requests
        raise _missing(name, type(error).__name__) from None


def rank_file(name: str) -> Path | None:
    """The file with the ranks of an encoding on this machine, or None."""
    ranks = ENCODINGS[name].ranks
    expected = RANK_FILES[ranks]
    hashed = hashlib.sha1(f"{URL}{ranks}.tiktoken".encode(), usedforsecurity=False).hexdigest()
    names = dict.fromkeys([f"{name}.tiktoken", name, f"{ranks}.tiktoken", hashed])
    for path in (folder / one for folder in rank_folders() for one in names):
        if not path.is_file():
            continue
        digest = hashlib.sha256(read_file(path)).hexdigest()
        if digest == expected:
            return path
        if path.name != hashed:  # tiktoken removes files that it named and fetches them again
            raise FormatError(
                str(path),
                f"this is not the rank file of {name}: its SHA-256 is {digest}, that of "
                f"{URL}{ranks}.tiktoken is {expected}",
                hint="remove it",
            )
    return None


def _missing(name: str, reason: str) -> NotFetchedError:
    """The error for a missing encoding, with the file that would suffice."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR")
    hint = "let tiktoken fetch it into the folder of TIKTOKEN_CACHE_DIR"
    if name in ENCODINGS:
        into = f"{folder} (TIKTOKEN_CACHE_DIR)" if folder else "a folder"
        hint = f"put {URL}{ENCODINGS[name].ranks}.tiktoken into {into} as {name}.tiktoken"
        hint += "" if folder else ", and set TIKTOKEN_CACHE_DIR to that folder"
    return NotFetchedError(
        f"{name} is not on this machine and could not be fetched ({reason})",
        hint=hint,
    )


#: Packages that bring rank files under the names of tiktoken's cache, and their folders.
_PACKAGES: Final = {
    "litellm": "litellm_core_utils/tokenizers",
    "llama_index": "core/_static/tiktoken_cache",
}


def rank_folders() -> Iterator[Path]:
    """The folders of rank files, in the order in which they are searched; they need not exist."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        yield Path(tempfile.gettempdir(), "data-gym-cache")
    elif folder:  # an empty value tells tiktoken not to cache
        yield Path(folder)
    for package, below in _PACKAGES.items():
        spec = find_spec(package)  # which does not import it
        if spec is not None and spec.submodule_search_locations:
            yield Path(next(iter(spec.submodule_search_locations)), below)


#: The files to download, as patterns: no weights.
FILES: Final = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
    "additional_chat_templates/*.jinja", "generation_config.json", "vocab.json", "merges.txt",
    "tekken.json",
)  # fmt: skip


def folder(name: str, revision: str | None) -> Path:
    """The folder of a repository's tokenizer, downloaded if possible; its files are checked."""
    if find_spec("huggingface_hub") is None:
        raise ImportError(
            f"there is no file {name!r}; to load the repository {name} of the Hugging Face Hub, "
            "pip install 'bytepair[hub]'"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    path = None
    if re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)*", revision or "main"):
        with suppress(LocalEntryNotFoundError):
            patterns = list(FILES)
            path = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    if path is None:
        raise NotFoundError(
            f"there is no file {name!r}, and the repository {name} is not in the cache of the Hub, "
            "and cannot be downloaded"
        )
    for file in (file for pattern in FILES for file in path.glob(pattern)):
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
        digest = hashlib.sha256(data).hexdigest()
    elif re.fullmatch("[0-9a-f]{40}", blob):
        digest = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    else:
        return
    if digest != blob:
        raise FormatError(
            str(file),
            f"its hash is {digest}, not {blob}",
            hint="remove it and download it again",
        )
