"""`Parts`: the intermediate representation of a tokenizer between file formats.

A reader converts a file to `Parts`, from which the tokenizer is built; so there is one module per
format instead of one per pair of formats. Values that `bytepair._core` checks when it builds the
tokenizer are not checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from bytepair import _core
from bytepair.errors import ANY, FormatError, Option, WayOut

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The rules of a text, or the pattern that says the usual ones: a regular expression, or several of
#: which each splits the pieces of the previous one.
Rules: TypeAlias = str | tuple[str, ...] | _core.TextRules

#: The note with the id of a token without bytes. No text has it, so it is no token here, but it is
#: written back: the files of Whisper list one.
EMPTY: Final = "empty_token"


def text_rules(rules: Rules) -> _core.TextRules:
    """Rules as a value."""
    return rules if isinstance(rules, _core.TextRules) else _core.TextRules(rules)


def form(rules: _core.TextRules) -> str | None:
    """What the normalizer does: the names of its steps, or None without any.

    Example:
        >>> form(_core.TextRules("a", normalizer=["NFC"])), form(_core.TextRules("a"))
        ('NFC', None)
    """
    return ", ".join(rules.normalizer) or None


def ordinary(tokenizer: _core.Tokenizer) -> set[int]:
    """The ids of the added tokens that are not special: they are found in every text."""
    return {token.id for token in tokenizer.added_tokens if not token.special}


def strips(tokenizer: _core.Tokenizer) -> bool:
    """Whether an added token strips white space."""
    return any(token.lstrip or token.rstrip for token in tokenizer.added_tokens)


def flags(tokenizer: _core.Tokenizer) -> dict[str, _core.AddedToken]:
    """The added tokens with their flags, by their names."""
    return {token.content: token for token in tokenizer.added_tokens}


def empty_token(tokenizer: _core.Tokenizer) -> int | None:
    """The id of the token without bytes, if the tokenizer was read from a file with one."""
    note = tokenizer.notes.get(EMPTY, "")
    id = int(note) if note.isdecimal() and len(note) <= 7 else None
    taken = {*tokenizer.mergeable_ranks().values(), *tokenizer.special_tokens.values()}
    return None if id in taken else id


def unspeakable(tokenizer: _core.Tokenizer) -> str | None:
    """What a tokenizer does to a text that a regular expression and special tokens cannot say.

    Returns:
        The first such thing, to follow the word "that" or "asks"; None if there is none.
    """
    rules = tokenizer.rules
    if rules.normalizer:
        spaces = rules.normalizer[0].startswith("spaces")
        return "to replace spaces in texts" if spaces else f"to normalize texts to {form(rules)}"
    if any(token.single_word for token in tokenizer.added_tokens):
        return "to find added tokens only as words"
    if strips(tokenizer):
        return "that special tokens strip white space"
    if ordinary(tokenizer):
        return "to find added tokens in every text"
    if rules.user_defined:
        return "to find user-defined tokens before merging"
    if rules.has_symbols or rules.decodes_names:
        return "to merge and decode tokens by their names"
    if rules.pattern is None:
        return "to split in another way than by a regular expression"
    return "to split in several steps" if isinstance(rules.pattern, tuple) else None


def pattern_text(tokenizer: _core.Tokenizer) -> str:
    """How a tokenizer splits: the name of its pattern, or its regular expressions.

    If no expressions say it, the kinds of the steps of its pre-tokenizer.

    Example:
        >>> model = _core.Model.from_ranks({}, ("a", "b"), {})
        >>> pattern_text(_core.Tokenizer(model))
        'a, then b'
    """
    pattern = tokenizer.pattern
    names = (name for name, regex in _core.PATTERNS.items() if regex == pattern)
    if isinstance(pattern, str):
        return next(names, pattern)
    return ", then ".join(pattern or tokenizer.rules.pre_tokenizer) or "not at all"


@lru_cache(maxsize=64)
def splitter(pattern: str | tuple[str, ...]) -> _core.Splitter:
    """The splitter of a pattern, compiled once."""
    return _core.Splitter(pattern)


@dataclass(frozen=True)
class Parts:
    """The values of a tokenizer, before they are checked.

    Attributes:
        tokens: the bytes of each ordinary token and its id; or the tokenizer itself, if the core
            read it, without the notes that were added since.
        rules: what happens to a text before it is merged; usually a split pattern.
        special_tokens: the added tokens and their ids.
        flags: the flags of added tokens, by name; those without are special and nothing else.
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
    rules: Rules
    special_tokens: dict[str, int]
    merges: list[tuple[bytes, bytes]] | None = None
    ignore_merges: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    may_be_ranks: bool = False
    twins: dict[int, bytes] | None = None
    flags: Mapping[str, _core.AddedToken] = field(default_factory=dict)

    def added(self) -> list[_core.AddedToken]:
        """The added tokens with their flags."""
        tokens = ((_core.AddedToken(name, id), name) for name, id in self.special_tokens.items())
        return [self.flags.get(name, token).with_id(token.id) for token, name in tokens]

    def model(self) -> _core.Model:
        """Build the tokenizer.

        Raises:
            VocabularyError: if the tokens, merges or special tokens are invalid.
            PatternError: if the pattern is not a regular expression.
        """
        tokens, merges, ignore = self.tokens, self.merges, self.ignore_merges
        named = (self.rules, self.added())
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
        pattern: the split pattern.
        special_tokens: the special tokens and their ids.
        allow_pickle: whether a pickle may be read; no code in it is executed.
        lossy: whether to ignore features that cannot be reproduced exactly.
    """

    pattern: str | tuple[str, ...] | None = None
    special_tokens: Mapping[str, int] | None = None
    allow_pickle: bool = False
    lossy: bool = False

    def named_pattern(self, what: str = "the file") -> str | tuple[str, ...]:
        """The pattern, which the caller must pass if the file does not contain it."""
        if self.pattern is None:
            raise FormatError(
                "split pattern",
                f"{what} does not contain it",
                WayOut.passing(
                    "pattern",
                    ANY,
                    f", one of {', '.join(_core.PATTERNS)}, or a regular expression",
                ),
            )
        return self.pattern

    def check_special(self, ids: Mapping[bytes, int]) -> None:
        """Check the special tokens passed by the caller against the ids in the file."""
        for name, id in (self.special_tokens or {}).items():
            if ids.get(name.encode()) != id:
                raise FormatError(
                    f"id {id}", f"it is not {name!r}, as in", Option("special_tokens")
                )


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
