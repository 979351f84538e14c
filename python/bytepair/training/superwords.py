"""Superwords: tokens that span several words, and the rules for learning them.

SuperBPE (Liu et al., arXiv 2503.13423) trains in two stages. The first is ordinary training with a
pattern that splits at spaces. The second continues with a coarser pattern and learns tokens that
span several words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from bytepair import _core
from bytepair.errors import ArgumentError, CountsError, VocabularyError
from bytepair.tokenizer.vocabulary import in_order

if TYPE_CHECKING:
    from bytepair.training.counts import Counts

#: The note of a tokenizer that records how its superwords were learned.
NOTE: Final = "superwords"

#: The part of a split pattern that matches digits.
_DIGITS: Final = re.compile(r"(?:^|\|)(?: \?)?(\\p\{N\}(?:\{\d+,\d+\}|\+)?\+?)(?=\||$)")

#: A punctuation mark or symbol.
_MARK: Final = r"[^\s\p{L}\p{M}\p{N}]"

#: After the digits: two or more marks, line ends, indentation, and all other text up to there.
_LINE: Final = (
    rf" ?{_MARK}{{2,}}[\r\n/]*|\s*[\r\n]| +(?!\S)"
    rf"|(?:[\p{{L}}\p{{M}}]| ?{_MARK}(?!{_MARK})| (?=[\p{{L}}\p{{M}}\p{{N}}])|[^\S \r\n])+"
    r"(?:\s*[\r\n])?"
)


@dataclass(frozen=True)
class Superwords:
    r"""Learn tokens that span several words after the others, by these rules.

    The text is read twice, so a source must be iterable repeatedly.

    Attributes:
        start: the vocabulary size after the first stage: a fraction of `vocab_size` between 0 and
            1, or a number of ids. The merges of the first stage are those of training to this size
            without superwords.
        pattern: the split pattern of the second stage and of the resulting tokenizer: a name in
            `bytepair.PATTERNS` or a regular expression. None means the pattern of the SuperBPE
            authors, applied line by line and with combining marks treated as letters: it splits at
            line ends, at digits (as the pattern of the first stage does), at runs of two or more
            punctuation marks, and at indentation.
        max_words: the maximum number of words in a token of the second stage; None means no limit.
        never: strings that tokens of the second stage may not contain.
        counts: the counts of the text with `pattern`; required if the training source is `Counts`
            instead of text.

    Raises:
        ArgumentError: if a number is out of range, or a string in `never` is empty.

    Example:
        >>> import bytepair
        >>> texts = ["so it is", "so it was", "so it goes"]
        >>> tok = bytepair.train(texts, 269, recipe=bytepair.Superwords(start=268))
        >>> tok.token_bytes(258), tok.token_bytes(259), tok.encode("so it")
        (b' it', b'so it', [259])
    """

    start: float = 0.8
    pattern: str | Sequence[str] | None = None
    max_words: int | None = 4
    never: Sequence[str] = (": ",)
    counts: Counts | None = None

    def __post_init__(self) -> None:
        """Check the values before the corpus is read."""
        object.__setattr__(self, "never", tuple(in_order("never", self.never)))
        if not self.start > 0 or (isinstance(self.start, float) and self.start > 1):
            raise ArgumentError(
                f"start is {self.start}",
                hint=(
                    "pass a fraction of the vocabulary between 0 and 1, such as 0.8, or a number "
                    "of ids"
                ),
            )
        if self.max_words is not None and self.max_words < 1:
            raise ArgumentError(
                f"max_words is {self.max_words}",
                option="max_words",
                hint="pass at least 1, or None",
            )
        if not all(self.never):
            raise ArgumentError(
                "never contains an empty string, which is in every token", hint="remove it"
            )

    @property
    def limits(self) -> tuple[int | None, list[str]]:
        """The limits for the core: the maximum number of words, and the forbidden strings."""
        return self.max_words, list(self.never)

    def first_size(self, vocab_size: int, smallest: int) -> int:
        """The vocabulary size after the first stage.

        Args:
            vocab_size: the final vocabulary size.
            smallest: the vocabulary size without merges.

        Raises:
            VocabularyError: if the size is not between `smallest` and `vocab_size`.
        """
        size = int(self.start * vocab_size) if isinstance(self.start, float) else self.start
        if not smallest <= size <= vocab_size:
            raise VocabularyError(
                (
                    f"superwords start at {size} ids, which is not between {smallest} (no merges) "
                    f"and vocab_size {vocab_size}"
                ),
                option="vocab_size",
                hint="choose another start",
            )
        return size

    def regex(self, words: str | tuple[str, ...]) -> str:
        r"""The split pattern as a regular expression.

        Args:
            words: the regular expression of the first stage.

        Raises:
            PatternError: if the pattern is neither a name nor a regular expression.

        Example:
            >>> import bytepair
            >>> regex = bytepair.Superwords().regex(bytepair.PATTERNS["gpt4o"])
            >>> bytepair.pretokenize("It was 1984, and (so on)...\n  Yes", regex)
            ['It was ', '198', '4', ', and (so on', ')...\n', ' ', ' Yes']
        """
        if self.pattern is not None:
            return str(_core.pattern(self.pattern))
        match = _DIGITS.search(words if isinstance(words, str) else "|".join(words))
        digits = r"\p{N}{1,3}" if match is None else match.group(1)
        return f"{digits}|{_LINE}"

    def note(self, merges: int, words: str | tuple[str, ...]) -> str:
        """The note to store in a tokenizer, which is needed to resume and verify it.

        Args:
            merges: the number of merges of the first stage.
            words: the split pattern of the first stage.
        """
        values = {"merges": merges, "pattern": words, "max_words": self.max_words}
        return json.dumps({**values, "never": list(self.never)})


@dataclass(frozen=True)
class Stages:
    """How the superwords of a tokenizer were learned, according to its note.

    Attributes:
        merges: the number of merges of the first stage.
        pattern: the split pattern of the first stage.
        limits: the maximum number of words, and the forbidden strings.
    """

    merges: int
    pattern: str | tuple[str, ...]
    limits: tuple[int | None, list[str]]

    @classmethod
    def of(cls, tokenizer: _core.Tokenizer) -> Self | None:
        """Read the note of a tokenizer; None if it has no superwords.

        Raises:
            CountsError: if its note is damaged.
        """
        note = tokenizer.notes.get(NOTE)
        if note is None:
            return None
        try:
            values: dict[str, Any] = json.loads(note)
            merges, pattern = values["merges"], values["pattern"]
            limits = (values["max_words"], list(values["never"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CountsError(f"the note {NOTE!r} of the tokenizer is damaged: {error}") from None
        return cls(merges, pattern, limits)
