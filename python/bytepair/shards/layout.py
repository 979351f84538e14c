"""The formats of shards: how ids and the borders of documents lie in files, written and read.

Every shard is written as plain ids behind a header of fixed size, so that nothing of it has to stay
in memory; what else a format needs is made when the shard is closed.

| format | ids | borders | shard 0 |
| --- | --- | --- | --- |
| `bytepair` | `shard_000000.bin` | `shard_000000.ends` | training |
| `llmc` | `tokens_val_000000.bin`, ...: 256 int32, then ids | `.ends` | validation |
| `nanogpt` | `val.bin`, and all others in `train.bin` | `.ends` | validation |
| `megatron` | `tokens_000000_text_document.bin` | its `.idx` | training |
| `arrow` | `shard_000000.arrow`: a list `input_ids` for each document | the same file | training |

An `.ends` file has one little-endian uint64 for each document: where it ends in the shard, in ids.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.system import sync, sync_folder
from bytepair.errors import ShardError, warn
from bytepair.files.outputs import write_whole
from bytepair.formats.names import FILE_NAME
from bytepair.shards.disk import DiskFile
from bytepair.shards.manifest import NAME as MANIFEST
from bytepair.shards.manifest import Shard, ShardPart, crc_of, partial
from bytepair.shards.names import ShardFormat, ShardSplit

if TYPE_CHECKING:
    import pyarrow as pa

Ids = NDArray[Any]


class Layout:
    """The format `bytepair`, and the base class of the others."""

    name: ShardFormat = "bytepair"
    #: The file of the ids, and the file with the ends of documents.
    data_file = "shard_{number:06}.bin"
    index_file = "shard_{number:06}.ends"
    #: Whether the first shard is for validation.
    validation = False
    #: Whether all training shards are one file.
    joined = False
    header_bytes = 0

    @property
    def joined_file(self) -> str | None:
        """The file of all training shards, which has a temporary name until the last is written."""
        return self.data_file.format(number=0, split="train") if self.joined else None

    def names(self, shards: int) -> set[str]:
        """The names of the files of so many shards, and of those that stand beside them."""
        files = (self.data_file, self.index_file)
        splits: tuple[ShardSplit, ...] = ("train", "val")
        return {MANIFEST, FILE_NAME} | {
            file.format(number=number, split=split)
            for file in files for number in range(shards) for split in splits
        }  # fmt: skip

    def dtype(self, largest_id: int) -> np.dtype[Any]:
        """The type of ids of a vocabulary."""
        return np.dtype("<u2" if largest_id < 1 << 16 else "<u4")

    def header(self, tokens: int, dtype: np.dtype[Any]) -> bytes:
        """What stands before the ids."""
        return b""

    def index(self, lengths: NDArray[np.int64], dtype: np.dtype[Any]) -> bytes:
        """The content of the file of borders."""
        return np.cumsum(lengths).astype("<u8").tobytes()

    def finish(self, path: Path, lengths: NDArray[np.int64], dtype: np.dtype[Any]) -> None:
        """Turn a file of plain ids into what the format wants, in place."""

    def open(self, folder: Path, shard: Shard, dtype: np.dtype[Any]) -> tuple[Ids, NDArray[Any]]:
        """Map a shard: its ids, and where each document ends."""
        if len(shard.parts) < 2:
            raise ShardError(f"{folder}, shard {shard.number}: a file is missing")
        data, index = shard.parts[-2:]
        ids = _mapped(folder / data.file, dtype, data.offset, shard.tokens)
        return ids, self.ends(folder / index.file, shard.documents)

    def ends(self, path: Path, documents: int) -> NDArray[Any]:
        """Read where documents end."""
        return _mapped(path, np.dtype("<u8"), 0, documents)


class LlmC(Layout):
    """llm.c, and modded-nanogpt, which reads the same files."""

    name: ShardFormat = "llmc"
    # llm.c finds its files by these names.
    data_file = "tokens_{split}_{number:06}.bin"
    index_file = "tokens_{split}_{number:06}.ends"
    validation = True
    header_bytes = 1024

    def dtype(self, largest_id: int) -> np.dtype[Any]:
        """llm.c has two kinds of files, and most of its programs read only that of uint16."""
        dtype = super().dtype(largest_id)
        if dtype.itemsize > 2:
            warn(
                f"ids up to {largest_id:,} need uint32, so the header is that of llm.c's Llama 3 "
                "(20240801, version 7): its train_llama3.py reads it, its C programs and "
                "modded-nanogpt refuse it; they need a vocabulary of at most 65,536 ids"
            )
        return dtype

    def header(self, tokens: int, dtype: np.dtype[Any]) -> bytes:
        """256 int32: the magic number, the version and how many ids follow."""
        if tokens >= 1 << 31:
            raise ShardError(
                f"a shard of {tokens:,} tokens is too large for llm.c, which counts below 2^31"
            )
        short = dtype.itemsize == 2
        words = np.zeros(256, "<i4")
        words[:3] = (20240520, 1, tokens) if short else (20240801, 7, tokens)
        return words.tobytes()


class NanoGpt(Layout):
    """nanoGPT: two files of plain ids."""

    name: ShardFormat = "nanogpt"
    # All training shards are in one file; each has its own index of documents.
    data_file = "{split}.bin"
    index_file = "{split}_{number:06}.ends"
    validation = True
    joined = True

    def dtype(self, largest_id: int) -> np.dtype[Any]:
        """NanoGPT only reads uint16."""
        if largest_id >= 1 << 16:
            raise ShardError(
                f"nanoGPT reads ids as uint16, and this vocabulary goes up to {largest_id:,}",
                hint="choose the format llmc, or a vocabulary of at most 65,536 ids",
            )
        return np.dtype("<u2")


class Megatron(Layout):
    """Megatron-LM and NeMo: plain ids, and an index of the documents."""

    name: ShardFormat = "megatron"
    # Megatron takes the name without its extension.
    data_file = "tokens_{number:06}_text_document.bin"
    index_file = "tokens_{number:06}_text_document.idx"
    magic: Final = b"MMIDIDX\0\0"

    def dtype(self, largest_id: int) -> np.dtype[Any]:
        """Megatron knows uint16 and int32."""
        return np.dtype("<u2" if largest_id < 1 << 16 else "<i4")

    def index(self, lengths: NDArray[np.int64], dtype: np.dtype[Any]) -> bytes:
        """Each document is one sequence: its length, where it starts in bytes, and its number."""
        if len(lengths) and lengths.max() >= 1 << 31:
            raise ShardError("a document of 2^31 tokens or more is too long for Megatron-LM")
        count = len(lengths)
        starts = (np.cumsum(lengths) - lengths) * dtype.itemsize
        head = struct.pack("<QBQQ", 1, 8 if dtype.itemsize == 2 else 4, count, count + 1)
        numbers = np.arange(count + 1, dtype="<i8")
        parts = (lengths.astype("<i4"), starts.astype("<i8"), numbers)
        return self.magic + head + b"".join(part.tobytes() for part in parts)

    def ends(self, path: Path, documents: int) -> NDArray[Any]:
        """The sums of the lengths."""
        lengths = _mapped(path, np.dtype("<i4"), 34, documents)
        return np.cumsum(lengths, dtype=np.uint64)


class Arrow(Layout):
    """An Arrow stream (IPC) with a list of ids for each document, as Hugging Face datasets has it.

    Arrow has another format for files, with a table of its batches; there is one batch here.
    """

    name: ShardFormat = "arrow"
    data_file = "shard_{number:06}.arrow"

    def finish(self, path: Path, lengths: NDArray[np.int64], dtype: np.dtype[Any]) -> None:
        """Write the ids again, from a map of the file, as one batch of lists."""
        # A name that nobody can foresee, so that nothing stands there.
        name = path.name.removeprefix(".").removesuffix(".partial")
        other = path.with_name(f".{name}.{os.urandom(8).hex()}")
        _write_lists(other, _mapped(path, dtype, 0, int(lengths.sum())), lengths)
        with other.open("r+b") as file:
            sync(file.fileno())
        other.replace(path)  # no longer mapped, otherwise Windows would refuse

    def open(self, folder: Path, shard: Shard, dtype: np.dtype[Any]) -> tuple[Ids, NDArray[Any]]:
        """Map the file; its one batch has the ids end to end."""
        lists = _lists(folder / shard.parts[0].file)
        ends = lists.offsets.to_numpy()[1:]
        ids = lists.values.to_numpy()
        if (len(ids), len(ends)) != (shard.tokens, shard.documents) or ids.dtype != dtype:
            raise ShardError(f"{folder / shard.parts[0].file} does not match the manifest")
        return ids, ends


def _write_lists(path: Path, ids: Ids, lengths: NDArray[np.int64]) -> None:
    from bytepair._internal.extras import pyarrow as pa

    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ids))
    batch = pa.RecordBatch.from_arrays([lists], ["input_ids"])
    with path.open("xb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _lists(path: Path) -> pa.LargeListArray:
    """The lists of ids of a file, validated in full: offsets may point anywhere in memory."""
    from bytepair._internal.extras import pyarrow as pa

    try:
        stream = pa.ipc.open_stream(pa.memory_map(str(path)))
        batch = stream.read_next_batch()
        batch.validate(full=True)
        lists = batch.column("input_ids")
    except (pa.ArrowException, OSError, KeyError, StopIteration) as error:
        raise ShardError(f"{path}: {error}") from error
    is_list = isinstance(lists, pa.LargeListArray) and pa.types.is_integer(lists.type.value_type)
    if not is_list or lists.null_count or lists.values.null_count:
        raise ShardError(f"{path}: the column input_ids is {lists.type}, or has nulls")
    return lists


LAYOUTS: Final[dict[str, Layout]] = {
    kind.name: kind() for kind in (Layout, LlmC, NanoGpt, Megatron, Arrow)
}


def layout(name: str) -> Layout:
    """The layout of a name; where there is none, a `ShardError` says which there are."""
    if name not in LAYOUTS:
        formats = ", ".join(LAYOUTS)
        raise ShardError(f"there is no format {name!r}; there are {formats}", option="format")
    return LAYOUTS[name]


def _mapped(path: Path, dtype: np.dtype[Any], offset: int, count: int) -> NDArray[Any]:
    """Map part of a file as an array; an empty one cannot be mapped."""
    if not count:
        return np.empty(0, dtype)
    try:
        return np.memmap(path, dtype, "r", offset, (count,)).view(np.ndarray)
    except (OSError, ValueError) as error:
        raise ShardError(f"{path} is missing or truncated: {error}") from error


@dataclass
class ShardWriter:
    """One shard on its way to disk.

    Attributes:
        layout: the format.
        folder: where the files go.
        number: of the shard.
        split: what it is for.
        dtype: of the ids.
        offset: where in the file to begin, in bytes, for formats that join shards.
    """

    layout: Layout
    folder: Path
    number: int
    split: ShardSplit
    dtype: np.dtype[Any]
    offset: int = 0

    def __post_init__(self) -> None:
        self._name = self.layout.data_file.format(number=self.number, split=self.split)
        self._path = self.folder / partial(self._name)
        self._file = DiskFile(self._path, self.offset, self.layout.header_bytes)
        self._lengths: list[NDArray[np.int64]] = []
        self.tokens = self.documents = self.text_bytes = 0

    def add(self, ids: Ids, lengths: NDArray[np.int64], text_bytes: int) -> None:
        """Write documents: their ids end to end, and how many each has."""
        self._file.add(np.ascontiguousarray(ids, self.dtype))
        self._lengths.append(lengths)
        self.tokens += len(ids)
        self.documents += len(lengths)
        self.text_bytes += text_bytes

    def close(self, following: tuple[int, int] | None, skipped: list[dict[str, Any]]) -> Shard:
        """Finish the files, sync them and give them their names.

        Args:
            following: the address of the next document, for the description of the shard.
            skipped: what was skipped, also for the description.
        """
        lengths = np.concatenate([np.empty(0, np.int64), *self._lengths])
        header = self.layout.header(self.tokens, self.dtype)
        self._file.finish(header)
        self.layout.finish(self._path, lengths, self.dtype)
        if not (self.layout.joined and self.split == "train"):
            self._path.replace(self.folder / self._name)
        parts = []
        if header:
            parts.append(ShardPart(self._name, 0, len(header), f"{zlib.crc32(header):08x}"))
        if self.layout.name == Arrow.name:
            path = self.folder / self._name
            parts.append(ShardPart(self._name, 0, path.stat().st_size, crc_of(path)))
        else:
            place, size = self.offset + len(header), self.tokens * self.dtype.itemsize
            parts.append(ShardPart(self._name, place, size, f"{self._file.crc:08x}"))
            parts.append(self._write_index(lengths))
        sync_folder(self.folder)  # before the mark of the shard is written
        return Shard(
            self.number, self.split, self.tokens, self.documents, parts, self.text_bytes,
            following, skipped,
        )  # fmt: skip

    def _write_index(self, lengths: NDArray[np.int64]) -> ShardPart:
        data = self.layout.index(lengths, self.dtype)
        name = self.layout.index_file.format(number=self.number, split=self.split)
        write_whole(self.folder / name, data)
        return ShardPart(name, 0, len(data), f"{zlib.crc32(data):08x}")

    def abandon(self) -> None:
        """Close the file; the next run begins it anew."""
        self._file.close()
