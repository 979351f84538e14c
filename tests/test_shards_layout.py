"""The files of shards have the bytes that were added, and their checksum."""

from __future__ import annotations

import errno
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bytepair.shards import layout
from bytepair.shards.layout import DiskFile

BLOCK = 1 << 12


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PIECE_BYTES", 2 * BLOCK)


def written(path: Path, offset: int, header: int, sizes: list[int]) -> tuple[bytes, int, bytes]:
    """The content of a file after adding arrays, its checksum, and the bytes of the arrays."""
    random = np.random.default_rng(1)
    arrays = [random.integers(0, 1 << 16, size, np.uint16) for size in sizes]
    file = DiskFile(path, offset, header)
    for array in arrays:
        file.add(array)
    file.finish(b"h" * header)
    return path.read_bytes(), file.crc, b"".join(array.tobytes() for array in arrays)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    offset=st.sampled_from([0, 1, BLOCK - 1, BLOCK, BLOCK + 7, 3 * BLOCK + 1]),
    header=st.sampled_from([0, 1024]),
    sizes=st.lists(st.integers(0, 2 * BLOCK), max_size=6),
)
def test_the_bytes_are_those_that_were_added(
    tmp_path: Path, offset: int, header: int, sizes: list[int]
) -> None:
    path = tmp_path / "file"
    before = bytes(range(256)) * (4 * BLOCK // 256)
    path.write_bytes(before)  # the leftover of an interrupted run
    content, crc, data = written(path, offset, header, sizes)
    assert content == before[:offset] + b"h" * header + data
    assert crc == zlib.crc32(data)


def test_a_full_disk_is_an_error_with_the_name(tmp_path: Path) -> None:
    resource: Any = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = DiskFile(tmp_path / "file")
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 * BLOCK, hard))
    try:
        with pytest.raises(OSError, match="file") as caught:
            file.add(np.zeros(16 * BLOCK, np.uint8))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        file.close()
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(tmp_path / "file")
