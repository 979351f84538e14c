"""Counts as a value: the distinct pretokens of a corpus, and how often each occurs.

They can be saved, added up, weighted, and trained from again and again. The file is plain parquet
with the columns `pretoken` (binary) and `count` (uint64), so that any other tool can make or filter
one; the pattern and the version of Unicode stand in its metadata.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from functools import reduce
from math import gcd, inf, lcm
from pathlib import Path
from typing import Final

from bytepair import _core
from bytepair.corpus.outputs import check_output_file
from bytepair.errors import ArgumentError, CountOverflowError, CountsError

FORMAT: Final = "1"

#: The bytes of a mixture in the unit of its numbers are about this many at most.
MIXTURE_BYTES: Final = 1 << 62

#: A denominator is below this.
DENOMINATORS: Final = 10**18
_COLUMNS: Final = frozenset(("pretoken", "count"))
_DENOMINATOR: Final = "bytepair.denominator"
_KEYS: Final = ("bytepair.training.counts", "bytepair.pattern", "bytepair.unicode")


class Counts:
    """The distinct pretokens of a corpus, in order of first occurrence, and how often each occurs.

    `bytepair.count` and `bytepair.load_counts` make them. Counts of one pattern can be added and
    weighted (`times`), which is how corpora are mixed.

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
        "denominator": "The unit of the numbers is one over this; 1, unless a weight is not whole.",
    }

    def __init__(self, core: _core.Counts, denominator: int = 1) -> None:
        common = core.divisor(denominator) if denominator > 1 else 1
        self.core = core.divided(common) if common > 1 else core
        self.denominator = denominator // common

    @staticmethod
    def found_in(path: str | os.PathLike[str]) -> bool:
        """Whether a file is parquet with the columns of counts, whatever its name.

        Args:
            path: anything; what is no file that can be read holds no counts.

        Example:
            >>> import bytepair
            >>> bytepair.Counts.found_in("corpus/")
            False
        """
        file = Path(path)
        with suppress(OSError):
            return file.is_file() and _COLUMNS.issubset(_core.counts_footer(file)[0])
        return False

    def save(
        self, path: str | os.PathLike[str], *, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Write the counts as parquet, by another name and a rename.

        Args:
            path: the file.
            metadata: what else its schema shall say.

        Raises:
            OSError: if the file cannot be written.
        """
        file = Path(path)
        check_output_file(file)
        values = (FORMAT, self.pattern, _core.UNICODE_VERSION)
        said = dict(zip(_KEYS, values, strict=True)) | dict(metadata or {})
        if self.denominator > 1:
            said[_DENOMINATOR] = str(self.denominator)
        self.core.save(file, list(said.items()))

    @property
    def pattern(self) -> str:
        """The split pattern, as a regular expression."""
        return self.core.pattern

    @property
    def total(self) -> int:
        """How many pretokens the corpus has, in the unit of the numbers (see `denominator`)."""
        return self.core.total

    @property
    def text_bytes(self) -> int:
        """How many bytes the corpus has, in the unit of the numbers (see `denominator`)."""
        return self.core.text_bytes

    def items(self) -> list[tuple[bytes, int]]:
        """List the pretokens with their counts, in order of first occurrence."""
        return self.core.items()

    def most_common(self, n: int | None = None) -> list[tuple[bytes, int]]:
        """List the `n` most frequent pretokens, or all; of equal ones the first seen first."""
        ordered = sorted(self.items(), key=lambda item: -item[1])
        return ordered if n is None else ordered[:n]

    def __len__(self) -> int:
        return len(self.core)

    def times(self, weight: int | float | Fraction) -> Counts:
        """Weight the corpus, as if it were there this many times.

        A weight that is not whole stays exact: the numbers are multiplied by its numerator, and
        `denominator` by its denominator, in lowest terms. So nothing is rounded, weights can be
        given in any order, and a mixture is trained as its proportions say; `min_count` of training
        is in whole occurrences.

        Args:
            weight: above 0. A float means the decimal number that it is written as: 0.1 is 1/10.

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
            raise CountsError(
                f"the weight {weight} is no number above 0; leave the corpus out instead of a "
                "weight of 0"
            )
        exact = _exact(weight)
        common = gcd(exact.numerator, self.denominator)
        unit = self.denominator // common * exact.denominator
        if max(unit, exact.numerator) >= DENOMINATORS:
            raise CountOverflowError(f"the weight {exact} needs more than 64 bits; round it")
        return Counts(self.core.times(exact.numerator // common), unit)

    @staticmethod
    def mixture(parts: Mapping[str, Counts], shares: Mapping[str, float | Fraction]) -> Counts:
        """Weight corpora so that each has its share of the bytes, and add them up.

        The weight of a part is its share times the bytes of all parts, over its own bytes, so the
        mixture has as many bytes as the parts have together. Weights are fractions. With the
        denominator that all have in common the numbers are whole, and exact. If that denominator
        is too large for 64 bits, it is instead the largest with which the mixture has at most 2^62
        bytes, and each weight is the nearest whole number over it. Parts are added in the order of
        their names, so neither the order of parts nor that of shares matters.

        Args:
            parts: corpora by name.
            shares: the share of each, by the same names; only their proportions count. A float
                means the decimal number that it is written as: 0.1 is 1/10.

        Raises:
            ArgumentError: if the names differ, or there are none.
            CountsError: if a share is not above 0, a part is empty, patterns differ, or a share is
                so small that its weight would be 0.

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
                raise CountsError(f"{name!r} has no text; leave it out of the mixture")
        whole = sum(map(_exact, shares.values()))
        total = sum(sizes.values())
        weights = {
            name: _exact(shares[name]) / whole * total / sizes[name] / parts[name].denominator
            for name in sorted(parts)
        }
        unit = lcm(*(weight.denominator for weight in weights.values()))
        unit = min(unit, int(MIXTURE_BYTES // total), DENOMINATORS - 1)
        times = {name: round(weight * unit) for name, weight in weights.items()}
        if missing := [name for name, number in times.items() if not number]:
            raise CountsError(
                f"the share of {missing[0]!r} is too small for the numbers of a mixture, which "
                "have 64 bits; leave it out, or give it a greater share"
            )
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


def check_names(option: str, given: Mapping[str, object], groups: Mapping[str, object]) -> None:
    """Fail if an option that says something of each group does not name the groups.

    Raises:
        ArgumentError: if so.
    """
    if not groups or set(given) != set(groups):
        raise ArgumentError(
            f"{option} names {', '.join(map(repr, sorted(given))) or 'nothing'}, and the groups "
            f"are {', '.join(map(repr, sorted(groups))) or 'none'}; pass one value for each group"
        )


def _exact(number: float | Fraction) -> Fraction:
    """A number as a fraction; a float means the decimal number that it is written as."""
    return Fraction(str(float(number)) if isinstance(number, float) else number)


def load_counts(path: str | os.PathLike[str], *, pattern: str | None = None) -> Counts:
    """Read counts that `Counts.save` wrote, or that another tool made.

    Args:
        path: a parquet file with the columns `pretoken` (binary or string) and `count`
            (integers).
        pattern: the split pattern, needed where the file does not say it: a name of
            `bytepair.PATTERNS` or a regular expression.

    Raises:
        FileNotFoundError: if there is no such file.
        CountsError: if the file is no table of counts: columns are missing, a pretoken is empty
            or stands there twice, a count is not positive, the pattern is not known, or the
            version of Unicode or of the format is another one.

    Example:
        >>> import bytepair, tempfile, pathlib
        >>> counts = bytepair.count(["one two one"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "counts.parquet"
        ...     counts.save(file)
        ...     bytepair.load_counts(file) == counts
        True
    """
    regex = None if pattern is None else _core.pattern(pattern)
    file = Path(path)
    metadata = metadata_of(file)
    try:
        core = _core.Counts.load(file, _pattern_of(metadata, regex))
        return Counts(core, _denominator_of(metadata))
    except OSError as error:  # which names the file
        raise CountsError(str(error)) from error
    except CountsError as error:
        raise CountsError(f"{path}: {error}") from None


def metadata_of(path: Path) -> dict[str, str]:
    """What the metadata of a file of counts says."""
    if not path.exists():
        raise FileNotFoundError(
            f"there are no counts at {path}; look at the name, or make them with bytepair count"
        )
    try:
        return dict(_core.counts_footer(path)[1])
    except OSError as error:  # which names the file
        raise CountsError(str(error)) from error


def _pattern_of(metadata: dict[str, str], pattern: str | None) -> str:
    """The pattern that the file says, or else the one that the caller says."""
    version, stored, unicode = (metadata.get(key) for key in _KEYS)
    if stored is None:
        if pattern is None:
            raise CountsError("it does not say its split pattern; pass pattern=")
        return pattern
    if version != FORMAT or unicode != _core.UNICODE_VERSION:
        raise CountsError(
            f"format {version!r} with Unicode {unicode!r}; this bytepair reads format {FORMAT!r} "
            f"with Unicode {_core.UNICODE_VERSION}"
        )
    if pattern not in (None, stored):
        raise CountsError(f"its pattern is {stored!r} and not {pattern!r}")
    return stored


def _denominator_of(metadata: dict[str, str]) -> int:
    """The unit that the file says; 1 if it says none."""
    said = metadata.get(_DENOMINATOR, "1")
    if not re.fullmatch("[0-9]{1,18}", said) or not int(said):
        raise CountsError(f"its denominator is {said!r}; it must be a whole number above 0")
    return int(said)
