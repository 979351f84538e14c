"""The complete evaluation of one tokenizer, compared with others; and that of a parallel text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path

from bytepair._internal.checks import check_kind, check_many, refuse
from bytepair.corpus.column import Errors
from bytepair.corpus.sampling import Sample
from bytepair.corpus.source import Source
from bytepair.errors import ArgumentError, CorpusError, NotFetchedError
from bytepair.evaluate.sizes import Sweep, compression_curve, sweep
from bytepair.evaluate.texts import (
    Compression,
    Language,
    by_language,
    compress,
    declarations,
    documents,
    samples,
)
from bytepair.evaluate.vocabulary import Use, VocabularyReport, inspect, use
from bytepair.tokenizer import Tokenizer, load

#: The tokenizers that others are compared with by default.
USUAL_RIVALS = ("gpt2", "cl100k_base", "o200k_base")


@dataclass(frozen=True)
class Subject:
    """A tokenizer, and those that it is compared with.

    Attributes:
        tokenizers: the tokenizers by name; the first is the evaluated one.
        missing: the names of missing tokenizers, and the reason for each.
    """

    tokenizers: dict[str, Tokenizer]
    missing: dict[str, NotFetchedError]

    @property
    def name(self) -> str:
        """The name of the evaluated tokenizer."""
        return next(iter(self.tokenizers))

    @property
    def tokenizer(self) -> Tokenizer:
        """The evaluated tokenizer."""
        return self.tokenizers[self.name]

    def label(self, who: str) -> str:
        """A tokenizer's name with its size, since only equal sizes compare fairly."""
        return f"{who} ({self.tokenizers[who].vocab_size:,} ids)"


@dataclass(frozen=True)
class Evaluation(Subject):
    """The result of `measure`.

    Attributes:
        tokenizers: the tokenizers by name; the first is the evaluated one.
        missing: the names of missing tokenizers, and the reason for each.
        compression: the number of tokens of each text with each tokenizer.
        overall: the same for the text on which sizes are compared: the last of the caller's texts,
            or all sample texts together.
        languages: the sixty languages with the first tokenizer.
        parity: tokens relative to English, by tokenizer and language.
        vocabulary: the kinds of tokens of the first tokenizer.
        use: how the corpus uses the vocabulary.
        corpus: a short description of this corpus.
        sweep: the bytes per token of every smaller vocabulary size; None if it was not trained by
            bytepair.
    """

    compression: list[Compression]
    overall: Compression
    languages: list[Language]
    parity: dict[str, dict[str, float]]
    vocabulary: VocabularyReport
    use: Use
    corpus: str
    sweep: Sweep | None


def measure(
    tokenizer: Tokenizer,
    *,
    name: str = "ours",
    against: Iterable[str] | Mapping[str, Tokenizer] = USUAL_RIVALS,
    texts: Mapping[str, Sequence[str]] | None = None,
    width: int = 768,
) -> Evaluation:
    """Evaluate a tokenizer.

    Args:
        tokenizer: the tokenizer.
        name: its name in the results.
        against: what to compare it with: published names and paths, as for `bytepair.load`, or
            tokenizers by name. A published one that cannot be downloaded is reported as missing.
        texts: your own documents by name, such as "train" and "validation". The last of these also
            measures the use of the vocabulary and the sweep. Without any, use is measured on the
            sample texts and sixty languages, and the sweep on the sample texts.
        width: the number of values in the embedding of an id, for the cost of the vocabulary.

    Raises:
        NotFoundError: if a path in `against` has no tokenizer.
        ValueError: if two tokenizers have the same name.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> rival = bytepair.train(["hello"], vocab_size=265)
        >>> evaluation = measure(tok, against={"bytes": rival}, texts={"mine": ["What is it?"]})
        >>> evaluation.compression[-1].text, evaluation.compression[-1].tokens["bytes"]
        ('mine', 11)
    """
    for key, value in (texts or {}).items():
        check_many(f"texts[{key!r}]", value)
    own = {key: list(value) for key, value in (texts or {}).items()}
    samples_drawn = {
        key: f"{key}: {value}"
        for key, value in (texts or {}).items()
        if isinstance(value, Sample) and not value.is_whole
    }
    tokenizers, missing = rivals_of(tokenizer, name, against)
    languages = {who: by_language(one) for who, one in tokenizers.items()}
    heldout = list(own.values())[-1] if own else []
    corpus = heldout or [*samples().values(), *declarations().values()]
    sized = {list(own)[-1]: heldout} if heldout else {"the sample texts": [*samples().values()]}
    [overall] = compress(tokenizers, sized)
    return Evaluation(
        tokenizers=tokenizers,
        missing=missing,
        compression=compress(tokenizers, {**samples(), **own}),
        overall=overall,
        languages=languages[name],
        parity={
            who: {one.code: one.parity for one in results} for who, results in languages.items()
        },
        vocabulary=inspect(tokenizer),
        use=use(tokenizer, corpus),
        corpus=samples_drawn.get(last := list(own)[-1], last)
        if heldout
        else "the sample texts and sixty languages",
        sweep=sweep(tokenizer, sized[overall.text], width=width)
        if compression_curve(tokenizer).size
        else None,
    )


def rivals_of(
    tokenizer: Tokenizer, name: str, against: Iterable[str] | Mapping[str, Tokenizer]
) -> tuple[dict[str, Tokenizer], dict[str, NotFetchedError]]:
    """A tokenizer and those that it is compared with, by name; and why others are missing.

    Args:
        tokenizer: the tokenizer, which comes first.
        name: its name in the results.
        against: as in `measure`.

    Raises:
        NotFoundError: if a path in `against` has no tokenizer.
        ValueError: if two tokenizers have the same name.
    """
    tokenizers, missing = _rivals(against, name)
    if name in tokenizers:
        raise ArgumentError(
            f"two tokenizers are named {name!r}",
            option="name",
            value=name,
            hint="pass another name",
        )
    return {name: tokenizer, **tokenizers}, missing


def _rivals(
    against: Iterable[str] | Mapping[str, Tokenizer], ours: str
) -> tuple[dict[str, Tokenizer], dict[str, NotFetchedError]]:
    if isinstance(against, Mapping):
        for rival in against.values():
            check_kind("against", rival, Tokenizer)
        return dict(against), {}
    rivals: dict[str, Tokenizer] = {}
    missing: dict[str, NotFetchedError] = {}
    for rival in against:
        if not isinstance(rival, str | os.PathLike):
            raise refuse("against", against, "names or paths of tokenizers, or a mapping of them")
        name = Path(rival).resolve().name if Path(rival).exists() else rival
        try:
            rivals[rival if name in {ours, *rivals} else name] = load(rival)
        except NotFetchedError as error:
            missing[name] = error
    return rivals, missing


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


def _lines(texts: Iterable[str]) -> list[str]:
    """The lines of documents; a final line end begins no further line."""
    return [
        line.removesuffix("\r") for text in texts for line in text.removesuffix("\n").split("\n")
    ]
