"""A source of text in, a finished tokenizer out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from bytepair import _core, corpus
from bytepair.counting import Job, opened
from bytepair.counts import Counts
from bytepair.errors import CorpusError, CountsError, VocabularyError
from bytepair.progress import Bar, Callback
from bytepair.tokenizer import Tokenizer

#: Which of several pairs with the same count is merged first; see `bytepair.reference.tie_break`.
Ties: TypeAlias = Literal["rustbpe", "hf", "first-seen", "bytes-max"]

#: The special tokens of nanochat, in the order of their ids.
NANOCHAT_SPECIAL_TOKENS: Final[tuple[str, ...]] = (
    "<|bos|>",
    "<|user_start|>",
    "<|user_end|>",
    "<|assistant_start|>",
    "<|assistant_end|>",
    "<|python_start|>",
    "<|python_end|>",
    "<|output_start|>",
    "<|output_end|>",
)


class ExhaustedWarning(UserWarning):
    """Training ended early because the text has no more pairs to merge."""


def train(
    source: corpus.Source | Counts,
    vocab_size: int = 65536,
    *,
    pattern: str = "nanochat",
    special_tokens: Sequence[str] = NANOCHAT_SPECIAL_TOKENS,
    initial_tokens: Sequence[str] = (),
    max_chars: int | None = None,
    doc_cap: int | None = None,
    ties: Ties = "rustbpe",
    min_count: int = 1,
    max_token_bytes: int | None = None,
    threads: int | None = None,
    progress: bool | Callback | None = None,
    column: str = "text",
    errors: corpus.Errors = "strict",
    memory_limit: int | None = None,
) -> Tokenizer:
    """Train a tokenizer.

    The text streams through: only its distinct pretokens and their counts are held in memory. The
    result is exactly that of `bytepair.reference`, whatever the number of threads.

    Args:
        source: an iterable of `str`, one document each; a path or a list of paths to text files,
            jsonl or parquet, each also `.gz` or `.zst`; a folder of such files; a glob; a URL, as
            in `bytepair.documents`; Arrow data; or `Counts`, whose pattern is taken.
        vocab_size: how many ids the tokenizer has: the 256 bytes, the merges, the special tokens.
        pattern: the split pattern: a name of `bytepair.PATTERNS` or a regular expression.
        special_tokens: the names of the special tokens; they get the ids after the last merge.
        initial_tokens: words that shall be tokens whatever the text, each a single pretoken (a
            leading space counts). The merges that make them come first and count among the ids.
        max_chars: reading stops with the document that takes the total above so many characters.
        doc_cap: of each document, so many characters are read.
        ties: which of several pairs with the same count is merged first.
        min_count: pairs that occur fewer times than this are not merged.
        max_token_bytes: pairs whose token would be longer than this are not merged.
        threads: how many threads count and merge; None means `RAYON_NUM_THREADS`, or else all.
        progress: True for a bar, False for none, None for a bar on a terminal, or a function of
            the stage ("count", "merge"), what is done, and the total or None.
        column: the column of a table, or the field of a json object, that holds the text.
        errors: as in `bytepair.count`.
        memory_limit: as in `bytepair.count`; it holds while counting.

    Returns:
        The tokenizer. If the text ran out of pairs before `vocab_size`, there is an
        `ExhaustedWarning`, and `exhausted` of the result is True.

    Raises:
        PatternError: if the pattern is not a regular expression; the message shows where.
        VocabularyError: if `vocab_size` is too small, or an initial token is no pretoken.
        CorpusError: if the source cannot be read, or has no text to learn merges from, or a
            limit is below 1.
        ValueError: if `ties`, `min_count` or `threads` is none of the values above.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello hello world"], vocab_size=270)
        >>> tok.vocab_size, len(tok.merges), len(tok.special_tokens)
        (270, 5, 9)
    """
    for name, tokens in (("special_tokens", special_tokens), ("initial_tokens", initial_tokens)):
        if isinstance(tokens, str):
            raise TypeError(f"{name} is a str; pass a list of names")
    _check_size(vocab_size, special_tokens)
    if min_count < 1:
        raise ValueError(f"min_count is {min_count}; pass at least 1, which merges every pair")
    with Bar(progress) as bar:
        if isinstance(source, Counts):
            counts = _checked(source, pattern, limited=max_chars is not None or doc_cap is not None)
        else:
            limits = corpus.Limits(max_chars, doc_cap)
            source = opened(source, column)
            job = Job(source, pattern, limits, threads, column, errors, memory_limit)
            counts = job.run(bar).core
        # Without a merge to learn, no text is needed: the bytes alone are a tokenizer.
        if not counts.text_bytes and vocab_size > _smallest(special_tokens):
            raise CorpusError(
                "there is no text to train on: the source has no documents, or empty ones only; "
                "look at the path and the column, or whether an iterator was used up before"
            )
        model = _core.train(
            counts,
            vocab_size,
            list(special_tokens),
            initial_tokens=list(initial_tokens),
            ties=ties,
            min_count=min_count,
            max_token_bytes=max_token_bytes,
            threads=threads,
            on_progress=lambda done, total: bar.update("merge", done, total),
        )
    tokenizer = Tokenizer(model)
    if tokenizer.exhausted:
        warnings.warn(_exhausted(tokenizer, vocab_size), ExhaustedWarning, stacklevel=2)
    return tokenizer


def _smallest(special_tokens: Sequence[str]) -> int:
    """The size of a vocabulary without a merge."""
    return 256 + len(special_tokens)


def _check_size(vocab_size: int, special_tokens: Sequence[str]) -> None:
    """Fail before the corpus is read."""
    smallest = _smallest(special_tokens)
    if vocab_size < smallest:
        raise VocabularyError(
            f"vocab_size {vocab_size} is too small for the 256 bytes and the "
            f"{len(special_tokens)} special tokens; the smallest size is {smallest}"
        )


def _checked(counts: Counts, pattern: str, *, limited: bool) -> _core.Counts:
    """Counts bring their pattern, and their text has been read."""
    regex = _core.PATTERNS.get(pattern, pattern)
    if regex != counts.pattern and pattern != "nanochat":
        raise CountsError(
            f"the counts were made with the pattern {counts.pattern!r}, not {regex!r}"
        )
    if limited:
        raise CountsError("max_chars and doc_cap limit what is read; pass them to bytepair.count")
    return counts.core


def _exhausted(tokenizer: Tokenizer, vocab_size: int) -> str:
    return (
        f"the text has no more pairs to merge: the vocabulary has {tokenizer.vocab_size:,} ids "
        f"instead of {vocab_size:,}; train on more text, or ask for a smaller vocabulary"
    )
