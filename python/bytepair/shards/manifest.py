"""The manifest of a folder of shards (`manifest.json`), and the marks of a run in progress.

A run writes a mark for each finished shard (`.progress/000003.json`), by a rename after its files
are complete. A mark describes the shard and says at which document the next one begins, so a
restarted run resumes there. In the end the marks become the manifest.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np

from bytepair import _core
from bytepair._internal import system
from bytepair._internal.arguments import checked
from bytepair._internal.names import check_own_folder, check_plain, check_regular
from bytepair.corpus.outputs import check_output_folder
from bytepair.errors import InUseError, ShardError
from bytepair.formats.files import write_whole

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


@dataclass(frozen=True)
class Shard:
    """One shard.

    Attributes:
        number: the number of the shard, from 0.
        split: "train" or "val".
        tokens: the number of ids.
        documents: the number of documents.
        parts: the ranges of files that make it up.
    """

    number: int
    split: Literal["train", "val"]
    tokens: int
    documents: int
    parts: list[ShardPart]

    @classmethod
    @checked
    def from_json(cls, values: dict[str, Any], place: Path) -> Self:
        """Make a shard from the result of `dataclasses.asdict`, which stands at `place`.

        Raises:
            ShardError: if it names a file outside its folder.
            KeyError, TypeError: if a value is missing or has the wrong type.
        """
        found = cls(**{**values, "parts": [ShardPart(**part) for part in values["parts"]]})
        _check(found)
        for part in found.parts:
            _check(part)
            check_plain(part.file, place)
        return found


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _check(found: ShardPart | Shard) -> None:
    """Raise a `TypeError` if a field of a file has the wrong type."""
    for name, value in vars(found).items():
        kind = type(found).__annotations__[name]
        is_count = isinstance(value, int) and 0 <= value < 1 << 63
        if (kind == "str" and not isinstance(value, str)) or (kind == "int" and not is_count):
            raise TypeError(f"{name} is {value!r}")


@dataclass(frozen=True)
class Manifest:
    """The description of a folder of shards.

    Attributes:
        job: the job: the format, the dtype, the tokenizer's fingerprint, the inputs with
            their sizes, and every option that changes the result.
        shards: the shards, in order.
        text_bytes: the number of bytes of UTF-8 that were encoded.
        skipped: what was skipped: the input, the row, the number of rows (null means the rest), and
            the reason.
    """

    job: dict[str, Any]
    shards: list[Shard]
    text_bytes: int
    skipped: list[dict[str, Any]] = field(default_factory=list)

    @property
    def format(self) -> str:
        """The name of the layout of the files."""
        return str(self.job["format"])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the ids, little-endian."""
        found: np.dtype[Any] = np.dtype(self.job["dtype"])
        return found.newbyteorder("<")

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

    def __str__(self) -> str:
        """The amount of data, in one line."""
        documents = _number(self.documents, "document")
        shards = _number(len(self.shards), "shard")
        return f"{self.tokens:,} tokens ({self.dtype.name}) of {documents} in {shards}"

    @checked
    def save(self, folder: Path) -> None:
        """Write `manifest.json` under a temporary name, then rename it."""
        values = {
            "bytepair_shards": VERSION, "checksum": "crc32", "tokens": self.tokens,
            "documents": self.documents, **asdict(self),
        }  # fmt: skip
        write_json(folder / NAME, {**values, "crc32": _crc_of_values(values)})

    @classmethod
    @checked
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read the manifest of a folder.

        Raises:
            ShardError: if it is missing, damaged or of another version.
        """
        path = Path(folder) / NAME
        check_regular(path)
        if not path.exists():
            under_way = (Path(folder) / PROGRESS).is_dir()
            why = "the run is not finished; start it again" if under_way else "no shards are here"
            raise ShardError(f"there is no {path}: {why}")
        values = read_json(path)
        if values.get("bytepair_shards") != VERSION:
            raise ShardError(f"{path} has version {values.get('bytepair_shards')}, not {VERSION}")
        if values.pop("crc32", None) != _crc_of_values(values):
            raise ShardError(f"{path} is damaged: its own CRC-32 is not that of its content")
        try:
            shards = [Shard.from_json(shard, path) for shard in values["shards"]]
            found = cls(values["job"], shards, values["text_bytes"], values["skipped"])
            known = found.dtype.kind in "ui" and found.format and found.fingerprint
        except (KeyError, TypeError) as error:
            raise ShardError(f"{path} is damaged: {error!r}") from error
        if not known:
            raise ShardError(f"{path} is damaged: its job is {found.job!r}")
        for name in {part.file for shard in shards for part in shard.parts}:
            check_regular(Path(folder) / name)
        return found


@dataclass(frozen=True)
class Mark:
    """A finished shard, and the position of the next.

    Attributes:
        shard: the shard.
        following: the number of the input and the row of the next document; None at the end.
        text_bytes: bytes of text in this shard.
        skipped: what was skipped since the last mark.
    """

    shard: Shard
    following: tuple[int, int] | None
    text_bytes: int
    skipped: list[dict[str, Any]]

    def save(self, folder: Path) -> None:
        """Write the mark under a temporary name, then rename it."""
        write_json(_mark(folder, self.shard.number), asdict(self))


def begin(folder: Path, job: dict[str, Any], *, ignore: str = PROGRESS) -> list[Mark]:
    """Prepare a folder for a run, and return the marks of an earlier run.

    Args:
        folder: the folder, which is locked.
        job: the job.
        ignore: the name of a file that may be in a new folder.

    Raises:
        ShardError: if the folder has shards or a run of another job; it is left unchanged.
    """
    check_folder(folder, job, ignore=ignore)
    known = folder / PROGRESS / JOB
    known.parent.mkdir(exist_ok=True)
    write_json(known, job)
    return list(_marks(folder))


def check_folder(folder: Path, job: dict[str, Any], *, ignore: str = PROGRESS) -> None:
    """Raise a `ShardError` unless a folder is empty or holds a run of this job."""
    check_own_folder(folder / PROGRESS)
    if not folder.is_dir():
        return
    known = folder / PROGRESS / JOB
    before = read_json(known) if known.exists() else {}
    if _mark(folder, 0).exists():
        check_job(folder, before, job)
    elif differing(before, job):  # no shard is finished, so nothing can be lost
        names = {path.name for path in folder.iterdir()} - {PROGRESS, LOCK, ignore}
        others = sorted(name for name in names if not is_left_over(name))
        if others:
            raise ShardError(f"{folder} is not empty (it has {others[0]!r}); choose another folder")


def _mark(folder: Path, number: int) -> Path:
    return folder / PROGRESS / f"{number:06}.json"


def _marks(folder: Path) -> Iterator[Mark]:
    number = 0
    while (path := _mark(folder, number)).exists():
        values = read_json(path)
        try:
            shard = Shard.from_json(values["shard"], path)
            following = values["following"] and tuple(values["following"])
            mark = Mark(shard, following, values["text_bytes"], values["skipped"])
        except (KeyError, TypeError) as error:
            raise ShardError(
                f"{path} is damaged: {error!r}; remove {folder} and start again"
            ) from error
        for part in shard.parts:
            _check_size(folder, part)
        yield mark
        number += 1


def _check_size(folder: Path, part: ShardPart) -> None:
    """Check that the files of a finished shard exist; a shared file still has a temporary name."""
    names = (folder / part.file, folder / partial(part.file))
    for name in names:
        check_regular(name)
    path = next((path for path in names if path.exists()), None)
    if path is None or path.stat().st_size < part.offset + part.bytes:
        raise ShardError(
            f"{folder / part.file} was complete, and is missing or truncated now; remove "
            f"{folder} and start again"
        )


def partial(name: str) -> str:
    """The temporary name of a file until it is complete."""
    return f".{name}.partial"


def is_left_over(name: str) -> bool:
    """Whether a file is an incomplete one of a run that was killed."""
    return re.fullmatch(r"\..+\.(partial|[0-9a-f]{16})", name) is not None


def is_own(name: str) -> bool:
    """Whether a file in the folder of marks has a name that bytepair gives it."""
    return re.fullmatch(r"(\.?)(job|[0-9]{6,})\.json(\.[0-9a-f]{16})?", name) is not None


def check_job(folder: Path, known: dict[str, Any], job: dict[str, Any]) -> None:
    """Raise a `ShardError` that names what differs between two jobs."""
    if wrong := differing(known, job):
        key = wrong[0]
        name, before, now = _difference(key, known.get(key), job.get(key))
        raise ShardError(
            f"{folder} belongs to a run with another {name} ({_short(before)}, now {_short(now)}); "
            "choose another folder, or remove it"
        )


def differing(known: dict[str, Any], job: dict[str, Any]) -> list[str]:
    """The differences between the job of a run and the job that resumes it.

    What was done under `errors="strict"` had no errors, and so is what "skip" would have given.
    """
    plain = json.loads(json.dumps(job))
    if known.get("errors") == "strict":
        known = {**known, "errors": plain.get("errors")}
    return sorted(key for key in {**known, **plain} if known.get(key) != plain.get(key))


def _difference(name: str, before: Any, now: Any) -> tuple[str, Any, Any]:
    """The name and the values of what differs; of two lists, the first items that differ."""
    if isinstance(before, list) and isinstance(now, list):
        pairs = enumerate(itertools.zip_longest(before, json.loads(json.dumps(now))))
        at, (old, new) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
        return f"{name}[{at}]", old, new
    return name, before, now


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
    with ExitStack() as held:
        try:
            held.enter_context(system.locked(folder / LOCK))
        except BlockingIOError:
            raise InUseError(f"another run is working on {folder}; wait for it") from None
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


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; a damaged file, a link or a pipe raises a `ShardError`."""
    check_regular(path)
    try:
        values = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ShardError(f"{path} is damaged: {error}") from error
    if not isinstance(values, dict):
        raise ShardError(f"{path} is damaged: it is not a JSON object")
    return values


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write a JSON object under a temporary name, then rename it."""
    write_whole(path, _dumped(values))


def _crc_of_values(values: dict[str, Any]) -> str:
    return f"{zlib.crc32(_dumped(values)):08x}"


def _dumped(values: dict[str, Any]) -> bytes:
    # A name in a damaged file may contain a lone surrogate.
    return json.dumps(values, indent=1, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"
