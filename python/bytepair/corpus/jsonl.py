"""Lines of json objects in, one field of each out as Arrow strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES: Final = 1 << 20


def parse(lines: bytes, column: str) -> list[pa.Array]:
    """The texts of whole lines of json objects.

    Raises:
        pyarrow.ArrowInvalid: if a line is no object, or its field no text.
    """
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_json as pj

    if not lines or lines.isspace():
        return []
    parse = pj.ParseOptions(
        explicit_schema=pa.schema([(column, pa.string())]), unexpected_field_behavior="ignore"
    )

    def read(block_size: int) -> list[pa.Array]:
        options = pj.ReadOptions(block_size=block_size)
        table = pj.read_json(pa.BufferReader(lines), read_options=options, parse_options=parse)
        return list(table.column(0).chunks)

    try:
        return read(BLOCK_BYTES)
    except pa.ArrowInvalid:  # maybe only an object longer than a block; all as one block will tell
        return read(len(lines))
