"""Train a tokenizer on a source of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from bytepair import _core
from bytepair._internal.checks import check_kind
from bytepair._internal.progress import Bar, Callback
from bytepair.corpus.files import Files
from bytepair.corpus.source import Reading, Source, Texts, resolve
from bytepair.errors import BytepairWarning, CorpusError, CountsError, ExhaustedWarning, warn
from bytepair.tokenizer import Tokenizer
from bytepair.tokenizer.vocabulary import padding
from bytepair.training.counting import CountOptions
from bytepair.training.counts import Counts, check_names
from bytepair.training.options import (
    CheckedGroups,
    Groups,
    Ties,
    TrainOptions,
    TrainSettings,
    check_groups,
    count_groups,
    pattern_of,
    refuse_checkpoint,
)
from bytepair.training.recipes import (
    SUPERWORDS_NOTE,
    Mixture,
    Parity,
    Recipe,
    Superwords,
    check_development,
    divided,
    learn_parity,
)


def train(
    source: Source | Counts | Groups,
    vocab_size: int = 65536,
    *,
    pattern: str | Sequence[str] | None = None,
    special_tokens: Sequence[str] | Literal["nanochat"] = "nanochat",
    ties: Ties = "rustbpe",
    options: TrainOptions = TrainOptions(),
    reading: Reading = Reading(),
    recipe: Recipe | Sequence[Recipe] | None = None,
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Tokenizer:
    """Train a tokenizer.

    The text is streamed: only its distinct pretokens and their counts are held in memory. The
    result is exactly that of `bytepair.reference`, with any number of threads.

    Args:
        source: an iterable of `str`, one document each; the path of a text file (one document),
            of jsonl, parquet or Arrow IPC, or of a list in `.json`, optionally compressed as `.gz`
            or `.zst`, or of a folder of such files; a glob; a URL of remote storage; an iterable of
            `Path`; a table or column of pyarrow, polars, pandas or DuckDB; a data set of
            `datasets`; an iterable of mappings; or `Counts`, which determine the pattern. Texts
            that look like paths are an error: `bytepair.corpus.Texts` and `bytepair.corpus.Paths`
            say what strings are. With a `Mixture` or `Parity`, a mapping of names to such sources.
        vocab_size: the vocabulary size: the 256 bytes, the merges, the special tokens and the
            reserved ids.
        pattern: the split pattern: a name in `bytepair.PATTERNS` or a regular expression; None
            means `nanochat`, or the pattern of the counts.
        special_tokens: the names of the special tokens, which get the ids after the last merge, in
            this order; "nanochat" (the default) means the nine of nanochat, () none.
        ties: the tie-breaking rule for pairs with equal counts: the rule of rustbpe or of Hugging
            Face, the first seen, the greatest bytes, or the greatest characters of GPT-2. "hf"
            gives the merges of Hugging Face, but not its ids: there special tokens come first, and
            bytes in another order. "characters-max" is the rule of parity-aware trainers.
        options: what is seldom needed: reserved ids, initial tokens and limits of merges.
        reading: which text is read, and how it is counted; with a checkpoint, training that was
            interrupted while it counted is resumed.
        recipe: a `Mixture`, `Parity` or `Superwords`; a list for a `Mixture` with `Superwords`.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
        progress: True for a bar, False for none, None for a bar on a terminal, or a function that
            is called with the stage ("count", "merge"), the amount done, and the total or None.
            The unit is bytes of text (with files, the total is estimated) or merges.

    Returns:
        The tokenizer. If the text has no more pairs before `vocab_size` is reached, an
        `ExhaustedWarning` is issued, and `notes["exhausted"]` of the result is "true".

    Raises:
        PatternError: if the pattern is neither a name nor a valid regular expression; the message
            suggests a similar name, or shows the invalid place in the expression.
        VocabularyError: if `vocab_size` is too small, or an initial token is not a pretoken.
        CorpusError: if the source cannot be read, or has no text to learn merges from.
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
    settings = TrainSettings(
        **vars(check_kind("options", options, TrainOptions)),
        vocab_size=vocab_size, special_tokens=special_tokens, ties=ties,
    )  # fmt: skip
    how = CountOptions(pattern_of(source, pattern), reading, threads)
    check(settings, how.pattern)
    mixture, parity, superwords = divided(recipe)
    if superwords is not None:
        _check_read_twice(source, superwords, how)
        first = _first_settings(superwords, settings, how)
    groups = check_groups(source, how, "parity" if parity else "mixture" if mixture else "")
    if parity is not None:
        return _train_parity(parity, groups, how, settings, progress)
    if mixture is not None:
        check_names("mixture", mixture.shares, groups)
    with Bar(progress) as bar:
        counts = _counted(groups, how, mixture, bar)
        # If there are no merges to learn, no text is needed: the 256 bytes are a tokenizer.
        if not counts.text_bytes and vocab_size > settings.smallest:
            raise CorpusError(
                "there is no text to train on: the source has no documents, or only empty ones",
                hint="check the path and the column, or whether an iterator was already consumed",
            )
        learn = partial(_core.train, counts.core)
        if superwords is None:
            tokenizer = _learnt(learn, with_denominator(settings, counts), threads, bar)
        else:
            tokenizer = _learnt(learn, with_denominator(first, counts), threads, bar)
            lines = replace(how, pattern=superwords.regex(how.pattern))
            if (second := superwords.counts) is None:
                second = _counted(_again(source, groups), lines, mixture, bar)
            tokenizer = _with_superwords(tokenizer, second, superwords, settings, how, bar)
        _report_end(tokenizer, settings, bar)
    return _finished(tokenizer, settings)


def _counted(groups: CheckedGroups, how: CountOptions, mixture: Mixture | None, bar: Bar) -> Counts:
    counts = count_groups(groups, how, bar)
    return counts[""] if mixture is None else Counts.mixture(counts, mixture.shares)


def _learnt(
    learn: Callable[..., _core.Model], options: TrainSettings, threads: int | None, bar: Bar
) -> Tokenizer:
    return Tokenizer(
        learn(
            options, threads=threads,
            on_progress=lambda done, total: bar.update("merge", done, total, "merges"),
        )
    )  # fmt: skip


def _report_end(tokenizer: Tokenizer, options: TrainSettings, bar: Bar) -> None:
    learnt = tokenizer.vocab_size - options.smallest
    bar.update("merge", learnt, learnt, "merges")


def _finished(tokenizer: Tokenizer, options: TrainSettings) -> Tokenizer:
    ranks = tokenizer.mergeable_ranks() if options.special_tokens else {}
    for name in options.special_tokens:
        if (id := ranks.get(name.encode())) is not None:
            text = (
                f"the special token {name!r} became an ordinary token (id {id}) as well, as "
                "the text contains it"
            )
            hint = "choose a name that no text contains, such as <|name|>"
            warn(BytepairWarning(text, hint=hint))
    if tokenizer.notes.get("exhausted") == "true":
        warn(exhausted(tokenizer, options))
    if tokenizer.vocab_size % options.padded_to:
        special = padding(tokenizer, options.padded_to)
        tokenizer = Tokenizer(_core.with_special_tokens(tokenizer, special))
    return tokenizer


def _train_parity(
    parity: Parity,
    groups: CheckedGroups,
    how: CountOptions,
    settings: TrainSettings,
    progress: bool | Callback | None,
) -> Tokenizer:
    development, whole = check_development(parity, groups, how)
    with Bar(progress) as bar:
        counts = count_groups(groups, how, bar)
        sets = count_groups(development, whole, bar)
        learn = partial(learn_parity, parity, counts, sets)
        tokenizer = _learnt(learn, settings, how.threads, bar)
        _report_end(tokenizer, settings, bar)
    return _finished(tokenizer, settings)


def _check_read_twice(source: Any, superwords: Superwords, how: CountOptions) -> None:
    """Check before reading that the source can be counted with both patterns."""
    refuse_checkpoint(how.reading, "superwords")
    parts = source.values() if isinstance(source, Mapping) else [source]
    if any(isinstance(part, Counts) == (superwords.counts is None) for part in parts):
        raise CountsError(
            "superwords need counts with two patterns",
            option="superword_counts",
            hint="pass both as counts, the second as Superwords(counts=bytepair.count(..., "
            f"pattern={superwords.regex(how.pattern)!r})), or the text",
        )
    if any(isinstance(part.texts if isinstance(part, Texts) else part, Iterator) for part in parts):
        raise CorpusError(
            "superwords read the text twice, but an iterator can be read only once",
            hint="pass a list, files, or an object whose __iter__ returns a new iterator",
        )


def _first_settings(
    superwords: Superwords, settings: TrainSettings, how: CountOptions
) -> TrainSettings:
    """The options of the first stage; those of the second are checked as well."""
    size = superwords.first_size(settings.vocab_size, settings.smallest)
    first = replace(settings, vocab_size=size, padded_to=1)
    lines = replace(how, pattern=superwords.regex(how.pattern), reading=Reading())
    check(first, lines.pattern)
    if superwords.counts is not None:
        check_groups(superwords.counts, lines)
    return first


def _again(source: Any, groups: CheckedGroups) -> CheckedGroups:
    """The groups for a second reading: the same files, and texts in memory from their beginning."""
    sources = source if isinstance(source, Mapping) else {"": source}
    return {
        name: part if isinstance(part, Files) else resolve(sources[name])
        for name, part in groups.items()
    }


def _with_superwords(
    tokenizer: Tokenizer,
    counts: Counts,
    superwords: Superwords,
    settings: TrainSettings,
    how: CountOptions,
    bar: Bar,
) -> Tokenizer:
    before, whole = len(tokenizer.merges()), settings.vocab_size - settings.smallest
    model = _core.resume(
        tokenizer, counts.core, with_denominator(settings, counts),
        superwords=superwords.limits, threads=how.threads,
        on_progress=lambda done, _: bar.update("merge", before + done, whole, "merges"),
    )  # fmt: skip
    return Tokenizer(model).replace(notes={SUPERWORDS_NOTE: superwords.note(before, how.pattern)})


def check(options: TrainSettings, regex: str | tuple[str, ...]) -> None:
    """Check the options before the corpus is read, by training on no text."""
    options.check_size()
    _core.train(_core.Counts.from_items([], regex), options)


def with_denominator(options: TrainSettings, counts: Counts) -> TrainSettings:
    """The options, with `min_count` in units of the counts' denominator."""
    return replace(options, min_count=options.min_count * counts.denominator)


def exhausted(tokenizer: Tokenizer, options: TrainSettings) -> ExhaustedWarning:
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
