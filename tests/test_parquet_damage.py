"""Parquet files with wrong or damaged footers: an error that says so, or the content."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bytepair
from bytepair.corpus.rows import read_rows
from bytepair.errors import BytepairError, ConversationError, CorpusError, CountsError
from messages import told

ROWS = 1000
TEXTS = [f"{'hello world ' * 50}{number}" for number in range(ROWS)]

#: Numbers that are too large for any memory, or too small for the content.
LIES = [1 << 40, 1 << 60, (1 << 62) - 1, 0]


def varint(number: int) -> bytes:
    """A number as Thrift's compact protocol writes it."""
    folded, out = 2 * number, bytearray()
    while folded > 127:
        out.append(folded & 127 | 128)
        folded >>= 7
    return bytes([*out, folded])


def with_footer(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Write a file with another footer."""
    data = file.read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = change(data[-8 - length : -8])
    file.write_bytes(data[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1")


def lying(file: Path, field: str, lie: int) -> None:
    """Write texts in one row group, with wrong values in the footer."""
    table = pa.table({"text": TEXTS})
    pq.write_table(table, file, compression="zstd", use_dictionary=False)
    value = varint(getattr(pq.ParquetFile(file).metadata.row_group(0).column(0), field))
    with_footer(file, lambda footer: footer.replace(value, varint(lie)))


def read_in_all_ways(file: Path, tok: bytepair.Tokenizer, out: Path) -> list[Any]:
    """The documents, counts and shards of a file, or the error."""
    ways: list[Callable[[], Any]] = [
        lambda: sum(len(batch) for batch in bytepair.corpus.read_documents(file)),
        lambda: bytepair.count(file).total,
        lambda: bytepair.shards.write(file, tok, out, progress=False).documents,
    ]
    results: list[Any] = []
    for way in ways:
        try:
            results.append(way())
        except (BytepairError, OSError) as error:
            results.append(error)
    return results


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of Linux")
def test_many_row_groups_in_a_footer_are_an_error_where_memory_is_short(tmp_path: Path) -> None:
    count = varint(5_000_000)  # which is 10,000,000 as a number without sign
    groups = b"\x19\xfc" + count + bytes(10_000_000)
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a"]}), file)
    with_footer(file, lambda footer: footer[: footer.index(b"\x19\x1c\x19\x1c")] + groups + b"\0")
    child = (
        "import resource, sys, bytepair\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 20),) * 2)\n"
        "try: bytepair.count(sys.argv[1], threads=1)\n"
        "except bytepair.errors.BytepairError: print('refused')\n"
    )
    command = [sys.executable, "-c", child, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n", done.stderr[-500:]


def test_a_row_group_is_listed_once(tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    """A footer that lists one row group often states more bytes than the file has."""
    messages = [[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]] * 9
    table = pa.table({"text": ["x" * 99] * 9, "messages": messages})
    pq.write_table(table, tmp_path / "a.parquet", compression=None, use_dictionary=False)
    size = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(0)
    stored = varint(size.total_compressed_size)
    with_footer(tmp_path / "a.parquet", lambda footer: footer.replace(stored, varint(1 << 30)))
    for result in read_in_all_ways(tmp_path / "a.parquet", trained, tmp_path / "out"):
        assert isinstance(result, CorpusError)
    with told(ConversationError):
        list(read_rows(tmp_path / "a.parquet"))


def test_rows_that_take_no_bytes_are_limited(tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    table = pa.table({"text": pa.nulls(20_000_000, pa.string())})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    with told(CorpusError):
        bytepair.count(tmp_path / "a.parquet")
    for result in read_in_all_ways(tmp_path / "a.parquet", trained, tmp_path / "out"):
        assert isinstance(result, CorpusError)


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("field", ["total_uncompressed_size", "total_compressed_size"])
def test_false_sizes(field: str, lie: int, tmp_path: Path, trained: bytepair.Tokenizer) -> None:
    lying(tmp_path / "a.parquet", field, lie)
    results = read_in_all_ways(tmp_path / "a.parquet", trained, tmp_path / "out")
    for result, expected in zip(results, [ROWS, bytepair.count(TEXTS).total, ROWS], strict=True):
        if field == "total_uncompressed_size" or not isinstance(result, CorpusError):
            assert result == expected


@pytest.mark.parametrize("lie", [ROWS + 1, 1 << 20, 1 << 24, *LIES[:3]])
def test_rows_that_are_missing_are_an_error(
    lie: int, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    file = tmp_path / "a.parquet"
    lying(file, "num_values", lie)
    for error in read_in_all_ways(file, trained, tmp_path / "out"):
        assert isinstance(error, CorpusError)
        assert "rows" in str(error)
    if lie > 1 << 24:  # no file of this size has so many
        with told(CorpusError):
            bytepair.shards.write(file, trained, tmp_path / "skip", errors="skip", progress=False)
        return
    manifest = bytepair.shards.write(
        file, trained, tmp_path / "skip", errors="skip", progress=False
    )
    assert manifest.documents == ROWS
    assert [(left["first"], left["rows"]) for left in manifest.skipped] == [(ROWS, lie - ROWS)]


def damaged(data: bytes, picked: random.Random) -> bytes:
    """A footer with some bytes replaced, by numbers of any size too, or removed."""
    footer = bytearray(data)
    for _ in range(picked.choice([1, 1, 1, 2, 4])):
        at = picked.randrange(len(footer))
        large = 1 << picked.randrange(63)
        replaced = picked.choice([varint(large), varint(large - 1), picked.randbytes(1), b""])
        footer[at : at + 1] = replaced
    return bytes(footer)


@pytest.mark.parametrize("shape", range(4))
def test_damage_in_the_footer_ends_in_an_error(
    shape: int, tmp_path: Path, trained: bytepair.Tokenizer
) -> None:
    """No file ends the process, raises an error of another kind, or takes all memory."""
    picked = random.Random(shape)
    table = pa.table({"text": [text[-200:] for text in TEXTS[:300]], "n": list(range(300))})
    options: dict[str, Any] = {
        "compression": ["zstd", "snappy", "gzip", "none"][shape],
        "use_dictionary": shape % 2 == 0,
        "data_page_version": ["1.0", "2.0"][shape // 2],
    }
    pq.write_table(table, tmp_path / "whole.parquet", 100, data_page_size=500, **options)
    whole = (tmp_path / "whole.parquet").read_bytes()
    failed = 0
    for number in range(100):
        file = tmp_path / f"{number}.parquet"
        file.write_bytes(whole)
        with_footer(file, lambda footer: damaged(footer, picked))
        results = read_in_all_ways(file, trained, tmp_path / f"out{number}")
        failed += any(isinstance(result, Exception) for result in results)
    assert 10 < failed < 100


def element(name: bytes, fields: bytes) -> bytes:
    """An optional element of a schema."""
    return bytes([0x35, 2, 0x18, len(name)]) + name + fields + b"\0"


#: Schemas that the parquet crate would read until the stack or the memory ends.
DEEP = {
    "deep": [element(b"a", b"\x15" + varint(1))] * 50_000,
    "wide": [element(b"a", b"\x15" + varint((1 << 31) - 1))] * 50,
    "hidden": [element(b"a", b"\x28\x0f" + bytes(15)), *[element(b"a", b"\x15\x02")] * 50_000],
    "no integer": [element(b"a", b"\x18\x02" + varint(1))] * 50_000,
    # The crate writes the name of a group into those of all its columns.
    "names": [
        element(b"root", b"\x15" + varint(1)),
        b"\x35\2\x18\x80\x80\x40" + bytes(1 << 20) + b"\x15" + varint(20) + b"\0",
        *[element(b"a", b"")] * 20,
    ],
}


@pytest.mark.parametrize("name", DEEP)
def test_a_schema_that_is_too_deep_is_an_error(
    name: str, trained: bytepair.Tokenizer, tmp_path: Path
) -> None:
    schema, file = DEEP[name], tmp_path / "deep.parquet"
    size = bytes([len(schema) & 127 | 128, len(schema) >> 7 & 127 | 128, len(schema) >> 14])
    footer = b"\x15\x04\x19\xfc" + size + b"".join(schema) + b"\x16\0\x19\x0c\0"
    file.write_bytes(b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1")
    for result in read_in_all_ways(file, trained, tmp_path / "out"):
        assert isinstance(result, CorpusError)
        assert "100 levels" in str(result)
    with pytest.raises(CountsError) as caught:
        bytepair.training.load_counts(file)
    assert "100 levels" in str(caught.value)


@pytest.mark.timeout(30)
def test_lists_without_bytes_take_no_time(trained: bytepair.Tokenizer, tmp_path: Path) -> None:
    """Of a list of booleans, whose elements have none in a struct, the crate reads any number."""
    file = tmp_path / "booleans.parquet"
    pq.write_table(pa.table({"text": ["a"]}), file)
    lists = b"\xf1\xff\xff\xff\xff\x07" * 100
    with_footer(file, lambda footer: footer[:-1] + b"\xf9\xf9\x64" + lists + b"\0")
    for result in read_in_all_ways(file, trained, tmp_path / "out"):
        assert isinstance(result, CorpusError)


def stored(file: Path, find: Callable[[bytes], tuple[bytes, bytes]], **options: Any) -> None:
    """Write texts without statistics, and then other bytes at the first place of some."""
    table = pa.table({"text": ["a" * 99] * 20_000})
    pq.write_table(table, file, write_statistics=False, **options)
    data = file.read_bytes()
    old, new = find(data)
    assert len(old) == len(new)
    assert old in data
    file.write_bytes(data.replace(old, new, 1))


#: 20,000 as the head of a delta encoding states it, behind the sizes of a block and its parts.
STATED = (b"\x80\x01\x04\xa0\x9c\x01", b"\x80\x01\x04\xff\xff\x7f")


@pytest.mark.parametrize(
    ("find", "options"),
    [
        (lambda _: (b"\x4c\x15\x02", b"\x4c\x15\x7e"), {"compression": "none"}),
        (
            lambda _: (b"\x2c\x15\xc0\xb8\x02", b"\x2c\x15\xfe\xff\x7f"),
            {"compression": "none", "column_encoding": "PLAIN"},
        ),
        (
            lambda _: (b"\x25\x06\x0e", b"\x25\x06\x00"),
            {"compression": "none", "column_encoding": "DELTA_BYTE_ARRAY"},
        ),
        *(
            (lambda _: STATED, {"compression": "none", "column_encoding": encoding} | version)
            for encoding in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
            for version in ({"data_page_version": "2.0"}, {})
        ),
        *(
            (lambda data: (data[7:11], varint(1_500_000)), {"compression": codec})
            for codec in ("gzip", "brotli", "zstd", "snappy")
        ),
    ],
)
def test_what_a_page_states_is_not_believed(
    tmp_path: Path, trained: bytepair.Tokenizer, find: Any, options: dict[str, Any]
) -> None:
    """The values of a dictionary and of a delta encoding, and the size of a page."""
    delta = "column_encoding" in options
    stored(
        tmp_path / "a.parquet", find, data_page_size=1 << 30,
        use_dictionary=options == {"compression": "none"}, **options,
    )  # fmt: skip
    for result in read_in_all_ways(tmp_path / "a.parquet", trained, tmp_path / "out"):
        assert isinstance(result, CorpusError), delta


@pytest.mark.parametrize("kind", [pa.null(), pa.list_(pa.struct({"role": pa.string()}))])
def test_rows_of_conversations_without_bytes_are_limited(tmp_path: Path, kind: Any) -> None:
    table = pa.table({"messages": pa.nulls(3_000_000, kind)})
    pq.write_table(table, tmp_path / "a.parquet")
    with told(ConversationError, "values, and has"):
        list(read_rows(tmp_path / "a.parquet"))


@pytest.mark.parametrize(("codec", "name"), [(3, "LZO"), (5, "LZ4")])
def test_old_compressions_are_refused(tmp_path: Path, codec: int, name: str) -> None:
    place = b"\x18\x04text\x15"
    stored(
        tmp_path / "a.parquet", lambda _: (place + b"\0", place + bytes([2 * codec])),
        compression="none",
    )  # fmt: skip
    with told(CorpusError, name):
        bytepair.count(tmp_path / "a.parquet")
