"""Tokens that cross spaces: what is learnt after the usual merges, and under which rules.

SuperBPE (Liu et al., arXiv 2503.13423) trains in two stages. The first is the usual training, whose
pattern splits at spaces. The second goes on from there under a coarser pattern, and learns tokens
of several words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from bytepair import _core
from bytepair.errors import ArgumentError, CountsError, VocabularyError
from bytepair.tokenizer.special import in_order

if TYPE_CHECKING:
    from bytepair.training.counts import Counts

#: The note of a tokenizer that says how its superwords were learnt.
NOTE: Final = "superwords"

#: Digits as the pattern of the words splits them.
_DIGITS: Final = re.compile(r"(?:^|\|)(?: \?)?(\\p\{N\}(?:\{\d+,\d+\}|\+)?\+?)(?=\||$)")

#: A mark of punctuation, or a symbol.
_MARK: Final = r"[^\s\p{L}\p{M}\p{N}]"

#: After the digits: two or more marks, line ends, indentation, and all other text up to there.
_LINE: Final = (
    rf" ?{_MARK}{{2,}}[\r\n/]*|\s*[\r\n]| +(?!\S)"
    rf"|(?:[\p{{L}}\p{{M}}]| ?{_MARK}(?!{_MARK})| (?=[\p{{L}}\p{{M}}\p{{N}}])|[^\S \r\n])+"
    r"(?:\s*[\r\n])?"
)


@dataclass(frozen=True)
class Superwords:
    r"""How tokens that cross spaces are learnt; `bytepair.train` takes it.

    Attributes:
        start: how many ids the first stage fills: a part of `vocab_size`, as a number between 0
            and 1, or their number. The merges of the first stage are those of a training for this
            many ids without superwords.
        pattern: the split pattern of the second stage, which is that of the tokenizer: the name of
            one of `bytepair.PATTERNS` or a regular expression. None means that of the authors, line
            by line and with marks of combining scripts taken for letters: lines, cut at digits (as
            the pattern of the first stage splits them), at two or more marks of punctuation in a
            row, and at indentation.
        max_words: the largest number of words in a token of the second stage; None means any.
        never: texts that no token of the second stage contains.
        counts: the counts of the text under `pattern`, if the text itself is not there: where the
            source of the training is `Counts`, these are the others that it needs.

    Raises:
        ArgumentError: if a number is out of its range, or a text of `never` is empty.

    Example:
        >>> import bytepair
        >>> texts = ["so it is", "so it was", "so it goes"]
        >>> tok = bytepair.train(texts, 269, superwords=bytepair.Superwords(start=268))
        >>> tok.token_bytes(258), tok.token_bytes(259), tok.encode("so it")
        (b' it', b'so it', [259])
    """

    start: float = 0.8
    pattern: str | None = None
    max_words: int | None = 4
    never: Sequence[str] = (": ",)
    counts: Counts | None = None

    def __post_init__(self) -> None:
        """Fail before the corpus is read."""
        object.__setattr__(self, "never", tuple(in_order("never", self.never)))
        if not self.start > 0 or (isinstance(self.start, float) and self.start > 1):
            raise ArgumentError(
                f"start is {self.start}; pass a part of the vocabulary between 0 and 1, such as "
                "0.8, or a number of ids"
            )
        if self.max_words is not None and self.max_words < 1:
            raise ArgumentError(f"max_words is {self.max_words}; pass at least 1, or None")
        if not all(self.never):
            raise ArgumentError("never has an empty text, which is in every token; leave it out")

    @property
    def limits(self) -> tuple[int | None, list[str]]:
        """What the core takes: the number of words, and what no token contains."""
        return self.max_words, list(self.never)

    def first_size(self, vocab_size: int, smallest: int) -> int:
        """How many ids the first stage fills.

        Args:
            vocab_size: how many ids there are in the end.
            smallest: how many there are without a merge.

        Raises:
            VocabularyError: if the first stage has no room for them, or more than the whole.
        """
        size = int(self.start * vocab_size) if isinstance(self.start, float) else self.start
        if not smallest <= size <= vocab_size:
            raise VocabularyError(
                f"the superwords begin at {size} ids, which is not between {smallest}, without a "
                f"merge, and vocab_size {vocab_size}; choose another start"
            )
        return size

    def regex(self, words: str) -> str:
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
            return _core.pattern(self.pattern)
        found = _DIGITS.search(words)
        digits = r"\p{N}{1,3}" if found is None else found.group(1)
        return f"{digits}|{_LINE}"

    def note(self, merges: int, words: str) -> str:
        """What a tokenizer notes: with it, it can be resumed and verified.

        Args:
            merges: how many merges the first stage made.
            words: its pattern.
        """
        said = {"merges": merges, "pattern": words, "max_words": self.max_words}
        return json.dumps({**said, "never": list(self.never)})


@dataclass(frozen=True)
class Stages:
    """How the superwords of a tokenizer were learnt, as it notes it.

    Attributes:
        merges: how many merges the first stage made.
        pattern: the split pattern of the first stage.
        limits: what the core takes: the number of words, and what no token contains.
    """

    merges: int
    pattern: str
    limits: tuple[int | None, list[str]]

    @classmethod
    def of(cls, tokenizer: _core.Tokenizer) -> Self | None:
        """Those of a tokenizer; None if it has no superwords.

        Raises:
            CountsError: if its note is damaged.
        """
        said = tokenizer.notes.get(NOTE)
        if said is None:
            return None
        try:
            values: dict[str, Any] = json.loads(said)
            merges, pattern = values["merges"], values["pattern"]
            limits = (values["max_words"], list(values["never"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CountsError(f"the note {NOTE!r} of the tokenizer is damaged: {error}") from None
        return cls(merges, pattern, limits)
