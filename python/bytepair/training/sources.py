"""Obtain counts from what one trains on: a source, counts, or named groups of either.

Groups are a mapping of names to sources, such as `{"english": "en/", "code": "code.parquet"}`. In a
mixture, each group has a given share of the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, Unpack

from bytepair import _core
from bytepair._internal.progress import Bar
from bytepair.corpus.bounds import DOCUMENT_BYTES
from bytepair.corpus.files import Files, announce
from bytepair.corpus.source import Source, resolve
from bytepair.corpus.splits import Split
from bytepair.errors import ArgumentError, CountsError, PatternError
from bytepair.training.counting import CountJob, ReadKeywords
from bytepair.training.counts import Counts, check_names

#: Sources of text, or counts, by name.
Groups: TypeAlias = Mapping[str, Source | Counts]

#: The share of each group in the bytes of a mixture; shares are normalized.
Shares: TypeAlias = Mapping[str, float | Fraction]


def pattern_of(
    source: Source | Counts | Groups | None, pattern: str | Sequence[str] | None
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
    if tokenizer.rules.normalizer:
        raise PatternError(
            "texts are counted without normalization, but the tokenizer normalizes them to "
            f"{', '.join(tokenizer.rules.normalizer)}"
        )
    pattern: str | tuple[str, ...] | None = tokenizer.pattern
    if pattern is None:
        kinds = ", ".join(tokenizer.rules.pre_tokenizer) or "not at all"
        raise PatternError(
            f"the tokenizer splits texts in another way than by regular expressions ({kinds}), so "
            "they cannot be counted for it"
        )
    return pattern


def counter_of(
    source: Source | Counts | None, regex: str | tuple[str, ...], **reading: Unpack[ReadKeywords]
) -> Callable[[Bar], Counts]:
    """A function that counts a source with a progress bar; for counts it returns them.

    Args:
        source: a source of text, or counts.
        regex: the pattern that the counts must have.
        reading: which text is read, and how.

    Raises:
        CountsError: if counts have a different pattern, or options for reading text are given.
        CorpusError: as in `train`.
    """
    if isinstance(source, Mapping):
        raise ArgumentError(
            "the source is a mapping of groups, but neither mixture nor parity is given",
            hint="pass a list of files to train on all text equally",
        )
    if not isinstance(source, Counts):
        return CountJob.of(source, regex, **reading).run
    usual = {"column": "text", "errors": "strict", "max_document_bytes": DOCUMENT_BYTES}
    changed = [name for name, value in reading.items() if value != usual.get(name)]
    kept = ["threads", *(["split"] if reading.get("split") == "all" else [])]  # ignores nothing
    if names := [name for name in changed if name not in kept]:
        raise CountsError(
            f"{', '.join(names)} would be ignored, because the source is counts",
            option=names[0],
            value=reading[names[0]],  # type: ignore[literal-required]
            hint="pass options for reading text to bytepair.count",
        )
    if regex != source.pattern:
        raise CountsError(
            f"the counts have the pattern {source.pattern!r}, not {regex!r}",
            hint=(
                "pass no pattern to use that of the counts, or count the text again with the "
                "other one"
            ),
        )
    return lambda _: source


def refuse_checkpoint(reading: ReadKeywords, purpose: str) -> None:
    """Refuse a checkpoint where more than one count is needed.

    Args:
        reading: the options for reading text.
        purpose: the option that needs several counts, for the error message.

    Raises:
        ArgumentError: if there is a checkpoint.
    """
    if reading.get("checkpoint") is not None:
        raise ArgumentError(
            f"checkpoint and {purpose} cannot be combined: a checkpoint is for one count",
            option="checkpoint",
            value=reading["checkpoint"],
            hint="count each source with bytepair.count(..., checkpoint=...), and train on the "
            "counts",
        )


def resolved_once(source: Any, reading: ReadKeywords) -> tuple[Any, ReadKeywords]:
    """A source, or groups of them, resolved and logged once, and the remaining keywords.

    Args:
        source: a source of text, counts, or groups of these.
        reading: which text is read, and how; may name `files` or `texts` instead of a source.

    Raises:
        CorpusError: as in `train`.
    """
    if isinstance(source, Counts):
        return source, reading
    rest: ReadKeywords = {**reading}
    files, texts = rest.pop("files", None), rest.pop("texts", None)
    split = rest.get("split")
    if not isinstance(source, Mapping):
        inputs = resolve(source, files=files, texts=texts, split=split)
        return (inputs, rest) if isinstance(inputs, Files) else (source, reading)
    groups = {name: _resolved_part(part, split) for name, part in source.items()}
    new = {n: p for n, p in groups.items() if isinstance(p, Files) and p is not source[n]}
    announce(new)
    return groups, rest


def _resolved_part(part: Any, split: Split | None) -> Any:
    """The files of a group, or counts or texts as they are: texts may be read twice."""
    if isinstance(part, Counts):
        return part
    inputs = resolve(part, split=split, logs=False)
    return inputs if isinstance(inputs, Files) or isinstance(part, Iterator) else part


def group_counter(
    groups: object, regex: str | tuple[str, ...], purpose: str, **reading: Unpack[ReadKeywords]
) -> Callable[[Bar], dict[str, Counts]]:
    """A function that counts each group, in the order of the groups, with a progress bar.

    Args:
        groups: sources of text, or counts, by name.
        regex: the pattern that counts must have.
        purpose: the option that requires groups, for error messages.
        reading: which text of each group is read, and how.

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
    named = {key: value for key in ("files", "texts") if (value := reading.pop(key, None))}  # type: ignore[misc]
    if named:
        first = next(iter(named))
        raise ArgumentError(
            f"{' and '.join(named)} would be ignored, because the source is a mapping",
            option=first,
            value=named[first],
        )
    refuse_checkpoint(reading, purpose)
    resolved, reading = resolved_once(groups, reading)
    counters = {name: counter_of(source, regex, **reading) for name, source in resolved.items()}
    return lambda bar: {name: count(bar) for name, count in counters.items()}


def mixture_counter(
    groups: object, shares: Shares, regex: str | tuple[str, ...], **reading: Unpack[ReadKeywords]
) -> Callable[[Bar], Counts]:
    """A function that counts a mixture, with a progress bar.

    Args:
        groups: as in `group_counter`.
        shares: as in `Counts.mixture`.
        regex: the pattern that counts must have.
        reading: which text of each group is read, and how.

    Raises:
        ArgumentError: as in `group_counter`, or if shares and groups have different names.
        CountsError: as in `Counts.mixture`.
        CorpusError: as in `train`.
    """
    count = group_counter(groups, regex, "mixture", **reading)
    if isinstance(groups, Mapping):  # check this before reading the text
        check_names("mixture", shares, groups)
    return partial(_mixed, count, shares)


def _mixed(count: Callable[[Bar], dict[str, Counts]], shares: Shares, bar: Bar) -> Counts:
    return Counts.mixture(count(bar), shares)
