"""The complete evaluation of one tokenizer, compared with others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bytepair._internal.checks import check_kind, refuse
from bytepair.corpus.sampling import Sample
from bytepair.errors import ArgumentError, NotFetchedError
from bytepair.evaluate.compression import Compression, compress
from bytepair.evaluate.languages import Language, by_language
from bytepair.evaluate.sizes import Sweep, compression_curve, sweep
from bytepair.evaluate.texts import declarations, samples
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
        raise ArgumentError(f"two tokenizers are named {name!r}", hint="pass another name")
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
