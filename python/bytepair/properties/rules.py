"""What a tokenizer does to a text before and while it is split, in words and in parts."""

from __future__ import annotations

from functools import lru_cache

from bytepair import _core


def form(rules: _core.TextRules) -> str | None:
    """What the normalizer does: the names of its steps, or None without any.

    Example:
        >>> form(_core.TextRules("a", normalizer=["NFC"])), form(_core.TextRules("a"))
        ('NFC', None)
    """
    return ", ".join(rules.normalizer) or None


def ordinary(tokenizer: _core.Tokenizer) -> set[int]:
    """The ids of the added tokens that are not special: they are found in every text."""
    return {token.id for token in _core.added_tokens(tokenizer) if not token.special}


def strips(tokenizer: _core.Tokenizer) -> bool:
    """Whether an added token strips white space."""
    return any(token.lstrip or token.rstrip for token in _core.added_tokens(tokenizer))


def flags(tokenizer: _core.Tokenizer) -> dict[str, _core.AddedToken]:
    """The added tokens with their flags, by their names."""
    return {token.content: token for token in _core.added_tokens(tokenizer)}


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
    return ", then ".join(pattern or _core.text_rules(tokenizer).pre_tokenizer) or "not at all"


@lru_cache(maxsize=64)
def splitter(pattern: str | tuple[str, ...]) -> _core.Splitter:
    """The splitter of a pattern, compiled once."""
    return _core.Splitter(pattern)
