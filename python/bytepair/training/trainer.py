"""Train a tokenizer on a source of text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from bytepair import _core
from bytepair._internal.progress import Bar, Callback
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.column import Errors
from bytepair.corpus.source import Source
from bytepair.corpus.splits import Split
from bytepair.errors import (
    ArgumentError,
    BytepairWarning,
    CorpusError,
    CountsError,
    ExhaustedWarning,
    warn,
)
from bytepair.tokenizer import Tokenizer
from bytepair.tokenizer.vocabulary import padding
from bytepair.training.counting import ReadKeywords
from bytepair.training.counts import Counts
from bytepair.training.options import Ties, TrainOptions
from bytepair.training.parity import Parity, parity_counter
from bytepair.training.sources import (
    Groups,
    Shares,
    counter_of,
    mixture_counter,
    pattern_of,
    refuse_checkpoint,
    resolved_once,
)
from bytepair.training.superwords import NOTE, Superwords


def train(
    source: Source | Counts | Groups | None = None,
    vocab_size: int = 65536,
    *,
    mixture: Shares | None = None,
    parity: Parity | None = None,
    files: Source | None = None,
    texts: Iterable[str] | None = None,
    pattern: str | Sequence[str] | None = None,
    special_tokens: Sequence[str] | Literal["nanochat"] = "nanochat",
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
    checkpoint: str | os.PathLike[str] | None = None,
    max_document_bytes: int = DOCUMENT_BYTES,
    split: Split | None = None,
) -> Tokenizer:
    """Train a tokenizer.

    The text is streamed: only its distinct pretokens and their counts are held in memory. The
    result is exactly that of `bytepair.reference`, with any number of threads.

    Args:
        source: an iterable of `str`, one document each; the path of a text file (one document),
            of jsonl or parquet, optionally compressed as `.gz` or `.zst`, or of a folder of such
            files; a glob; a URL of remote storage; an iterable of `Path`; a table or column of
            pyarrow, polars, pandas or DuckDB; a data set of `datasets`; an iterable of mappings; or
            `Counts`, which determine the pattern. Texts that look like paths are an error. With
            `mixture` or `parity`, a mapping of names to such sources.
        mixture: the share of each source of a mapping in the bytes, by name, such as
            `{"english": 0.6, "code": 0.4}`; shares are normalized. The result is exact and does not
            depend on the order of sources: see `Counts.mixture`. `max_chars` then applies to each
            source.
        files: instead of a source, files: a path, a folder, a glob or a URL, or a list of these.
        texts: instead of a source, texts, even if they look like paths.
        vocab_size: the vocabulary size: the 256 bytes, the merges, the special tokens and the
            reserved ids.
        parity: train on a mapping of sources so that none compresses much worse than the others;
            see `bytepair.Parity`.
        pattern: the split pattern: a name in `bytepair.PATTERNS` or a regular expression; None
            means `nanochat`, or the pattern of the counts.
        special_tokens: the names of the special tokens, which get the ids after the last merge, in
            this order; "nanochat" (the default) means the nine of nanochat, () none.
        reserved: the number of ids reserved after them (`<|reserved_0|>`, ...) for special tokens
            that `Tokenizer.replace` adds later.
        padded_to: pad the vocabulary size with reserved ids to a multiple of this, such as 64, as
            models pad their embedding tables.
        initial_tokens: strings that are tokens whatever their count, each a single pretoken (with
            its leading space, if any). Their merges come first and count towards `vocab_size`.
        max_chars: stop after the document with which the total exceeds this many characters.
        doc_cap: read at most this many characters of each document.
        ties: the tie-breaking rule for pairs with equal counts: the rule of rustbpe or of Hugging
            Face, the first seen, the greatest bytes, or the greatest characters of GPT-2. "hf"
            gives the merges of Hugging Face, but not its ids: there special tokens come first, and
            bytes in another order. "characters-max" is the rule of parity-aware trainers.
        min_count: the minimum count of a pair to be merged.
        max_token_bytes: the maximum length of a token in bytes.
        superwords: learn tokens that span several words after the others, by these rules; None
            means none. The text is read twice, so a source must be iterable repeatedly.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
        progress: True for a bar, False for none, None for a bar on a terminal, or a function that
            is called with the stage ("count", "merge"), the amount done, and the total or None.
            The unit is bytes of text (with files, the total is estimated) or merges.
        column: the table column, or field of JSON and mappings, that contains the text.
        errors: as in `bytepair.count`.
        memory_limit: as in `bytepair.count`; it does not include the merges.
        checkpoint: as in `bytepair.count`: training interrupted while it counts is resumed. When
            all is counted, the file is what another `vocab_size` needs, without reading again. Not
            with `mixture`, `parity` or `superwords`, for which sources can be counted one by one.
        max_document_bytes: as in `bytepair.count`.
        split: as in `bytepair.count`: the validation split of a data set that has one is not read.

    Returns:
        The tokenizer. If the text has no more pairs before `vocab_size` is reached, an
        `ExhaustedWarning` is issued, and `notes["exhausted"]` of the result is "true".

    Raises:
        PatternError: if the pattern is neither a name nor a valid regular expression; the message
            suggests a similar name, or shows the invalid place in the expression.
        VocabularyError: if `vocab_size` is too small, or an initial token is not a pretoken.
        CorpusError: if the source cannot be read, or has no text to learn merges from, or a
            limit is below 1.
        CountsError: if counts have a different pattern than the given one, or options for reading
            text are given with counts.
        InUseError: as in `bytepair.count`.
        ArgumentError: if the names in `mixture` or `parity` differ from those of the sources, the
            source is not a mapping, or options are given that cannot be combined.
        TypeError: if the special or initial tokens are not ordered, or already have ids.
        ValueError: if `ties`, `min_count` or `threads` has an invalid value.

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
        "max_document_bytes": max_document_bytes, "split": split,
        "checkpoint": checkpoint,
    }  # fmt: skip
    if parity is not None:
        if mixture is not None or superwords is not None:
            other = "superwords" if mixture is None else "mixture"
            raise ArgumentError(f"{other} and parity cannot be combined", hint="pass one of them")
        counted_groups = parity_counter(source, parity, regex, **reading)
        with Bar(progress) as bar:
            tokenizer = _learnt(counted_groups(bar).learn, options, threads, bar)
            _report_end(tokenizer, options, bar)
        return _finished(tokenizer, options)
    second = None
    if superwords is not None:
        refuse_checkpoint(reading, "superwords")
        _check_source(source, [files, texts], superwords, regex)
        source, reading = resolved_once(source, reading)
        second = _Second(superwords, options, regex, _counter(source, mixture, reading))
    count = _counter(source, mixture, reading)(regex)
    with Bar(progress) as bar:
        counts = count(bar)
        # If there are no merges to learn, no text is needed: the 256 bytes are a tokenizer.
        if not counts.text_bytes and vocab_size > options.smallest:
            raise CorpusError(
                ("there is no text to train on: the source has no documents, or only empty ones"),
                hint="check the path and the column, or whether an iterator was already consumed",
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
    """Run a training function with a progress bar."""
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
    """Warn of what is not as requested, and pad the vocabulary size."""
    ranks = tokenizer.mergeable_ranks() if options.special_tokens else {}
    for name in options.special_tokens:
        if (id := ranks.get(name.encode())) is not None:
            warning = BytepairWarning(
                (
                    f"the special token {name!r} became an ordinary token (id {id}) as well, as "
                    "the text contains it"
                ),
                hint="choose a name that no text contains, such as <|name|>",
            )
            warn(warning)
    if tokenizer.notes.get("exhausted") == "true":
        warn(exhausted(tokenizer, options))
    if tokenizer.vocab_size % options.padded_to:
        special = padding(tokenizer, options.padded_to)
        tokenizer = Tokenizer(_core.with_special_tokens(tokenizer, special))
    return tokenizer


def _counter(
    source: Source | Counts | Groups | None,
    mixture: Shares | None,
    reading: ReadKeywords,
) -> Callable[[str | tuple[str, ...]], Callable[[Bar], Counts]]:
    """A factory of counting functions: given a pattern, a function that counts the source."""
    if mixture is None:
        return lambda regex: counter_of(source, regex, **reading)
    return lambda regex: mixture_counter(source, mixture, regex, **reading)


def _check_source(
    source: Any, named: list[Any], superwords: Superwords, words: str | tuple[str, ...]
) -> None:
    """Check before reading that the source can be counted with both patterns."""
    parts = source.values() if isinstance(source, Mapping) else [source]
    if any(isinstance(part, Counts) == (superwords.counts is None) for part in parts):
        raise CountsError(
            "superwords need counts with two patterns",
            option="superword_counts",
            hint=(
                "pass both as counts, the second as Superwords(counts=bytepair.count(..., "
                f"pattern={superwords.regex(words)!r})), or the text"
            ),
        )
    if any(isinstance(part, Iterator) for part in [*parts, *named]):
        raise CorpusError(
            "superwords read the text twice, but an iterator can be read only once",
            hint="pass a list, files, or an object whose __iter__ returns a new iterator",
        )


class _Second:
    """The second stage of training: superwords."""

    def __init__(
        self,
        superwords: Superwords,
        options: TrainOptions,
        words: str | tuple[str, ...],
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
        """Add the merges of the second stage to the tokenizer of the first."""
        counts, before = self._counted(bar), len(tokenizer.merges())
        whole = self.options.vocab_size - self.options.smallest
        model = _core.resume(
            tokenizer, counts.core, with_denominator(self.options, counts),
            superwords=self.superwords.limits, threads=threads,
            on_progress=lambda done, _: bar.update("merge", before + done, whole, "merges"),
        )  # fmt: skip
        note = {NOTE: self.superwords.note(before, self.words)}
        return Tokenizer(model).replace(notes=note)


def check(options: TrainOptions, regex: str | tuple[str, ...]) -> None:
    """Check the options before the corpus is read, by training on no text."""
    options.check_size()
    _core.train(_core.Counts.from_items([], regex), options)


def with_denominator(options: TrainOptions, counts: Counts) -> TrainOptions:
    """The options, with `min_count` in units of the counts' denominator."""
    return replace(options, min_count=options.min_count * counts.denominator)


def exhausted(tokenizer: Tokenizer, options: TrainOptions) -> ExhaustedWarning:
    """The warning that there are fewer ids than requested."""
    pairs, option, hint = "pairs to merge", "vocab_size", ""
    if options.min_count > 1:
        pairs += f" that occur at least {options.min_count:,} times (min_count)"
        option, hint = "min_count", "lower min_count, or "
    return ExhaustedWarning(
        f"the text has no more {pairs}: the vocabulary has {tokenizer.vocab_size:,} ids instead "
        f"of {options.vocab_size:,}",
        option=option,
        value=getattr(options, option),
        hint=f"{hint}train on more text, or pass a smaller vocab_size",
    )
