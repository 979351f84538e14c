"""Everything about one tokenizer at once, beside others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bytepair.errors import NotFetchedError
from bytepair.evaluate.compression import Compression, compress
from bytepair.evaluate.languages import Language, by_language
from bytepair.evaluate.sizes import Sweep, sweep
from bytepair.evaluate.texts import declarations, samples
from bytepair.evaluate.vocabulary import Use, VocabularyReport, inspect, use
from bytepair.tokenizer import Tokenizer, load

#: What a tokenizer is compared with unless one says otherwise.
USUAL_RIVALS = ("gpt2", "cl100k_base", "o200k_base")


@dataclass(frozen=True)
class Subject:
    """A tokenizer, and those beside it.

    Attributes:
        tokenizers: the tokenizers by name; the first is the one that it is about.
        missing: why a tokenizer is not there, by its name.
    """

    tokenizers: dict[str, Tokenizer]
    missing: dict[str, str]

    @property
    def name(self) -> str:
        """The name of the tokenizer that it is about."""
        return next(iter(self.tokenizers))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that it is about."""
        return self.tokenizers[self.name]


@dataclass(frozen=True)
class Evaluation(Subject):
    """What `measure` found.

    Attributes:
        tokenizers: the tokenizers by name; the first is the one that it is about.
        missing: why a tokenizer is not there, by its name.
        compression: the tokens of each text under each tokenizer.
        languages: the sixty languages under the first tokenizer.
        parity: tokens relative to English, by tokenizer and language.
        vocabulary: what is in the first tokenizer's vocabulary.
        use: what the corpus makes of it.
        corpus: what this corpus is, in a few words.
        sweep: the bytes per token of every smaller size; None if it was not trained here.
    """

    compression: list[Compression]
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
        name: what to call it.
        against: what to compare it with: published names and paths, as `bytepair.load` takes them,
            or tokenizers by name. A published one that cannot be fetched is left out, and said to
            be.
        texts: documents of your own by name, such as "train" and "validation"; the last of these
            is also what use of the vocabulary is measured on, and the sweep. Without any, that is
            the sample texts and sixty languages.
        width: how many numbers the embedding of an id has, for what a vocabulary costs.

    Raises:
        FileNotFoundError: if a path in `against` holds no tokenizer.
        ValueError: if two tokenizers have the same name.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> rival = bytepair.train(["hello"], vocab_size=265)
        >>> found = measure(tok, against={"bytes": rival}, texts={"mine": ["What is it?"]})
        >>> found.compression[-1].text, found.compression[-1].tokens["bytes"]
        ('mine', 11)
    """
    own = {key: list(value) for key, value in (texts or {}).items()}
    tokenizers, missing = rivals_of(tokenizer, name, against)
    languages = {who: by_language(one) for who, one in tokenizers.items()}
    heldout = list(own.values())[-1] if own else []
    corpus = heldout or [*samples().values(), *declarations().values()]
    return Evaluation(
        tokenizers=tokenizers,
        missing=missing,
        compression=compress(tokenizers, {**samples(), **own}),
        languages=languages[name],
        parity={who: {one.code: one.parity for one in found} for who, found in languages.items()},
        vocabulary=inspect(tokenizer),
        use=use(tokenizer, corpus),
        corpus=list(own)[-1] if own else "the sample texts and sixty languages",
        sweep=sweep(tokenizer, heldout, width=width)
        if tokenizer.compression_curve().size
        else None,
    )


def rivals_of(
    tokenizer: Tokenizer, name: str, against: Iterable[str] | Mapping[str, Tokenizer]
) -> tuple[dict[str, Tokenizer], dict[str, str]]:
    """A tokenizer and those beside it, by name; and why others are missing.

    Args:
        tokenizer: the tokenizer, which comes first.
        name: what to call it.
        against: as in `measure`.

    Raises:
        FileNotFoundError: if a path in `against` holds no tokenizer.
        ValueError: if two tokenizers have the same name.
    """
    tokenizers, missing = _rivals(against, name)
    if name in tokenizers:
        raise ValueError(f"two tokenizers are named {name!r}; pass another name")
    return {name: tokenizer, **tokenizers}, missing


def _rivals(
    against: Iterable[str] | Mapping[str, Tokenizer], ours: str
) -> tuple[dict[str, Tokenizer], dict[str, str]]:
    if isinstance(against, Mapping):
        return dict(against), {}
    found: dict[str, Tokenizer] = {}
    missing: dict[str, str] = {}
    for rival in against:
        name = Path(rival).resolve().name if Path(rival).exists() else rival
        try:
            found[rival if name in {ours, *found} else name] = load(rival)
        except NotFetchedError as error:
            missing[name] = str(error)
    return found, missing
