"""Reads and writes manifests, marks and jobs: what folders of shards say in JSON.

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
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    get_args,
)

from bytepair.corpus.files import INPUTS
from bytepair.errors import InUseError, ShardError
from bytepair.files import outputs
from bytepair.files.outputs import check_output_folder, write_whole
from bytepair.files.safe import are_counts, check_regular, finite, is_plain

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

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

#: The types of ids, which are little-endian.
DTYPES: Final = ("uint16", "uint32", "int32")


class Address(NamedTuple):
    """The address of a document: the number of its input, and its row there."""

    input: int
    row: int


class DamageError(ShardError):
    """A manifest or a mark is damaged."""


def damaged(path: Path, why: object, folder: Path) -> DamageError:
    """The error of a damaged file, with the way out: to remove the folder."""
    return DamageError(f"{path} is damaged: {why}", hint=f"remove {folder} and start again")


def read_json(path: Path, folder: Path, parse: Callable[[Any], T]) -> T:
    """Read what `write_json` wrote; `parse` checks its content and raises a `ValueError`."""
    check_regular(path)
    try:
        return parse(_content(json.loads(path.read_bytes(), parse_constant=finite)))
    except (ValueError, RecursionError) as error:
        raise damaged(path, error, folder) from error


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


def parse_job(values: Any) -> dict[str, Any]:
    """The job of a run: plain values, the inputs among them."""
    if not isinstance(values, dict) or not all(map(_is_plain, values.values())):
        raise ValueError("its job is not what it must be")
    inputs = values.get(INPUTS, [])
    for item in inputs if isinstance(inputs, list) else [inputs]:
        match item:
            case [str(), size] if are_counts(size):
                continue
        raise ValueError("its inputs are not what they must be")
    return values


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


def parse_part(values: Any) -> ShardPart:
    """A part, of JSON; the file must be in the same folder."""
    match values:
        case {"file": str(file), "offset": offset, "bytes": size, "crc32": str(crc)}:
            if not (file.isascii() and is_plain(file)):
                raise ValueError(f"it names the file {file[:200]!r}; it must be a plain file name")
            if are_counts(offset, size) and re.fullmatch("[0-9a-f]{8}", crc):
                return ShardPart(file, offset, size, crc)
    raise ValueError("a part is not what it must be")


def parse_shard(values: Any) -> Shard:
    """A shard, of JSON."""
    match values:
        case {
            "number": number, "split": "train" | "val" as split, "tokens": tokens,
            "documents": documents, "parts": [_, *_] as parts, "text_bytes": text_bytes,
            "following": following, "skipped": [*skipped],
        } if are_counts(number, tokens, documents, text_bytes):  # fmt: skip
            files = list(map(parse_part, parts))
            if 2 * tokens + 4 * documents > sum(part.bytes for part in files):
                raise ValueError("its files are too small for its tokens and documents")
            return Shard(
                number, split, tokens, documents, files, text_bytes,
                _parse_address(following), list(map(parse_skip, skipped)),
            )  # fmt: skip
        case {"parts": []}:
            raise ValueError("parts is empty: a file is missing")
    raise ValueError("a shard is not what it must be")


def _parse_address(values: Any) -> Address | None:
    match values:
        case None:
            return None
        case [number, row] if are_counts(number, row):
            return Address(number, row)
    raise ValueError("following is not the address of a document")


def parse_skip(values: Any) -> SkipRecord:
    """A record of skipped documents, of JSON."""
    match values:
        case {"input": str(source), "first": first, "rows": rows, "reason": str(reason)}:
            if are_counts(first) and (rows is None or are_counts(rows)):
                return {"input": source, "first": first, "rows": rows, "reason": reason}
    raise ValueError("a skipped document is not what it must be")


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
        write_json(folder / NAME, values)

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
        manifest = read_json(path, root, _parse_manifest)
        for name in {part.file for shard in manifest.shards for part in shard.parts}:
            check_regular(root / name)
        return cls(manifest.job, manifest.shards)


def _parse_manifest(values: Any) -> Manifest:
    if values.get("bytepair_shards") != VERSION:
        raise ValueError(f"it has no version, or another one than {VERSION}")
    match values:
        case {
            "job": {"format": name, "dtype": dtype, "tokenizer": str(), "inputs": [*inputs]} as job,
            "checksum": "crc32", "shards": [_, *_] as shards,
        } if name in get_args(ShardFormat) and dtype in DTYPES:  # fmt: skip
            result = Manifest(parse_job(job), list(map(parse_shard, shards)))
            check_order(result.shards, len(inputs))
            names = ("tokens", "documents", "text_bytes")
            sums = all(values.get(name) == getattr(result, name) for name in names)
            if not sums or result.shards[-1].following is not None:
                raise ValueError("its sums are not those of its shards, or the last one is missing")
            return result
    raise ValueError("its job or its shards are not what they must be")


def check_order(shards: list[Shard], inputs: int) -> None:
    """Check that shards and their files are in order, and name the next document."""
    before, ends = (0, -1), dict[str, int]()
    for number, shard in enumerate(shards):
        after = shard.following
        is_last = after is None and number == len(shards) - 1
        is_next = after is not None and before < after and after.input < inputs
        if shard.number != number or not (is_last or is_next):
            raise ValueError(f"shard {shard.number} is followed by the document {after}")
        before = after or before
        for part in shard.parts:
            if part.offset < ends.get(part.file, 0):
                raise ValueError(f"shard {number} has a part of {part.file} that another has")
            ends[part.file] = part.offset + part.bytes


def save_mark(folder: Path, shard: Shard) -> None:
    """Write the mark of a finished shard."""
    write_json(folder / PROGRESS / f"{shard.number:06}.json", asdict(shard))


def load_marks(folder: Path) -> list[Shard]:
    """The finished shards of a run in progress, each of which has a document behind it."""
    shards: list[Shard] = []
    while (path := folder / PROGRESS / f"{len(shards):06}.json").exists():
        shard = read_json(path, folder, parse_shard)
        if shard.following is None:
            break
        shards.append(shard)
    return shards


def locked(folder: Path) -> AbstractContextManager[None]:
    """Lock a folder for one run; the lock ends with the process, even if it is killed."""
    check_output_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    in_use = InUseError(f"another run is working on {folder}", hint="wait for it")
    return outputs.locked(folder / LOCK, in_use)


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write a JSON object and its own checksum under a temporary name, then rename it."""
    crc = zlib.crc32(_dumped(values))
    write_whole(path, _dumped({**values, "crc32": f"{crc:08x}"}))


def _content(values: Any) -> Any:
    """What was written, if the checksum is that of it."""
    crc = values.pop("crc32", None) if isinstance(values, dict) else None
    if crc != f"{zlib.crc32(_dumped(values)):08x}":
        raise ValueError("its own CRC-32 is not that of its content")
    return values


def _dumped(values: Any) -> bytes:
    # A name in a damaged file may contain a lone surrogate.
    return json.dumps(values, indent=1, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"
