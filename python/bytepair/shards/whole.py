"""Files of finished work in, what is wrong with them out: the one place that says what is whole.

`verify`, a run that finds finished shards and the ranks that find finished tasks all
ask here. Every byte is read (a gigabyte takes a fraction of a second where the disk keeps up): a
name and a size say little about a file that was cut, changed or copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from bytepair._internal.names import check_regular
from bytepair.shards.manifest import Shard, ShardPart, crc_of, partial


def part_of(folder: Path, name: str) -> ShardPart:
    """The record of a whole file."""
    path = folder / name
    return ShardPart(name, 0, path.stat().st_size, crc_of(path))


def wrong_parts(folder: Path, parts: Iterable[ShardPart], *, is_finished: bool = True) -> list[str]:
    """What is wrong with ranges of files, a sentence each; none if all are whole.

    Args:
        folder: the folder of the files.
        parts: the ranges.
        is_finished: whether all files have their names. While a run is unfinished, a file that
            several shards share has its temporary name.

    Raises:
        ShardError: if a file is a link, a folder, a pipe or a device.
    """
    paths = [(_path(folder, part.file, is_finished=is_finished), part) for part in parts]
    return [reason for path, part in paths if (reason := _wrong_part(path, part))]


def _wrong_part(path: Path, part: ShardPart) -> str:
    if not path.exists():
        return f"{part.file} is gone"
    size, end = path.stat().st_size, part.offset + part.bytes
    if size < end:
        return f"{part.file} is cut off: it has {size:,} bytes"
    if (crc := crc_of(path, part.offset, part.bytes)) != part.crc32:
        return (
            f"{part.file} is damaged: CRC-32 of bytes {part.offset} to {end} is {crc}, not "
            f"{part.crc32}"
        )
    return ""


def _path(folder: Path, name: str, *, is_finished: bool) -> Path:
    """The file of a name, or of its temporary name if that may be and only that exists."""
    path, other = folder / name, folder / partial(name)
    check_regular(path)
    if is_finished or path.exists():
        return path
    check_regular(other)
    return other if other.exists() else path


def wrong_shards(
    folder: Path, shards: list[Shard], *, is_finished: bool = True
) -> Iterator[tuple[Shard, list[str]]]:
    """Each shard of a folder with what is wrong with its files, in order.

    A file that is longer than all its parts is wrong in the last shard that it contains, unless it
    has its temporary name, because it is still being written.

    Args:
        folder: the folder.
        shards: the shards.
        is_finished: as in `wrong_parts`.
    """
    ends: dict[str, tuple[int, int]] = {}
    for shard in shards:
        for part in shard.parts:
            end, _ = ends.get(part.file, (0, 0))
            ends[part.file] = (max(end, part.offset + part.bytes), shard.number)
    for shard in shards:
        last = {part.file: ends[part.file][0] for part in shard.parts
                if ends[part.file][1] == shard.number}  # fmt: skip
        wrong = wrong_parts(folder, shard.parts, is_finished=is_finished)
        yield shard, wrong or _too_long(folder, last)


def _too_long(folder: Path, ends: dict[str, int]) -> list[str]:
    """What is wrong with files that are longer than recorded."""
    sizes = {n: (folder / n).stat().st_size for n in ends if (folder / n).exists()}
    return [
        f"{name} has {size:,} bytes; the manifest knows {ends[name]:,}"
        for name, size in sizes.items()
        if size > ends[name]
    ]
