"""What llama.cpp does by names: of split rules, in the field `tokenizer.ggml.pre`, and of tokens.

llama.cpp does not read split patterns. It has a fixed list of names, which also determine whether a
pretoken that is a token is merged; they are in `llamacpp.toml`. The behaviour of each name is
reproduced, with one exception: its contractions exclude `ſ` (U+017F), which the case-insensitive
published patterns include. Many of its rules differ from the published patterns of these
vocabularies: in `gpt-4o` and `tekken` letters other than `a` to `z` count as both cases, and marks
are not letters.

Without a name for a pattern, the rule that splits the most short texts in the same way is used.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from bytepair import _core
from bytepair.formats.pieces import CONTROL, NORMAL, USER_DEFINED
from bytepair.properties.tokens import splitter, unmade

_TABLE: Final = tomllib.loads(Path(__file__).with_name("llamacpp.toml").read_text("utf-8"))

#: The names of tokens at which llama.cpp stops, whatever their roles.
STOPS: Final = frozenset(_TABLE["stops"])

#: The names of tokens that llama.cpp finds in every text, whatever their type.
_IN_TEXTS: Final = frozenset(_TABLE["in_texts"])

#: The names of tokens to which llama.cpp gives another type than the file may.
RETYPED: Final = STOPS | _IN_TEXTS | set(_TABLE["fill_in"])


class SplitRule(NamedTuple):
    """A rule: its names and pattern, and whether pretokens that are tokens are not merged."""

    names: list[str]
    pattern: str | tuple[str, ...]
    ignores_merges: bool


def _rule(entry: dict[str, Any]) -> SplitRule:
    steps = tuple(_core.PATTERNS.get(step, step) for step in entry["patterns"])
    pattern = steps if len(steps) > 1 else steps[0]
    return SplitRule(entry["names"], pattern, entry.get("ignores_merges", False))


RULES: Final = [_rule(entry) for entry in _TABLE["rules"]]


def rule(name: str) -> SplitRule | None:
    """The rule of a name; None if the name is unknown."""
    return next((rule for rule in RULES if name in rule.names), None)


def usual_flags(model: Any, name: Any) -> list[str]:
    """The flags that llama.cpp sets for a tokenizer model and a name, if a file has no keys."""
    return ["add_bos_token"] if model == "llama" or name in _TABLE["add_bos_token"] else []


def kinds(names: Sequence[str], kinds: Sequence[int]) -> list[int]:
    """The types that llama.cpp gives to the tokens of a file, by their names."""
    here = set(names) & RETYPED
    if not here:
        return list(kinds)
    return [
        _kind(name, kind, here) if name in here else kind
        for name, kind in zip(names, kinds, strict=True)
    ]


def _kind(name: str, kind: int, here: set[str]) -> int:
    """The type of a token with one of the names of which llama.cpp knows better."""
    calls = not here.isdisjoint(("<|call|>", "<|calls|>"))
    by_call = {"<|return|>", "<|call|>"} <= here or ("<|flush|>" in here and calls)
    if name in _IN_TEXTS or (name == "<|end|>" and by_call):  # it ends a message, not the turn
        return USER_DEFINED
    if name == "</s>" and "<|tool_response>" in here:
        return NORMAL
    return CONTROL if kind in (NORMAL, USER_DEFINED) else kind


def lost_kinds(kinds_by_name: Mapping[str, int]) -> list[str]:
    """The tokens that llama.cpp takes for tokens of another type."""
    names = list(kinds_by_name)
    lost: dict[str, list[str]] = {}
    there = kinds(names, list(kinds_by_name.values()))
    for (name, kind), other in zip(kinds_by_name.items(), there, strict=True):
        if kind == NORMAL and name in RETYPED:
            what = "is ordinary text: llama.cpp takes it for a control token"
            lost.setdefault(what, []).append(name)
        elif kind != other:
            lost.setdefault(_TYPES[other], []).append(name)
    return [f"that {', '.join(map(repr, names))} {what}" for what, names in lost.items()]


#: The beginnings and ends of all names that are compared have fewer characters than this.
_MOST_CHARS: Final = 1 << 24


def lost_order(names: Iterable[str]) -> list[str]:
    """Two added tokens that may overlap in a text, of which llama.cpp finds the longer one.

    Example:
        >>> lost_order(["<a>", ">>>>"])
        ["that the first of '<a>' and '>>>>' is found where they overlap: llama.cpp finds the last"]
    """
    by_size = sorted(names, key=lambda name: len(name.encode()))
    if sum(len(name) ** 2 for name in by_size) >= _MOST_CHARS:
        return ["the order of added tokens, whose names are too long to be compared"]
    longest = {name[:end]: name for name in by_size for end in range(1, len(name))}
    for name in by_size:
        for start in range(1, len(name)):
            other = longest.get(name[start:], name)
            if other != name and len(other.encode()) >= len(name.encode()):
                what = "is found where they overlap: llama.cpp finds the last"
                return [f"that the first of {name!r} and {other!r} {what}"]
    return []


_TYPES: Final = {
    NORMAL: "is an added token: llama.cpp takes it for an ordinary one",
    CONTROL: "is found in every text: llama.cpp takes it for a control token",
    USER_DEFINED: "is found in no text unless asked for: llama.cpp finds it in every text",
}


#: Texts that show how a rule splits: all short ones of characters of every class, and runs of one.
_SYMBOLS: Final = (
    "a", "A", "'s", "1", "!", "/", " ", "\t", "\n", "\r", "é", "É", "中", "\u0301", "。", "😀",
)  # fmt: skip
_TEXTS: Final = [
    *("".join(parts) for length in (1, 2, 3) for parts in product(_SYMBOLS, repeat=length)),
    *(symbol * length for symbol in _SYMBOLS for length in range(4, 9)),
]


@lru_cache(maxsize=16)
def nearest(tokenizer: _core.Tokenizer) -> SplitRule:
    """The rule of this tokenizer, or else the one that splits the most texts as it.

    Example:
        >>> tokens = {bytes([byte]): byte for byte in range(256)}
        >>> model = _core.Model.from_parts(tokens, _core.PATTERNS["nanochat"], {})
        >>> nearest(_core.Tokenizer(model)).names[0]
        'llama-bpe'
    """
    for one in RULES:
        if one.pattern == tokenizer.pattern and _fits(tokenizer, one.ignores_merges):
            return one
    patterns = {one.pattern for one in RULES}
    counts = {each: sum(1 for _ in _differing(tokenizer, each)) for each in patterns}
    fits = {ignore: _fits(tokenizer, ignore) for ignore in (True, False)}
    return min(RULES, key=lambda one: (counts[one.pattern], not fits[one.ignores_merges]))


def _differing(
    tokenizer: _core.Tokenizer, pattern: str | tuple[str, ...]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """The texts that a pattern splits in another way, with the pretokens of both."""
    other = splitter(pattern)
    for text in _TEXTS:
        here, there = _core.pretokenize(tokenizer, text), other.pretokenize(text)
        if here != there:
            yield text, here, there


@lru_cache(maxsize=16)
def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What llama.cpp does differently with the most similar rule."""
    (name, *_), pattern, ignores_merges = nearest(tokenizer)
    lost = []
    if pattern != tokenizer.pattern:
        every = {rule.pattern for rule in RULES}
        names = [name for name, regex in _core.PATTERNS.items() if regex in every]
        text, here, there = next(_differing(tokenizer, pattern), ("", [], []))
        how = f"becomes {' '.join(map(repr, there))}, not {' '.join(map(repr, here))}"
        lost.append(
            f"the split pattern: llama.cpp has no name for it (it supports "
            f"{', '.join(names)}); its rule {name!r} differs least: "
            + (f"{text!r} {how}" if text else "no difference on short texts")
        )
    if not _fits(tokenizer, ignores_merges):
        what = "does not merge" if ignores_merges else "merges"
        lost.append(f"the merging of pretokens that are tokens: {name!r} {what} them")
    return lost


def _fits(tokenizer: _core.Tokenizer, ignore: bool) -> bool:
    """Whether pretokens that are tokens are treated as in this tokenizer."""
    if tokenizer.merge_rule == "ranks":
        return ignore or not unmade(tokenizer)
    return ignore == _core.ignores_merges(tokenizer)
