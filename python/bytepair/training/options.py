"""Defines the options and recipes of training, and counts a source or groups of sources.

Groups are a mapping of names to sources, such as `{"english": "en/", "code": "code.parquet"}`; one
source is a group without a name. `check_groups` checks all of them before the work begins,
`count_groups` reads them. A recipe says how to train on them:

- Parity-aware BPE (Foroutan et al., arXiv 2508.04796): for each merge, the group that compresses
  worst is selected, and the most frequent pair of its text is merged.
- SuperBPE (Liu et al., arXiv 2503.13423) trains in two stages: the first is ordinary training with
  a pattern that splits at spaces, the second continues with a coarser pattern and learns tokens
  that span several words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from bytepair import _core
from bytepair._internal.checks import MOST, check_kind, check_whole, refuse
from bytepair._internal.progress import Bar
from bytepair.corpus.files import Files, announce
from bytepair.corpus.source import Reading, ResolvedSource, Source, resolve
from bytepair.errors import ArgumentError, CountsError, PatternError, VocabularyError
from bytepair.files.outputs import check_output_file
from bytepair.files.safe import json_note
from bytepair.tokenizer.vocabulary import check_not_ordinary, in_order, reserved
from bytepair.training.counting import CountOptions, count_text
from bytepair.training.counts import Counts, check_pattern

#: The tie-breaking rules for pairs with equal counts; see `bytepair.reference.tie_break`.
Ties: TypeAlias = Literal["rustbpe", "hf", "first-seen", "bytes-max", "characters-max"]

#: The special tokens of nanochat, in the order of their ids.
NANOCHAT_SPECIAL_TOKENS: Final[tuple[str, ...]] = (
    "<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>", "<|assistant_end|>",
    "<|python_start|>", "<|python_end|>", "<|output_start|>", "<|output_end|>",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of training that are seldom needed, passed to `bytepair.train` as `options`.

    Attributes:
        reserved: the number of ids reserved after the special tokens (`<|reserved_0|>`, ...) for
            special tokens that `Tokenizer.replace` adds later.
        padded_to: pad the vocabulary size with reserved ids to a multiple of this, such as 64, as
            models pad their embedding tables.
        initial_tokens: strings that are tokens whatever their count, each a single pretoken (with
            its leading space, if any). Their merges come first and count towards `vocab_size`.
        min_count: the minimum count of a pair to be merged.
        max_token_bytes: the maximum length of a token in bytes; None means no limit.

    Raises:
        ArgumentError: if a number is out of range.

    Example:
        >>> import bytepair
        >>> options = bytepair.TrainOptions(reserved=2, max_token_bytes=3)
        >>> tok = bytepair.train(["hello hello"], 261, special_tokens=(), options=options)
        >>> tok.vocab_size, list(tok.special_tokens)
        (261, ['<|reserved_0|>', '<|reserved_1|>'])
    """

    reserved: int = 0
    padded_to: int = 1
    initial_tokens: Sequence[str] = ()
    min_count: int = 1
    max_token_bytes: int | None = None

    def __post_init__(self) -> None:
        limits = {"reserved": 0, "padded_to": 1, "min_count": 1, "max_token_bytes": 2}
        for name, least in limits.items():
            value = getattr(self, name)
            if value is not None or name != "max_token_bytes":
                object.__setattr__(self, name, check_whole(name, value, least))
        object.__setattr__(self, "initial_tokens", in_order("initial_tokens", self.initial_tokens))


@dataclass(frozen=True, kw_only=True)
class TrainSettings(TrainOptions):
    """All options of training, as the core takes them."""

    vocab_size: int = 65536
    special_tokens: Sequence[str] | Literal["nanochat"] = "nanochat"
    ties: Ties = "rustbpe"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "vocab_size", check_whole("vocab_size", self.vocab_size, -MOST))
        names = self.special_tokens
        if isinstance(names, str):
            if names != "nanochat":
                raise refuse("special_tokens", names, '"nanochat" or a list of names')
            names = NANOCHAT_SPECIAL_TOKENS
        object.__setattr__(self, "special_tokens", in_order("special_tokens", names))
        check_not_ordinary(self.special_tokens, self.initial_tokens)

    @property
    def names(self) -> list[str]:
        """The names of the special tokens, including the reserved ones."""
        return [*self.special_tokens, *reserved(self.reserved, self.special_tokens)]

    @property
    def smallest(self) -> int:
        """The size of a vocabulary without merges."""
        return 256 + len(self.special_tokens) + self.reserved

    def check(self, pattern: str | tuple[str, ...]) -> None:
        """Check the size, and the rest by training on no text, before the corpus is read."""
        if self.vocab_size < self.smallest:
            what = f"the 256 bytes and the {self.smallest - 256} special tokens"
            text = f"vocab_size {self.vocab_size} is too small for {what}"
            raise VocabularyError(text, option="vocab_size", hint=f"pass at least {self.smallest}")
        _core.train(_core.Counts.from_items([], pattern), self)

    def in_units(self, denominator: int) -> Self:
        """The same settings, with `min_count` in units of the denominator of counts."""
        return replace(self, min_count=self.min_count * denominator)


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
    pattern: str | tuple[str, ...] | None = tokenizer.pattern
    if rules.normalizer or pattern is None:
        how = f"normalizes them to {', '.join(rules.normalizer)}"
        if not rules.normalizer:
            how = f"splits them by {', '.join(rules.pre_tokenizer) or 'nothing'}"
        raise PatternError(f"texts are counted by a pattern alone, but the tokenizer {how}")
    return pattern


def check_groups(source: object, how: CountOptions, purpose: str = "") -> CheckedGroups:
    """Check that groups can be counted, before anything is read, and log what will be read.

    Without a purpose, `source` is one source or counts, which become the group "".
    """
    check_kind("reading", how.reading, Reading)
    if purpose:
        refuse_checkpoint(how.reading, purpose)
        if not isinstance(source, Mapping) or not source:
            hint = 'pass sources by name, such as {"english": "en.txt", "code": "code/"}'
            raise ArgumentError(f"{purpose} needs groups of text", hint=hint)
    elif isinstance(source, Mapping):
        hint = "pass a Mixture or Parity, or a list of files to train on all text equally"
        problem = "the source is a mapping of groups, but no recipe says how to train on it"
        raise ArgumentError(problem, option="recipe", hint=hint)
    if how.reading.checkpoint is not None and not isinstance(source, Counts):
        check_output_file(Path(how.reading.checkpoint))
    groups: Mapping[str, Any] = source if isinstance(source, Mapping) else {"": source}
    checked = {name: _checked(part, how) for name, part in groups.items()}
    files = {name: part for name, part in checked.items() if isinstance(part, Files)}
    announce({name: part for name, part in files.items() if part is not groups[name]})
    return checked


def _checked(part: Source | Counts, how: CountOptions) -> ResolvedSource | Counts:
    if not isinstance(part, Counts):
        return resolve(part, split=how.reading.split, logs=False)
    split = None if how.reading.split == "all" else how.reading.split  # "all" ignores nothing
    values, usual = vars(replace(how.reading, split=split)), vars(Reading())
    if changed := [name for name, value in values.items() if value != usual[name]]:
        text = f"{', '.join(changed)} would be ignored, because the source is counts"
        hint = "pass options for reading text to bytepair.count"
        raise CountsError(text, option=changed[0], value=values[changed[0]], hint=hint)
    check_pattern(part, how.pattern)
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
        problem = f"checkpoint and {purpose} cannot be combined: a checkpoint is for one count"
        hint = "count each source with bytepair.count and a checkpoint, and train on the counts"
        raise ArgumentError(problem, option="checkpoint", value=reading.checkpoint, hint=hint)


#: The note of a tokenizer that records how its superwords were learned.
SUPERWORDS_NOTE: Final = "superwords"


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
        >>> recipe = bytepair.training.Mixture({"en": 0.8, "de": 0.2})
        >>> bytepair.train(groups, 270, recipe=recipe).vocab_size
        270
    """

    shares: Mapping[str, float | Fraction]


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
        >>> parity = bytepair.training.Parity(development={"en": ["a cat"], "de": ["eine Katze"]})
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
        if self.development is not None and self.ratios is not None:
            hint = "pass one of them: each defines which group compresses worst"
            raise ArgumentError("development and ratios are both given", hint=hint)
        ratios = {f"the ratio of {name!r}": ratio for name, ratio in (self.ratios or {}).items()}
        for name, value in {**ratios, "alpha": self.alpha}.items():
            if not 0 < value < inf:
                raise refuse(name, value, "above 0")
        if self.window is not None:
            check_whole("window", self.window, least=1)
        check_whole("global_merges", self.global_merges)


#: The part of a split pattern that matches digits.
_DIGITS: Final = re.compile(r"(?:^|\|)(?: \?)?(\\p\{N\}(?:\{\d+,\d+\}|\+)?\+?)(?=\||$)")

#: A punctuation mark or symbol.
_MARK: Final = r"[^\s\p{L}\p{M}\p{N}]"

#: After the digits: two or more marks, line ends, indentation, and all other text up to there.
_LINE: Final = (
    rf" ?{_MARK}{{2,}}[\r\n/]*|\s*[\r\n]| +(?!\S)"
    rf"|(?:[\p{{L}}\p{{M}}]| ?{_MARK}(?!{_MARK})| (?=[\p{{L}}\p{{M}}\p{{N}}])|[^\S \r\n])+"
    r"(?:\s*[\r\n])?"
)


@dataclass(frozen=True)
class Superwords:
    r"""Learn tokens that span several words after the others, by these rules.

    The text is read twice, so a source must be iterable repeatedly.

    Attributes:
        start: the vocabulary size after the first stage: a fraction of `vocab_size` between 0 and
            1, or a number of ids. The merges of the first stage are those of training to this size
            without superwords.
        pattern: the split pattern of the second stage and of the resulting tokenizer: a name in
            `bytepair.PATTERNS` or a regular expression. None means the pattern of the SuperBPE
            authors, applied line by line and with combining marks treated as letters: it splits at
            line ends, at digits (as the pattern of the first stage does), at runs of two or more
            punctuation marks, and at indentation.
        max_words: the maximum number of words in a token of the second stage; None means no limit.
        never: strings that tokens of the second stage may not contain.
        counts: the counts of the text with `pattern`; required if the training source is `Counts`
            instead of text.

    Raises:
        ArgumentError: if a number is out of range, or a string in `never` is empty.

    Example:
        >>> import bytepair
        >>> texts = ["so it is", "so it was", "so it goes"]
        >>> tok = bytepair.train(texts, 269, recipe=bytepair.training.Superwords(start=268))
        >>> tok.token_bytes(258), tok.token_bytes(259), tok.encode("so it")
        (b' it', b'so it', [259])
    """

    start: float = 0.8
    pattern: str | Sequence[str] | None = None
    max_words: int | None = 4
    never: Sequence[str] = (": ",)
    counts: Counts | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "never", tuple(in_order("never", self.never)))
        if not self.start > 0 or (isinstance(self.start, float) and self.start > 1):
            raise refuse("start", self.start, "a fraction between 0 and 1, or a number of ids")
        if self.max_words is not None:
            check_whole("max_words", self.max_words, least=1)
        if not all(self.never):
            raise refuse("never", self.never, "strings that are not empty")

    def regex(self, words: str | tuple[str, ...]) -> str:
        r"""The split pattern as a regular expression; `words` is that of the first stage."""
        if self.pattern is not None:
            return str(_core.pattern(self.pattern))
        match = _DIGITS.search(words if isinstance(words, str) else "|".join(words))
        digits = r"\p{N}{1,3}" if match is None else match.group(1)
        return f"{digits}|{_LINE}"


@dataclass(frozen=True)
class Stages:
    """How the superwords of a tokenizer were learned, as a note says, to resume and verify it."""

    merges: int  # of the first stage, as the pattern is
    pattern: str | tuple[str, ...]
    max_words: int | None
    never: Sequence[str]

    @property
    def limits(self) -> tuple[int | None, Sequence[str]]:
        """The limits of the second stage, as the core takes them."""
        return self.max_words, self.never

    @property
    def note(self) -> dict[str, str]:
        """The note to store in a tokenizer."""
        return {SUPERWORDS_NOTE: json.dumps(asdict(self))}

    @classmethod
    def of(cls, tokenizer: _core.Tokenizer) -> Self | None:
        """Read the note of a tokenizer; None if it has no superwords."""
        if SUPERWORDS_NOTE not in tokenizer.notes:
            return None
        try:  # it may be from a stranger's file
            note = json_note(tokenizer.notes, SUPERWORDS_NOTE, dict)
            merges, pattern, words = note["merges"], note["pattern"], note["max_words"]
            return cls(
                check_whole("merges", merges),
                pattern if isinstance(pattern, str) else tuple(in_order("pattern", pattern)),
                words if words is None else check_whole("max_words", words, least=1),
                in_order("never", note["never"]),
            )
        except (ValueError, KeyError) as error:
            text = f"the note {SUPERWORDS_NOTE!r} of the tokenizer is damaged: {error}"
            raise CountsError(text) from None


#: How to train on a source, or on groups of sources.
Recipe: TypeAlias = Mixture | Parity | Superwords


def divided(
    recipe: Recipe | Sequence[Recipe] | None,
) -> tuple[Mixture | None, Parity | None, Superwords | None]:
    """The parts of a recipe, which can be combined."""
    parts = list(recipe) if isinstance(recipe, list | tuple) else [recipe] if recipe else []
    for part in parts:
        if not isinstance(part, Recipe):
            raise refuse("recipe", part, "a Mixture, Parity or Superwords")
    of_kind: dict[type, Any] = {type(part): part for part in parts}
    if len(of_kind) < len(parts) or (Parity in of_kind and len(parts) > 1):
        names = " and ".join(type(part).__name__ for part in parts)
        raise ArgumentError(
            f"the recipes {names} cannot be combined", option="recipe", hint="pass one of them"
        )
    return of_kind.get(Mixture), of_kind.get(Parity), of_kind.get(Superwords)
