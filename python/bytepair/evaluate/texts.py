"""The texts that tokenizers are compared on: those shipped, and the user's own.

The five samples show five kinds of text; `texts/README.md` says what they are. The Universal
Declaration of Human Rights, in sixty languages, comes from `bytepair.sample`: a parallel text, so
numbers of tokens compare fairly between languages.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bytepair import sample
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import strings
from bytepair.corpus.read import read_batches
from bytepair.corpus.source import Limits, Source, resolve
from bytepair.errors import CorpusError

#: The kinds of text that are shipped, in the order in which they are shown.
KINDS: Final = ("news", "korean", "code", "mathematics", "science")


def samples() -> dict[str, str]:
    """The five sample texts, by what they are.

    Example:
        >>> list(samples())
        ['news', 'korean', 'code', 'mathematics', 'science']
    """
    folder = Path(__file__).parent / "texts"
    return {kind: (folder / f"{kind}.txt").read_text(encoding="utf-8") for kind in KINDS}


def declarations() -> dict[str, str]:
    """The declaration of human rights in sixty languages, by their codes.

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
) -> list[str]:
    """Read the first documents of a source.

    Args:
        source: as in `bytepair.train`.
        files: see there.
        texts: see there.
        column: the table column or JSON field that contains the text.
        max_chars: reading stops with the document that takes the total above this many characters;
            None reads all.
        max_document_bytes: as in `bytepair.count`.

    Raises:
        CorpusError: if the source cannot be read, or holds no text.

    Example:
        >>> documents(["one", "two"])
        ['one', 'two']
    """
    limits = Limits(max_chars)
    batches = read_batches(
        resolve(source, files=files, texts=texts), column=column, limits=limits,
        max_document_bytes=max_document_bytes,
    )  # fmt: skip
    found = [text for b in batches for text in strings(b)]
    if not any(found):
        raise CorpusError("the source holds no text to evaluate on")
    return found
