"""This file holds what folders of shards say in JSON: manifests, marks and jobs, checked when read.

A run writes a mark for each finished shard (`.progress/000003.json`), by a rename after its files
are complete. A mark is the description of the shard, which says at which document the next one
begins, so a restarted run resumes there. In the end the marks become `manifest.json`.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias, get_args

from bytepair._internal import system
from bytepair.corpus.files import INPUTS
from bytepair.errors import InUseError, ShardError
from bytepair.files.outputs import check_alone, check_output_folder, write_whole
from bytepair.files.safe import check_plain, check_regular

if TYPE_CHECKING:
    import numpy as np

#: The formats of shards; `bytepair.shards.layout` has the layout of each.
ShardFormat: TypeAlias = Literal["bytepair", "llmc", "nanogpt", "megatron", "arrow"]
#: What a shard is for.
ShardSplit: TypeAlias = Literal["train", "val"]
#: What is read of a data set: as `bytepair.corpus.files.Split`, or first "val", then "train".
InputSplit: TypeAlias = Literal["train", "val", "all", "both"]
#: A record of skipped documents: the input, the row, the number of rows (None means the rest), and
#: the reason.
SkipRecord: TypeAlias = "dict[str, Any]"

NAME: Final = "manifest.json"
PROGRESS: Final = ".progress"
LOCK: Final = ".lock"
JOB: Final = "job.json"
VERSION: Final = 1

#: Counts of bytes, ids and documents are below this number.
MOST: Final = 1 << 48
#: The types of ids, which are little-endian.
DTYPES: Final = ("uint16", "uint32", "int32")


class Address(NamedTuple):
    """The address of a document: the number of its input, and its row there."""

    input: int
    row: int


class DamageError(ShardError):
    """A manifest or a mark is damaged."""


@dataclass(frozen=True)
class Fields:
    """The members of a JSON object in a file, each checked when it is read.

    If the file is damaged, `folder` is what to remove.
    """

    values: dict[str, Any]
    path: Path
    folder: Path

    @classmethod
    def read(cls, path: Path, folder: Path) -> Self:
        """Read a JSON object from a regular file."""
        check_regular(path)
        try:
            values = json.loads(path.read_bytes(), parse_constant=_not_a_number)
        except (ValueError, RecursionError) as error:
            raise damaged(path, error, folder) from error
        if not isinstance(values, dict):
            raise damaged(path, "it is not a JSON object", folder)
        return cls(values, path, folder)

    def wrong(self, name: str) -> DamageError:
        """The error for a member."""
        return damaged(self.path, f"{name} is missing, or not what it must be", self.folder)

    def get(self, name: str, is_right: Callable[[Any], object]) -> Any:
        """A member that passes a test."""
        if name not in self.values or not is_right(self.values[name]):
            raise self.wrong(name)
        return self.values[name]

    def count(self, name: str) -> int:
        """A number from 0 to `MOST`."""
        return int(self.get(name, is_count))

    def text(self, name: str, pattern: str = ".*") -> str:
        """A text that matches a regular expression."""
        right = re.compile(pattern, re.DOTALL)
        return str(self.get(name, lambda text: isinstance(text, str) and right.fullmatch(text)))

    def items(self, name: str) -> list[Any]:
        """A list."""
        return list(self.get(name, lambda items: isinstance(items, list)))

    def objects(self, name: str) -> list[Self]:
        """A list of objects."""
        items = self.items(name)
        if not all(isinstance(item, dict) for item in items):
            raise self.wrong(name)
        return [type(self)(item, self.path, self.folder) for item in items]


def is_count(value: object) -> bool:
    """Whether a value of JSON is a number from 0 to `MOST`."""
    return type(value) is int and 0 <= value < MOST


def damaged(path: Path, why: object, folder: Path) -> DamageError:
    """The error of a damaged file, with the way out: to remove the folder."""
    return DamageError(f"{path} is damaged: {why}", hint=f"remove {folder} and start again")


def _not_a_number(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _is_plain(value: object, levels: int = 2) -> bool:
    """Whether a value of JSON is a bounded scalar, or lists of these with so many levels."""
    match value:
        case bool() | str() | None:
            return True
        case int():
            return abs(value) < 1 << 64
        case float():
            return math.isfinite(value)
        case list():
            return levels > 0 and all(_is_plain(item, levels - 1) for item in value)
    return False


def read_job(path: Path, folder: Path) -> dict[str, Any]:
    """Read the job of a run: plain values, the inputs among them."""
    return _checked_job(Fields.read(path, folder))


def _checked_job(fields: Fields) -> dict[str, Any]:
    for name in fields.values:
        fields.get(name, _is_plain)
    for item in fields.items(INPUTS) if INPUTS in fields.values else ():
        match item:
            case [str(), int(size)] if is_count(size):
                continue
        raise fields.wrong(INPUTS)
    return fields.values


@dataclass(frozen=True)
class ShardPart:
    """A range of bytes of a file, and its CRC-32 (that of zlib) as 8 hexadecimal digits."""

    file: str
    offset: int
    bytes: int
    crc32: str

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read the result of `dataclasses.asdict`.

        Raises:
            ShardError: if a value is missing or invalid, or the file is not in the same folder.
        """
        part = cls(
            fields.text("file", "[\0-\x7f]*"), fields.count("offset"), fields.count("bytes"),
            fields.text("crc32", "[0-9a-f]{8}"),
        )  # fmt: skip
        check_plain(part.file, fields.path)
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
    following: Address | None
    skipped: list[SkipRecord] = field(default_factory=list)

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read the result of `dataclasses.asdict`.

        Raises:
            ShardError: if a value is missing or invalid, or a file is not in the same folder.
        """
        following = None
        if fields.values.get("following", ()) is not None:
            items = fields.items("following")
            if len(items) != 2 or not all(map(is_count, items)):
                raise fields.wrong("following")
            following = Address(*items)
        split: Any = fields.text("split", "train|val")
        parts = [ShardPart.read(part) for part in fields.objects("parts")]
        if not parts:
            raise damaged(fields.path, "parts is empty: a file is missing", fields.folder)
        return cls(
            fields.count("number"), split, fields.count("tokens"), fields.count("documents"),
            parts, fields.count("text_bytes"), following,
            [read_skip(left) for left in fields.objects("skipped")],
        )  # fmt: skip


def read_skip(fields: Fields) -> SkipRecord:
    """Check the record of skipped documents."""
    left: SkipRecord = {"input": fields.text("input"), "first": fields.count("first"), "rows": None}
    if fields.values.get("rows", ()) is not None:
        left["rows"] = fields.count("rows")
    return {**left, "reason": fields.text("reason")}


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
        import numpy as np  # not above: the command line takes its words from this file

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
    def skipped(self) -> list[SkipRecord]:
        """What was skipped in all shards; see `Shard`."""
        return [left for shard in self.shards for left in shard.skipped]

    def __str__(self) -> str:
        """The amount of data, in one line."""
        documents, shards = (
            f"{count:,} {what}{'s' * (count != 1)}"
            for count, what in ((self.documents, "document"), (len(self.shards), "shard"))
        )
        return f"{self.tokens:,} tokens ({self.dtype.name}) of {documents} in {shards}"

    def save(self, folder: Path) -> None:
        """Write `manifest.json` under a temporary name, then rename it."""
        values = {
            "bytepair_shards": VERSION, "checksum": "crc32", "tokens": self.tokens,
            "documents": self.documents, "text_bytes": self.text_bytes, **asdict(self),
        }  # fmt: skip
        write_json(folder / NAME, {**values, "crc32": f"{zlib.crc32(_dumped(values)):08x}"})

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read the manifest of a folder.

        Raises:
            ShardError: if it is missing, damaged or of another version.
        """
        root = Path(folder)
        path = root / NAME
        check_regular(path)
        if not path.exists():
            if (root / PROGRESS).is_dir():
                raise ShardError(
                    f"there is no {path}: the run is not finished", hint="start it again"
                )
            raise ShardError(f"there is no {path}: no shards are here")
        fields = Fields.read(path, root)
        _check_version(fields)
        job = Fields(fields.get("job", lambda job: isinstance(job, dict)), path, root)
        _checked_job(job)
        job.text("format", "|".join(get_args(ShardFormat)))
        job.text("dtype", "|".join(DTYPES))
        job.text("tokenizer")
        shards = [Shard.read(shard) for shard in fields.objects("shards")]
        check_order(job, shards)
        for name in {part.file for shard in shards for part in shard.parts}:
            check_regular(root / name)
        return cls(job.values, shards)


def _check_version(fields: Fields) -> None:
    """Check the version of a manifest, and its own checksum."""
    version = fields.values.get("bytepair_shards")
    if version != VERSION:
        shown = version if _is_plain(version) else "none"
        raise ShardError(f"{fields.path} has version {shown}, not {VERSION}")
    crc = fields.values.pop("crc32", None)
    try:
        is_right = crc == f"{zlib.crc32(_dumped(fields.values)):08x}"
    except RecursionError:
        is_right = False
    if not is_right:
        raise damaged(fields.path, "its own CRC-32 is not that of its content", fields.folder)


def check_order(job: Fields, shards: list[Shard]) -> None:
    """Check that shards are in order, and that each but the last names the next document."""
    before = (0, -1)
    inputs = len(job.items(INPUTS))
    for number, shard in enumerate(shards):
        after = shard.following
        is_last = after is None and number == len(shards) - 1
        is_next = after is not None and before < after and after[0] < inputs
        if shard.number != number or not (is_last or is_next):
            why = f"shard {shard.number} is followed by the document {after}"
            raise damaged(job.path, why, job.folder)
        before = after or before


def save_mark(folder: Path, shard: Shard) -> None:
    """Write the mark of a finished shard under a temporary name, then rename it."""
    write_json(mark_path(folder, shard.number), asdict(shard))


def load_marks(folder: Path) -> list[Shard]:
    """The finished shards of a run in progress, each of which has a document behind it."""
    shards: list[Shard] = []
    while (path := mark_path(folder, len(shards))).exists():
        shard = Shard.read(Fields.read(path, folder))
        if shard.following is None:
            break
        shards.append(shard)
    return shards


def mark_path(folder: Path, number: int) -> Path:
    """The file of the mark of a shard."""
    return folder / PROGRESS / f"{number:06}.json"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for one run; the lock ends with the process, even if it is killed.

    Raises:
        InUseError: if another run has locked it.
        OSError: if the folder cannot be created, or the file system has no locks.
    """
    check_output_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    check_alone(folder / LOCK)
    with ExitStack() as locks:
        try:
            locks.enter_context(system.locked(folder / LOCK))
        except BlockingIOError:
            raise InUseError(f"another run is working on {folder}", hint="wait for it") from None
        yield


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write a JSON object under a temporary name, then rename it."""
    write_whole(path, _dumped(values))


def _dumped(values: dict[str, Any]) -> bytes:
    # A name in a damaged file may contain a lone surrogate.
    return json.dumps(values, indent=1, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"
