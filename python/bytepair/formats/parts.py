"""`Parts`: the intermediate representation of a tokenizer between file formats.

A reader converts a file to `Parts`, from which the tokenizer is built; so there is one module per
format instead of one per pair of formats. Values that `bytepair._core` checks when it builds the
tokenizer are not checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: A pattern that begins with one of these marks applies to normalized text.
MARKS: Final = {
    "NFC": "(?#NFC)",
    "NFKC": "(?#NFKC)",
    "spaces": "(?#spaces)",
    "spaces always": "(?#spaces always)",
    "spaces missing": "(?#spaces missing)",
    "spaces first": "(?#spaces first)",
}

#: The Unicode normalizations; the other marks replace spaces by U+2581 and may prepend a space.
UNICODE_FORMS: Final = ("NFC", "NFKC")


#: The sides on which a special token may strip white space.
STRIPS: Final = ("lstrip", "rstrip")

#: The mark of special tokens that are found in every text: added tokens that control nothing.
ADDED: Final = "added"

#: The note with the id of a token without bytes. No text has it, so it is no token here, but it is
#: written back: the files of Whisper list one.
EMPTY: Final = "empty_token"

#: The mark of tokens that are found in text before it is merged.
_USER_DEFINED: Final = "user-defined"

#: The separator of the steps of a pattern; each step splits the pieces of the previous one.
THEN: Final = "(?#then)"


@dataclass(frozen=True)
class Marks:
    """The marks at the beginning of a pattern.

    Attributes:
        form: the normalization of texts, if any: a name in `MARKS`.
        flags: the ids of the special tokens that strip white space before them (`lstrip`) and
            after them (`rstrip`), and of those that are found in every text (`added`).
        rest: the pattern after the marks: a regular expression, or several, separated by `THEN`.
        user_defined: the ids of the tokens that are found in text before it is merged.
    """

    form: str | None
    flags: dict[str, list[int]]
    rest: str
    user_defined: list[int] = field(default_factory=list)


def marks(pattern: str) -> Marks:
    """Parse the marks of a pattern.

    Example:
        >>> marks("(?#NFC)(?#lstrip 5 7)a")
        Marks(form='NFC', flags={'lstrip': [5, 7]}, rest='a', user_defined=[])
    """
    form = next((name for name, mark in MARKS.items() if pattern.startswith(mark)), None)
    rest = pattern.removeprefix(MARKS[form]) if form else pattern
    flags = {}
    for flag in (*STRIPS, ADDED, _USER_DEFINED):
        found = re.match(rf"\(\?#{flag} (\d+(?: \d+)*)\)", rest)
        if found:
            flags[flag] = [int(id) for id in found[1].split(" ")]
            rest = rest[found.end() :]
    user_defined = flags.pop(_USER_DEFINED, [])
    return Marks(form, flags, rest, user_defined)


def marked(
    form: str | None,
    flags: Mapping[str, Sequence[int]],
    rest: str,
    user_defined: Sequence[int] = (),
) -> str:
    """Add marks to a pattern; the inverse of `marks`."""
    lists = {**flags, _USER_DEFINED: user_defined}
    listed = [
        f"(?#{flag} {' '.join(map(str, lists[flag]))})"
        for flag in (*STRIPS, ADDED, _USER_DEFINED)
        if lists.get(flag)
    ]
    return "".join([MARKS[form] if form else "", *listed, rest])


def with_added(pattern: str, ids: Sequence[int]) -> str:
    """A pattern with the mark of these special tokens, which are found in every text.

    Example:
        >>> with_added("(?#NFC)a", [7])
        '(?#NFC)(?#added 7)a'
    """
    found = marks(pattern)
    return marked(found.form, {**found.flags, ADDED: ids}, found.rest, found.user_defined)


def added(tokenizer: _core.Tokenizer) -> set[int]:
    """The ids of the special tokens that are found in every text."""
    return set(marks(tokenizer.pattern).flags.get(ADDED, []))


def strips(tokenizer: _core.Tokenizer) -> bool:
    """Whether a special token strips white space."""
    flags = marks(tokenizer.pattern).flags
    return any(flags.get(side) for side in STRIPS)


def empty_token(tokenizer: _core.Tokenizer) -> int | None:
    """The id of the token without bytes, if the tokenizer was read from a file with one."""
    note = tokenizer.notes.get(EMPTY, "")
    id = int(note) if note.isdecimal() and len(note) <= 7 else None
    taken = {*tokenizer.mergeable_ranks().values(), *tokenizer.special_tokens.values()}
    return None if id in taken else id


def unspeakable(pattern: str) -> str | None:
    """The feature of a pattern that a single regular expression cannot express, or None.

    Example:
        >>> unspeakable("a(?#then)b"), unspeakable("a")
        ('to split in several steps', None)
    """
    found = marks(pattern)
    if found.form:
        unicode = found.form in UNICODE_FORMS
        return f"to normalize texts to {found.form}" if unicode else "to replace spaces in texts"
    if any(found.flags.get(side) for side in STRIPS):
        return "that special tokens strip white space"
    if found.flags.get(ADDED):
        return "to find added tokens in every text"
    if found.user_defined:
        return "to find user-defined tokens before merging"
    return "to split in several steps" if THEN in pattern else None


@lru_cache(maxsize=64)
def splitter(pattern: str) -> _core.Splitter:
    """The splitter of a regular expression, compiled once."""
    return _core.Splitter(pattern)


def plain(pattern: str, place: str) -> str:
    """Check that a pattern of a format without marks does not contain one."""
    if asks := unspeakable(pattern):
        raise UnsupportedError(place, f"the pattern contains a mark that asks {asks}")
    return pattern


@dataclass(frozen=True)
class Parts:
    """The values of a tokenizer, before they are checked.

    Attributes:
        tokens: the bytes of each ordinary token and its id; or the tokenizer itself, if the core
            read it, without the notes that were added since.
        pattern: the split pattern.
        special_tokens: the special tokens and their ids.
        merges: the pairs to merge, in order; None means the rule "ranks", unless the core read the
            tokenizer.
        ignore_merges: whether a pretoken that is a token is not merged.
        may_be_ranks: whether merges that provably give the same ids as the rule "ranks" are read as
            that rule.
        notes: other content of the file, to be written back.
        twins: with byte fallback, where merging starts with characters: tokens that have the bytes
            of another token, by id.
    """

    tokens: dict[bytes, int] | _core.Model
    pattern: str
    special_tokens: dict[str, int]
    merges: list[tuple[bytes, bytes]] | None = None
    ignore_merges: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    may_be_ranks: bool = False
    twins: dict[int, bytes] | None = None

    def model(self) -> _core.Model:
        """Build the tokenizer.

        Raises:
            VocabularyError: if the tokens, merges or special tokens are invalid.
            PatternError: if the pattern is not a regular expression.
        """
        tokens, merges, ignore = self.tokens, self.merges, self.ignore_merges
        named = (self.pattern, self.special_tokens)
        if isinstance(tokens, _core.Model):
            return _core.with_notes(_core.Tokenizer(tokens), self.notes)
        if self.twins is not None:
            return _core.Model.from_characters(tokens, self.twins, merges or [], *named, self.notes)
        if merges is None or (self.may_be_ranks and is_rule_of_ranks(tokens, merges, ignore)):
            return _core.Model.from_ranks(tokens, *named, self.notes)
        return _core.Model.from_merges(tokens, merges, *named, ignore, self.notes)


@dataclass(frozen=True)
class Asked:
    """The options passed by the caller, for formats that do not contain these values.

    Attributes:
        pattern: the split pattern, as a regular expression.
        special_tokens: the special tokens and their ids.
        allow_pickle: whether a pickle may be read; no code in it is executed.
        lossy: whether to ignore features that cannot be reproduced exactly.
    """

    pattern: str | None = None
    special_tokens: Mapping[str, int] | None = None
    allow_pickle: bool = False
    lossy: bool = False

    def named_pattern(self, what: str = "the file") -> str:
        """The pattern, which the caller must pass if the file does not contain it."""
        if self.pattern is None:
            raise FormatError(
                "split pattern",
                f"{what} does not contain it; pass pattern=, one of "
                f"{', '.join(_core.PATTERNS)}, or a regular expression",
            )
        return self.pattern

    def check_special(self, ids: Mapping[bytes, int]) -> None:
        """Check the special tokens passed by the caller against the ids in the file."""
        for name, id in (self.special_tokens or {}).items():
            if ids.get(name.encode()) != id:
                raise FormatError(f"id {id}", f"it is not {name!r}, as in special_tokens=")


def all_tokens(tokenizer: _core.Tokenizer) -> list[bytes]:
    """The bytes of each id: for a special token its name, for an unused id nothing."""
    tokens = [b""] * tokenizer.vocab_size
    for token, id in tokenizer.mergeable_ranks().items():
        tokens[id] = token
    for id in tokenizer.twin_ids:
        tokens[id] = tokenizer.token_bytes(id)
    for name, id in tokenizer.special_tokens.items():
        tokens[id] = tokens[id] or name.encode()  # a shared token already has its bytes
    return tokens


def bytes_per_token(tokenizer: _core.Tokenizer) -> NDArray[np.int32]:
    """The number of bytes of each id; see `Tokenizer.bytes_per_token_array`."""
    import numpy as np

    lengths = np.zeros(tokenizer.vocab_size, np.int32)
    for token, id in tokenizer.mergeable_ranks().items():
        lengths[id] = len(token)
    lengths[tokenizer.twin_ids] = 1
    return lengths


def all_pairs(tokens: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The rule "ranks" as a list of merges: all pairs of tokens that join to a token, by rank.

    Among the pairs of one token, those with a shorter left part come first.

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
    """Whether a list of merges provably gives the same ids as the rule "ranks" for every text.

    Example:
        >>> tokens = {b"a": 0, b"b": 1, b"ab": 2, b"abb": 3, b"bb": 4}
        >>> is_rule_of_ranks(tokens, all_pairs(tokens), False)
        True
        >>> is_rule_of_ranks(tokens, [(b"b", b"b")], False)
        False
    """
    listed = _core.Tokenizer(_core.Model.from_merges(tokens, merges, r"(?s:.)", {}))
    return _core.is_rule_of_ranks(listed, ignore_merges)


def pairs_of_ranks(tokens: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The rule "ranks" as the shortest list of merges: the one pair that merges into each token.

    A token that no merge produces has none.

    Example:
        >>> pairs_of_ranks({b"a": 0, b"b": 1, b"ab": 2, b"abb": 3, b"bb": 4})
        [(b'a', b'b'), (b'ab', b'b'), (b'b', b'b')]
    """
    return _core.Tokenizer(_core.Model.from_ranks(tokens, r"(?s:.)", {})).merges()


def listed_merges(tokenizer: _core.Tokenizer) -> list[tuple[bytes, bytes]]:
    """The merges of a tokenizer, for formats without the rule "ranks"."""
    if tokenizer.merge_rule == "ranks":
        return pairs_of_ranks(tokenizer.mergeable_ranks())
    return tokenizer.merges()


def unmade(tokenizer: _core.Tokenizer) -> list[bytes]:
    """The tokens of several bytes that no merge produces; only a whole pretoken can become one."""
    made = {left + right for left, right in tokenizer.merges()}
    return [token for token in tokenizer.mergeable_ranks() if len(token) > 1 and token not in made]
