"""Loads the texts and tokenizers to compare, and counts the tokens that each needs.

The five samples are described in `texts/README.md`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Final

from bytepair import _core
from bytepair._internal.checks import check_kind, check_many, check_mapping, refuse
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import Errors
from bytepair.corpus.read import Sample
from bytepair.corpus.read import sample as sample_of
from bytepair.corpus.source import Reading, Source
from bytepair.errors import ArgumentError, CorpusError, NotFetchedError
from bytepair.tokenizer import Tokenizer, load

#: The tokenizers that others are compared with by default.
USUAL_RIVALS = ("gpt2", "cl100k_base", "o200k_base")

#: The kinds of sample text in the package, in display order.
KINDS: Final = ("news", "korean", "code", "mathematics", "science")


def samples() -> dict[str, str]:
    """The five sample texts, by kind.

    Example:
        >>> list(samples())
        ['news', 'korean', 'code', 'mathematics', 'science']
    """
    folder = Path(__file__).parent / "texts"
    return {kind: (folder / f"{kind}.txt").read_text(encoding="utf-8") for kind in KINDS}


def documents(
    source: Source,
    *,
    column: str = "text",
    max_chars: int | None = 10_000_000,
    max_document_bytes: int = DOCUMENT_BYTES,
    errors: Errors = "strict",
) -> Sample:
    """Read a source, or a seeded sample that is spread over all of its files.

    Files are read whatever their split, since nothing is trained on them. The result is a sequence
    of documents; `str` of it says how large the sample is, and `is_whole` whether it is all text.

    Args:
        source: as in `bytepair.train`.
        column: the table column or JSON field that contains the text.
        max_chars: the maximum number of characters; None means no limit.
        max_document_bytes: as in `bytepair.count`.
        errors: as in `bytepair.count`.

    Raises:
        CorpusError: if the source cannot be read, or has no text.

    Example:
        >>> print(documents(["one", "two"]))
        all 6 characters
    """
    reading = Reading(column, errors, max_chars, max_document_bytes=max_document_bytes)
    drawn = sample_of(source, reading)
    if not any(drawn):
        raise CorpusError("the source holds no text to evaluate on")
    return drawn


@dataclass(frozen=True)
class Compression:
    """How many tokens one text becomes.

    Attributes:
        text: what the text is.
        bytes: how long it is in UTF-8.
        tokens: how many tokens it becomes, by the name of the tokenizer.
    """

    text: str
    bytes: int
    tokens: dict[str, int]

    def ratio(self, name: str) -> float:
        """Bytes per token: more is better."""
        return self.bytes / self.tokens[name] if self.tokens[name] else 0.0

    def difference(self, ours: str, theirs: str) -> float:
        """How many more tokens ours needs, as a share of theirs: -0.1 is 10% fewer, 0.1 10% more.

        Example:
            >>> one = Compression("news", 100, {"ours": 27, "theirs": 30})
            >>> round(one.difference("ours", "theirs"), 3)
            -0.1
        """
        if not self.tokens[theirs]:
            return 0.0
        return self.tokens[ours] / self.tokens[theirs] - 1


def compress(
    tokenizers: Mapping[str, Tokenizer], texts: Mapping[str, str | Sequence[str]]
) -> list[Compression]:
    """Count the tokens of each text under each tokenizer.

    Args:
        tokenizers: the tokenizers, by name.
        texts: each a text, or a list of documents, by name.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> compress({"ours": tok}, {"greeting": "hello hello"})[0].ratio("ours")
        3.6666666666666665
    """
    for one in check_mapping("tokenizers", tokenizers, "pass {name: tokenizer}").values():
        check_kind("tokenizers", one, _core.Tokenizer)
    results = []
    for name, text in check_mapping("texts", texts, "pass {name: text}").items():
        documents = [text] if isinstance(text, str) else list(check_many(f"texts[{name!r}]", text))
        size = sum(len(document.encode()) for document in documents)
        tokens = {
            who: int(_core.count_batch(tokenizer, documents).sum())
            for who, tokenizer in tokenizers.items()
        }
        results.append(Compression(name, size, tokens))
    return results


def parallel(
    texts: Mapping[str, Source], *, column: str = "text", errors: Errors = "strict"
) -> dict[str, list[str]]:
    """Read a text that says the same in each language, line by line.

    So its tokens are comparable across languages: `compress` counts them, `parity` shows them.

    Args:
        texts: the same text by language: sources as in `bytepair.train`. Each line of a document
            is a line of the text.
        column: the table column or JSON field that contains the text.
        errors: as in `bytepair.count`.

    Raises:
        CorpusError: if there is no text, or the numbers of lines differ.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["a cat, a cat"], 269)
        >>> lines = parallel({"en": ["a cat"], "de": ["ein Kater"]})
        >>> {one.text: one.tokens["ours"] for one in compress({"ours": tok}, lines)}
        {'en': 2, 'de': 8}
    """
    lines = {
        key: _lines(documents(source, column=column, max_chars=None, errors=errors))
        for key, source in check_mapping("texts", texts, "pass {language: source}").items()
    }
    if not lines:
        raise CorpusError("there is no parallel text")
    first, *others = lines
    for other in others:
        if len(lines[other]) != len(lines[first]):
            raise CorpusError(
                f"a parallel text has the same lines in all languages: {first!r} has "
                f"{len(lines[first]):,}, and {other!r} has {len(lines[other]):,}"
            )
    return lines


def _lines(texts: Iterable[str]) -> list[str]:
    """The lines of documents; a final line end begins no further line."""
    return [
        line.removesuffix("\r") for text in texts for line in text.removesuffix("\n").split("\n")
    ]


def rivals_of(
    tokenizer: Tokenizer, name: str, against: Iterable[str] | Mapping[str, Tokenizer]
) -> tuple[dict[str, Tokenizer], dict[str, NotFetchedError]]:
    """A tokenizer and those that it is compared with, by name; and why others are missing."""
    if isinstance(against, Mapping):
        for rival in against.values():
            check_kind("against", rival, Tokenizer)
        rivals, missing = dict(against), dict[str, NotFetchedError]()
    else:
        rivals, missing = _loaded(against, name)
    if name in rivals:
        raise ArgumentError(
            f"two tokenizers are named {name!r}",
            option="name",
            value=name,
            hint="pass another name",
        )
    return {name: tokenizer, **rivals}, missing


def _loaded(
    against: Iterable[str], ours: str
) -> tuple[dict[str, Tokenizer], dict[str, NotFetchedError]]:
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
