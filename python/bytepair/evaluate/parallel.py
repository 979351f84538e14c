"""A parallel text in, the number of tokens of the same content in each language out.

The text has one source per language, with equal content line by line. Each line is encoded alone,
so line ends are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real

from bytepair._internal.checks import refuse
from bytepair.corpus.column import Errors
from bytepair.corpus.source import Source
from bytepair.errors import CorpusError, NotFetchedError  # noqa: F401 - a field of `Subject`
from bytepair.evaluate.evaluation import USUAL_RIVALS, Subject, rivals_of
from bytepair.evaluate.texts import documents
from bytepair.tokenizer import Tokenizer


@dataclass(frozen=True)
class ParallelText(Subject):
    """The number of tokens of a parallel text.

    Attributes:
        tokenizers: the tokenizers by name; the first is the evaluated one.
        missing: the names of missing tokenizers, and the reason for each.
        lines: the number of lines of each language.
        bytes: the number of bytes of UTF-8, by language.
        tokens: the number of tokens, by tokenizer and language.
        base: the language that others are compared with; None means the one with fewest tokens.
    """

    lines: int
    bytes: dict[str, int]
    tokens: dict[str, dict[str, int]]
    base: str | None = None

    def ratio(self, who: str, language: str, to: str | None = None) -> float:
        """The number of tokens of a language relative to another, or to the best."""
        tokens = self.tokens[who]
        return tokens[language] / (min(tokens.values()) if to is None else tokens[to])

    def gini(self, who: str) -> float:
        """The Gini coefficient of the tokens: 0 if all languages have the same number."""
        return gini(self.tokens[who].values())


def gini(numbers: Iterable[float]) -> float:
    """The Gini coefficient: how unequal numbers are, from 0 (all equal) to nearly 1.

    It is half of the mean difference between two numbers, divided by their mean.

    Example:
        >>> gini([3, 3, 3]), gini([0, 0, 0, 1])
        (0.0, 0.75)
    """
    ordered = list(numbers)
    if not all(isinstance(number, Real) for number in ordered):
        raise refuse("numbers", numbers, "an iterable of numbers")
    ordered.sort()
    count, total = len(ordered), sum(ordered)
    if not total:
        return 0.0
    return sum((2 * i - count + 1) * n for i, n in enumerate(ordered)) / (count * total)


def measure_parallel(
    tokenizer: Tokenizer,
    texts: Mapping[str, Source],
    *,
    name: str = "ours",
    against: Iterable[str] | Mapping[str, Tokenizer] = USUAL_RIVALS,
    base: str | None = None,
    column: str = "text",
    errors: Errors = "strict",
) -> ParallelText:
    """Encode a parallel text with a tokenizer, and with others.

    Args:
        tokenizer: the tokenizer.
        texts: the same text by language: sources as in `bytepair.train`. Each line of a document
            is a line of the text.
        name: the name of the tokenizer in the result.
        against: as in `measure`.
        base: the language to compare with.
        column: the table column or JSON field that contains the text.
        errors: as in `bytepair.count`.

    Raises:
        CorpusError: if there is no text, the numbers of lines differ, or `base` is not a language
            of the text.
        NotFoundError: if a path in `against` has no tokenizer.
        ValueError: if two tokenizers have the same name.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["a cat, a cat"], 269)
        >>> texts = {"en": ["a cat"], "de": ["ein Kater"]}
        >>> costs = measure_parallel(tok, texts, against=[])
        >>> costs.tokens["ours"], costs.ratio("ours", "de")
        ({'en': 2, 'de': 8}, 4.0)
    """
    lines = {
        key: _lines(documents(source, column=column, max_chars=None, errors=errors))
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
        who: {key: int(one.count_batch(text).sum()) for key, text in lines.items()}
        for who, one in tokenizers.items()
    }
    sizes = {key: sum(len(line.encode()) for line in text) for key, text in lines.items()}
    return ParallelText(tokenizers, missing, len(lines[first]), sizes, tokens, base)


def _lines(texts: list[str]) -> list[str]:
    """The lines of documents; a final line end begins no further line."""
    return [
        line.removesuffix("\r") for text in texts for line in text.removesuffix("\n").split("\n")
    ]
