"""The texts on which tokenizers are compared, and the tokens that each needs for them.

The five samples are described in `texts/README.md`. The Universal Declaration of Human Rights, in
sixty languages, comes from `bytepair.sample`; it is a parallel text, so its tokens are comparable
across languages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bytepair import sample
from bytepair._internal.checks import check_many
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import Errors
from bytepair.corpus.sampling import Sample
from bytepair.corpus.sampling import sample as sample_of
from bytepair.corpus.source import Source
from bytepair.errors import CorpusError
from bytepair.tokenizer import Tokenizer

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


def declarations() -> dict[str, str]:
    """The declaration of human rights in sixty languages, by language code.

    Example:
        >>> declarations()["en"].splitlines()[0]
        'Universal Declaration of Human Rights'
    """
    paths = (path for path in sample.paths() if path.parent.name == "udhr")
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


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
    drawn = sample_of(
        source, column=column, max_chars=max_chars,
        max_document_bytes=max_document_bytes, errors=errors,
    )  # fmt: skip
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

    def in_words(self, ours: str, theirs: str) -> str:
        """How many more or fewer tokens ours needs, as people say it.

        Example:
            >>> Compression("news", 100, {"ours": 27, "theirs": 30}).in_words("ours", "theirs")
            '10.0% fewer'
        """
        share = self.difference(ours, theirs)
        return f"{abs(share):.1%} {'more' if share > 0 else 'fewer'}" if share else "as many"


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
    results = []
    for name, text in texts.items():
        documents = [text] if isinstance(text, str) else list(check_many(f"texts[{name!r}]", text))
        size = sum(len(document.encode()) for document in documents)
        tokens = {
            who: int(tokenizer.count_batch(documents).sum())
            for who, tokenizer in tokenizers.items()
        }
        results.append(Compression(name, size, tokens))
    return results


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
        return self.bytes / self.tokens

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
    texts = declarations()
    tokens = dict(zip(texts, tokenizer.count_batch(texts.values()).tolist(), strict=True))
    languages = [
        Language(
            code=code,
            name=LANGUAGES[code],
            bytes=len(text.encode()),
            characters=len(text),
            words=None if code in UNSPACED else sum(map(bool, _BETWEEN_WORDS.split(text))),
            tokens=tokens[code],
            parity=tokens[code] / tokens["en"],
        )
        for code, text in texts.items()
    ]
    return sorted(languages, key=lambda one: (one.code != "en", one.parity, one.code))
