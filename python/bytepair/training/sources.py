"""Obtain counts from what one trains on: a source, counts, or named groups of either.

Groups are a mapping of names to sources, such as `{"english": "en/", "code": "code.parquet"}`. In a
`Mixture`, each group has a given share of the bytes. Each function checks its arguments, and
returns a function that reads: with a progress bar in, counts out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from bytepair import _core
from bytepair._internal.progress import Bar
from bytepair.corpus.files import Files, Split, announce
from bytepair.corpus.source import Reading, Source, resolve
from bytepair.errors import ArgumentError, CountsError, PatternError
from bytepair.training.counting import count_text, resolve_for_count
from bytepair.training.counts import Counts, check_names

#: Sources of text, or counts, by name.
Groups: TypeAlias = Mapping[str, Source | Counts]


@dataclass(frozen=True)
class Mixture:
    """Train on groups of sources so that each has a given share of the bytes.

    The result is exact and does not depend on the order of the groups: see `Counts.mixture`.

    Attributes:
        shares: the share of each group, by name, such as `{"english": 0.6, "code": 0.4}`; shares
            are normalized.

    Example:
        >>> import bytepair
        >>> groups = {"en": ["the cat and the hat"], "de": ["die Katze und der Hut"]}
        >>> recipe = bytepair.Mixture({"en": 0.8, "de": 0.2})
        >>> bytepair.train(groups, 270, recipe=recipe).vocab_size
        270
    """

    shares: Mapping[str, float | Fraction]


def pattern_of(
    source: Source | Counts | Groups, pattern: str | Sequence[str] | None
) -> str | tuple[str, ...]:
    """The split pattern: the given one, or else that of the counts.

    Args:
        source: a source of text, counts, or groups.
        pattern: a name in `bytepair.PATTERNS`, a regular expression, several of these, or None.
    """
    if pattern is not None:
        return _core.pattern(pattern)
    parts = source.values() if isinstance(source, Mapping) else [source]
    patterns = (part.pattern for part in parts if isinstance(part, Counts))
    return next(patterns, _core.pattern("nanochat"))


def splitting(tokenizer: _core.Tokenizer) -> str | tuple[str, ...]:
    """The pattern by which texts are counted for a tokenizer.

    Raises:
        PatternError: if the tokenizer normalizes texts, or splits them in another way than by a
            pattern.
    """
    if _core.text_rules(tokenizer).normalizer:
        raise PatternError(
            "texts are counted without normalization, but the tokenizer normalizes them to "
            f"{', '.join(_core.text_rules(tokenizer).normalizer)}"
        )
    pattern: str | tuple[str, ...] | None = tokenizer.pattern
    if pattern is None:
        kinds = ", ".join(_core.text_rules(tokenizer).pre_tokenizer) or "not at all"
        raise PatternError(
            f"the tokenizer splits texts in another way than by regular expressions ({kinds}), so "
            "they cannot be counted for it"
        )
    return pattern


def counter_of(
    source: Source | Counts, regex: str | tuple[str, ...], reading: Reading, threads: int | None
) -> Callable[[Bar], Counts]:
    """A function that counts a source with a progress bar; for counts it returns them.

    Args:
        source: a source of text, or counts.
        regex: the pattern that the counts must have.
        reading: which text is read, and how it is counted.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.

    Raises:
        CountsError: if counts have a different pattern, or options for reading text are given.
        CorpusError: as in `train`.
    """
    if isinstance(source, Mapping):
        raise ArgumentError(
            "the source is a mapping of groups, but no recipe says how to train on it",
            option="recipe",
            hint="pass a Mixture or Parity, or a list of files to train on all text equally",
        )
    if not isinstance(source, Counts):
        resolved = resolve_for_count(source, reading)
        return lambda bar: count_text(resolved, regex, reading, threads, bar)
    _check_unread(reading)
    if regex != source.pattern:
        raise CountsError(
            f"the counts have the pattern {source.pattern!r}, not {regex!r}",
            hint=(
                "pass no pattern to use that of the counts, or count the text again with the "
                "other one"
            ),
        )
    return lambda _: source


def _check_unread(reading: Reading) -> None:
    """Check that nothing of the options is ignored because the source is counts."""
    usual = Reading()
    values = {one.name: getattr(reading, one.name) for one in fields(reading)}
    changed = [name for name, value in values.items() if value != getattr(usual, name)]
    if reading.split == "all":  # ignores nothing
        changed.remove("split")
    if changed:
        raise CountsError(
            f"{', '.join(changed)} would be ignored, because the source is counts",
            option=changed[0],
            value=values[changed[0]],
            hint="pass options for reading text to bytepair.count",
        )


def refuse_checkpoint(reading: Reading, purpose: str) -> None:
    """Refuse a checkpoint where more than one count is needed.

    Args:
        reading: the options for reading text.
        purpose: what needs several counts, for the error message.

    Raises:
        ArgumentError: if there is a checkpoint.
    """
    if reading.checkpoint is not None:
        raise ArgumentError(
            f"checkpoint and {purpose} cannot be combined: a checkpoint is for one count",
            option="checkpoint",
            value=reading.checkpoint,
            hint="count each source with bytepair.count and a checkpoint, and train on the counts",
        )


def resolved_once(source: Any, split: Split | None) -> Any:
    """A source, or groups of them, resolved and logged once, so that it can be read twice.

    Args:
        source: a source of text, counts, or groups of these.
        split: the split to read.

    Raises:
        CorpusError: as in `train`.
    """
    if isinstance(source, Counts):
        return source
    if not isinstance(source, Mapping):
        inputs = resolve(source, split=split)
        return inputs if isinstance(inputs, Files) else source
    groups = {name: _resolved_part(part, split) for name, part in source.items()}
    new = {n: p for n, p in groups.items() if isinstance(p, Files) and p is not source[n]}
    announce(new)
    return groups


def _resolved_part(part: Any, split: Split | None) -> Any:
    """The files of a group, or counts or texts as they are: texts may be read twice."""
    if isinstance(part, Counts):
        return part
    inputs = resolve(part, split=split, logs=False)
    return inputs if isinstance(inputs, Files) or isinstance(part, Iterator) else part


def group_counter(
    groups: object,
    regex: str | tuple[str, ...],
    purpose: str,
    reading: Reading,
    threads: int | None,
) -> Callable[[Bar], dict[str, Counts]]:
    """A function that counts each group, in the order of the groups, with a progress bar.

    Args:
        groups: sources of text, or counts, by name.
        regex: the pattern that counts must have.
        purpose: what requires groups, for error messages.
        reading: which text of each group is read, and how it is counted.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.

    Raises:
        ArgumentError: if the source is not a mapping of groups, or empty.
        CountsError: as in `counter_of`.
        CorpusError: as in `train`.
    """
    if not isinstance(groups, Mapping) or not groups:
        raise ArgumentError(
            f"{purpose} needs groups of text: pass sources by name, such as "
            '{"english": "en.txt", "code": "code/"}'
        )
    refuse_checkpoint(reading, purpose)
    resolved = resolved_once(groups, reading.split)
    counters = {
        name: counter_of(source, regex, reading, threads) for name, source in resolved.items()
    }
    return lambda bar: {name: count(bar) for name, count in counters.items()}


def mixture_counter(
    groups: object,
    mixture: Mixture,
    regex: str | tuple[str, ...],
    reading: Reading,
    threads: int | None,
) -> Callable[[Bar], Counts]:
    """A function that counts a mixture, with a progress bar; the arguments of `group_counter`.

    Raises:
        ArgumentError: as in `group_counter`, or if shares and groups have different names.
        CountsError: as in `Counts.mixture`.
        CorpusError: as in `train`.
    """
    count = group_counter(groups, regex, "mixture", reading, threads)
    if isinstance(groups, Mapping):  # check this before reading the text
        check_names("mixture", mixture.shares, groups)
    return partial(_mixed, count, mixture)


def _mixed(count: Callable[[Bar], dict[str, Counts]], mixture: Mixture, bar: Bar) -> Counts:
    return Counts.mixture(count(bar), mixture.shares)
