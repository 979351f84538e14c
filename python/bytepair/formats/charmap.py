"""The mapping of bytes to printable characters that GPT-2 introduced.

Printable bytes of Latin-1 map to themselves; the other 68, in order, to the characters from U+0100
on. So a space is `Ġ` and a line break `Ċ`. `vocab.json`, `merges.txt`, `tokenizer.json` and GGUF
store tokens in this form.
"""

from __future__ import annotations

from bytepair import _core


def _table() -> dict[int, str]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(0x100 + place) for place, byte in enumerate(others)}


_CHARACTERS = _table()
_BYTES: dict[int, str | None] = {ord(char): chr(byte) for byte, char in _CHARACTERS.items()}
_BYTES |= dict.fromkeys(_CHARACTERS)  # these characters do not represent a byte


def to_characters(token: bytes) -> str:
    """Map bytes to characters.

    Example:
        >>> to_characters(" né".encode())
        'ĠnÃ©'
    """
    return token.decode("latin-1").translate(_CHARACTERS)


def to_bytes(characters: str) -> bytes | None:
    """The inverse of `to_characters`; None if a character does not represent a byte.

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
    """The special tokens whose name equals an ordinary token, written as characters."""
    ranks = tokenizer.mergeable_ranks()
    special = tokenizer.special_tokens.items()
    return [name for name, id in special if ranks.get(to_bytes(name) or b"", id) != id]


def lost_twins(tokenizer: _core.Tokenizer) -> list[str]:
    """The entry of `Tokenizer.export_losses` for such special tokens, if there are any."""
    twins = lookalikes(tokenizer)
    return [f"special tokens equal to ordinary tokens, such as {twins[0]!r}"] if twins else []
