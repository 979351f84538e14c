"""A parallel text of one's own in, what the same content costs in each language out.

The text is one source a language, line by line: line 7 of each says the same. The lines are encoded
one by one, so the ends of lines count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bytepair.corpus.source import Source
from bytepair.errors import CorpusError
from bytepair.evaluate.evaluation import USUAL_RIVALS, Subject, rivals_of
from bytepair.evaluate.texts import documents
from bytepair.tokenizer import Tokenizer


@dataclass(frozen=True)
class ParallelText(Subject):
    """What a parallel text costs.

    Attributes:
        tokenizers: the tokenizers by name; the first is the one that it is about.
        missing: why a tokenizer is not there, by its name.
        lines: how many lines each language has.
        bytes: how long the lines of a language are in UTF-8, by language.
        tokens: how many tokens they become, by tokenizer and language.
        base: the language to which others are compared, if not to the one that costs least.
    """

    lines: int
    bytes: dict[str, int]
    tokens: dict[str, dict[str, int]]
    base: str | None = None

    def ratio(self, who: str, language: str, to: str | None = None) -> float:
        """How many times as many tokens a language has as another, or as the best."""
        tokens = self.tokens[who]
        return tokens[language] / (min(tokens.values()) if to is None else tokens[to])

    def gini(self, who: str) -> float:
        """The Gini coefficient of the tokens: 0 if all languages have equally many."""
        return gini(self.tokens[who].values())


def gini(numbers: Iterable[float]) -> float:
    """The Gini coefficient: how unequal numbers are, from 0 (all equal) to nearly 1.

    It is half of the mean difference between two of them, over their mean.

    Example:
        >>> gini([3, 3, 3]), gini([0, 0, 0, 1])
        (0.0, 0.75)
    """
    ordered = sorted(numbers)
    count, total = len(ordered), sum(ordered)
    return sum((2 * i - count + 1) * n for i, n in enumerate(ordered)) / (count * total)


def measure_parallel(
    tokenizer: Tokenizer,
    texts: Mapping[str, Source],
    *,
    name: str = "ours",
    against: Iterable[str] | Mapping[str, Tokenizer] = USUAL_RIVALS,
    base: str | None = None,
    column: str = "text",
) -> ParallelText:
    """Encode a parallel text with a tokenizer, and with others.

    Args:
        tokenizer: the tokenizer.
        texts: the same text by language: sources as in `bytepair.train`. A document is a line, or
            as many as it has.
        name: what to call the tokenizer.
        against: as in `measure`.
        base: a language to compare with.
        column: the table column or JSON field that contains the text.

    Raises:
        CorpusError: if there is no text, or not the same number of lines, or no such base.
        FileNotFoundError: if a path in `against` holds no tokenizer.
        ValueError: if two tokenizers have the same name.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["a cat, a cat"], 269)
        >>> texts = {"en": ["a cat"], "de": ["ein Kater"]}
        >>> found = measure_parallel(tok, texts, against=[])
        >>> found.tokens["ours"], found.ratio("ours", "de")
        ({'en': 2, 'de': 8}, 4.0)
    """
    lines = {
        key: _lines(documents(source, column=column, max_chars=None))
        for key, source in texts.items()
    }
    if not lines or base not in {None, *lines}:
        raise CorpusError(
            f"there is no language {base!r} in the parallel text; it has {', '.join(lines)}"
        )
    first, *others = lines
    for other in others:
        if len(lines[other]) != len(lines[first]):
            raise CorpusError(
                f"a parallel text has the same lines in all languages: {first!r} has "
                f"{len(lines[first]):,}, and {other!r} has {len(lines[other]):,}"
            )
    tokenizers, missing = rivals_of(tokenizer, name, against)
    tokens = {
        who: {key: int(one.count_tokens_batch(text).sum()) for key, text in lines.items()}
        for who, one in tokenizers.items()
    }
    sizes = {key: sum(len(line.encode()) for line in text) for key, text in lines.items()}
    return ParallelText(tokenizers, missing, len(lines[first]), sizes, tokens, base)


def _lines(texts: list[str]) -> list[str]:
    """The lines of documents; the end of the last line begins no other."""
    return [
        line.removesuffix("\r") for text in texts for line in text.removesuffix("\n").split("\n")
    ]
