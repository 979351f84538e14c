"""`gpt2_tokenizer.bin` of llm.c: the bytes of each id, for decoding.

A header of 256 integers of 4 bytes (magic number, version, number of tokens, EOS id), then for each
id its length in one byte and its bytes. The file does not define how text is split or merged; if
the ids are ranks, as in GPT-2, only the pattern is missing.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from bytepair import _core
from bytepair.errors import FormatError, LossError, WayOut
from bytepair.files.safe import MAX_VOCAB_SIZE, Cursor, read_file, write_whole
from bytepair.formats.llama2c import entries_of, ids_of
from bytepair.formats.parts import LoadOptions, Parts
from bytepair.properties.roles import giving, roles
from bytepair.properties.rules import unspeakable

MAGIC: Final = 20240328
HEADER_NUMBERS: Final = 256
#: The EOS id of files of version 1, which do not contain it.
GPT2_END_ID: Final = 50256

_UNSAID: Final = "the token that ends a text, since no token has this role"


def is_one(head: bytes) -> bool:
    """Whether a file starts with the magic number."""
    return head[:4] == struct.pack("<I", MAGIC)


def read(path: Path, options: LoadOptions) -> Parts:
    """Read a file, with the pattern passed by the caller; ids are used as ranks."""
    tokens, end = _tokens(read_file(path))
    pattern, special = options.named_pattern(), options.special_tokens
    if special is None:
        try:
            special = {tokens[end].decode(): end} if end < len(tokens) else {}
        except UnicodeDecodeError:
            raise FormatError(f"id {end}", "the token that ends a text is not UTF-8") from None
    special_bytes = {id: tokens[id] for id in special.values() if 0 <= id < len(tokens)}
    options.check_special({token: id for id, token in special_bytes.items()})
    ids = ids_of(b"" if id in special_bytes else token for id, token in enumerate(tokens))
    ends = [name for name, id in special.items() if id == end]
    notes = {"eos_token": ends[0]} if ends else {}
    return Parts(ids, pattern, dict(special), notes=notes)


def _tokens(data: bytes) -> tuple[list[bytes], int]:
    """The bytes of each id, and the id that ends a text."""
    cursor = Cursor(data)
    magic, version, count, end = (cursor.u32("the header") for _ in range(4))
    cursor.take(4 * (HEADER_NUMBERS - 4), "the header")
    if magic != MAGIC:
        raise FormatError("byte 0", f"the magic number is {magic}, not {MAGIC}")
    if version not in (1, 2):
        raise FormatError("byte 4", f"version {version} is neither 1 nor 2")
    if count > min(cursor.left // 2, MAX_VOCAB_SIZE):
        raise FormatError("byte 8", f"{count} tokens do not fit {cursor.left} bytes")
    tokens = []
    for id in range(count):
        length = cursor.take(1, "a length")[0]
        if length == 0:
            raise FormatError(f"byte {cursor.at - 1}", f"the token of id {id} is empty")
        tokens.append(cursor.take(length, "a token"))
    if cursor.left:
        raise FormatError(f"byte {cursor.at}", f"{cursor.left} bytes follow the last token")
    if version == 2 and end >= count:
        raise FormatError("byte 12", f"the id {end} that ends a text is not in the file")
    return tokens, GPT2_END_ID if version == 1 else end


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What the file cannot represent."""
    lost = [] if _end(tokenizer) else [_UNSAID]
    lost.append("the split pattern: the file is for decoding only")
    if tokenizer.merge_rule == "merges":
        lost.append("the list of merges")
    if len(tokenizer.special_tokens) != 1:
        lost.append("the special tokens, except the one that ends a text")
    if asks := unspeakable(tokenizer):
        lost.append(f"that the tokenizer asks {asks}")
    return lost


def ways_out(tokenizer: _core.Tokenizer) -> list[WayOut]:
    """How a file loses less."""
    return [] if _end(tokenizer) else [giving("eos")]


def write(tokenizer: _core.Tokenizer, path: Path) -> None:
    """Write a file of version 2, whose tokens have at most 255 bytes."""
    end = _end(tokenizer)
    if end is None:
        raise LossError("llmc", [_UNSAID])
    entries = entries_of(tokenizer)
    longest = max(entries, key=len)
    if len(longest) > 255:
        raise LossError("llmc", [f"tokens of more than 255 bytes, such as {longest[:20]!r}…"])
    header = [MAGIC, 2, len(entries), tokenizer.special_tokens[end]]
    parts = [struct.pack(f"<{HEADER_NUMBERS}I", *header, *[0] * (HEADER_NUMBERS - len(header)))]
    parts += [bytes([len(token)]) + token for token in entries]
    write_whole(path, b"".join(parts))


def _end(tokenizer: _core.Tokenizer) -> str | None:
    """The special token that ends a text; a single special token is assumed to."""
    special = tokenizer.special_tokens
    only = next(iter(special)) if len(special) == 1 else None
    return roles(tokenizer).get("eos", only)
