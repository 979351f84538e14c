"""Defines the options of training, and counts what is trained on: a source, counts, or groups.

Groups are a mapping of names to sources, such as `{"english": "en/", "code": "code.parquet"}`; one
source is a group without a name. `check_groups` checks all of them before the work begins,
`count_groups` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from bytepair import _core
from bytepair._internal.checks import MOST, check_kind, check_whole
from bytepair._internal.progress import Bar
from bytepair.corpus.files import Files, announce
from bytepair.corpus.source import Reading, ResolvedSource, Source, resolve
from bytepair.errors import ArgumentError, CountsError, PatternError, VocabularyError
from bytepair.files.outputs import check_output_file
from bytepair.tokenizer.vocabulary import check_not_ordinary, in_order, reserved
from bytepair.training.counting import CountOptions, count_text
from bytepair.training.counts import Counts

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
        """Check the values before the corpus is read."""
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
        """Check the values before the corpus is read."""
        super().__post_init__()
        object.__setattr__(self, "vocab_size", check_whole("vocab_size", self.vocab_size, -MOST))
        names = self.special_tokens
        if isinstance(names, str) and names != "nanochat":
            raise ArgumentError(
                f"special_tokens is {names!r}",
                option="special_tokens",
                hint='pass "nanochat" or a list of names',
            )
        names = NANOCHAT_SPECIAL_TOKENS if isinstance(names, str) else names
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

    def check_size(self) -> None:
        """Check that the vocabulary has room for the 256 bytes and the special tokens."""
        if self.vocab_size < self.smallest:
            raise VocabularyError(
                f"vocab_size {self.vocab_size} is too small for the 256 bytes and the "
                f"{self.smallest - 256} special tokens",
                option="vocab_size",
                hint=f"pass at least {self.smallest}",
            )


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

    Without a purpose, `source` is one source or counts, which become the group "".
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
    files = {name: part for name, part in checked.items() if isinstance(part, Files)}
    announce({name: part for name, part in files.items() if part is not groups[name]})
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
