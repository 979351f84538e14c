"""Enlarge a trained vocabulary, and verify the merges of one.

Training produces one merge after another, so it can be resumed. `resume` continues with the same
counts; the result equals that of a single run. `extend` continues with other text and keeps all
ids. `verify_merges` checks each merge of a vocabulary of any trainer. (`Tokenizer.replace`
truncates a vocabulary.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bytepair import _core
from bytepair._internal.checks import check_kind, check_whole
from bytepair._internal.progress import Bar, Callback
from bytepair.corpus.source import Reading, Source
from bytepair.errors import CountsError, ExhaustedWarning, warn
from bytepair.tokenizer import Tokenizer
from bytepair.tokenizer.vocabulary import with_roles_of
from bytepair.training.counting import CountOptions
from bytepair.training.counts import Counts
from bytepair.training.options import Ties, TrainSettings, check_groups, count_groups, splitting
from bytepair.training.recipes import SUPERWORDS_NOTE, Stages
from bytepair.training.trainer import exhausted, with_denominator


def resume(
    tokenizer: Tokenizer,
    source: Source | Counts,
    vocab_size: int = 65536,
    *,
    ties: Ties = "rustbpe",
    min_count: int = 1,
    max_token_bytes: int | None = None,
    reading: Reading = Reading(),
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Tokenizer:
    """Resume training to a larger vocabulary, as if training had not stopped.

    Given the text (or its counts) and the options of the first training, the result equals that of
    a single training, merge for merge. A tokenizer with superwords learns more superwords under its
    own rules; the size of its first stage does not change.

    Args:
        tokenizer: a tokenizer trained by `bytepair.train`.
        source: the text it was trained on, as in `bytepair.train`, or its counts (with the split
            pattern of the tokenizer).
        vocab_size: the vocabulary size of the result, including special tokens.
        ties: as in `bytepair.train`.
        min_count: as in `bytepair.train`.
        max_token_bytes: as in `bytepair.train`.
        reading: as in `bytepair.count`.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
        progress: as in `bytepair.train`.

    Returns:
        The tokenizer with `vocab_size` ids. If the text has no more pairs, there are fewer, and an
        `ExhaustedWarning` is issued.

    Raises:
        VocabularyError: if the tokenizer is larger already, or was not created by training.
        CountsError: if the counts have a different pattern, or options for reading text are given.
        CorpusError: if the source cannot be read.

    Example:
        >>> import bytepair
        >>> counts = bytepair.count(["hello hello help"])
        >>> small = bytepair.train(counts, 267)
        >>> bytepair.training.resume(small, counts, 269) == bytepair.train(counts, 269)
        True
        >>> bytepair.training.resume(small, ["hello hello help"], 269).vocab_size
        269
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    options = TrainSettings(
        vocab_size=vocab_size, ties=ties, min_count=min_count, max_token_bytes=max_token_bytes
    )
    stages = Stages.of(tokenizer)
    how = CountOptions(splitting(tokenizer), reading, threads)
    groups = check_groups(source, how)
    with Bar(progress) as bar:
        counts = count_groups(groups, how, bar)[""]
        options = with_denominator(options, counts)
        limits = None if stages is None else stages.limits
        learn = partial(_core.resume, tokenizer, counts.core, options, superwords=limits)
        grown = _grown(tokenizer, learn, bar)
    if grown.vocab_size < vocab_size:
        warn(exhausted(grown, options))
    return (
        grown
        if stages is None
        else grown.replace(notes={SUPERWORDS_NOTE: tokenizer.notes[SUPERWORDS_NOTE]})
    )


def extend(
    tokenizer: Tokenizer,
    source: Source | Counts,
    extra: int,
    *,
    ties: Ties = "rustbpe",
    min_count: int = 1,
    max_token_bytes: int | None = None,
    reading: Reading = Reading(),
    threads: int | None = None,
    progress: bool | Callback | None = None,
) -> Tokenizer:
    """Learn more tokens from new text, and keep all existing ids and merges.

    The new text is encoded with the existing merges, and training continues from there. New tokens
    get the ids after all existing ones, including special tokens, so that the rows of a model's
    embedding table remain valid.

    Args:
        tokenizer: any tokenizer.
        source: as in `bytepair.train`.
        extra: the maximum number of tokens to learn.
        ties: as in `bytepair.train`.
        min_count: as in `bytepair.train`.
        max_token_bytes: as in `bytepair.train`.
        reading: as in `bytepair.count`.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
        progress: as in `bytepair.train`.

    Returns:
        The tokenizer with the new tokens. If the text has too few pairs, there are fewer than
        `extra`; if there are none, an `ExhaustedWarning` is issued.

    Raises:
        VocabularyError: if a new token equals an existing token that no merge produces.
        CountsError: if the counts have a different pattern, or options for reading text are given.
        CorpusError: if the source cannot be read.
        ArgumentError: if `extra` is negative.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> more = bytepair.extend(tok, ["hello world, world"], 4)
        >>> more.vocab_size, more.encode("hello") == tok.encode("hello")
        (273, True)
        >>> more.token_bytes(272)
        b' wor'
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    check_whole("extra", extra)
    options = TrainSettings(ties=ties, min_count=min_count, max_token_bytes=max_token_bytes)
    how = CountOptions(splitting(tokenizer), reading, threads)
    groups = check_groups(source, how)
    with Bar(progress) as bar:
        counts = count_groups(groups, how, bar)[""]
        options = with_denominator(options, counts)
        learn = partial(_core.extend, tokenizer, counts.core, extra, options)
        grown = _grown(tokenizer, learn, bar)
    if grown.vocab_size == tokenizer.vocab_size and extra:
        reason = "no token was learnt, because the text has no pair to merge"
        warn(ExhaustedWarning(reason, hint="pass more text"))
    return grown


def _grown(tokenizer: Tokenizer, learn: Callable[..., _core.Model], bar: Bar) -> Tokenizer:
    model = learn(on_progress=lambda done, total: bar.update("merge", done, total, "merges"))
    grown = Tokenizer(model).replace(repeats=_core.repeats(tokenizer))
    learnt = grown.vocab_size - tokenizer.vocab_size
    bar.update("merge", learnt, learnt, "merges")
    return with_roles_of(grown, tokenizer)


@dataclass(frozen=True)
class Verdict:
    """The result of `verify_merges`.

    Attributes:
        steps: the number of correct merges before the first wrong one.
        wrong: the pair of the first wrong merge, and its count; None if all are correct.
        best: the pair that should be merged instead, and its count; None if there is none.
    """

    steps: int
    wrong: tuple[tuple[bytes, bytes], int] | None = None
    best: tuple[tuple[bytes, bytes], int] | None = None

    def __bool__(self) -> bool:
        """Whether all merges are correct."""
        return self.wrong is None

    def __str__(self) -> str:
        """The result in one line."""
        if self.wrong is None:
            return f"all {self.steps:,} merges verified"
        (pair, count) = self.wrong
        text = f"merge {self.steps:,} is {pair} with count {count:,}, but "
        if self.best is None:
            return text + "no pair is left to merge"
        return text + f"{self.best[0]} with count {self.best[1]:,} comes first"


def verify_merges(
    tokenizer: Tokenizer,
    counts: Counts,
    *,
    ties: Ties = "rustbpe",
    min_count: int = 1,
    superword_counts: Counts | None = None,
    progress: bool | Callback | None = None,
) -> Verdict:
    """Replay the merges of a vocabulary and check that each is the correct next merge.

    At each step the merged pair must have the highest count, and among pairs with equal counts be
    the first by the tie-breaking rule. This works for the merges of any trainer, given the counts
    of its training text.

    Args:
        tokenizer: any tokenizer; its `merges` are checked.
        counts: the counts it was trained on.
        ties: the tie-breaking rule of its trainer.
        min_count: the minimum count of a merged pair.
        superword_counts: for a tokenizer with superwords, the counts of the same text with the
            split pattern of the tokenizer; `counts` then have the pattern of its first stage.
        progress: as in `bytepair.train`.

    Raises:
        CountsError: if the counts have a different pattern, a merge has parts that no earlier merge
            produces, or `superword_counts` are given for a tokenizer without superwords, or missing
            for one with superwords.

    Example:
        >>> import bytepair
        >>> counts = bytepair.count(["hello hello help"])
        >>> tok = bytepair.train(counts, 269)
        >>> print(bytepair.training.verify_merges(tok, counts))
        all 4 merges verified
        >>> print(bytepair.training.verify_merges(tok, counts, ties="bytes-max"))
        merge 0 is (b'e', b'l') with count 3, but (b'h', b'e') with count 3 comes first
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    stages = Stages.of(tokenizer)
    _check_pattern(counts, splitting(tokenizer) if stages is None else stages.pattern)
    if stages is None and superword_counts is not None:
        raise CountsError(
            "superword_counts are given, but the tokenizer has no superwords",
            option="superword_counts",
            hint="omit them",
        )
    if stages is not None and superword_counts is None:
        raise CountsError(
            "the tokenizer has superwords",
            option="superword_counts",
            hint="also pass superword_counts, the counts of the same text with its split pattern",
        )
    merges = tokenizer.merges()
    options = TrainSettings(ties=ties, min_count=min_count)
    with Bar(progress) as bar:

        def report(done: int, _: int) -> None:
            bar.update("verify", done, len(merges), "merges")

        first = merges if stages is None else merges[: stages.merges]
        wrong = _core.verify_merges(
            first, counts.core, with_denominator(options, counts), on_progress=report
        )
        if wrong is None and stages is not None and superword_counts is not None:
            _check_pattern(superword_counts, splitting(tokenizer))
            wrong = _core.verify_superwords(
                merges, stages.merges, superword_counts.core,
                with_denominator(options, superword_counts), stages.limits, on_progress=report,
            )  # fmt: skip
        verdict = Verdict(len(merges))
        if wrong is not None:
            best = None if wrong.best is None else (wrong.best, wrong.best_count or 0)
            verdict = Verdict(wrong.step, (wrong.pair, wrong.count), best)
        bar.update("verify", verdict.steps, verdict.steps, "merges")
    return verdict


def _check_pattern(counts: Counts, regex: str | tuple[str, ...]) -> None:
    if regex != counts.pattern:
        raise CountsError(
            f"the counts have the pattern {counts.pattern!r}, but the tokenizer has {regex!r}",
            hint="count the text with the tokenizer's pattern",
        )
