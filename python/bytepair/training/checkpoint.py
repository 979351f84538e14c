"""The state of a count that can be resumed: what has been counted, and of which count it is.

A checkpoint is a file of counts with this state in its metadata, as JSON with a checksum.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from bytepair._internal import system
from bytepair._internal.names import check_regular
from bytepair.corpus.skips import SkippedPlace, SkipState
from bytepair.errors import CountsError, InUseError

#: The name of the state in the metadata of a file of counts.
KEY: Final = "bytepair.checkpoint"


class FilePosition(NamedTuple):
    """A position in files, as `_core.FilePlace`: what lies before the byte, and the characters."""

    file: int = 0
    byte: int = 0
    line: int = 0
    row: int = 0
    chars: int = 0


#: The position before the first byte of the first file.
START: Final = FilePosition()


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; counting continues without it."""


@dataclass(frozen=True)
class CountState:
    """What a checkpoint includes.

    Attributes:
        job: the values that must be equal to resume.
        texts: the number of documents counted.
        bytes: their size.
        reached: the position in the files from which the core continues.
        pretokens: the total of the counts, of which the file has no checksum.
        skips: the skipped documents.
        complete: whether the count has ended.

    Example:
        >>> state = CountState({"column": "text"}, texts=3)
        >>> CountState.read(state.to_json(), "counts.checkpoint") == state
        True
    """

    job: dict[str, Any]
    texts: int = 0
    bytes: int = 0
    reached: FilePosition = START
    pretokens: int = 0
    skips: SkipState = field(default_factory=lambda: SkipState(0, []))
    complete: bool = False

    def to_json(self) -> str:
        """The state for the metadata of a file of counts."""
        values = asdict(self)
        return json.dumps({**values, "crc32": _crc_of(values)})

    @classmethod
    def read(cls, text: str, path: str | Path) -> Self:
        """The state that a file of counts has in its metadata.

        Args:
            text: the JSON.
            path: the file, for the message.

        Raises:
            CountsError: if it is damaged.
        """
        try:
            values = json.loads(text)
            if values.pop("crc32") == _crc_of(values):
                return cls._checked(**values)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise damaged(path)

    @classmethod
    def _checked(
        cls,
        *,
        job: Any,
        texts: Any,
        bytes: Any,
        reached: Any,
        pretokens: Any,
        skips: Any,
        complete: Any,
    ) -> Self:
        """The state of values of any type; a `ValueError` or `TypeError` if one is wrong."""
        skipped, first = skips
        state_of_skips = SkipState(int(skipped), [SkippedPlace.of(*place) for place in first])
        state = cls(
            dict(job), int(texts), int(bytes), FilePosition._make(map(int, reached)),
            int(pretokens), state_of_skips, bool(complete),
        )  # fmt: skip
        if min(state.texts, state.bytes, state.skips.documents, *state.reached) < 0:
            raise ValueError("a number is negative")
        return state


def damaged(path: str | Path) -> CountsError:
    """The error of a checkpoint that is not as it was written."""
    return CountsError(f"the checkpoint {path} is damaged", hint="remove it to start again")


def _crc_of(values: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(values).encode()):08x}"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a checkpoint for one count; the lock ends with the process, even if it is killed.

    Raises:
        InUseError: if another count has locked it.
        OSError: if the file system has no locks.
    """
    lock = path.with_name(f".{path.name}.lock")
    check_regular(lock)
    with ExitStack() as locks:
        try:
            locks.enter_context(system.locked(lock))
        except BlockingIOError:
            raise InUseError(
                f"another count is using the checkpoint {path}",
                hint="wait for it, or pass another file",
            ) from None
        yield
