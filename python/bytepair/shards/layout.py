"""Defines the formats of shards: how files store ids and the borders of documents.

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
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair.errors import ShardError, warn
from bytepair.files.outputs import check_alone, naming, open_own, sync
from bytepair.formats import NATIVE
from bytepair.shards.manifest import NAME as MANIFEST
from bytepair.shards.manifest import Shard, ShardFormat, ShardPart, ShardSplit

Ids = NDArray[Any]

#: The largest piece of a file that is written and added to the checksum at once, in bytes.
PIECE_BYTES: Final = 1 << 22


def partial(name: str) -> str:
    """The temporary name of a file until it is complete."""
    return f".{name}.partial"


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
        return {MANIFEST, NATIVE} | {
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

    def starts(self, path: Path) -> list[int]:
        """Where the parts of a file begin that `finish` has written again, with the borders."""
        return []

    def open(self, folder: Path, shard: Shard, dtype: np.dtype[Any]) -> tuple[Ids, NDArray[Any]]:
        """Map a shard: its ids, and where each document ends."""
        if len(shard.parts) < 2:
            raise ShardError(f"{folder}, shard {shard.number}: a file is missing")
        data, index = shard.parts[-2:]
        ids = _ids(folder, data, dtype, shard.tokens)
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
        from bytepair._internal.extras import pyarrow as pa

        # A name that nobody can foresee, so that nothing stands there.
        name = path.name.removeprefix(".").removesuffix(".partial")
        other = path.with_name(f".{name}.{os.urandom(8).hex()}")
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        ids = pa.array(_mapped(path, dtype, 0, int(ends[-1])))
        lists = pa.LargeListArray.from_arrays(pa.array(ends), ids)
        batch = pa.RecordBatch.from_arrays([lists], ["input_ids"])
        try:
            with naming(other), other.open("xb") as sink:
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                sink.flush()
                sync(sink.fileno())
            check_alone(path)
            del ids, lists, batch  # no longer mapped, otherwise Windows would refuse
            other.replace(path)
        except BaseException:
            other.unlink(missing_ok=True)
            raise

    def starts(self, path: Path) -> list[int]:
        """Where the parts of a file begin: what precedes the ends of lists, these ends, the ids."""
        from bytepair._internal.extras import pyarrow as pa

        with pa.memory_map(str(path)) as file:
            whole = file.read_buffer()
            (lists,) = pa.ipc.open_stream(whole).read_next_batch().columns
            _, ends, _, ids = lists.buffers()
            parts = [part if part.size else whole.slice(len(whole)) for part in (ends, ids)]
            return [0, *(part.address - whole.address for part in parts)]

    def open(self, folder: Path, shard: Shard, dtype: np.dtype[Any]) -> tuple[Ids, NDArray[Any]]:
        """Map the parts of the file, whatever else it says; the first list begins at 0."""
        if len(shard.parts) != 3:
            raise ShardError(f"{folder}, shard {shard.number}: the file has other parts")
        _, index, data = shard.parts
        ends = _mapped(folder / index.file, np.dtype("<i8"), index.offset + 8, shard.documents)
        return _ids(folder, data, dtype, shard.tokens), ends


LAYOUTS: Final[dict[str, Layout]] = {
    kind.name: kind() for kind in (Layout, LlmC, NanoGpt, Megatron, Arrow)
}


def _ids(folder: Path, part: ShardPart, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    if part.offset % dtype.itemsize:
        text = f"{folder / part.file} is damaged: its ids begin at byte {part.offset}, within one"
        raise ShardError(text)
    return _mapped(folder / part.file, dtype, part.offset, count)


def _mapped(path: Path, dtype: np.dtype[Any], offset: int, count: int) -> NDArray[Any]:
    """Map part of a file as an array; an empty one cannot be mapped."""
    if not count:
        return np.empty(0, dtype)
    check_size(path, offset + count * dtype.itemsize)
    try:
        return np.memmap(path, dtype, "r", offset, (count,)).view(np.ndarray)
    except (OSError, ValueError) as error:
        raise ShardError(f"{path} cannot be read: {error}") from error


def check_size(path: Path, size: int) -> None:
    """Check that a file has so many bytes, before memory is used for what they hold."""
    try:
        is_whole = path.stat().st_size >= size
    except OSError as error:
        raise ShardError(f"{path} cannot be read: {error}") from error
    if not is_whole:
        raise ShardError(f"{path} is truncated")


class DiskFile:
    """A file that is created, or written again from an offset to its end.

    There, bytes are reserved for the header, which `finish` writes.
    """

    def __init__(self, path: Path, offset: int = 0, header: int = 0) -> None:
        self.crc = 0  # of the bytes after the header
        self._offset, self._path = offset, path
        self._file = open_own(path).detach()  # what a full disk refused is not written at the end
        with naming(path):
            self._file.truncate(offset + header)
            self._file.seek(offset + header)

    def add(self, array: NDArray[Any]) -> None:
        """Write the bytes of a contiguous array."""
        data = array.view(np.uint8)
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            self.crc = _core.crc32(piece, self.crc)
            self._write(piece)

    def _write(self, data: Any) -> None:
        left = memoryview(data)
        with naming(self._path):
            while left:
                left = left[self._file.write(left) :]

    def finish(self, header: bytes = b"") -> None:
        """Write the header, sync and close."""
        self._file.seek(self._offset)
        self._write(header)
        with naming(self._path):
            sync(self._file.fileno())
        self.close()

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()
