"""Defines what all file formats share: names, losses, options, and how a tokenizer is built.

A reader converts a file to a tokenizer of the core, from which any other is written; so there is
one module per format instead of one per pair of formats. Values that the core checks when it builds
the tokenizer are not checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from bytepair import _core
from bytepair.errors import FormatError
from bytepair.properties.tokens import AddedToken

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


def build(
    tokens: Mapping[bytes, int],
    rules: Rules,
    added: Mapping[str, int] | list[AddedToken],
    merges: list[tuple[bytes, bytes]] | None = None,
    *,
    ignore_merges: bool = False,
    notes: dict[str, str] | None = None,
    may_be_ranks: bool = False,
    twins: Mapping[int, bytes] | None = None,
) -> _core.Model:
    """A tokenizer of the values in a file.

    Args:
        tokens: the bytes of each ordinary token and its id.
        rules: the rules of a text; usually a split pattern.
        added: the added tokens, or the names and ids of special ones.
        merges: the pairs to merge, in order; None means the rule "ranks".
        ignore_merges: whether a pretoken that is a token is not merged.
        notes: other content of the file.
        may_be_ranks: whether merges that provably give the same ids as the rule "ranks" are read as
            that rule.
        twins: with byte fallback, where merging starts with characters: tokens that have the bytes
            of another token, by id.

    Raises:
        VocabularyError: if the tokens, merges or special tokens are invalid.
        PatternError: if the pattern is not a regular expression.
    """
    model = _core.Model.from_parts(
        tokens, rules, added, merges=merges, ignore_merges=ignore_merges, twins=twins, notes=notes
    )
    if merges is None or twins is not None or not may_be_ranks:
        return model
    if not _core.is_rule_of_ranks(_core.Tokenizer(model), ignore_merges):
        return model
    return _core.Model.from_parts(tokens, rules, added, notes=notes)


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
