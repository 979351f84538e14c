"""The options of training: `TrainOptions` for what is seldom needed, `TrainSettings` for all."""

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


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of training that are seldom needed, passed to `bytepair.train` as `options`.

    Attributes:
        reserved: the number of ids reserved after the special tokens (`<|reserved_0|>`, ...) for
            special tokens that `Tokenizer.replace` adds later.
        padded_to: pad the vocabulary size with reserved ids to a multiple of this, such as 64, as
            models pad their embedding tables.
        initial_tokens: strings that are tokens whatever their count, each a single pretoken (with
            its leading space, if any). Their merges come first and count towards `vocab_size`.
        min_count: the minimum count of a pair to be merged.
        max_token_bytes: the maximum length of a token in bytes; None means no limit.

    Raises:
        ArgumentError: if a number is out of range.

    Example:
        >>> import bytepair
        >>> options = bytepair.TrainOptions(reserved=2, max_token_bytes=3)
        >>> tok = bytepair.train(["hello hello"], 261, special_tokens=(), options=options)
        >>> tok.vocab_size, list(tok.special_tokens)
        (261, ['<|reserved_0|>', '<|reserved_1|>'])
    """

    reserved: int = 0
    padded_to: int = 1
    initial_tokens: Sequence[str] = ()
    min_count: int = 1
    max_token_bytes: int | None = None

    def __post_init__(self) -> None:
        """Check the values before the corpus is read."""
        limits = {"reserved": 0, "padded_to": 1, "min_count": 1, "max_token_bytes": 2}
        for name, least in limits.items():
            value = getattr(self, name)
            if value is not None or name != "max_token_bytes":
                object.__setattr__(self, name, check_whole(name, value, least))
        object.__setattr__(self, "initial_tokens", in_order("initial_tokens", self.initial_tokens))


@dataclass(frozen=True, kw_only=True)
class TrainSettings(TrainOptions):
    """All options of training, as the core takes them.

    Attributes:
        vocab_size: the vocabulary size, including special tokens.
        special_tokens: the names of the special tokens, or "nanochat".
        ties: the tie-breaking rule for pairs with equal counts.

    Example:
        >>> settings = TrainSettings(vocab_size=300, special_tokens=["<|bos|>"], reserved=2)
        >>> settings.names
        ['<|bos|>', '<|reserved_0|>', '<|reserved_1|>']
    """

    vocab_size: int = 65536
    special_tokens: Sequence[str] | Literal["nanochat"] = "nanochat"
    ties: Ties = "rustbpe"

    def __post_init__(self) -> None:
        """Check the values before the corpus is read."""
        super().__post_init__()
        object.__setattr__(self, "vocab_size", check_whole("vocab_size", self.vocab_size, -MOST))
        names = self.special_tokens
        if isinstance(names, str) and names != "nanochat":
            raise ArgumentError(
                f"special_tokens is {names!r}",
                option="special_tokens",
                hint='pass "nanochat" or a list of names',
            )
        names = NANOCHAT_SPECIAL_TOKENS if isinstance(names, str) else names
        object.__setattr__(self, "special_tokens", in_order("special_tokens", names))
        check_not_ordinary(self.special_tokens, self.initial_tokens)

    @property
    def names(self) -> list[str]:
        """The names of the special tokens, including the reserved ones."""
        return [*self.special_tokens, *reserved(self.reserved, self.special_tokens)]

    @property
    def smallest(self) -> int:
        """The size of a vocabulary without merges."""
        return 256 + len(self.special_tokens) + self.reserved

    def check_size(self) -> None:
        """Check that the vocabulary has room for the 256 bytes and the special tokens."""
        if self.vocab_size < self.smallest:
            raise VocabularyError(
                f"vocab_size {self.vocab_size} is too small for the 256 bytes and the "
                f"{self.smallest - 256} special tokens",
                option="vocab_size",
                hint=f"pass at least {self.smallest}",
            )
