"""The class `Counts`: the distinct pretokens of a corpus, and how often each occurs; and its files.

Counts can be saved, added, weighted, and trained on repeatedly. A file is parquet with the columns
`pretoken` (binary) and `count` (uint64), which other tools can create or filter; its metadata has
the pattern, the version of Unicode, the denominator and, in a checkpoint, the state of the count.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import reduce
from math import gcd, inf, lcm
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from bytepair import _core
from bytepair._internal.checks import exact_fraction
from bytepair.corpus.column import Skip, SkipLog
from bytepair.errors import (
    ArgumentError,
    CountOverflowError,
    CountsError,
    NotFoundError,
    OverwriteError,
)
from bytepair.files.outputs import check_output_file
from bytepair.files.safe import are_counts, parse_json, read_file
from bytepair.tokenizer.vocabulary import in_order

#: The approximate maximum of the bytes of a mixture, times its denominator.
MIXTURE_BYTES: Final = 1 << 62

#: The upper limit of a denominator (exclusive).
DENOMINATOR_LIMIT: Final = 10**18

FORMAT: Final = "1"
COLUMNS: Final = frozenset(("pretoken", "count"))
_DENOMINATOR: Final = "bytepair.denominator"
_FORMAT: Final = "bytepair.training.counts"
_UNICODE: Final = "bytepair.unicode"
#: A regular expression, or a JSON list of several.
_PATTERN: Final = "bytepair.pattern"
_STEPS: Final = "bytepair.pattern_steps"
#: The name of the state in the metadata.
STATE: Final = "bytepair.checkpoint"


class Counts:
    """The distinct pretokens of a corpus, in order of first occurrence, and how often each occurs.

    Created by `bytepair.count` and `bytepair.training.load_counts`. Counts with the same pattern
    can be added and weighted (`times`) to mix corpora.

    Example:
        >>> import bytepair
        >>> news = bytepair.count(["one two one"])
        >>> code = bytepair.count(["one = 1"])
        >>> mixture = news + code * 3
        >>> mixture.most_common(2)
        [(b'one', 4), (b' =', 3)]
    """

    __slots__ = {
        "core": "The counts in Rust.",
        "denominator": "The counts are in units of 1/denominator; 1 without fractional weights.",
    }

    def __init__(self, core: _core.Counts, denominator: int = 1) -> None:
        self.core, common = core.reduced(denominator) if denominator > 1 else (core, 1)
        self.denominator = denominator // common

    @staticmethod
    def is_counts_file(path: str | os.PathLike[str]) -> bool:
        """Whether a path is that of a parquet file with the columns of counts."""
        file = Path(path)
        return file.is_file() and (columns_of(file) or frozenset()) >= COLUMNS

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        metadata: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the counts as parquet, atomically: to a temporary file, which is renamed.

        Args:
            path: the output file.
            metadata: additional metadata of the schema.
            overwrite: whether to replace a file that holds no counts.

        Raises:
            OverwriteError: if the file exists and holds no counts, and `overwrite` is false.
        """
        check_counts_output(file := Path(path), overwrite=overwrite)
        items = {_FORMAT: FORMAT, _UNICODE: _core.UNICODE_VERSION}
        is_one = isinstance(self.pattern, str)
        items[_PATTERN if is_one else _STEPS] = self.pattern if is_one else json.dumps(self.pattern)
        items |= metadata or {}
        if self.denominator > 1:
            items[_DENOMINATOR] = str(self.denominator)
        self.core.save(file, list(items.items()))

    @property
    def pattern(self) -> str | Any:
        """The split pattern, a regular expression; or a tuple of several, in steps."""
        return self.core.pattern

    @property
    def total(self) -> int:
        """The number of pretokens in the corpus, in units of 1/`denominator`."""
        return self.core.total

    @property
    def text_bytes(self) -> int:
        """The number of bytes in the corpus, in units of 1/`denominator`."""
        return self.core.text_bytes

    def items(self) -> list[tuple[bytes, int]]:
        """List the pretokens with their counts, in order of first occurrence."""
        return self.core.items()

    def most_common(self, n: int | None = None) -> list[tuple[bytes, int]]:
        """List the `n` most frequent pretokens, or all; ties are in order of first occurrence."""
        ordered = sorted(self.items(), key=lambda item: -item[1])
        return ordered if n is None else ordered[:n]

    def __len__(self) -> int:
        return len(self.core)

    def times(self, weight: int | float | Fraction) -> Counts:
        """Multiply all counts by a weight, as if the corpus were repeated this many times.

        Fractional weights are exact: counts are multiplied by the numerator, and `denominator` by
        the denominator, in lowest terms. So nothing is rounded, and weights can be applied in any
        order. `min_count` of training is in whole occurrences.

        Args:
            weight: a number above 0. 0.1 means exactly one tenth.

        Raises:
            CountsError: if the weight is not above 0.
            CountOverflowError: if a number exceeds 64 bits.

        Example:
            >>> import bytepair
            >>> news, code = bytepair.count(["one two"]), bytepair.count(["one"])
            >>> mixture = news.times(2.5) + code
            >>> mixture.items(), mixture.denominator
            ([(b'one', 7), (b' two', 5)], 2)
            >>> mixture.times(2) == news.times(5) + code.times(2)
            True
        """
        if not 0 < weight < inf:
            hint = "to exclude a corpus, do not add it"
            raise CountsError(f"the weight {weight} is not a number above 0", hint=hint)
        exact = exact_fraction(weight)
        common = gcd(exact.numerator, self.denominator)
        unit = self.denominator // common * exact.denominator
        if max(unit, exact.numerator) >= DENOMINATOR_LIMIT:
            raise CountOverflowError(f"the weight {exact} needs more than 64 bits; round it")
        return Counts(self.core.times(exact.numerator // common), unit)

    @staticmethod
    def mixture(parts: Mapping[str, Counts], shares: Mapping[str, float | Fraction]) -> Counts:
        """Add corpora, weighted so that each has a given share of the bytes.

        The mixture has as many bytes as all parts together. Weights are exact fractions over their
        common denominator, and rounded only if it exceeds 64 bits (`docs/languages.md`). Parts are
        added in the order of their names, so the order of the arguments does not matter.

        Args:
            parts: corpora by name.
            shares: the share of each corpus, by the same names; shares are normalized. A float
                means its decimal notation: 0.1 is 1/10.

        Raises:
            ArgumentError: if the names differ, or there are none.
            CountsError: if a share is not above 0, a part is empty, patterns differ, or a share is
                so small that its weight rounds to 0.

        Example:
            >>> import bytepair
            >>> parts = {"en": bytepair.count(["one two"]), "code": bytepair.count(["x=1"])}
            >>> mixture = bytepair.Counts.mixture(parts, {"en": 0.4, "code": 0.6})
            >>> mixture.items(), mixture.denominator
            ([(b'x', 14), (b'=', 14), (b'1', 14), (b'one', 4), (b' two', 4)], 7)
        """
        check_names("mixture", shares, parts)
        sizes = {name: Fraction(part.text_bytes, part.denominator) for name, part in parts.items()}
        for name, share in shares.items():
            if not 0 < share < inf:
                raise CountsError(f"the share of {name!r} is {share}; it must be above 0")
            if not sizes[name]:
                raise CountsError(f"{name!r} has no text; exclude it from the mixture")
        whole = sum(map(exact_fraction, shares.values()))
        total = sum(sizes.values())
        each = {name: sizes[name] * parts[name].denominator * whole for name in sorted(parts)}
        weights = {name: exact_fraction(shares[name]) * total / each[name] for name in each}
        unit = lcm(*(weight.denominator for weight in weights.values()))
        unit = min(unit, int(MIXTURE_BYTES // total), DENOMINATOR_LIMIT - 1)
        times = {name: round(weight * unit) for name, weight in weights.items()}
        if missing := [name for name, number in times.items() if not number]:
            problem = f"the share of {missing[0]!r} is too small for 64-bit counts"
            raise CountsError(problem, hint="exclude it, or increase it")
        cores = [parts[name].core.times(number) for name, number in times.items()]
        return Counts(reduce(lambda one, two: one.plus(two), cores), unit)

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        unit = lcm(self.denominator, other.denominator)
        one, two = (counts.core.times(unit // counts.denominator) for counts in (self, other))
        return Counts(one.plus(two), unit)

    def __mul__(self, weight: float | Fraction) -> Counts:
        return self.times(weight) if isinstance(weight, int | float | Fraction) else NotImplemented

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return False
        return self.denominator == other.denominator and self.core == other.core

    def __hash__(self) -> int:
        return hash(self.core)

    def __repr__(self) -> str:
        return f"<bytepair.Counts: {len(self):,} distinct pretokens of {self.total:,}>"


def check_names(option: str, values: Mapping[str, object], groups: Mapping[str, object]) -> None:
    """Check that an option has one value for each group."""
    if not groups or set(values) != set(groups):
        raise ArgumentError(
            f"{option} has the names {', '.join(map(repr, sorted(values))) or '(none)'}, but "
            f"the groups are {', '.join(map(repr, sorted(groups))) or '(none)'}",
            hint="pass one value for each group",
        )


def check_pattern(counts: Counts, pattern: str | tuple[str, ...]) -> None:
    """Check that counts have a split pattern."""
    if counts.pattern != pattern:
        raise CountsError(
            f"the counts have the pattern {counts.pattern!r}, not {pattern!r}",
            hint="count the text again with the other one; train with no pattern takes theirs",
        )


def load_counts(
    path: str | os.PathLike[str], *, pattern: str | Sequence[str] | None = None
) -> Counts:
    """Read counts written by `Counts.save` or another tool.

    Args:
        path: a parquet file with the columns `pretoken` (binary or string) and `count`
            (integers).
        pattern: the split pattern, required if the file does not contain it: a name in
            `bytepair.PATTERNS` or a regular expression.

    Raises:
        NotFoundError: if the file does not exist.
        CountsError: if the file is not a valid table of counts with this pattern and version of
            Unicode, or is the checkpoint of an unfinished count.

    Example:
        >>> import bytepair, tempfile, pathlib
        >>> counts = bytepair.count(["one two one"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "counts.parquet"
        ...     counts.save(file)
        ...     bytepair.training.load_counts(file) == counts
        True
    """
    file = Path(path)
    state = metadata_of(file).get(STATE)
    if state is not None and not CountState.read(state, file).complete:
        hint = "run the count again with this checkpoint, and save its result"
        raise CountsError(f"{path} is the checkpoint of an unfinished count", hint=hint)
    return read_counts(file, pattern=pattern)


def read_counts(file: Path, *, pattern: str | Sequence[str] | None = None) -> Counts:
    """Read counts, also those of a checkpoint; see `load_counts`."""
    regex = None if pattern is None else _core.pattern(pattern)
    metadata = metadata_of(file)
    try:
        core = _core.Counts.load(file, _pattern_of(metadata, regex))
        return Counts(core, _denominator_of(metadata))
    except OSError as error:  # which names the file
        raise CountsError(str(error)) from error
    except CountsError as error:
        raise error.at(str(file)) from None


def columns_of(path: Path) -> frozenset[str] | None:
    """The columns of a parquet file; None if it is damaged, or another file."""
    try:
        return frozenset(_core.counts_footer(path)[0])
    except (OSError, CountsError):
        return None


def check_counts_output(path: Path, *, overwrite: bool = False) -> None:
    """Check that counts can be written to a file, which may replace counts and nothing else."""
    check_output_file(path)
    if overwrite or not path.exists() or not path.stat().st_size:
        return
    columns = columns_of(path)
    # What begins as parquet and cannot be read may be damaged counts.
    is_own = read_file(path, 4) == b"PAR1" if columns is None else columns >= COLUMNS
    if not is_own:
        raise OverwriteError(path, "holds no counts", hint="choose another path")


def metadata_of(path: Path) -> dict[str, str]:
    """The metadata of a file of counts."""
    if not path.exists():
        hint = "check the path, or create it with bytepair count"
        raise NotFoundError(f"{path} does not exist", hint=hint)
    try:
        return dict(_core.counts_footer(path)[1])
    except OSError as error:  # which names the file
        raise CountsError(str(error)) from error


def _pattern_of(
    metadata: dict[str, str], pattern: str | tuple[str, ...] | None
) -> str | tuple[str, ...]:
    """The pattern in the file, or else the one passed by the caller."""
    version, unicode = metadata.get(_FORMAT), metadata.get(_UNICODE)
    stored: Any = metadata.get(_PATTERN)
    if _STEPS in metadata:
        try:
            stored = tuple(in_order(_STEPS, parse_json(metadata[_STEPS].encode(), _STEPS)))
        except ValueError:
            raise CountsError(f"the value of {_STEPS} is not a list of texts") from None
    if stored is None:
        if pattern is None:
            text = "the file does not contain its split pattern"
            raise CountsError(text, option="pattern", hint="pass pattern=")
        return pattern
    if version != FORMAT or unicode != _core.UNICODE_VERSION:
        raise CountsError(
            f"format {version!r} with Unicode {unicode!r}; this bytepair reads format {FORMAT!r} "
            f"with Unicode {_core.UNICODE_VERSION}"
        )
    if pattern not in (None, stored):
        raise CountsError(f"its pattern is {stored!r}, not {pattern!r}")
    return stored  # type: ignore[no-any-return]


def _denominator_of(metadata: dict[str, str]) -> int:
    text = metadata.get(_DENOMINATOR, "1")
    if not re.fullmatch("[1-9][0-9]{0,17}", text):
        raise CountsError(f"its denominator is {text!r}, not an integer above 0")
    return int(text)


class FilePlace(NamedTuple):
    """A place in files: what lies before the byte of the file, and all characters before it."""

    file: int = 0
    byte: int = 0
    line: int = 0
    row: int = 0
    chars: int = 0


#: The place before the first byte of the first file.
START: Final = FilePlace()


@dataclass
class CountState:
    """What a count has done before, as a checkpoint saves it: so many texts of so many bytes."""

    job: dict[str, Any]  # the values that must be equal to resume
    texts: int = 0
    bytes: int = 0
    reached: FilePlace = START  # from which the core continues
    pretokens: int = 0  # the total of the counts, of which the file has no checksum
    skips: SkipLog = field(default_factory=SkipLog)
    complete: bool = False

    def to_json(self) -> str:
        """The state for the metadata of a file of counts."""
        values = asdict(self)
        return json.dumps({**values, "crc32": _crc_of(values)})

    @classmethod
    def read(cls, text: str, path: str | Path) -> Self:
        """The state that a file of counts has in its metadata."""
        try:
            values = json.loads(text)
            if values.pop("crc32") == _crc_of(values):
                skips = values["skips"]
                values["skips"] = SkipLog(skips["documents"], [*map(skip_of, skips["first"])])
                values["reached"] = FilePlace._make(values["reached"])
                state = cls(**values)
                numbers = (state.texts, state.bytes, state.pretokens, state.skips.documents)
                if are_counts(*numbers, *state.reached) and isinstance(state.job, dict):
                    return state
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise damaged(path)


def skip_of(values: Any) -> Skip:
    """The skipped documents that a value of JSON describes."""
    match values:
        case [str(), row, int() | None, str(), str()] if are_counts(row):
            return Skip(*values)
    raise ValueError("a skipped document is not what it must be")


def damaged(path: str | Path) -> CountsError:
    """The error of a checkpoint that is not as it was written."""
    return CountsError(f"the checkpoint {path} is damaged", hint="remove it to start again")


def _crc_of(values: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(values).encode()):08x}"
