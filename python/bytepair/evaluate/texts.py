"""The texts on which tokenizers are compared: those of the package, and the user's own.

The five samples are of five kinds of text, described in `texts/README.md`. The Universal
Declaration of Human Rights, in sixty languages, comes from `bytepair.sample`: a parallel text, so
the numbers of tokens are comparable across languages.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bytepair import sample
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import Errors
from bytepair.corpus.sampling import Sample
from bytepair.corpus.sampling import sample as sample_of
from bytepair.corpus.source import Source
from bytepair.errors import CorpusError

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
    source: Source | None = None,
    *,
    files: Source | None = None,
    texts: Iterable[str] | None = None,
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
        files: as in `bytepair.train`.
        texts: as in `bytepair.train`.
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
        source, files=files, texts=texts, column=column, max_chars=max_chars,
        max_document_bytes=max_document_bytes, errors=errors,
    )  # fmt: skip
    if not any(drawn):
        raise CorpusError("the source holds no text to evaluate on")
    return drawn
