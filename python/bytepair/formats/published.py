"""The name of a published encoding in, its values out: from a local rank file, or from tiktoken.

Rank files are searched for in the cache of tiktoken and in packages (`places`): under the name of
the encoding, and under the hash that tiktoken uses as a name. Each is checked against its SHA-256.
tiktoken downloads and caches missing files.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from bytepair import _core
from bytepair.errors import FormatError, NotFetchedError, VocabularyError
from bytepair.files.safe import read_file
from bytepair.formats import tiktoken
from bytepair.formats.hub import rank_places
from bytepair.formats.parts import Parts

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


#: How the names of OpenAI's models begin, with their encoding; the longest beginning counts.
_MODELS: Final = {
    "gpt-2": "gpt2", "gpt2": "gpt2", "davinci": "r50k_base", "text-davinci": "p50k_base",
    "code-davinci": "p50k_base", "gpt-3": "cl100k_base", "gpt-4": "cl100k_base",
    "gpt4": "cl100k_base", "text-embedding": "cl100k_base", "gpt-4o": "o200k_base",
    "gpt4o": "o200k_base", "gpt-4.": "o200k_base", "gpt-5": "o200k_base", "chatgpt": "o200k_base",
    "o1": "o200k_base", "o3": "o200k_base", "o4": "o200k_base", "gpt-oss": "o200k_harmony",
}  # fmt: skip


def near(name: str) -> str | None:
    """The encoding that a name may mean: that of a model of OpenAI, or one of a similar name.

    Example:
        >>> from bytepair.formats.published import near
        >>> near("gpt-4"), near("gpt-4o-mini"), near("cl100k"), near("my-tokenizer")
        ('cl100k_base', 'o200k_base', 'cl100k_base', None)
    """
    from difflib import get_close_matches

    models = [model for model in _MODELS if re.match(rf"{re.escape(model)}(?![a-z])", name)]
    if models:
        return _MODELS[max(models, key=len)]
    return next(iter(get_close_matches(name, [*ENCODINGS, *_BY_TIKTOKEN], 1, 0.7)), None)


def of_name(name: str) -> Parts:
    """Load the encoding of this name from a local rank file, or else from tiktoken.

    Raises:
        NotFetchedError: if it is not on this machine and cannot be fetched, for lack of a network
            or of tiktoken.
        FormatError: if a file of its name is another.
        VocabularyError: if tiktoken cannot make it.
    """
    if (parts := _from_local_files(name)) is not None:
        return parts
    try:
        from bytepair._internal.extras import tiktoken as library

        return tiktoken.of_encoding(library.get_encoding(name))
    except ImportError as error:
        raise _missing(name, str(error)) from None
    except ValueError as error:
        raise VocabularyError(f"tiktoken cannot give the encoding {name!r}: {error}") from error
    except OSError as error:  # includes the exceptions of requests
        raise _missing(name, type(error).__name__) from None


def _from_local_files(name: str) -> Parts | None:
    encoding = ENCODINGS.get(name)
    path = None if encoding is None else rank_file(name)
    if encoding is None or path is None:
        return None
    ranks, notes = tiktoken.read_ranks(read_file(path))
    regex = _core.PATTERNS[encoding.pattern]
    return Parts(ranks, regex, encoding.special_tokens, notes=notes | {"name": name})


def rank_file(name: str) -> Path | None:
    """The file with the ranks of an encoding on this machine, or None.

    Raises:
        FormatError: if a file of its name is another.
    """
    ranks = ENCODINGS[name].ranks
    expected = RANK_FILES[ranks]
    for path, is_named in _files(name, ranks):
        if not path.is_file():
            continue
        digest = hashlib.sha256(read_file(path)).hexdigest()
        if digest == expected:
            return path
        if is_named:  # tiktoken removes files that it named and fetches them again
            raise FormatError(
                str(path),
                f"this is not the rank file of {name}: its SHA-256 is {digest}, that of "
                f"{URL}{ranks}.tiktoken is {expected}",
                hint="remove it",
            )
    return None


def _files(name: str, ranks: str) -> Iterator[tuple[Path, bool]]:
    """The possible paths of a rank file, and whether its name identifies it."""
    digest = hashlib.sha1(f"{URL}{ranks}.tiktoken".encode(), usedforsecurity=False).hexdigest()
    for place in rank_places():
        for file_name in dict.fromkeys([f"{name}.tiktoken", name, f"{ranks}.tiktoken"]):
            yield place.path / file_name, True
        yield place.path / digest, False


def _missing(name: str, reason: str) -> NotFetchedError:
    """The error for a missing encoding, with the files that would suffice."""
    what = f"{name} is not on this machine and could not be fetched ({reason})"
    folder = os.environ.get("TIKTOKEN_CACHE_DIR")
    if name not in ENCODINGS:
        return NotFetchedError(
            f"{what}; tiktoken keeps what it fetched in the folder of TIKTOKEN_CACHE_DIR"
        )
    into = f"{folder} (TIKTOKEN_CACHE_DIR)" if folder else "a folder"
    then = "" if folder else ", and set TIKTOKEN_CACHE_DIR to that folder"
    url = f"{URL}{ENCODINGS[name].ranks}.tiktoken"
    return NotFetchedError(
        f"{what}; bytepair vocabularies lists what is here",
        hint=f"put {url} into {into} as {name}.tiktoken{then}",
    )
