"""Parity-aware BPE: train so that no group of text compresses much worse than the others.

For each merge, the group that compresses worst is selected, and the most frequent pair of its text
is merged (Foroutan et al., arXiv 2508.04796). `Parity` defines how groups are compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite, lcm
from typing import Final

from bytepair import _core
from bytepair.corpus.source import Source
from bytepair.errors import ArgumentError, CorpusError
from bytepair.training.counting import CountOptions
from bytepair.training.counts import Counts, check_names
from bytepair.training.options import TrainSettings
from bytepair.training.sources import CheckedGroups, check_groups

#: The note of a tokenizer that records the number of merges of each group.
NOTE: Final = "parity"


@dataclass(frozen=True)
class Parity:
    """Train on groups of sources so that none compresses much worse than the others.

    It says how `bytepair.train` selects the group for each merge.

    Without development sets and ratios, the group whose training text has the most tokens is
    selected. Pass one of the two, unless the training texts of the groups are parallel.

    Attributes:
        development: a development text for each group, by name, as a source or counts; preferably
            the same text in all languages. The group with the most tokens in it is selected.
        ratios: the desired bytes per token of each group, relative to the others. The group with
            the smallest actual value, divided by the desired one, is selected.
        window: the number of recent merges in which the share of a group is limited; None means no
            limit.
        alpha: the limit within the window, as a multiple of an equal share.
        global_merges: the number of first merges selected by the counts of all groups together (the
            hybrid variant).

    Raises:
        ArgumentError: if both development sets and ratios are given, or a number is out of range.

    Example:
        >>> import bytepair
        >>> texts = {"en": ["the cat and the hat"], "de": ["die Katze und der Hut"]}
        >>> parity = bytepair.Parity(development={"en": ["a cat"], "de": ["eine Katze"]})
        >>> tok = bytepair.train(texts, 270, recipe=parity)
        >>> tok.vocab_size
        270
    """

    development: Mapping[str, Source | Counts] | None = None
    ratios: Mapping[str, float] | None = None
    window: int | None = None
    alpha: float = 2.0
    global_merges: int = 0

    def __post_init__(self) -> None:
        """Check the values before the corpus is read."""
        if self.development is not None and self.ratios is not None:
            raise ArgumentError(
                "development and ratios are both given",
                hint="pass one of them: each defines which group compresses worst",
            )
        for name, ratio in (self.ratios or {}).items():
            if not (isfinite(ratio) and ratio > 0):
                raise ArgumentError(f"the ratio of {name!r} is {ratio}; it must be above 0")
        if self.window is not None and self.window < 1:
            raise ArgumentError(
                f"window is {self.window}",
                option="window",
                hint="pass at least 1, or None for no window",
            )
        if not (isfinite(self.alpha) and self.alpha > 0):
            raise ArgumentError(f"alpha is {self.alpha}; it must be above 0", option="alpha")
        if self.global_merges < 0:
            raise ArgumentError(
                f"global_merges is {self.global_merges}",
                option="global_merges",
                hint="pass 0 or more",
            )


def check_development(
    parity: Parity, groups: CheckedGroups, how: CountOptions
) -> tuple[CheckedGroups, CountOptions]:
    """Check the development sets and ratios of groups; the sets, and how they are counted."""
    whole = replace(how, reading=replace(how.reading, max_chars=None))
    if parity.ratios is not None:
        check_names("ratios", parity.ratios, groups)
    if parity.development is None:
        return {}, whole
    check_names("development", parity.development, groups)
    return check_groups(parity.development, whole, "development"), whole


@dataclass(frozen=True)
class ParityCounts:
    """The counts of groups and of their development sets, with a common denominator.

    Attributes:
        parity: how groups are selected.
        groups: the counts to train on.
        development: the counts by which groups are compared; if empty, the training counts.
    """

    parity: Parity
    groups: dict[str, Counts]
    development: dict[str, Counts]

    def __post_init__(self) -> None:
        """Check that no text is empty: its compression would be undefined."""
        for kind, texts in (("group", self.groups), ("development set", self.development)):
            for name, counts in texts.items():
                if not counts.text_bytes:
                    raise CorpusError(f"the {kind} {name!r} has no text", hint="check its path")

    def learn(
        self,
        options: TrainSettings,
        *,
        threads: int | None,
        on_progress: Callable[[int, int], object],
    ) -> _core.Model:
        """Train, and record the number of merges of each group."""
        groups, unit = _in_one_unit(self.groups)
        development, _ = _in_one_unit(
            {name: self.development[name] for name in self.groups} if self.development else {}
        )
        parity = self.parity
        trained = _core.train_parity(
            groups, development, replace(options, min_count=options.min_count * unit),
            ratios=None if parity.ratios is None else [parity.ratios[n] for n in self.groups],
            window=parity.window, alpha=parity.alpha, global_merges=parity.global_merges,
            threads=threads, on_progress=on_progress,
        )  # fmt: skip
        merges = {name: trained.groups.count(index) for index, name in enumerate(self.groups)}
        tokenizer = _core.Tokenizer(trained.model)
        return _core.with_notes(
            tokenizer, {**tokenizer.notes, NOTE: json.dumps({"merges": merges})}
        )


def _in_one_unit(parts: Mapping[str, Counts]) -> tuple[list[_core.Counts], int]:
    """Several counts with a common denominator, and that denominator."""
    unit = lcm(*(counts.denominator for counts in parts.values()))
    return [counts.core.times(unit // counts.denominator) for counts in parts.values()], unit
