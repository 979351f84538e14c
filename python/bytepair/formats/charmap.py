"""Bytes as printable characters, the way GPT-2 wrote them first.

Printable bytes of Latin-1 stand for themselves; the other 68, in order, for the characters from
U+0100 on. So a space is `Ġ` and a line break `Ċ`. `vocab.json`, `merges.txt`, `tokenizer.json` and
GGUF hold their tokens in this form.
"""

from __future__ import annotations

from bytepair import _core


def _table() -> dict[int, str]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(0x100 + place) for place, byte in enumerate(others)}


_CHARACTERS = _table()
_BYTES: dict[int, str | None] = {ord(char): chr(byte) for byte, char in _CHARACTERS.items()}
_BYTES |= dict.fromkeys(_CHARACTERS)  # these characters stand for no byte


def to_characters(token: bytes) -> str:
    """Write bytes as characters.

    Example:
        >>> to_characters(" né".encode())
        'ĠnÃ©'
    """
    return token.decode("latin-1").translate(_CHARACTERS)


def to_bytes(characters: str) -> bytes | None:
    """Read what `to_characters` wrote; None if a character stands for no byte.

    Example:
        >>> to_bytes("ĠnÃ©").decode(), to_bytes("a b"), to_bytes("▁")
        (' né', None, None)
    """
    try:
        read = characters.translate(_BYTES).encode("latin-1")
    except UnicodeEncodeError:
        return None
    return read if len(read) == len(characters) else None


def lookalikes(tokenizer: _core.Tokenizer) -> list[str]:
    """The special tokens whose names an ordinary token has, when it is written as characters."""
    ranks = tokenizer.mergeable_ranks()
    return [name for name in tokenizer.special_tokens if to_bytes(name) in ranks]


def lost_twins(tokenizer: _core.Tokenizer) -> list[str]:
    """That there are such, in the words of `Tokenizer.export_losses`."""
    twins = lookalikes(tokenizer)
    return [f"special tokens that look like ordinary ones, such as {twins[0]!r}"] if twins else []
