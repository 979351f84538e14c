"""The options of training, as one value.

`bytepair.train` takes the fields as keywords; the core takes a `TrainOptions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from bytepair._internal.checks import MOST, check_whole
from bytepair.errors import ArgumentError, VocabularyError
from bytepair.tokenizer.vocabulary import check_not_ordinary, in_order, reserved

#: The tie-breaking rules for pairs with equal counts; see `bytepair.reference.tie_break`.
Ties: TypeAlias = Literal["rustbpe", "hf", "first-seen", "bytes-max", "characters-max"]

#: The special tokens of nanochat, in the order of their ids.
NANOCHAT_SPECIAL_TOKENS: Final[tuple[str, ...]] = (
    "<|bos|>",
    "<|user_start|>",
    "<|user_end|>",
    "<|assistant_start|>",
    "<|assistant_end|>",
    "<|python_start|>",
    "<|python_end|>",
    "<|output_start|>",
    "<|output_end|>",
)


@dataclass(frozen=True)
class TrainOptions:
    """The options of training; `bytepair.train` documents them in detail.

    Attributes:
        vocab_size: the vocabulary size, including special tokens.
        special_tokens: the names of the special tokens, or "nanochat".
        reserved: the number of ids reserved for special tokens that are added later.
        padded_to: pad the vocabulary size to a multiple of this.
        initial_tokens: strings that are tokens whatever their count.
        ties: the tie-breaking rule for pairs with equal counts.
        min_count: the minimum count of a pair to be merged.
        max_token_bytes: the maximum length of a token in bytes.

    Example:
        >>> import bytepair
        >>> options = bytepair.TrainOptions(vocab_size=300, special_tokens=["<|bos|>"], reserved=2)
        >>> options.names
        ['<|bos|>', '<|reserved_0|>', '<|reserved_1|>']
    """

    vocab_size: int = 65536
    special_tokens: Sequence[str] | Literal["nanochat"] = "nanochat"
    reserved: int = 0
    padded_to: int = 1
    initial_tokens: Sequence[str] = ()
    ties: Ties = "rustbpe"
    min_count: int = 1
    max_token_bytes: int | None = None

    def __post_init__(self) -> None:
        """Check the values before the corpus is read."""
        for name in ("vocab_size", "reserved", "padded_to", "min_count", "max_token_bytes"):
            value = getattr(self, name)
            if value is not None or name != "max_token_bytes":
                object.__setattr__(self, name, check_whole(name, value, -MOST))
        names = self.special_tokens
        if isinstance(names, str) and names != "nanochat":
            raise ArgumentError(
                f"special_tokens is {names!r}",
                option="special_tokens",
                hint='pass "nanochat" or a list of names',
            )
        names = NANOCHAT_SPECIAL_TOKENS if isinstance(names, str) else names
        object.__setattr__(self, "special_tokens", in_order("special_tokens", names))
        object.__setattr__(self, "initial_tokens", in_order("initial_tokens", self.initial_tokens))
        check_not_ordinary(self.special_tokens, self.initial_tokens)
        for name, value, least in (
            ("reserved", self.reserved, 0), ("padded_to", self.padded_to, 1),
            ("min_count", self.min_count, 1), ("max_token_bytes", self.max_token_bytes, 2),
        ):  # fmt: skip
            if value is not None and value < least:
                why = {"min_count": " (merge every pair)",
                       "max_token_bytes": " (the shortest merged token)"}.get(name, "")  # fmt: skip
                raise ArgumentError(f"{name} is {value}", hint=f"pass at least {least}{why}")

    @property
    def names(self) -> list[str]:
        """The names of the special tokens, including the reserved ones."""
        return [*self.special_tokens, *reserved(self.reserved, self.special_tokens)]

    @property
    def smallest(self) -> int:
        """The size of a vocabulary without merges."""
        return 256 + len(self.special_tokens) + self.reserved

    def check_size(self) -> None:
        """Check that the vocabulary has room for the 256 bytes and the special tokens.

        Raises:
            VocabularyError: if it is too small.
        """
        if self.vocab_size < self.smallest:
            raise VocabularyError(
                (
                    f"vocab_size {self.vocab_size} is too small for the 256 bytes and the "
                    f"{self.smallest - 256} special tokens"
                ),
                option="vocab_size",
                hint=f"pass at least {self.smallest}",
            )
