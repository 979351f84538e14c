"""The neutral value between foreign formats: what a file says of a tokenizer.

A reader makes `Parts` of a file, and a tokenizer is made of them; so there is one file for each
format and not one for each pair of formats. Nothing here is checked that `bytepair._core` checks
when it puts the tokenizer together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: A pattern that begins with one of these marks is for texts that are normalized before they are
#: split.
MARKS: Final = {
    "NFC": "(?#NFC)",
    "NFKC": "(?#NFKC)",
    "spaces": "(?#spaces)",
    "spaces always": "(?#spaces always)",
    "spaces missing": "(?#spaces missing)",
    "spaces first": "(?#spaces first)",
}

#: Those of Unicode; the others exchange U+2581 for spaces and may put a space before texts.
UNICODE_FORMS: Final = ("NFC", "NFKC")


#: The sides on which a special token may take white space.
STRIPS: Final = ("lstrip", "rstrip")

#: What stands between the steps of a pattern: each splits what the one before left.
THEN: Final = "(?#then)"


@dataclass(frozen=True)
class Marks:
    """What stands at the beginning of a pattern.

    Attributes:
        form: the normalization of texts, if any: a name of `MARKS`.
        strips: the ids of the special tokens that take the white space before them (`lstrip`), and
            of those that take what follows (`rstrip`).
        rest: the pattern behind the marks: a regular expression, or several with `THEN` between.
    """

    form: str | None
    strips: dict[str, list[int]]
    rest: str


def marks(pattern: str) -> Marks:
    """Take the marks off a pattern.

    Example:
        >>> marks("(?#NFC)(?#lstrip 5 7)a")
        Marks(form='NFC', strips={'lstrip': [5, 7]}, rest='a')
    """
    form = next((name for name, mark in MARKS.items() if pattern.startswith(mark)), None)
    rest = pattern.removeprefix(MARKS[form]) if form else pattern
    strips = {}
    for side in STRIPS:
        found = re.match(rf"\(\?#{side} (\d+(?: \d+)*)\)", rest)
        if found:
            strips[side] = [int(id) for id in found[1].split(" ")]
            rest = rest[found.end() :]
    return Marks(form, strips, rest)


def marked(form: str | None, strips: dict[str, list[int]], rest: str) -> str:
    """The pattern with these marks; the inverse of `marks`."""
    sides = [
        f"(?#{side} {' '.join(map(str, strips[side]))})" for side in STRIPS if strips.get(side)
    ]
    return "".join([MARKS[form] if form else "", *sides, rest])


def unspeakable(pattern: str) -> str | None:
    """What a pattern asks for that no regular expression alone can say, or None.

    Example:
        >>> unspeakable("a(?#then)b"), unspeakable("a")
        ('to split in several steps', None)
    """
    found = marks(pattern)
    if found.form:
        unicode = found.form in UNICODE_FORMS
        return f"to normalize texts to {found.form}" if unicode else "to exchange spaces of texts"
    if found.strips:
        return "that special tokens take the white space beside them"
    return "to split in several steps" if THEN in pattern else None


@lru_cache(maxsize=64)
def splitter(pattern: str) -> _core.Tokenizer:
    """A tokenizer without tokens, which splits by a regular expression."""
    return _core.Tokenizer(_core.Model.from_ranks({}, pattern, {}))


def plain(pattern: str, place: str) -> str:
    """A pattern of a format that has no marks, where nothing in it may be a mark to us."""
    if asks := unspeakable(pattern):
        raise UnsupportedError(place, f"the pattern has what would ask us {asks}")
    return pattern


@dataclass(frozen=True)
class Parts:
    """The values of a tokenizer, before they are checked.

    Attributes:
        tokens: the bytes of each ordinary token and its id; or these and the merges, as the core
            read them.
        pattern: the split pattern.
        special_tokens: the special tokens and their ids.
        merges: the pairs that merge, in order; None is the rule of ranks, unless the core has them.
        ignore_merges: whether a pretoken that is a token wins outright.
        may_be_ranks: whether merges that are proved to give the ids of the rule of ranks are taken
            for that rule.
        notes: what else the file says, to be written back where it fits.
        twins: with byte fallback, whose merging starts with characters: tokens that have the bytes
            of another token, by id.
    """

    tokens: dict[bytes, int] | _core.JsonTables
    pattern: str
    special_tokens: dict[str, int]
    merges: list[tuple[bytes, bytes]] | None = None
    ignore_merges: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    may_be_ranks: bool = False
    twins: dict[int, bytes] | None = None

    def model(self) -> _core.Model:
        """Put the tokenizer together.

        Raises:
            VocabularyError: if the tokens, merges or special tokens break a rule.
            PatternError: if the pattern is not a regular expression.
        """
        tokens, merges, ignore = self.tokens, self.merges, self.ignore_merges
        named = (self.pattern, self.special_tokens)
        if isinstance(tokens, _core.JsonTables):
            ranks = self.may_be_ranks
            return tokens.model(*named, ranks=ranks, ignore_merges=ignore, notes=self.notes)
        if self.twins is not None:
            return _core.Model.from_characters(tokens, self.twins, merges or [], *named, self.notes)
        if merges is None or (self.may_be_ranks and is_rule_of_ranks(tokens, merges, ignore)):
            return _core.Model.from_ranks(tokens, *named, self.notes)
        return _core.Model.from_merges(tokens, merges, *named, ignore, self.notes)


@dataclass(frozen=True)
class Asked:
    """What the caller says beside the file, for formats that cannot say it themselves.

    Attributes:
        pattern: the split pattern, as a regular expression.
        special_tokens: the special tokens and their ids.
        allow_pickle: whether the values of a pickle may be read; no code in it is run.
        lossy: whether what cannot be done exactly may be left out.
    """

    pattern: str | None = None
    special_tokens: Mapping[str, int] | None = None
    allow_pickle: bool = False
    lossy: bool = False

    def named_pattern(self, what: str = "the file") -> str:
        """The pattern, which must be named where a file does not say it."""
        if self.pattern is None:
            raise FormatError(
                "split pattern",
                f"{what} does not say how text is split; pass pattern=, one of "
                f"{', '.join(_core.PATTERNS)}, or a regular expression",
            )
        return self.pattern

    def check_special(self, ids: Mapping[bytes, int]) -> None:
        """Check the special tokens that are named against the ids that a file has for them."""
        for name, id in (self.special_tokens or {}).items():
            if ids.get(name.encode()) != id:
                raise FormatError(f"id {id}", f"it is not {name!r}, as special_tokens= says")


def all_tokens(tokenizer: _core.Tokenizer) -> list[bytes]:
    """The bytes of each id: of a special token its name, nothing where no token has the id."""
    tokens = [b""] * tokenizer.vocab_size
    for token, id in tokenizer.mergeable_ranks().items():
        tokens[id] = token
    for id in tokenizer.twin_ids:
        tokens[id] = tokenizer.token_bytes(id)
    for name, id in tokenizer.special_tokens.items():
        tokens[id] = name.encode()
    return tokens


def bytes_per_token(tokenizer: _core.Tokenizer) -> NDArray[np.int32]:
    """How many bytes each id stands for; `Tokenizer.bytes_per_token_array` says it all."""
    import numpy as np

    lengths = np.zeros(tokenizer.vocab_size, np.int32)
    for token, id in tokenizer.mergeable_ranks().items():
        lengths[id] = len(token)
    lengths[tokenizer.twin_ids] = 1
    return lengths


def all_pairs(tokens: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The rule of ranks as a list of merges: every pair of tokens that makes a token, by rank.

    Of the pairs that make one token, those with a short left part come first.

    Example:
        >>> all_pairs({b"a": 0, b"b": 1, b"ab": 2, b"abb": 3, b"bb": 4})
        [(b'a', b'b'), (b'a', b'bb'), (b'ab', b'b'), (b'b', b'b')]
    """
    return [
        (token[:cut], token[cut:])
        for token in sorted(tokens, key=tokens.__getitem__)
        for cut in range(1, len(token))
        if token[:cut] in tokens and token[cut:] in tokens
    ]


def is_rule_of_ranks(
    tokens: dict[bytes, int], merges: list[tuple[bytes, bytes]], ignore_merges: bool
) -> bool:
    """Whether a list of merges is proved to give the ids of the rule of ranks for every text.

    That is so if it has, in order of rank, the one pair of each token that merges under that rule
    (`bytepair.formats.huggingface` has the proof), and if a pretoken that is a token becomes that
    token: either outright, by `ignore_merges`, or because every token has a pair.

    Example:
        >>> tokens = {b"a": 0, b"b": 1, b"ab": 2, b"abb": 3, b"bb": 4}
        >>> is_rule_of_ranks(tokens, all_pairs(tokens), False)
        True
        >>> is_rule_of_ranks(tokens, [(b"b", b"b")], False)
        False
    """
    needed = 0 if ignore_merges else sum(len(token) > 1 for token in tokens)
    if len(merges) < needed:
        return False
    pairs, listed = pairs_of_ranks(tokens), iter(merges)
    return len(pairs) >= needed and all(pair in listed for pair in pairs)


def pairs_of_ranks(tokens: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The rule of ranks as the shortest list of merges: the one pair that merges into each token.

    A token that no merge makes has none.

    Example:
        >>> pairs_of_ranks({b"a": 0, b"b": 1, b"ab": 2, b"abb": 3, b"bb": 4})
        [(b'a', b'b'), (b'ab', b'b'), (b'b', b'b')]
    """
    return _core.Tokenizer(_core.Model.from_ranks(tokens, r"(?s:.)", {})).merges()


def listed_merges(tokenizer: _core.Tokenizer) -> list[tuple[bytes, bytes]]:
    """The merges of a tokenizer as a format without the rule of ranks lists them."""
    if tokenizer.merge_rule == "ranks":
        return pairs_of_ranks(tokenizer.mergeable_ranks())
    return tokenizer.merges()


def unmade(tokenizer: _core.Tokenizer) -> list[bytes]:
    """The tokens of more than one byte that no merge makes: only a whole pretoken can be one."""
    made = {left + right for left, right in tokenizer.merges()}
    return [token for token in tokenizer.mergeable_ranks() if len(token) > 1 and token not in made]
