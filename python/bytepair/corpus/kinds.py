"""How a file is read, determined by its suffix; all suffixes are defined here.

| suffix | documents |
| --- | --- |
| `.parquet`; `.arrow`, `.feather` (Arrow IPC, files and streams) | the rows of a column |
| `.jsonl`, `.ndjson` | a field of the object on each line |
| `.json` | a field of each object in a list |
| `.csv`, `.tsv`, archives | rejected; the error suggests a conversion |
| `.txt`, `.text`, `.md`, and any other or none | the file is one document of plain text |

`.gz` or `.zst` may follow. In a folder, only files with a suffix listed here are read, and no
`.json`, which is mostly a configuration there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Literal, TypeAlias

from bytepair.errors import CorpusError

Kind: TypeAlias = Literal["parquet", "arrow", "jsonl", "json", "text"]

#: The names of compressions in Arrow, by suffix.
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}

#: How a pointer of Git LFS begins, which stands where the file should be.
LFS: Final = b"version https://git-lfs.github.com/spec/v1"

_KINDS: Final[dict[str, Kind]] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
}
_LIST: Final = ".json"
_CSV: Final = (
    "tables of this format are not read",
    "write it as parquet or jsonl, or rename it to .txt to read it as one plain text",
)
_ARCHIVE: Final = (
    "archives and this compression are not read", "unpack it (.gz and .zst are read)",
)  # fmt: skip
_REFUSED: Final = {
    ".csv": _CSV, ".tsv": _CSV,
    **dict.fromkeys([".tar", ".tgz", ".zip", ".7z", ".rar", ".bz2", ".xz", ".lz4"], _ARCHIVE),
}  # fmt: skip


@dataclass(frozen=True)
class CorpusFile:
    """A file as the core reads it.

    Attributes:
        path: the path; of a file that Python opens, its name for messages.
        kind: how its documents are stored; with "lines", each line is one.
        compression: how its bytes are compressed; None means not at all.
    """

    path: str | os.PathLike[str]
    kind: Kind | Literal["lines"]
    compression: str | None = None


def corpus_file(path: PurePath) -> CorpusFile:
    """How a file on this machine is read, by its suffixes."""
    return CorpusFile(path, kind_of(path), compression_of(path))


def kind_of(path: str | PurePath) -> Kind:
    """How a file is read, by its suffix."""
    ending = _ending(path)
    if ending in _REFUSED:
        problem, hint = _REFUSED[ending]
        raise CorpusError(f"{path}: {problem}", hint=hint)
    return "json" if ending == _LIST else _KINDS.get(ending, "text")


def is_listed(path: str | PurePath) -> bool:
    """Whether a file is read as part of a folder."""
    return _ending(path) in _KINDS


def is_plain_text(path: str | PurePath) -> bool:
    """Whether a file is one document of uncompressed text."""
    return kind_of(path) == "text" and compression_of(path) is None


def has_known_ending(path: str | PurePath) -> bool:
    """Whether a name has a suffix that is listed here, supported or not."""
    return compression_of(path) is not None or _ending(path) in {*_KINDS, _LIST, *_REFUSED}


def listed_endings() -> str:
    """The suffixes of files that are read from a folder, for messages."""
    return " ".join(sorted(_KINDS))


def compression_of(path: str | PurePath) -> str | None:
    """The compression of a file, by its last suffix."""
    return COMPRESSIONS.get(PurePath(path).suffix.lower())


def _ending(path: str | PurePath) -> str:
    """The last suffix before the one of the compression."""
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
