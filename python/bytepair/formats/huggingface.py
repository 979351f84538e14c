"""Hugging Face: a tokenizer in, a `tokenizers.Tokenizer` with the same ids out.

Hugging Face merges listed pairs in the order of the list. A tokenizer with the rule of merges has
that list. One with the rule of ranks merges any two neighbours whose joined bytes are a token, so
its list has every pair of tokens that makes a token, in order of the rank of what they make.

What is proved: both merge the token of the lowest rank first, and they find the same places for it.
What is not: where two places of the same token overlap and divide it differently (`a|aa|a` for
`aaa`), the rule of ranks takes the left one, the list the pair that stands first in it. Only tokens
that repeat themselves can do that; tests on real text find no difference.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bytepair import _core

if TYPE_CHECKING:
    import tokenizers


def to_huggingface(tokenizer: _core.Tokenizer, *, special: bool = True) -> tokenizers.Tokenizer:
    """Make a `tokenizers.Tokenizer`; `Tokenizer.to_huggingface` says it all."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {_characters(token): id for token, id in tokenizer.mergeable_ranks.items()}
    names = tokenizer.special_tokens
    by_rank = tokenizer.merge_rule == "ranks"
    merges = _all_pairs(tokenizer) if by_rank else tokenizer.merges
    exported = Tokenizer(
        models.BPE(
            vocab=vocabulary | names,
            merges=[(_characters(left), _characters(right)) for left, right in merges],
            ignore_merges=by_rank or tokenizer.ignore_merges,
        )
    )
    exported.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(oniguruma(tokenizer.pattern)), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    exported.decoder = decoders.ByteLevel()
    exported.add_special_tokens(
        [AddedToken(name, normalized=False, special=True) for name in names]
    )
    exported.encode_special_tokens = not special
    return exported


def _all_pairs(tokenizer: _core.Tokenizer) -> list[tuple[bytes, bytes]]:
    """Every pair of tokens that makes a token, by rank; of one token, short left parts first."""
    ranks = tokenizer.mergeable_ranks
    return [
        (token[:cut], token[cut:])
        for token in sorted(ranks, key=ranks.__getitem__)
        for cut in range(1, len(token))
        if token[:cut] in ranks and token[cut:] in ranks
    ]


# A piece of a regular expression: a class of characters (which may hold one more), an escape with
# or without braces, a count, or one character.
_PIECE = re.compile(
    r"\[(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\]|\\[pPx]\{[^}]*\}|\\.|\{\d+(?:,\d*)?\}\+?|.",
    re.DOTALL,
)


def oniguruma(pattern: str) -> str:
    r"""Write a split pattern for Oniguruma, the engine of `tokenizers`.

    It reads two things in another way: `$` and `^` are the ends of lines, and a `+` after a count
    repeats instead of being possessive.

    Example:
        >>> oniguruma(r"\p{N}{1,3}+|\s++$")
        '(?>\\p{N}{1,3})|\\s++\\z'
    """
    done: list[str] = []
    open_groups: list[int] = []
    for piece in _PIECE.findall(pattern):
        if piece == "(":
            open_groups.append(len(done))
        if piece == ")" and open_groups:
            start = open_groups.pop()
            done[start:] = ["".join(done[start:]) + piece]
        elif re.fullmatch(r"\{.*\}\+", piece) and done:
            done[-1] = f"(?>{done[-1]}{piece[:-1]})"
        else:
            done.append({"$": r"\z", "^": r"\A"}.get(piece, piece))
    return "".join(done)


def _characters(token: bytes) -> str:
    """The bytes of a token as the printable characters that Hugging Face has for them."""
    return token.decode("latin-1").translate(_CHARACTERS)


def _table() -> dict[int, str]:
    """Printable bytes of Latin-1 stand for themselves, the others for characters from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(0x100 + place) for place, byte in enumerate(others)}


_CHARACTERS = _table()
