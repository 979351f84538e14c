"""A source of text in, a finished tokenizer out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bytepair import _core
from bytepair._internal.progress import Bar, Callback
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import Errors
from bytepair.corpus.source import Source
from bytepair.errors import ArgumentError, CorpusError, CountsError
from bytepair.tokenizer import Tokenizer
from bytepair.tokenizer.special import padding
from bytepair.training.counting import ReadKeywords
from bytepair.training.counts import Counts
from bytepair.training.options import Ties, TrainOptions
from bytepair.training.parity import Parity, parity_counter
from bytepair.training.sources import Groups, Shares, counter_of, mixture_counter, pattern_of
from bytepair.training.superwords import NOTE, Superwords


class ExhaustedWarning(UserWarning):
    """Training ended early because the text has no more pairs to merge."""


def train(
    source: Source | Counts | Groups | None = None,
    vocab_size: int = 65536,
    *,
    mixture: Shares | None = None,
    parity: Parity | None = None,
    files: Source | None = None,
    texts: Iterable[str] | None = None,
    pattern: str | None = None,
    special_tokens: Sequence[str] = "nanochat",
    reserved: int = 0,
    padded_to: int = 1,
    initial_tokens: Sequence[str] = (),
    max_chars: int | None = None,
    doc_cap: int | None = None,
    ties: Ties = "rustbpe",
    min_count: int = 1,
    max_token_bytes: int | None = None,
    superwords: Superwords | None = None,
    threads: int | None = None,
    progress: bool | Callback | None = None,
    column: str = "text",
    errors: Errors = "strict",
    memory_limit: int | None = None,
    max_document_bytes: int = DOCUMENT_BYTES,
) -> Tokenizer:
    """Train a tokenizer.

    The text streams through: only its distinct pretokens and their counts are held in memory. The
    result is exactly that of `bytepair.reference`, whatever the number of threads.

    Args:
        source: an iterable of `str`, one document each; the path of a text file (one document),
            of jsonl or parquet, each also `.gz` or `.zst`, or of a folder of such files; a glob; a
            URL of cloud storage; an iterable of `Path`; Arrow data; or `Counts`, whose pattern is
            taken. Texts that look like paths are an error. With `mixture` or `parity`, a mapping of
            names to such sources.
        mixture: the share of the bytes that each source of a mapping has, by its name, such as
            `{"english": 0.6, "code": 0.4}`; only the proportions count. Exact, and the order of
            sources does not matter: see `Counts.mixture`. `max_chars` is then that of each source.
        files: files by their names, in place of a source: a path, a folder, a glob or a URL, or a
            list of such.
        texts: texts, in place of a source, whatever they look like.
        vocab_size: how many ids the tokenizer has: the 256 bytes, the merges, the special tokens
            and what is reserved.
        parity: how the sources of a mapping take turns, so that none compresses much worse than
            others; see `bytepair.Parity`.
        pattern: the split pattern: a name of `bytepair.PATTERNS` or a regular expression; None
            means `nanochat`, or the pattern of the counts.
        special_tokens: the names of the special tokens, which get the ids after the last merge, in
            this order; "nanochat" (the default) means the nine of nanochat, () none.
        reserved: this many ids behind them are kept free for special tokens that
            `Tokenizer.with_special_tokens` adds later: `<|reserved_0|>`, ...
        padded_to: the number of ids is rounded up to a multiple of this, such as 64, with more
            reserved ids: models pad their embeddings.
        initial_tokens: words that shall be tokens whatever the text, each a single pretoken (a
            leading space counts). The merges that make them come first and count among the ids.
        max_chars: reading stops with the document that takes the total above this many characters.
        doc_cap: the number of characters of each document that are read.
        ties: which of several pairs with the same count is merged first: that of rustbpe or of
            Hugging Face, the first seen, that of the greatest bytes, or that of the greatest
            characters of GPT-2. "hf" gives the merges of Hugging Face, not its ids: there special
            tokens come first, and bytes in another order. "characters-max" is the rule of
            parity-aware trainers.
        min_count: pairs that occur fewer times than this are not merged.
        max_token_bytes: pairs whose token would be longer than this are not merged.
        superwords: how tokens that cross spaces are learnt after the others; None means not at
            all. They need the text twice, so an iterator must be one that begins anew.
        threads: how many threads count and merge; None means
            `BYTEPAIR_NUM_THREADS`, or else all.
        progress: True for a bar, False for none, None for a bar on a terminal, or a function of
            the stage ("count", "merge"), what is done, and the total or None: bytes of text, of
            which files let the total be estimated, and merges.
        column: the column of a table, or the field of a json object, that holds the text.
        errors: as in `bytepair.count`.
        memory_limit: as in `bytepair.count`; it holds while counting.
        max_document_bytes: as in `bytepair.count`.

    Returns:
        The tokenizer. If the text ran out of pairs before `vocab_size`, there is an
        `ExhaustedWarning`, and `exhausted` of the result is True.

    Raises:
        PatternError: if the pattern is neither a name nor a regular expression; the message says
            which name may be meant, or shows where the expression is wrong.
        VocabularyError: if `vocab_size` is too small, or an initial token is no pretoken.
        CorpusError: if the source cannot be read, or has no text to learn merges from, or a
            limit is below 1.
        CountsError: if counts have another pattern than the one that is asked for, or an option
            says how text is to be read and there are counts instead.
        ArgumentError: if `mixture` or `parity` does not name the sources, they have no names, or
            there are both.
        TypeError: if the special or initial tokens have no order, or have ids already.
        ValueError: if `ties`, `min_count` or `threads` is none of the values above.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello hello world"], vocab_size=270)
        >>> tok.vocab_size, len(tok.merges()), len(tok.special_tokens)
        (270, 5, 9)
    """
    options = TrainOptions(
        vocab_size, special_tokens, reserved, padded_to, initial_tokens, ties, min_count,
        max_token_bytes,
    )  # fmt: skip
    regex = pattern_of(source, pattern)
    check(options, regex)
    reading: ReadKeywords = {
        "files": files, "texts": texts, "max_chars": max_chars, "doc_cap": doc_cap,
        "threads": threads, "column": column, "errors": errors, "memory_limit": memory_limit,
        "max_document_bytes": max_document_bytes,
    }  # fmt: skip
    if parity is not None:
        if mixture is not None or superwords is not None:
            other = "superwords" if mixture is None else "mixture"
            raise ArgumentError(f"{other} and parity cannot be had together; pass one of them")
        counted_groups = parity_counter(source, parity, regex, **reading)
        with Bar(progress) as bar:
            tokenizer = _learnt(counted_groups(bar).learn, options, threads, bar)
            _report_end(tokenizer, options, bar)
        return _finished(tokenizer, options)
    second = None
    if superwords is not None:
        _check_source(source, [files, texts], superwords, regex)
        second = _Second(superwords, options, regex, _counter(source, mixture, reading))
    counted = _counter(source, mixture, reading)(regex)
    with Bar(progress) as bar:
        counts = counted(bar)
        # Without a merge to learn, no text is needed: the bytes alone are a tokenizer.
        if not counts.text_bytes and vocab_size > options.smallest:
            raise CorpusError(
                "there is no text to train on: the source has no documents, or empty ones only; "
                "look at the path and the column, or whether an iterator was used up before"
            )
        first = with_denominator(options if second is None else second.first, counts)
        tokenizer = _learnt(partial(_core.train, counts.core), first, threads, bar)
        if second is not None:
            tokenizer = second.learn(tokenizer, threads, bar)
        _report_end(tokenizer, options, bar)
    return _finished(tokenizer, options)


def _learnt(
    learn: Callable[..., _core.Model], options: TrainOptions, threads: int | None, bar: Bar
) -> Tokenizer:
    """What a function learns while a bar shows it."""
    return Tokenizer(
        learn(
            options, threads=threads,
            on_progress=lambda done, total: bar.update("merge", done, total, "merges"),
        )
    )  # fmt: skip


def _report_end(tokenizer: Tokenizer, options: TrainOptions, bar: Bar) -> None:
    learnt = tokenizer.vocab_size - options.smallest
    bar.update("merge", learnt, learnt, "merges")


def _finished(tokenizer: Tokenizer, options: TrainOptions) -> Tokenizer:
    """Warn if there are fewer ids than wanted, and round their number up."""
    if tokenizer.exhausted:
        warnings.warn(_exhausted(tokenizer, options), ExhaustedWarning, stacklevel=3)
    if tokenizer.vocab_size % options.padded_to:
        special = padding(tokenizer, options.padded_to)
        tokenizer = Tokenizer(_core.with_special_tokens(tokenizer, special))
    return tokenizer


def _counter(
    source: Source | Counts | Groups | None,
    mixture: Shares | None,
    reading: ReadKeywords,
) -> Callable[[str], Callable[[Bar], Counts]]:
    """What makes, for a pattern, what counts the text, or the mixture of the groups."""
    if mixture is None:
        return lambda regex: counter_of(source, regex, **reading)
    return lambda regex: mixture_counter(source, mixture, regex, **reading)


def _check_source(source: Any, named: list[Any], superwords: Superwords, words: str) -> None:
    """Fail before anything is read if the source cannot give both counts."""
    parts = source.values() if isinstance(source, Mapping) else [source]
    if any(isinstance(part, Counts) == (superwords.counts is None) for part in parts):
        raise CountsError(
            "superwords need counts under two patterns: pass both as counts, the second as "
            f"Superwords(counts=bytepair.count(..., pattern={superwords.regex(words)!r})), or pass "
            "the text"
        )
    if any(isinstance(part, Iterator) for part in [*parts, *named]):
        raise CorpusError(
            "superwords need the text twice, and an iterator gives it once; pass a list, files, or "
            "an object whose __iter__ begins anew"
        )


class _Second:
    """The second stage of a training: tokens that cross spaces."""

    def __init__(
        self,
        superwords: Superwords,
        options: TrainOptions,
        words: str,
        counter: Callable[[str], Callable[[Bar], Counts]],
    ) -> None:
        self.superwords, self.options, self.words = superwords, options, words
        size = superwords.first_size(options.vocab_size, options.smallest)
        #: The options of the first stage.
        self.first = replace(options, vocab_size=size, padded_to=1)
        regex, counts = superwords.regex(words), superwords.counts
        check(self.first, regex)
        self._counted = counter_of(counts, regex) if counts else counter(regex)

    def learn(self, tokenizer: Tokenizer, threads: int | None, bar: Bar) -> Tokenizer:
        """The tokenizer of the first stage with the merges of the second."""
        counts, before = self._counted(bar), len(tokenizer.merges())
        whole = self.options.vocab_size - self.options.smallest
        model = _core.resume(
            tokenizer, counts.core, with_denominator(self.options, counts),
            superwords=self.superwords.limits, threads=threads,
            on_progress=lambda done, _: bar.update("merge", before + done, whole, "merges"),
        )  # fmt: skip
        note = {NOTE: self.superwords.note(before, self.words)}
        return Tokenizer(model).with_notes(note)


def check(options: TrainOptions, regex: str) -> None:
    """Fail before the corpus is read: training on no text fails as it would on any."""
    options.check_size()
    _core.train(_core.Counts.from_items([], regex), options)


def with_denominator(options: TrainOptions, counts: Counts) -> TrainOptions:
    """The options in the unit of the counts."""
    return replace(options, min_count=options.min_count * counts.denominator)


def _exhausted(tokenizer: Tokenizer, options: TrainOptions) -> str:
    pairs, way_out = "", "train on more text, or ask for a smaller vocabulary"
    if options.min_count > 1:
        pairs = f" that occur {options.min_count:,} times (min_count)"
        way_out = f"lower min_count, {way_out}"
    return (
        f"the text has no more pairs to merge{pairs}: the vocabulary has "
        f"{tokenizer.vocab_size:,} ids instead of {options.vocab_size:,}; {way_out}"
    )
