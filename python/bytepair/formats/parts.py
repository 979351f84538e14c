"""Defines what all file formats share: names, losses, and `Parts`, the values between two formats.

A reader converts a file to `Parts`, from which the tokenizer is built; so there is one module per
format instead of one per pair of formats. Values that `bytepair._core` checks when it builds the
tokenizer are not checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from bytepair import _core
from bytepair.errors import FormatError

#: What a GGUF file begins with.
GGUF_MAGIC: Final = b"GGUF"

#: The formats that are written.
WrittenFormat: TypeAlias = Literal[
    "bytepair", "huggingface", "tiktoken", "gpt2", "nanochat", "llama2c", "qwen3", "gguf"
]


class Losses(list[str]):
    """The losses of writing a tokenizer in a format, one sentence each.

    Attributes:
        hint: what to do about them; may be empty.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 258, special_tokens=["<a>"])
        >>> print(bytepair.compat.export_losses(tok, "gguf").hint)
        give a special token this role with Tokenizer.replace(roles={"eos": ...})
    """

    def __init__(self, losses: Iterable[str] = (), hint: str = "") -> None:
        super().__init__(losses)
        self.hint = hint


#: The rules of a text, or the pattern that says the usual ones: a regular expression, or several of
#: which each splits the pieces of the previous one.
Rules: TypeAlias = str | tuple[str, ...] | _core.TextRules


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
        rules_and_added = (self.rules, self.added())
        if isinstance(tokens, _core.Model):
            return _core.with_notes(_core.Tokenizer(tokens), self.notes)
        if self.twins is not None:
            return _core.Model.from_characters(
                tokens, self.twins, merges or [], *rules_and_added, self.notes
            )
        if merges is not None:
            model = _core.Model.from_merges(tokens, merges, *rules_and_added, ignore, self.notes)
            by_merges = _core.Tokenizer(model)
            if not self.may_be_ranks or not _core.is_rule_of_ranks(by_merges, ignore):
                return model
        return _core.Model.from_ranks(tokens, *rules_and_added, self.notes)


@dataclass(frozen=True)
class LoadOptions:
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
                option="pattern",
                hint=f"pass pattern=, one of {', '.join(_core.PATTERNS)}, or a regular expression",
            )
        return self.pattern
