"""Train a tokenizer, resume and extend its training, and verify its merges.

Training produces one merge after another, so it can be resumed. `resume` continues with the same
counts; the result equals that of a single run. `extend` continues with other text and keeps all
ids. `verify_merges` checks each merge of a vocabulary of any trainer. (`Tokenizer.replace`
truncates a vocabulary.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import lcm
from typing import Any, Literal

from bytepair import _core
from bytepair._internal.checks import check_kind, check_whole
from bytepair._internal.progress import Bar, Callback
from bytepair.corpus.files import Files
from bytepair.corpus.source import Reading, Source, Texts, resolve
from bytepair.errors import (
    BytepairWarning,
    CorpusError,
    CountsError,
    ExhaustedWarning,
    VocabularyError,
    warn,
)
from bytepair.tokenizer import Tokenizer
from bytepair.tokenizer.vocabulary import padding, with_roles_of
from bytepair.training.counting import CountOptions
from bytepair.training.counts import Counts, check_names, check_pattern
from bytepair.training.options import (
    CheckedGroups,
    Groups,
    Mixture,
    Parity,
    Recipe,
    Stages,
    Superwords,
    Ties,
    TrainOptions,
    TrainSettings,
    check_groups,
    count_groups,
    divided,
    pattern_of,
    refuse_checkpoint,
    splitting,
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
        PatternError: as in `bytepair.count`, as `InUseError` is.
        VocabularyError: if `vocab_size` is too small, or an initial token is not a pretoken.
        CorpusError: if the source cannot be read, or has no text to learn merges from.
        CountsError: if counts have a different pattern than the given one, or options for reading
            text are given with counts.
        ArgumentError: if the names in a recipe differ from those of the sources, or options cannot
            be combined.

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
    settings.check(how.pattern)
    mixture, parity, superwords = divided(recipe)
    first, lines = settings, how
    if superwords is not None:
        first, lines = _stages(source, superwords, settings, how)
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
        model = _core.train(
            counts.core, first.in_units(counts.denominator), threads=threads,
            on_progress=_merging(bar),
        )  # fmt: skip
        tokenizer = Tokenizer(model)
        if superwords is not None:
            if (counts_of_lines := superwords.counts) is None:
                counts_of_lines = _counted(_again(source, groups), lines, mixture, bar)
            tokenizer = _with_superwords(tokenizer, counts_of_lines, superwords, settings, how, bar)
        return _finished(tokenizer, settings, bar)


def _counted(groups: CheckedGroups, how: CountOptions, mixture: Mixture | None, bar: Bar) -> Counts:
    counts = count_groups(groups, how, bar)
    return counts[""] if mixture is None else Counts.mixture(counts, mixture.shares)


def _merging(bar: Bar, before: int = 0, whole: int | None = None) -> Callable[[int, int], None]:
    """A function that reports merges to a bar, after those made before."""
    return lambda done, total: bar.update("merge", before + done, whole or total, "merges")


def _finished(tokenizer: Tokenizer, options: TrainSettings, bar: Bar) -> Tokenizer:
    learnt = tokenizer.vocab_size - options.smallest
    bar.update("merge", learnt, learnt, "merges")
    ranks = tokenizer.mergeable_ranks() if options.special_tokens else {}
    for name in options.special_tokens:
        if (id := ranks.get(name.encode())) is not None:
            text = f"the text contains {name!r}, which became an ordinary token (id {id}) as well"
            hint = "choose a name that no text contains, such as <|name|>"
            warn(BytepairWarning(text, hint=hint))
    if tokenizer.notes.get("exhausted") == "true":
        warn(_exhausted(tokenizer, options))
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
    """Train on groups, and note the number of merges of each; without sets, compare the groups."""
    sets: CheckedGroups = {}
    whole = replace(how, reading=replace(how.reading, max_chars=None))
    if parity.ratios is not None:
        check_names("ratios", parity.ratios, groups)
    if parity.development is not None:
        check_names("development", parity.development, groups)
        sets = check_groups(parity.development, whole, "development")
        sets = {name: sets[name] for name in groups}
    with Bar(progress) as bar:
        counts, compared = count_groups(groups, how, bar), count_groups(sets, whole, bar)
        training, unit = _in_one_unit("group", counts)
        model, chosen = _core.train_parity(
            training, _in_one_unit("development set", compared)[0], settings.in_units(unit),
            ratios=None if parity.ratios is None else [parity.ratios[name] for name in groups],
            window=parity.window, alpha=parity.alpha, global_merges=parity.global_merges,
            threads=how.threads, on_progress=_merging(bar),
        )  # fmt: skip
        merges = {name: chosen.count(index) for index, name in enumerate(groups)}
        note = {"parity": json.dumps({"merges": merges})}
        return _finished(Tokenizer(model).replace(notes=note), settings, bar)


def _in_one_unit(kind: str, parts: Mapping[str, Counts]) -> tuple[list[_core.Counts], int]:
    for name, counts in parts.items():
        if not counts.text_bytes:  # its compression would be undefined
            raise CorpusError(f"the {kind} {name!r} has no text", hint="check its path")
    unit = lcm(*(counts.denominator for counts in parts.values()))
    return [counts.core.times(unit // counts.denominator) for counts in parts.values()], unit


def _stages(
    source: Any, superwords: Superwords, settings: TrainSettings, how: CountOptions
) -> tuple[TrainSettings, CountOptions]:
    """Check that superwords can be learnt; the first stage's options, and how to count lines."""
    refuse_checkpoint(how.reading, "superwords")
    lines = replace(how, pattern=superwords.regex(how.pattern))
    parts = list(source.values()) if isinstance(source, Mapping) else [source]
    if any(isinstance(part, Counts) == (superwords.counts is None) for part in parts):
        hint = "pass both as counts, the second as Superwords(counts=bytepair.count(..., "
        hint += f"pattern={lines.pattern!r})), or the text"
        problem = "superwords need counts with two patterns"
        raise CountsError(problem, option="superword_counts", hint=hint)
    if any(isinstance(part.texts if isinstance(part, Texts) else part, Iterator) for part in parts):
        problem = "superwords read the text twice, but an iterator can be read only once"
        hint = "pass a list, files, or an object whose __iter__ returns a new iterator"
        raise CorpusError(problem, hint=hint)
    size, most, least = superwords.start, settings.vocab_size, settings.smallest
    size = int(size * most) if isinstance(size, float) else size
    if not least <= size <= most:
        text = f"superwords start at {size} ids, which is not between {least} (no merges) and "
        text += f"vocab_size {most}"
        raise VocabularyError(text, option="vocab_size", hint="choose another start")
    first = replace(settings, vocab_size=size, padded_to=1)
    first.check(lines.pattern)
    if superwords.counts is not None:
        check_pattern(superwords.counts, lines.pattern)
    return first, lines


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
    before = len(tokenizer.merges())
    stages = Stages(before, how.pattern, superwords.max_words, superwords.never)
    model = _core.resume(
        tokenizer, counts.core, settings.in_units(counts.denominator),
        superwords=stages.limits, threads=how.threads,
        on_progress=_merging(bar, before, settings.vocab_size - settings.smallest),
    )  # fmt: skip
    return Tokenizer(model).replace(notes=stages.note)


def _exhausted(tokenizer: Tokenizer, options: TrainSettings) -> ExhaustedWarning:
    """The warning that there are fewer ids than requested."""
    pairs, option, hint = "pairs to merge", "vocab_size", ""
    if options.min_count > 1:
        pairs += f" that occur at least {options.min_count:,} times (min_count)"
        option, hint = "min_count", "lower min_count, or "
    have = f"{tokenizer.vocab_size:,} ids instead of {options.vocab_size:,}"
    text = f"the text has no more {pairs}: the vocabulary has {have}"
    hint += "train on more text, or pass a smaller vocab_size"
    return ExhaustedWarning(text, option=option, value=getattr(options, option), hint=hint)


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

    `source` is the text that it was trained on, or its counts (with the split pattern of the
    tokenizer); the other arguments are those of `bytepair.train` and `bytepair.TrainOptions`.

    Returns:
        The tokenizer with `vocab_size` ids. If the text has no more pairs, there are fewer, and an
        `ExhaustedWarning` is issued.

    Raises:
        VocabularyError: if the tokenizer is larger already, or was not created by training.
        CountsError: as in `bytepair.train`, as `CorpusError` is.

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
    stages = Stages.of(tokenizer)
    options = TrainSettings(
        vocab_size=vocab_size, ties=ties, min_count=min_count, max_token_bytes=max_token_bytes
    )
    limits = None if stages is None else stages.limits
    learn = partial(_core.resume, tokenizer, superwords=limits, threads=threads)
    grown = _grown(tokenizer, source, learn, options, reading, threads, progress)
    if grown.vocab_size < vocab_size:
        warn(_exhausted(grown, options))
    return grown if stages is None else grown.replace(notes=stages.note)


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

    `extra` is the maximum number of tokens to learn; the other arguments are those of
    `bytepair.training.resume`, for any tokenizer and text.

    Returns:
        The tokenizer with the new tokens. If the text has too few pairs, there are fewer than
        `extra`; if there are none, an `ExhaustedWarning` is issued.

    Raises:
        VocabularyError: if a new token equals an existing token that no merge produces.
        CountsError: as in `bytepair.train`, as `CorpusError` is.

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

    def learn(counts: _core.Counts, options: TrainSettings, on_progress: Any) -> _core.Model:
        return _core.extend(tokenizer, counts, extra, options, on_progress=on_progress)

    options = TrainSettings(ties=ties, min_count=min_count, max_token_bytes=max_token_bytes)
    grown = _grown(tokenizer, source, learn, options, reading, threads, progress)
    if grown.vocab_size == tokenizer.vocab_size and extra:
        reason = "no token was learnt, because the text has no pair to merge"
        warn(ExhaustedWarning(reason, hint="pass more text"))
    return grown


def _grown(
    tokenizer: Tokenizer,
    source: Source | Counts,
    learn: Callable[..., _core.Model],
    options: TrainSettings,
    reading: Reading,
    threads: int | None,
    progress: bool | Callback | None,
) -> Tokenizer:
    """Count a source, and learn more merges from the counts."""
    how = CountOptions(splitting(tokenizer), reading, threads)
    groups = check_groups(source, how)
    with Bar(progress) as bar:
        counts = count_groups(groups, how, bar)[""]
        options = options.in_units(counts.denominator)
        model = learn(counts.core, options, on_progress=_merging(bar))
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
        return self.wrong is None

    def __str__(self) -> str:
        if self.wrong is None:
            return f"all {self.steps:,} merges verified"
        other = "no pair is left to merge"
        if self.best is not None:
            other = f"{self.best[0]} with count {self.best[1]:,} comes first"
        return f"merge {self.steps:,} is {self.wrong[0]} with count {self.wrong[1]:,}, but {other}"


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
            produces, or `superword_counts` are missing or would be ignored.

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
    check_pattern(counts, splitting(tokenizer) if stages is None else stages.pattern)
    if (stages is None) != (superword_counts is None):
        has = "no superwords, so superword_counts would be ignored"
        if stages is not None:
            has = "superwords: also pass superword_counts, with its split pattern"
        raise CountsError(f"the tokenizer has {has}", option="superword_counts")
    merges = tokenizer.merges()
    options = TrainSettings(ties=ties, min_count=min_count)
    with Bar(progress) as bar:

        def report(done: int, _: int) -> None:
            bar.update("verify", done, len(merges), "merges")

        first = merges if stages is None else merges[: stages.merges]
        in_units = options.in_units(counts.denominator)
        wrong = _core.verify_merges(first, counts.core, in_units, on_progress=report)
        if wrong is None and stages is not None and superword_counts is not None:
            check_pattern(superword_counts, splitting(tokenizer))
            wrong = _core.verify_merges(
                merges, superword_counts.core, options.in_units(superword_counts.denominator),
                superwords=(stages.merges, stages.limits), on_progress=report,
            )  # fmt: skip
        verdict = Verdict(len(merges)) if wrong is None else Verdict(*wrong)
        bar.update("verify", verdict.steps, verdict.steps, "merges")
    return verdict
