"""The complete evaluation of one tokenizer, compared with others: texts, languages, sizes, use.

The five sample texts are described in `texts/README.md`; the Universal Declaration of Human Rights,
in sixty languages, comes from `bytepair.sample`. Training records for each merge how many tokens it
saves, so one run determines the bytes per token of every smaller vocabulary.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core, sample
from bytepair._internal.checks import DOCUMENT_BYTES, check_kind, check_many, check_mapping, refuse
from bytepair._internal.drawing import brief
from bytepair.corpus.column import Errors
from bytepair.corpus.read import Sample
from bytepair.corpus.read import sample as sample_of
from bytepair.corpus.source import Reading, Source
from bytepair.errors import ArgumentError, CorpusError, NotFetchedError, VocabularyError
from bytepair.evaluate.vocabulary import Use, VocabularyReport, inspect, use
from bytepair.files.outputs import write_whole
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

    `source` is as in `bytepair.train`, and at most `max_chars` characters are drawn from it; the
    other arguments are those of `bytepair.Reading`. A source without text is an error.

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

    `texts` has the same text by language, from sources as in `bytepair.train`; `column` and
    `errors` are as in `bytepair.Reading`. Each line of a document is a line of the text, and all
    languages must have as many.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["a cat, a cat"], 269)
        >>> lines = parallel({"en": ["a cat"], "de": ["ein Kater"]})
        >>> {one.text: one.tokens["ours"] for one in compress({"ours": tok}, lines)}
        {'en': 2, 'de': 8}
    """
    lines: dict[str, list[str]] = {}
    for key, source in check_mapping("texts", texts, "pass {language: source}").items():
        read = documents(source, column=column, max_chars=None, errors=errors)
        of_all = (line for text in read for line in text.removesuffix("\n").split("\n"))
        lines[key] = [line.removesuffix("\r") for line in of_all]
    if not lines:
        raise CorpusError("there is no parallel text")
    first, *others = lines
    for other in others:
        if (number := len(lines[other])) != (of_first := len(lines[first])):
            what = f"{first!r} has {of_first:,}, and {other!r} has {number:,}"
            raise CorpusError(f"a parallel text has the same lines in all languages: {what}")
    return lines


def rivals_of(
    tokenizer: Tokenizer, name: str, against: Iterable[str] | Mapping[str, Tokenizer]
) -> tuple[dict[str, Tokenizer], dict[str, NotFetchedError]]:
    """A tokenizer and those that it is compared with, by name; and why others are missing."""
    rivals: dict[str, Tokenizer] = {}
    missing: dict[str, NotFetchedError] = {}
    if isinstance(against, Mapping):
        rivals = {who: check_kind("against", one, Tokenizer) for who, one in against.items()}
    for rival in () if isinstance(against, Mapping) else against:
        if not isinstance(rival, str | os.PathLike):
            raise refuse("against", against, "names or paths of tokenizers, or a mapping of them")
        short = Path(rival).resolve().name if Path(rival).exists() else rival
        try:
            rivals[rival if short in {name, *rivals} else short] = load(rival)
        except NotFetchedError as error:
            missing[short] = error
    if name in rivals:
        text = f"two tokenizers are named {name!r}"
        raise ArgumentError(text, option="name", value=name, hint="pass another name")
    return {name: tokenizer, **rivals}, missing


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


@dataclass(frozen=True)
class Evaluation:
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

    tokenizers: dict[str, Tokenizer]
    missing: dict[str, NotFetchedError]
    compression: list[Compression]
    overall: Compression
    languages: list[Language]
    parity: dict[str, dict[str, float]]
    vocabulary: VocabularyReport
    use: Use
    corpus: str
    sweep: Sweep | None

    __repr__ = brief

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
    check_kind("tokenizer", tokenizer, _core.Tokenizer, "pass the others as against=")
    texts = check_mapping("texts", texts or {}, "pass {name: documents}")
    own = {key: list(check_many(f"texts[{key!r}]", value)) for key, value in texts.items()}
    tokenizers, missing = rivals_of(tokenizer, name, against)
    languages = {who: by_language(one) for who, one in tokenizers.items()}
    parity = {who: {one.code: one.parity for one in of} for who, of in languages.items()}
    last, heldout = next(reversed(own.items()), ("the sample texts", []))
    corpus, used, swept = last, heldout, heldout
    if not heldout:
        corpus, swept = "the sample texts and sixty languages", [*samples().values()]
        used = [*swept, *declarations().values()]
    elif isinstance(drawn := texts[last], Sample) and not drawn.is_whole:
        corpus = f"{last}: {drawn}"
    sizes = None
    if compression_curve(tokenizer).size:
        sizes = sweep(tokenizer, swept, width=width)
    return Evaluation(
        tokenizers, missing, compress(tokenizers, {**samples(), **own}),
        compress(tokenizers, {last if heldout else "the sample texts": swept})[0],
        languages[name], parity, inspect(tokenizer), use(tokenizer, used), corpus, sizes,
    )  # fmt: skip


def declarations() -> dict[str, str]:
    """The declaration of human rights in sixty languages, by language code.

    Example:
        >>> declarations()["en"].splitlines()[0]
        'Universal Declaration of Human Rights'
    """
    paths = (path for path in sample.paths() if path.parent.name == "udhr")
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


LANGUAGES: Final[dict[str, str]] = {
    "am": "Amharic", "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan",
    "cs": "Czech", "cy": "Welsh", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "ga": "Irish", "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi",
    "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "ig": "Igbo", "is": "Icelandic",
    "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "km": "Khmer",
    "kn": "Kannada", "ko": "Korean", "lo": "Lao", "lt": "Lithuanian", "ml": "Malayalam",
    "mn": "Mongolian", "mr": "Marathi", "my": "Burmese", "nl": "Dutch", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "si": "Sinhala", "sk": "Slovak",
    "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu",
    "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "yo": "Yoruba", "zh-Hans": "Chinese, simplified",
    "zh-Hant": "Chinese, traditional", "zu": "Zulu",
}  # fmt: skip

#: Languages that are written without a mark between words.
UNSPACED: Final = frozenset({"ja", "km", "lo", "my", "th", "zh-Hans", "zh-Hant"})

_BETWEEN_WORDS = re.compile(r"[\s፡]+")  # U+1361, the word divider of Amharic


@dataclass(frozen=True)
class Language:
    """What the declaration costs in one language.

    Attributes:
        code: the language, as a BCP 47 tag.
        name: its name in English.
        bytes: how long the text is in UTF-8.
        characters: how long it is in code points.
        words: how many words it has; None if nothing divides them.
        tokens: how many tokens it becomes.
        parity: tokens relative to English.
    """

    code: str
    name: str
    bytes: int
    characters: int
    words: int | None
    tokens: int
    parity: float

    @property
    def bytes_per_token(self) -> float:
        """How many bytes a token stands for on average."""
        return self.bytes / self.tokens if self.tokens else 0.0

    @property
    def fertility(self) -> float | None:
        """Tokens per word, or None where nothing divides words."""
        return self.tokens / self.words if self.words else None


def by_language(tokenizer: Tokenizer) -> list[Language]:
    """Encode the declaration in each language; English first, then by parity.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
        >>> languages = by_language(tok)
        >>> len(languages), languages[0].name, languages[0].parity
        (60, 'English', 1.0)
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer)
    texts = declarations()
    tokens = dict(zip(texts, _core.count_batch(tokenizer, texts.values()).tolist(), strict=True))
    languages = []
    for code, text in texts.items():
        words = None if code in UNSPACED else sum(map(bool, _BETWEEN_WORDS.split(text)))
        sizes = len(text.encode()), len(text), words, tokens[code]
        parity = tokens[code] / max(tokens["en"], 1)  # a normalizer may leave nothing
        languages.append(Language(code, LANGUAGES[code], *sizes, parity))
    return sorted(languages, key=lambda one: (one.code != "en", one.parity, one.code))


@dataclass(frozen=True)
class Sweep:
    """The bytes per token of every vocabulary size.

    Attributes:
        sizes: the sizes, in ids, special tokens included.
        tokens: the number of tokens of the training text at each size.
        text_bytes: the number of bytes of the training text in UTF-8.
        width: the number of values in the embedding of an id.
        heldout: the bytes per token of other text, at some of the sizes.
    """

    sizes: NDArray[np.int64]
    tokens: NDArray[np.int64]
    text_bytes: int
    width: int
    heldout: dict[int, float] = field(default_factory=dict)

    __repr__ = brief

    @property
    def bytes_per_token(self) -> NDArray[np.float64]:
        """Bytes per token of the training text at each size."""
        return self.text_bytes / np.maximum(self.tokens, 1)

    @property
    def embedding_parameters(self) -> NDArray[np.int64]:
        """The number of values in one embedding table; models with untied embeddings have two."""
        return self.sizes * self.width

    @property
    def knee(self) -> int:
        """The size at which the curve is highest above the line between its ends."""
        x, y = self.sizes, self.bytes_per_token
        if len(x) < 3:
            return int(x[-1])
        line = y[0] + (x - x[0]) * (y[-1] - y[0]) / (x[-1] - x[0])
        return int(x[np.argmax(y - line)])

    def at(self, size: int) -> float:
        """Bytes per token of the training text at one size."""
        return float(self.bytes_per_token[np.searchsorted(self.sizes, size)])

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a CSV file with a header and one line per size; replace one only if asked."""
        columns = (self.sizes, self.tokens, self.bytes_per_token, self.embedding_parameters)
        lines = ["size,tokens,bytes_per_token,embedding_parameters"]
        lines += [f"{s},{t},{b:.6f},{e}" for s, t, b, e in zip(*columns, strict=True)]
        write_whole(Path(path), ("\n".join(lines) + "\n").encode(), overwrite=overwrite)


def compression_curve(tokenizer: Tokenizer) -> NDArray[np.uint64]:
    """The number of tokens of the training text before the first merge and after each merge.

    uint64, one more than merges; empty if the tokenizer was not created by training. The number
    of bytes of the text, divided by these, is the bytes per token of each smaller vocabulary. With
    superwords, the tokens of the first stage that the second pattern splits are not counted as
    split: 102 of 868,440 tokens of the sample texts.

    Example:
        >>> import bytepair
        >>> compression_curve(bytepair.train(["hello hello"], 269)).tolist()
        [11, 9, 7, 5, 3]
    """
    size = check_kind("tokenizer", tokenizer, _core.Tokenizer).notes.get("text_bytes", "")
    counts = _core.merge_counts(tokenizer)
    is_known = re.fullmatch("[0-9]{1,18}", size)  # the note may be from a stranger's file
    if not is_known or len(counts) != len(tokenizer.merges()):
        return np.empty(0, np.uint64)
    fallen = np.concatenate([np.zeros(1, np.uint64), np.cumsum(counts, dtype=np.uint64)])
    return np.uint64(int(size)) - fallen


def sweep(tokenizer: Tokenizer, heldout: Sequence[str] = (), *, width: int = 768) -> Sweep:
    """Read the curve of a training, and encode other text at twelve of its sizes, each halved.

    Args:
        tokenizer: a tokenizer trained by `bytepair.train`; any other is an error.
        heldout: documents that were not trained on, to see how well the vocabulary generalizes.
        width: the number of values in the embedding of an id.

    Example:
        >>> import bytepair
        >>> sizes = sweep(bytepair.train(bytepair.sample.paths(), vocab_size=1000))
        >>> sizes.sizes[0], sizes.sizes[-1], round(sizes.at(1000), 2)
        (np.int64(265), np.int64(1000), 2.04)
    """
    check_many("heldout", heldout)
    curve = compression_curve(tokenizer)
    if not curve.size:
        problem = "compression by size is known only for tokenizers that bytepair trained"
        raise VocabularyError(problem)
    smallest = tokenizer.vocab_size - (len(curve) - 1)
    sizes = np.arange(smallest, tokenizer.vocab_size + 1, dtype=np.int64)
    few = [s for n in range(12) if (s := tokenizer.vocab_size >> n) > smallest]
    size = sum(len(text.encode()) for text in heldout)
    measured = {
        s: size / max(int(_core.count_batch(tokenizer.replace(vocab_size=s), heldout).sum()), 1)
        for s in (reversed(few) if size else ())
    }
    return Sweep(sizes, curve.astype(np.int64), int(curve[0]), width, measured)
