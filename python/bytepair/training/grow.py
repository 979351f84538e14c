"""A trained vocabulary made larger, and the proof that one was trained as it says.

Training makes one merge after another, so it can go on where it stopped. `resume` goes on with the
same counts and gives what a single run would have given. `extend` goes on with other text and keeps
every id. `verify_merges` follows the merges of a vocabulary, whoever trained it, and checks each.
(`Tokenizer.with_vocab_size` goes the other way.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from bytepair import _core
from bytepair._internal.progress import Bar, Callback
from bytepair.corpus.source import Source
from bytepair.errors import CountsError
from bytepair.tokenizer import Tokenizer
from bytepair.training.counting import ReadKeywords
from bytepair.training.counts import Counts
from bytepair.training.options import Ties, TrainOptions
from bytepair.training.sources import counter_of
from bytepair.training.superwords import NOTE, Stages
from bytepair.training.trainer import with_denominator


def resume(
    tokenizer: Tokenizer,
    source: Source | Counts | None = None,
    vocab_size: int = 65536,
    *,
    ties: Ties = "rustbpe",
    min_count: int = 1,
    max_token_bytes: int | None = None,
    progress: bool | Callback | None = None,
    **reading: Unpack[ReadKeywords],
) -> Tokenizer:
    """Go on training to a larger vocabulary, as if training had not stopped.

    With the text, or its counts, and the options of the first training, the result is that of one
    training, merge for merge. A tokenizer with superwords learns more of them, under its own rules;
    its first stage stays as large as it is.

    Args:
        tokenizer: a tokenizer that `bytepair.train` made.
        source: the text it was trained on, as in `bytepair.train`, or its counts (by the split
            pattern of the tokenizer).
        vocab_size: how many ids the result has, special tokens included.
        ties: as in `bytepair.train`.
        min_count: as in `bytepair.train`.
        max_token_bytes: as in `bytepair.train`.
        progress: as in `bytepair.train`.
        reading: `files` or `texts` in place of a source, and `max_chars`, `doc_cap`, `threads`,
            `column`, `errors`, `memory_limit` and `max_document_bytes`, as in `bytepair.count`.

    Raises:
        VocabularyError: if there are more ids already, or the tokenizer was not made by training.
        CountsError: if the counts have another pattern, or there are options for reading text.
        CorpusError: if the source cannot be read.

    Example:
        >>> import bytepair
        >>> counts = bytepair.count(["hello hello help"])
        >>> small = bytepair.train(counts, 267)
        >>> bytepair.resume(small, counts, 269) == bytepair.train(counts, 269)
        True
        >>> bytepair.resume(small, texts=["hello hello help"], vocab_size=269).vocab_size
        269
    """
    options = TrainOptions(
        vocab_size, ties=ties, min_count=min_count, max_token_bytes=max_token_bytes
    )
    stages = Stages.of(tokenizer)
    counted = counter_of(source, tokenizer.pattern, **reading)
    with Bar(progress) as bar:
        counts = counted(bar)
        options = with_denominator(options, counts)
        limits = None if stages is None else stages.limits
        learn = partial(_core.resume, tokenizer, counts.core, options, superwords=limits)
        grown = _grown(tokenizer, learn, bar)
    return grown if stages is None else grown.with_notes({NOTE: tokenizer.notes[NOTE]})


def extend(
    tokenizer: Tokenizer,
    source: Source | Counts | None = None,
    extra: int | None = None,
    *,
    ties: Ties = "rustbpe",
    min_count: int = 1,
    max_token_bytes: int | None = None,
    progress: bool | Callback | None = None,
    **reading: Unpack[ReadKeywords],
) -> Tokenizer:
    """Learn more tokens from new text, and keep every id and every merge there is.

    The new text is encoded by the merges there are, and training goes on from there. New tokens get
    the ids behind the vocabulary, behind its special tokens too, so that a model's embeddings stay
    where they are.

    Args:
        tokenizer: any tokenizer.
        source: as in `bytepair.train`.
        extra: how many tokens to learn at most; it has to be given.
        ties: as in `bytepair.train`.
        min_count: as in `bytepair.train`.
        max_token_bytes: as in `bytepair.train`.
        progress: as in `bytepair.train`.
        reading: as in `resume`.

    Raises:
        VocabularyError: if a new token has the bytes of one that no merge makes.
        CountsError: if the counts have another pattern, or there are options for reading text.
        CorpusError: if the source cannot be read.
        TypeError: if `extra` is missing.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], 269)
        >>> more = bytepair.extend(tok, ["hello world, world"], 4)
        >>> more.vocab_size, more.encode("hello") == tok.encode("hello")
        (273, True)
        >>> more.token_bytes(272)
        b' wor'
    """
    if extra is None:
        raise TypeError("pass extra=, the number of tokens to learn at most")
    options = TrainOptions(ties=ties, min_count=min_count, max_token_bytes=max_token_bytes)
    counted = counter_of(source, tokenizer.pattern, **reading)
    with Bar(progress) as bar:
        counts = counted(bar)
        options = with_denominator(options, counts)
        return _grown(tokenizer, partial(_core.extend, tokenizer, counts.core, extra, options), bar)


def _grown(tokenizer: Tokenizer, learn: Callable[..., _core.Model], bar: Bar) -> Tokenizer:
    """The tokenizer with more merges, and the roles that it had."""
    model = learn(on_progress=lambda done, total: bar.update("merge", done, total, "merges"))
    grown = Tokenizer(model)
    learnt = grown.vocab_size - tokenizer.vocab_size
    bar.update("merge", learnt, learnt, "merges")
    return grown._with_roles_of(tokenizer)


@dataclass(frozen=True)
class Verdict:
    """What `verify_merges` found.

    Attributes:
        steps: how many merges were right, from the first one on.
        listed: the pair of the first wrong merge, and its count; None if all are right.
        best: the pair that was to be merged there, and its count; None if there was none.
    """

    steps: int
    listed: tuple[tuple[bytes, bytes], int] | None = None
    best: tuple[tuple[bytes, bytes], int] | None = None

    def __bool__(self) -> bool:
        """Whether every merge was right."""
        return self.listed is None

    def __str__(self) -> str:
        """Say it in one line."""
        if self.listed is None:
            return f"all {self.steps:,} merges verified"
        (pair, count) = self.listed
        said = f"merge {self.steps:,} is {pair}, of count {count:,}, but "
        if self.best is None:
            return said + "no pair was left to merge"
        return said + f"{self.best[0]}, of count {self.best[1]:,}, goes first"


def verify_merges(
    tokenizer: Tokenizer,
    counts: Counts,
    *,
    ties: Ties = "rustbpe",
    min_count: int = 1,
    superword_counts: Counts | None = None,
    progress: bool | Callback | None = None,
) -> Verdict:
    """Follow the merges of a vocabulary and check that each was the one to make.

    At each step the pair must have the greatest count of all, and among pairs of equal count be the
    first by the rule for ties. So the merges of any trainer can be checked, against the counts that
    it had.

    Args:
        tokenizer: any tokenizer; its `merges` are checked.
        counts: what it was trained on.
        ties: the rule for ties that its trainer follows.
        min_count: the least count of a merge.
        superword_counts: of a tokenizer with superwords, the counts of the same text by its own
            split pattern; `counts` are those by the pattern of its first stage.
        progress: as in `bytepair.train`.

    Raises:
        CountsError: if the counts have another pattern, a merge has parts that no merge before it
            makes, or there are `superword_counts` and no superwords, or superwords and none.

    Example:
        >>> import bytepair
        >>> counts = bytepair.count(["hello hello help"])
        >>> tok = bytepair.train(counts, 269)
        >>> print(bytepair.verify_merges(tok, counts))
        all 4 merges verified
        >>> print(bytepair.verify_merges(tok, counts, ties="bytes-max"))
        merge 0 is (b'e', b'l'), of count 3, but (b'h', b'e'), of count 3, goes first
    """
    stages = Stages.of(tokenizer)
    _check_pattern(counts, tokenizer.pattern if stages is None else stages.pattern)
    if (stages is None) != (superword_counts is None):
        raise CountsError(
            "superword_counts are those of a tokenizer with superwords, and this one has none"
            if stages is None
            else "the tokenizer has superwords: pass superword_counts, the counts of the same text "
            "by its split pattern, too"
        )
    merges = tokenizer.merges()
    options = TrainOptions(ties=ties, min_count=min_count)
    with Bar(progress) as bar:

        def report(done: int, _: int) -> None:
            bar.update("verify", done, len(merges), "merges")

        first = merges if stages is None else merges[: stages.merges]
        found = _core.verify_merges(
            first, counts.core, with_denominator(options, counts), on_progress=report
        )
        if found is None and stages is not None and superword_counts is not None:
            _check_pattern(superword_counts, tokenizer.pattern)
            found = _core.verify_superwords(
                merges, stages.merges, superword_counts.core,
                with_denominator(options, superword_counts), stages.limits, on_progress=report,
            )  # fmt: skip
        steps = len(merges) if found is None else found[0]
        bar.update("verify", steps, steps, "merges")
    return Verdict(len(merges)) if found is None else Verdict(*found)


def _check_pattern(counts: Counts, regex: str) -> None:
    if regex != counts.pattern:
        raise CountsError(
            f"the counts were made with the pattern {counts.pattern!r}, the tokenizer with "
            f"{regex!r}"
        )
