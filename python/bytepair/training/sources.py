"""Obtain counts from what one trains on: a source, counts, or named groups of either.

Groups are a mapping of names to sources, such as `{"english": "en/", "code": "code.parquet"}`; one
source is a group without a name. `check_groups` checks all of them before the work begins,
`count_groups` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

from bytepair import _core
from bytepair._internal.checks import check_kind
from bytepair._internal.progress import Bar
from bytepair.corpus.files import Files, announce
from bytepair.corpus.source import Reading, ResolvedSource, Source, resolve
from bytepair.errors import ArgumentError, CountsError, PatternError
from bytepair.files.outputs import check_output_file
from bytepair.training.counting import CountOptions, count_text
from bytepair.training.counts import Counts

#: Sources of text, or counts, by name.
Groups: TypeAlias = Mapping[str, Source | Counts]

#: Groups that are checked and not yet read.
CheckedGroups: TypeAlias = dict[str, ResolvedSource | Counts]


def pattern_of(
    source: Source | Counts | Groups, pattern: str | Sequence[str] | None
) -> str | tuple[str, ...]:
    """The split pattern: the given one, or else that of the counts, or nanochat's."""
    if pattern is not None:
        return _core.pattern(pattern)
    parts = source.values() if isinstance(source, Mapping) else [source]
    patterns = (part.pattern for part in parts if isinstance(part, Counts))
    return next(patterns, _core.pattern("nanochat"))


def splitting(tokenizer: _core.Tokenizer) -> str | tuple[str, ...]:
    """The pattern by which texts are counted for a tokenizer."""
    rules = _core.text_rules(tokenizer)
    if rules.normalizer:
        raise PatternError(
            "texts are counted without normalization, but the tokenizer normalizes them to "
            f"{', '.join(rules.normalizer)}"
        )
    pattern: str | tuple[str, ...] | None = tokenizer.pattern
    if pattern is None:
        kinds = ", ".join(rules.pre_tokenizer) or "not at all"
        raise PatternError(
            f"the tokenizer splits texts in another way than by regular expressions ({kinds}), so "
            "they cannot be counted for it"
        )
    return pattern


def check_groups(source: object, how: CountOptions, purpose: str = "") -> CheckedGroups:
    """Check that groups can be counted, before anything is read, and log what will be read.

    Args:
        source: groups; without a purpose, one source or counts, which become the group "".
        how: how they are counted.
        purpose: what requires groups, for error messages.

    Raises:
        ArgumentError: if the source is not as said above, or there is a checkpoint for groups.
        CountsError: if counts have a different pattern, or options for reading text are given.
        CorpusError: as in `train`.
        OSError: if the checkpoint cannot be written.
    """
    check_kind("reading", how.reading, Reading)
    if purpose:
        refuse_checkpoint(how.reading, purpose)
    if purpose and (not isinstance(source, Mapping) or not source):
        raise ArgumentError(
            f"{purpose} needs groups of text: pass sources by name, such as "
            '{"english": "en.txt", "code": "code/"}'
        )
    if isinstance(source, Mapping) and not purpose:
        raise ArgumentError(
            "the source is a mapping of groups, but no recipe says how to train on it",
            option="recipe",
            hint="pass a Mixture or Parity, or a list of files to train on all text equally",
        )
    if how.reading.checkpoint is not None and not isinstance(source, Counts):
        check_output_file(Path(how.reading.checkpoint))
    groups: Mapping[str, Any] = source if isinstance(source, Mapping) else {"": source}
    checked = {name: _checked(part, how) for name, part in groups.items()}
    announce({
        name: part
        for name, part in checked.items()
        if isinstance(part, Files) and part is not groups[name]
    })  # fmt: skip
    return checked


def _checked(part: Source | Counts, how: CountOptions) -> ResolvedSource | Counts:
    if not isinstance(part, Counts):
        return resolve(part, split=how.reading.split, logs=False)
    usual = vars(Reading())
    values = {one.name: getattr(how.reading, one.name) for one in fields(Reading)}
    changed = [name for name, value in values.items() if value != usual[name]]
    if how.reading.split == "all":  # ignores nothing
        changed.remove("split")
    if changed:
        raise CountsError(
            f"{', '.join(changed)} would be ignored, because the source is counts",
            option=changed[0],
            value=values[changed[0]],
            hint="pass options for reading text to bytepair.count",
        )
    if how.pattern != part.pattern:
        raise CountsError(
            f"the counts have the pattern {part.pattern!r}, not {how.pattern!r}",
            hint="pass no pattern to use that of the counts, or count the text again with the "
            "other one",
        )
    return part


def count_groups(groups: CheckedGroups, how: CountOptions, bar: Bar) -> dict[str, Counts]:
    """Count each group, in their order, with an open progress bar."""
    return {
        name: part if isinstance(part, Counts) else count_text(part, how, bar)
        for name, part in groups.items()
    }


def refuse_checkpoint(reading: Reading, purpose: str) -> None:
    """Refuse a checkpoint where more than one count is needed."""
    if reading.checkpoint is not None:
        raise ArgumentError(
            f"checkpoint and {purpose} cannot be combined: a checkpoint is for one count",
            option="checkpoint",
            value=reading.checkpoint,
            hint="count each source with bytepair.count and a checkpoint, and train on the counts",
        )
