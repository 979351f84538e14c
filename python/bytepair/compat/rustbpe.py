"""A wrapper with the API of rustbpe: `from bytepair.compat import rustbpe`.

Training learns the same merges. Three differences keep text from being lost: pretokens are counted
in 64 bits; text that the pattern does not match becomes pretokens of its own instead of being
dropped; and where rustbpe panics, a `ValueError` is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from bytepair import _core
from bytepair._internal.checks import check_many
from bytepair.errors import UnknownIdError, VocabularyError
from bytepair.tokenizer import Tokenizer as _Tokenizer
from bytepair.training.options import TrainSettings

__all__ = ["GPT4_PATTERN", "Tokenizer"]

#: The pattern of GPT-4 as rustbpe has it.
GPT4_PATTERN: Final = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)


class Tokenizer:
    """A tokenizer that is empty until it is trained, as rustbpe's is.

    Example:
        >>> from bytepair.compat import rustbpe
        >>> tokenizer = rustbpe.Tokenizer()
        >>> tokenizer.train_from_iterator(["hello hello"], vocab_size=258)
        >>> tokenizer.encode("hello"), tokenizer.vocab_size
        ([257, 108, 111], 258)
    """

    def __init__(self) -> None:
        self._pattern = ""  # until it is trained
        bytes_alone = {bytes([byte]): byte for byte in range(256)}
        self._tokenizer = _Tokenizer.from_ranks(bytes_alone, pattern=GPT4_PATTERN)

    def train_from_iterator(
        self,
        iterator: Iterable[str],
        vocab_size: int,
        buffer_size: int = 8192,
        pattern: str | Sequence[str] | None = None,
    ) -> None:
        """Train on texts, `buffer_size` of them at a time."""
        if vocab_size < 256:
            raise VocabularyError(f"vocab_size is {vocab_size}; it must be at least 256")
        if buffer_size < 1:
            raise ValueError(f"buffer_size is {buffer_size}; it must be at least 1")
        self._pattern = GPT4_PATTERN if pattern is None else _core.pattern(pattern)
        counter = _core.Counter(self._pattern)
        texts = iter(check_many("iterator", iterator))
        while batch := list(islice(texts, buffer_size)):
            counter.add(batch)
        options = TrainSettings(vocab_size=vocab_size, special_tokens=())
        self._tokenizer = _Tokenizer(_core.train(counter.finish(), options))

    def get_pattern(self) -> str:
        """The split pattern; empty before training."""
        return self._pattern

    @property
    def vocab_size(self) -> int:
        """The 256 bytes and the merges."""
        return self._tokenizer.vocab_size

    def get_mergeable_ranks(self) -> list[tuple[bytes, int]]:
        """The bytes of each token and its rank, in order of rank."""
        return list(self._tokenizer.mergeable_ranks().items())

    def encode(self, text: str) -> list[int]:
        """Encode a text; before training there are no ids."""
        return self._tokenizer.encode(text) if self._pattern else []

    def batch_encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts on all threads."""
        return self._tokenizer.encode_batch(texts) if self._pattern else [[] for _ in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids; a ValueError if one is unknown or the bytes are not UTF-8."""
        try:
            return self._tokenizer.decode(ids, errors="strict")
        except UnknownIdError as error:
            raise UnknownIdError(f"Unknown token id: {error}") from None  # begins as rustbpe's

    def batch_decode(self, batch_ids: Sequence[Sequence[int]]) -> list[str]:
        """Decode many lists of ids."""
        return [self.decode(ids) for ids in batch_ids]
