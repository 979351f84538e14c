"""A tokenizer in, what it costs to say the same thing in sixty languages out.

The text is the Universal Declaration of Human Rights. `parity` is the number of tokens relative to
English: a language of parity 3 fills a model's context three times as fast. `fertility` is the
number of tokens per word, where words are what white space divides; languages that are written
without spaces have none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bytepair.evaluate.texts import declarations
from bytepair.tokenizer import Tokenizer

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
