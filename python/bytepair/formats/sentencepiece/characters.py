"""Vocabularies of characters with byte fallback, independent of their file format.

Their tokens are texts with U+2581 for a space, and a token for each byte, named `<0x00>` to
`<0xFF>`, used for characters without a token. Here tokens are bytes, with spaces for U+2581. A byte
that is a character with a token as well has two ids: encoding gives that of the character, and the
other, its *twin*, is only decoded. A byte of ASCII needs no token of that name if its character is
a token.

Such a tokenizer does not split text. Splitting between two characters that are adjacent in no token
changes no id, since no merge crosses that place, and then pretokens repeat and can be cached.
`_core.harmless_pattern` chooses such places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from bytepair import _core
from bytepair.errors import UnsupportedError
from bytepair.formats.parts import Parts

#: The character that represents a space in the names of tokens.
META: Final = "\u2581"
#: The names of the tokens of single bytes.
BYTES: Final = [f"<0x{byte:02X}>" for byte in range(256)]


def parts(
    ids: Mapping[str, int],
    merges: Iterable[tuple[str, str]],
    form: str,
    special: Mapping[str, int],
    notes: dict[str, str],
    place: str,
    user_defined: Iterable[str] = (),
) -> Parts:
    """Put a tokenizer together.

    Args:
        ids: the names of the ordinary tokens, those of bytes included, and their ids.
        merges: the pairs of names that merge, in order.
        form: where spaces are put: the name of a normalizer, as "spaces always".
        special: the special tokens and their ids.
        notes: what else the file says.
        place: the place of the vocabulary, for errors.
        user_defined: the names of the tokens that are found in text before it is merged.

    Raises:
        UnsupportedError: if a byte has no token, or a token contains a space, so that it can never
            be used.
    """
    has_byte = [name in ids or (byte < 128 and chr(byte) in ids) for byte, name in enumerate(BYTES)]
    if missing := [name for name, has in zip(BYTES, has_byte, strict=True) if not has]:
        raise UnsupportedError(
            place,
            f"the token {missing[0]!r} is missing, so a character without a token could not be "
            "encoded; only vocabularies with tokens for all 256 bytes are supported",
        )
    if spaced := [name for name in ids if " " in name]:
        raise UnsupportedError(
            place, f"{spaced[0]!r} contains a space instead of U+2581, so it is never used"
        )
    names = set(BYTES)
    tokens = {_token(name): id for name, id in ids.items() if name not in names}
    twins = {}
    for byte, name in enumerate(BYTES):
        if name in ids and tokens.setdefault(bytes([byte]), ids[name]) != ids[name]:
            twins[ids[name]] = bytes([byte])
    pairs = [(_token(left), _token(right)) for left, right in merges]
    rules = _core.TextRules(
        _core.harmless_pattern(list(tokens)),
        normalizer=[form],
        user_defined=[ids[name] for name in user_defined],
    )
    return Parts(tokens, rules, dict(special), pairs, notes=notes, twins=twins)


def _token(name: str) -> bytes:
    return name.replace(META, " ").encode()


def names(tokenizer: _core.Tokenizer) -> dict[int, str]:
    """The name of each ordinary token, in order of id; the inverse of what `parts` does.

    A token of a byte has its name, one of characters its text with U+2581 for spaces.
    """
    twins, plain = set(_core.twin_ids(tokenizer)), _plain_bytes(tokenizer)
    by_id = {id: BYTES[tokenizer.token_bytes(id)[0]] for id in twins}
    covered = {tokenizer.token_bytes(id) for id in twins}
    for token, id in tokenizer.mergeable_ranks().items():
        is_byte = len(token) == 1 and token not in covered and token not in plain
        by_id[id] = BYTES[token[0]] if is_byte else token.decode().replace(" ", META)
    return dict(sorted(by_id.items()))


def _plain_bytes(tokenizer: _core.Tokenizer) -> set[bytes]:
    """The single bytes that a file has as characters, although they have no twin."""
    singles = {part for pair in tokenizer.merges() for part in pair if len(part) == 1}
    ids = {*tokenizer.rules.user_defined, *tokenizer.special_tokens.values()}
    ranks = tokenizer.mergeable_ranks().items()
    return singles | {token for token, id in ranks if len(token) == 1 and id in ids}


def named_merges(tokenizer: _core.Tokenizer) -> list[tuple[str, str]]:
    """The merges of a tokenizer as pairs of names."""
    return [
        (left.decode().replace(" ", META), right.decode().replace(" ", META))
        for left, right in tokenizer.merges()
    ]
