"""The tokens of a tokenizer by id, the pairs that merge into them, and the rules of its texts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import category

from bytepair import _core
from bytepair._internal.checks import check_kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The note with the id of a token without bytes. No text has it, so it is no token here, but it is
#: written back: the files of Whisper list one.
EMPTY: Final = "empty_token"


class AddedToken(NamedTuple):
    """A token that is found in a text by its content, before the text is split and merged.

    Special tokens give a text its structure, and text contains them only where the caller allows
    it. The others are ordinary text that always becomes one id, such as runs of spaces. The flags
    are those of Hugging Face `tokenizers`.

    Attributes:
        content: the text.
        id: the id.
        special: whether the token is special.
        lstrip: whether it takes the white space before it.
        rstrip: whether it takes the white space after it.
        single_word: whether it is found only between characters that are not part of a word.
        normalized: whether it is looked for in the normalized text.

    Example:
        >>> import bytepair
        >>> bytepair.tokenizer.added_tokens(bytepair.train(["hello hello"], 269))[0][:3]
        ('<|bos|>', 260, True)
    """

    content: str
    id: int
    special: bool = True
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


def empty_token(tokenizer: _core.Tokenizer) -> int | None:
    """The id of the token without bytes, if the tokenizer was read from a file with one."""
    note = tokenizer.notes.get(EMPTY, "")
    id = int(note) if note.isdecimal() and len(note) <= 7 else None
    ids_in_use = {*tokenizer.mergeable_ranks().values(), *tokenizer.special_tokens.values()}
    return None if id in ids_in_use else id


def all_tokens(tokenizer: _core.Tokenizer) -> list[bytes]:
    """The bytes of each id: for a special token its name, for an unused id nothing."""
    tokens = [b""] * tokenizer.vocab_size
    for token, id in tokenizer.mergeable_ranks().items():
        tokens[id] = token
    for id in _core.twin_ids(tokenizer):
        tokens[id] = tokenizer.token_bytes(id)
    for name, id in tokenizer.special_tokens.items():
        tokens[id] = tokens[id] or name.encode()  # a shared token already has its bytes
    return tokens


def token_lengths(tokenizer: _core.Tokenizer) -> NDArray[np.int32]:
    """The number of bytes of each id, as int32; 0 for special tokens and unused ids.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> token_lengths(tok)[255:].tolist()
        [1, 2, 3, 2, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    """
    import numpy as np

    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    lengths = np.zeros(tokenizer.vocab_size, np.int32)
    for token, id in tokenizer.mergeable_ranks().items():
        lengths[id] = len(token)
    lengths[_core.twin_ids(tokenizer)] = 1
    return lengths


def all_pairs(tokens: dict[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
    """The rule "ranks" as merges: all pairs of tokens that join to a token, by rank.

    Among the pairs of one token, those with a shorter left part come first.
    """
    lengths = {len(token) for token in tokens}
    return (
        (token[:cut], token[cut:])
        for token in sorted(tokens, key=tokens.__getitem__)
        for cut in range(1, len(token))
        if cut in lengths and len(token) - cut in lengths  # without a copy of the token
        and token[:cut] in tokens and token[cut:] in tokens
    )  # fmt: skip


def uncovered(tokenizer: _core.Tokenizer) -> list[int]:
    """The bytes that a text may have and that are no token.

    Encoding them is an error, or they are left out: see `bytepair.load(uncovered=)`. They are in
    ascending order, without those that no UTF-8 has.

    Example:
        >>> import bytepair
        >>> tokens = {bytes([byte]): byte for byte in range(1, 192)}
        >>> tok = bytepair.Tokenizer.from_ranks(tokens, pattern="gpt2")
        >>> bytepair.tokenizer.uncovered(tok)[:3]
        [0, 194, 195]
    """
    if tokenizer.merge_rule == "characters" or _core.text_rules(tokenizer).has_symbols:
        return []
    tokens = tokenizer.mergeable_ranks()
    in_utf_8 = (*range(0xC0), *range(0xC2, 0xF5))
    return [byte for byte in in_utf_8 if bytes([byte]) not in tokens]


def unmade(tokenizer: _core.Tokenizer) -> list[bytes]:
    """The tokens of several bytes that no merge produces; only a whole pretoken can become one."""
    if tokenizer.merge_rule == "ranks":
        return [tokenizer.token_bytes(id) for id in _core.whole_only_ids(tokenizer)]
    results = {left + right for left, right in tokenizer.merges()}
    return [
        token for token in tokenizer.mergeable_ranks() if len(token) > 1 and token not in results
    ]


def ordinary(tokenizer: _core.Tokenizer) -> set[int]:
    """The ids of the added tokens that are not special: they are found in every text."""
    return {token.id for token in _core.added_tokens(tokenizer) if not token.special}


def flags(tokenizer: _core.Tokenizer) -> dict[str, AddedToken]:
    """The added tokens with their flags, by their names."""
    return {token.content: token for token in _core.added_tokens(tokenizer)}


def pattern_text(tokenizer: _core.Tokenizer) -> str:
    """How a tokenizer splits: the name of its pattern, or its regular expressions.

    If no expressions say it, the kinds of the steps of its pre-tokenizer.
    """
    pattern = tokenizer.pattern
    names = (name for name, regex in _core.PATTERNS.items() if regex == pattern)
    if isinstance(pattern, str):
        return next(names, pattern)
    return ", then ".join(pattern or _core.text_rules(tokenizer).pre_tokenizer) or "not at all"


@lru_cache(maxsize=64)
def splitter(pattern: str | tuple[str, ...]) -> _core.Splitter:
    """The splitter of a pattern, compiled once."""
    return _core.Splitter(pattern)


@lru_cache(maxsize=64)
def leaves_out(pattern: str) -> bool:
    """Whether a split pattern leaves out text, by pairs of characters of all kinds."""
    kinds = {category(chr(code)): chr(code) for code in (*range(0xD800), *range(128))}
    pairs = [*map("".join, product(kinds.values(), repeat=2)), *(2 * chr(at) for at in range(128))]
    text = "".join(pairs)
    found = splitter(pattern).pretokenize(text)
    # Whatever follows the last match, or is between two, is one pretoken.
    others = (splitter(f"{pattern}|(?s:.){more}").pretokenize(text) for more in ("", "+"))
    return any(other != found for other in others)
