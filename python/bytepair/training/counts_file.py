"""Read and write files of counts, which may hold the state of a count that can be resumed.

A file is parquet with the columns `pretoken` (binary) and `count` (uint64); its metadata has the
pattern, the version of Unicode, the denominator and, in a checkpoint, the state.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from bytepair import _core
from bytepair.corpus.column import Skip, SkipLog
from bytepair.errors import CountsError, NotFoundError, OverwriteError
from bytepair.files.outputs import check_output_file
from bytepair.files.safe import read_file

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


def columns_of(path: Path) -> frozenset[str] | None:
    """The columns of a parquet file; None if it is damaged, or another file."""
    try:
        return frozenset(_core.counts_footer(path).columns)
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


def write(
    path: Path,
    counts: _core.Counts,
    denominator: int,
    metadata: Mapping[str, str],
    *,
    overwrite: bool = False,
) -> None:
    """Write counts atomically: to a temporary file, which is renamed."""
    check_counts_output(path, overwrite=overwrite)
    items = {_FORMAT: FORMAT, _UNICODE: _core.UNICODE_VERSION}
    if isinstance(counts.pattern, str):
        items[_PATTERN] = counts.pattern
    else:
        items[_STEPS] = json.dumps(counts.pattern)
    items |= metadata
    if denominator > 1:
        items[_DENOMINATOR] = str(denominator)
    counts.save(path, list(items.items()))


def read(path: Path, pattern: str | Sequence[str] | None) -> tuple[_core.Counts, int]:
    """The counts in a file, and their denominator."""
    regex = None if pattern is None else _core.pattern(pattern)
    metadata = metadata_of(path)
    try:
        core = _core.Counts.load(path, _pattern_of(metadata, regex))
        return core, _denominator_of(metadata)
    except OSError as error:  # which names the file
        raise CountsError(str(error)) from error
    except CountsError as error:
        raise error.at(str(path)) from None


def metadata_of(path: Path) -> dict[str, str]:
    """The metadata of a file of counts."""
    if not path.exists():
        raise NotFoundError(
            f"{path} does not exist", hint="check the path, or create it with bytepair count"
        )
    try:
        return dict(_core.counts_footer(path).metadata)
    except OSError as error:  # which names the file
        raise CountsError(str(error)) from error


def _pattern_in(metadata: dict[str, str]) -> str | tuple[str, ...] | None:
    """The pattern as `write` stores it; None without one."""
    try:
        steps = json.loads(metadata.get(_STEPS, "null"))
    except (ValueError, RecursionError):
        raise CountsError(f"the value of {_STEPS} is not JSON") from None
    if steps is None:
        return metadata.get(_PATTERN)
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        raise CountsError(f"the value of {_STEPS} is not a list of texts")
    return tuple(steps)


def _pattern_of(
    metadata: dict[str, str], pattern: str | tuple[str, ...] | None
) -> str | tuple[str, ...]:
    """The pattern in the file, or else the one passed by the caller."""
    version, unicode = metadata.get(_FORMAT), metadata.get(_UNICODE)
    stored = _pattern_in(metadata)
    if stored is None:
        if pattern is None:
            raise CountsError(
                "the file does not contain its split pattern",
                option="pattern",
                hint="pass pattern=",
            )
        return pattern
    if version != FORMAT or unicode != _core.UNICODE_VERSION:
        raise CountsError(
            f"format {version!r} with Unicode {unicode!r}; this bytepair reads format {FORMAT!r} "
            f"with Unicode {_core.UNICODE_VERSION}"
        )
    if pattern not in (None, stored):
        raise CountsError(f"its pattern is {stored!r}, not {pattern!r}")
    return stored


def _denominator_of(metadata: dict[str, str]) -> int:
    """The denominator in the file; 1 if there is none."""
    text = metadata.get(_DENOMINATOR, "1")
    if not re.fullmatch("[0-9]{1,18}", text) or not int(text):
        raise CountsError(f"its denominator is {text!r}, not an integer above 0")
    return int(text)


class FilePlace(NamedTuple):
    """A place in files, as `_core.FilePlace`: what lies before the byte, and the characters."""

    file: int = 0
    byte: int = 0
    line: int = 0
    row: int = 0
    chars: int = 0


#: The place before the first byte of the first file.
START: Final = FilePlace()


@dataclass
class CountState:
    """What a count has done before, as a checkpoint saves it.

    Attributes:
        job: the values that must be equal to resume.
        texts: the number of documents counted.
        bytes: their size.
        reached: the place in the files from which the core continues.
        pretokens: the total of the counts, of which the file has no checksum.
        skips: the skipped documents.
        complete: whether the count has ended.
    """

    job: dict[str, Any]
    texts: int = 0
    bytes: int = 0
    reached: FilePlace = START
    pretokens: int = 0
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
                values["skips"] = SkipLog(
                    skips["documents"], [Skip(*one) for one in skips["first"]]
                )
                values["reached"] = FilePlace._make(values["reached"])
                values["job"] = dict(values["job"])
                state = cls(**values)
                numbers = (state.texts, state.bytes, state.pretokens, state.skips.documents)
                if all(type(n) is int and n >= 0 for n in (*numbers, *state.reached)):
                    return state
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise damaged(path)


def damaged(path: str | Path) -> CountsError:
    """The error of a checkpoint that is not as it was written."""
    return CountsError(f"the checkpoint {path} is damaged", hint="remove it to start again")


def _crc_of(values: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(values).encode()):08x}"
