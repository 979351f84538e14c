"""tiktoken: rank files, and `tiktoken.Encoding` objects.

A rank file has one token per line: its bytes in base64, a space, and its rank, which is also its
id. It contains no split pattern and no special tokens, so the caller must pass them; they are never
guessed.
"""

from __future__ import annotations

import base64
import binascii
import re
import warnings
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair.errors import ArgumentError, FormatError, UnsupportedError
from bytepair.formats.files import MAX_VOCAB_SIZE, read_file, write_whole
from bytepair.formats.parts import Asked, Parts, plain, unspeakable

_LINE = re.compile(rb"([A-Za-z0-9+/]*={0,2})[ \t]+([0-9]{1,10})")


def is_rank_file(data: bytes) -> bool:
    """Whether the first line is that of a rank file."""
    return bool(_LINE.fullmatch(data[: 1 << 16].lstrip(b"\n").split(b"\n", 1)[0].rstrip(b"\r ")))


def read(path: Path, asked: Asked) -> Parts:
    """Read a rank file, with the pattern and the special tokens passed by the caller."""
    tokens = read_ranks(read_file(path), lossy=asked.lossy)
    return Parts(tokens, asked.named_pattern("a rank file"), dict(asked.special_tokens or {}))


def read_ranks(data: bytes, *, lossy: bool = False) -> dict[bytes, int]:
    r"""The tokens and ranks of the bytes of a rank file.

    Example:
        >>> read_ranks(b"IQ== 0\nIiM= 1\n")
        {b'!': 0, b'"#': 1}
    """
    tokens: dict[bytes, int] = {}
    ranks: set[int] = set()
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        token, rank = _line(line.strip(), f"line {number}")
        if not token:
            if lossy:
                continue
            raise UnsupportedError(
                f"line {number}", "the token is empty; pass lossy=True to leave it out"
            )
        if token in tokens:
            raise FormatError(f"line {number}", f"the token {token!r} stands twice")
        if rank in ranks:
            raise FormatError(f"line {number}", f"the rank {rank} stands twice")
        tokens[token] = rank
        ranks.add(rank)
    if not tokens:
        raise FormatError("line 1", "there is no token")
    return tokens


def _line(line: bytes, place: str) -> tuple[bytes, int]:
    found = _LINE.fullmatch(line)
    if not found:
        raise FormatError(place, "a token in base64, a space and a rank are expected")
    try:
        token = base64.b64decode(found[1], validate=True) if found[1] != b"=" else b""
    except binascii.Error as error:
        raise FormatError(place, f"the token is not base64: {error}") from None
    rank = int(found[2])
    if rank >= MAX_VOCAB_SIZE:
        raise FormatError(place, f"rank {rank} is not in 0 … {MAX_VOCAB_SIZE - 1}")
    return token, rank


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What a rank file cannot represent."""
    special = ["the special tokens"] if tokenizer.special_tokens else []
    return ["the split pattern", *special, *lost_merges(tokenizer)]


def lost_merges(tokenizer: _core.Tokenizer) -> list[str]:
    """The loss of the merge rule, if tiktoken does not have it."""
    if tokenizer.merge_rule == "ranks":
        return []
    return ["the list of merges: tiktoken merges by rank, and a few ids may differ"]


def write(tokenizer: _core.Tokenizer, path: Path) -> None:
    """Write a rank file, in order of rank."""
    lines = [
        base64.b64encode(token) + b" %d\n" % rank
        for token, rank in tokenizer.mergeable_ranks().items()
    ]
    write_whole(path, b"".join(lines))


#: The classes of encodings by module and name: tiktoken's own, and the one of our wrapper.
ENCODING_CLASSES: Final = (
    ("tiktoken.core", "Encoding"),
    ("bytepair.compat.tiktoken", "Encoding"),
)


def is_encoding(value: Any) -> bool:
    """Whether this is a `tiktoken.Encoding`, or one of our wrapper."""
    return (type(value).__module__, type(value).__name__) in ENCODING_CLASSES


def values(tokenizer: _core.Tokenizer, *, exact: bool) -> dict[str, Any]:
    """The arguments of an `Encoding` with the same ids; a `ValueError` if there are none."""
    if exact and (asks := unspeakable(tokenizer.pattern)):
        raise ArgumentError(f"tiktoken does not do what the pattern asks for: {asks}")
    if exact and tokenizer.merge_rule != "ranks":
        raise ArgumentError(
            "tiktoken merges by rank, this tokenizer by a list of merges; a few ids would "
            "differ, so there is no tiktoken.Encoding of it"
        )
    return {
        "pat_str": tokenizer.pattern,
        "mergeable_ranks": tokenizer.mergeable_ranks(),
        "special_tokens": tokenizer.special_tokens,
    }


def of_encoding(encoding: Any) -> Parts:
    """Convert a `tiktoken.Encoding`.

    Where two special tokens have one id, as in o200k_harmony, the first keeps it and a warning
    names the other: an id stands for one name here.
    """
    special: dict[int, str] = {}
    for name, id in encoding._special_tokens.items():
        if special.setdefault(id, name) != name:
            warnings.warn(
                f"the encoding {encoding.name} has two special tokens with the id {id}; "
                f"{special[id]!r} is kept, {name!r} is not",
                stacklevel=2,
            )
    names = {name: id for id, name in special.items()}
    notes = {"name": str(encoding.name)}
    pattern = plain(encoding._pat_str, "pat_str")
    return Parts(dict(encoding._mergeable_ranks), pattern, names, notes=notes)
