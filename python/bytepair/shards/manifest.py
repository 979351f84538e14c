"""The manifest of a folder of shards (`manifest.json`), and the marks of a run in progress.

A run writes a mark for each finished shard (`.progress/000003.json`), by a rename after its files
are complete. A mark is the description of the shard, which says at which document the next one
begins, so a restarted run resumes there. In the end the marks become the manifest.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from bytepair import _core
from bytepair._internal import system
from bytepair._internal.names import check_plain, check_regular
from bytepair.corpus.inputs import BASE, INPUTS, is_same, shared
from bytepair.errors import InUseError, ShardError
from bytepair.files.outputs import check_output_folder, write_whole
from bytepair.shards.names import ShardSplit

NAME: Final = "manifest.json"
PROGRESS: Final = ".progress"
LOCK: Final = ".lock"
JOB: Final = "job.json"
VERSION: Final = 1


@dataclass(frozen=True)
class ShardPart:
    """A range of bytes of a file, and its CRC-32 (that of zlib) as 8 hexadecimal digits."""

    file: str
    offset: int
    bytes: int
    crc32: str


def part_from_json(values: dict[str, Any], place: Path) -> ShardPart:
    """Make a part from the result of `dataclasses.asdict`, which stands at `place`.

    Raises:
        ShardError: if it names a file outside its folder.
        KeyError, TypeError: if a value is missing or has the wrong type.
    """
    part = ShardPart(**values)
    _check(part)
    check_plain(part.file, place)
    return part


@dataclass(frozen=True)
class Shard:
    """One shard.

    Attributes:
        number: the number of the shard, from 0.
        split: "train" or "val".
        tokens: the number of ids.
        documents: the number of documents.
        parts: the ranges of files that make it up.
        text_bytes: the number of bytes of UTF-8 that were encoded.
        following: the number of the input and the row of the first document of the next shard; None
            for the last shard.
        skipped: what was skipped since the first document of the shard: the input, the row, the
            number of rows (None means the rest), and the reason.
    """

    number: int
    split: ShardSplit
    tokens: int
    documents: int
    parts: list[ShardPart]
    text_bytes: int
    following: tuple[int, int] | None
    skipped: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def from_json(cls, values: dict[str, Any], place: Path) -> Self:
        """Make a shard from the result of `dataclasses.asdict`, which stands at `place`.

        Raises:
            ShardError: if it names a file outside its folder.
            KeyError, TypeError: if a value is missing or has the wrong type.
        """
        parts = [part_from_json(part, place) for part in values["parts"]]
        following = None if values["following"] is None else tuple(values["following"])
        shard = cls(**{**values, "parts": parts, "following": following})
        _check(shard)
        if following is not None and not (len(following) == 2 and all(map(_is_count, following))):
            raise TypeError(f"following is {following!r}")
        if not all(_is_skip(left) for left in shard.skipped):
            raise TypeError(f"skipped is {shard.skipped!r}")
        return shard


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _check(value_of_file: ShardPart | Shard) -> None:
    """Raise a `TypeError` if a field of a file has the wrong type."""
    for name, value in vars(value_of_file).items():
        kind = type(value_of_file).__annotations__[name]
        if (kind == "str" and not isinstance(value, str)) or (
            kind == "int" and not _is_count(value)
        ):
            raise TypeError(f"{name} is {value!r}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 63


def _is_skip(left: object) -> bool:
    """Whether this is the record of skipped documents."""
    match left:
        case {"input": str(), "first": int(), "rows": int() | None, "reason": str()}:
            return True
    return False


@dataclass(frozen=True)
class Manifest:
    """The description of a folder of shards.

    Attributes:
        job: the job: the format, the dtype, the tokenizer's fingerprint, the inputs with
            their sizes, and every option that changes the result.
        shards: the shards, in order.
    """

    job: dict[str, Any]
    shards: list[Shard]

    @property
    def format(self) -> str:
        """The name of the layout of the files."""
        return str(self.job["format"])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the ids, little-endian."""
        dtype: np.dtype[Any] = np.dtype(self.job["dtype"])
        return dtype.newbyteorder("<")

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the tokenizer that made the ids."""
        return str(self.job["tokenizer"])

    @property
    def tokens(self) -> int:
        """The number of ids in all shards."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def documents(self) -> int:
        """The number of documents in all shards."""
        return sum(shard.documents for shard in self.shards)

    @property
    def text_bytes(self) -> int:
        """The number of bytes of UTF-8 that were encoded."""
        return sum(shard.text_bytes for shard in self.shards)

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """What was skipped in all shards; see `Shard`."""
        return [left for shard in self.shards for left in shard.skipped]

    def __str__(self) -> str:
        """The amount of data, in one line."""
        documents = _number(self.documents, "document")
        shards = _number(len(self.shards), "shard")
        return f"{self.tokens:,} tokens ({self.dtype.name}) of {documents} in {shards}"

    def save(self, folder: Path) -> None:
        """Write `manifest.json` under a temporary name, then rename it."""
        values = {
            "bytepair_shards": VERSION, "checksum": "crc32", "tokens": self.tokens,
            "documents": self.documents, "text_bytes": self.text_bytes, **asdict(self),
        }  # fmt: skip
        write_json(folder / NAME, {**values, "crc32": _crc_of_values(values)})

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read the manifest of a folder.

        Raises:
            ShardError: if it is missing, damaged or of another version.
        """
        path = Path(folder) / NAME
        check_regular(path)
        if not path.exists():
            under_way = (Path(folder) / PROGRESS).is_dir()
            if under_way:
                unfinished = f"there is no {path}: the run is not finished"
                raise ShardError(unfinished, hint="start it again")
            raise ShardError(f"there is no {path}: no shards are here")
        values = read_json(path, Path(folder))
        if values.get("bytepair_shards") != VERSION:
            raise ShardError(f"{path} has version {values.get('bytepair_shards')}, not {VERSION}")
        if values.pop("crc32", None) != _crc_of_values(values):
            raise damaged(path, "its own CRC-32 is not that of its content", Path(folder))
        try:
            shards = [Shard.from_json(shard, path) for shard in values["shards"]]
            manifest = cls(values["job"], shards)
            is_valid = manifest.dtype.kind in "ui" and manifest.format and manifest.fingerprint
            check_order(manifest.job, shards)
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, repr(error), Path(folder)) from error
        if not is_valid:
            raise damaged(path, f"its job is {manifest.job!r}", Path(folder))
        for name in {part.file for shard in shards for part in shard.parts}:
            check_regular(Path(folder) / name)
        return manifest


def check_order(job: dict[str, Any], shards: list[Shard]) -> None:
    """Check that shards are in order, and that each but the last names the next document.

    Raises:
        ValueError: if they are not, or a document is none of the inputs of the job.
    """
    before = (0, -1)
    for number, shard in enumerate(shards):
        after = shard.following
        is_last = after is None and number == len(shards) - 1
        is_next = after is not None and before < after and after[0] < len(job[INPUTS])
        if shard.number != number or not (is_last or is_next):
            raise ValueError(f"shard {shard.number} is followed by the document {after}")
        before = after or before


def save_mark(folder: Path, shard: Shard) -> None:
    """Write the mark of a finished shard under a temporary name, then rename it."""
    write_json(mark_path(folder, shard.number), asdict(shard))


def load_marks(folder: Path) -> list[Shard]:
    """The finished shards of a run in progress.

    Raises:
        ShardError: if a mark is damaged.
    """
    shards: list[Shard] = []
    while (path := mark_path(folder, len(shards))).exists():
        values = read_json(path, folder)
        try:
            shards.append(Shard.from_json(values, path))
        except (KeyError, TypeError) as error:
            raise damaged(path, repr(error), folder) from error
    return shards


def mark_path(folder: Path, number: int) -> Path:
    """The file of the mark of a shard."""
    return folder / PROGRESS / f"{number:06}.json"


def partial(name: str) -> str:
    """The temporary name of a file until it is complete."""
    return f".{name}.partial"


def is_temporary(name: str, names: Collection[str]) -> bool:
    """Whether a file is an incomplete one of a killed run that writes files of these names."""
    match = re.fullmatch(r"\.(.+)\.(?:partial|[0-9a-f]{16})", name)
    return match is not None and match[1] in names


def is_own(name: str) -> bool:
    """Whether a file in the folder of marks has a name that bytepair gives it."""
    return re.fullmatch(r"(\.?)(job|[0-9]{6,})\.json(\.[0-9a-f]{16})?", name) is not None


def check_job(folder: Path, before: dict[str, Any], job: dict[str, Any], base: Path) -> None:
    """Raise a `ShardError` that names what differs between two jobs.

    Args:
        folder: the folder of the results, for the message.
        before: the job of the results.
        job: the job of this run.
        base: the folder to which the records of the inputs refer; see `bytepair.corpus.inputs`.
    """
    if wrong := differing(before, job, base):
        name, old, new = _difference(wrong[0], before, job, base)
        raise ShardError(
            (f"{folder} belongs to a run with different {name} ({_short(old)}, now {_short(new)})"),
            hint="choose another folder, or remove it",
        )


def differing(before: dict[str, Any], job: dict[str, Any], base: Path) -> list[str]:
    """The differences between the job of a run and the job that resumes it.

    What was done under `errors="strict"` had no errors, and so is what "skip" would have given.
    """
    plain = json.loads(json.dumps(job))
    if before.get("errors") == "strict":
        before = {**before, "errors": plain.get("errors")}
    keys = {**before, **plain}.keys() - {INPUTS, BASE}
    changes = [key for key in keys if before.get(key) != plain.get(key)]
    return sorted(changes if is_same(before, plain, base) else [*changes, INPUTS])


def _difference(
    key: str, before: dict[str, Any], job: dict[str, Any], base: Path
) -> tuple[str, Any, Any]:
    """The name and the values of what differs; of two lists, the first items that differ."""
    old, new = before.get(key), json.loads(json.dumps(job.get(key)))
    if not (isinstance(old, list) and isinstance(new, list)):
        return key, old, new
    pairs = list(itertools.zip_longest(old, new))
    at = shared(before, job, base) if key == INPUTS else -1
    if not 0 <= at < len(pairs):
        at = next(at for at, (one, two) in enumerate(pairs) if one != two)
    return f"{key}[{at}]", *pairs[at]


def _short(value: object) -> str:
    if value is None:
        return "none"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:20]}...{text[-37:]}"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for one run; the lock ends with the process, even if it is killed.

    Raises:
        InUseError: if another run has locked it.
        OSError: if the folder cannot be created, or the file system has no locks.
    """
    check_output_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    check_regular(folder / LOCK)
    with ExitStack() as locks:
        try:
            locks.enter_context(system.locked(folder / LOCK))
        except BlockingIOError:
            raise InUseError(f"another run is working on {folder}", hint="wait for it") from None
        yield


def crc_of(path: Path, offset: int = 0, size: int | None = None) -> str:
    """The CRC-32 of a range of a file."""
    crc = 0
    with path.open("rb") as file:
        file.seek(offset)
        left = path.stat().st_size - offset if size is None else size
        while left > 0 and (block := file.read(min(left, 1 << 22))):
            crc = _core.crc32(np.frombuffer(block, np.uint8), crc)
            left -= len(block)
    return f"{crc:08x}"


def read_json(path: Path, folder: Path) -> dict[str, Any]:
    """Read a JSON object.

    Args:
        path: the file.
        folder: what to remove if it is damaged, for the message.

    Raises:
        ShardError: if it is damaged, a link or a pipe.
    """
    check_regular(path)
    try:
        values = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise damaged(path, error, folder) from error
    if not isinstance(values, dict):
        raise damaged(path, "it is not a JSON object", folder)
    return values


class DamageError(ShardError):
    """A manifest or a mark is damaged."""


def damaged(path: Path, why: object, folder: Path) -> DamageError:
    """The error of a damaged file, with the way out: to remove the folder."""
    return DamageError(f"{path} is damaged: {why}", hint=f"remove {folder} and start again")


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write a JSON object under a temporary name, then rename it."""
    write_whole(path, _dumped(values))


def _crc_of_values(values: dict[str, Any]) -> str:
    return f"{zlib.crc32(_dumped(values)):08x}"


def _dumped(values: dict[str, Any]) -> bytes:
    # A name in a damaged file may contain a lone surrogate.
    return json.dumps(values, indent=1, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"
