"""Parquet files of a few kinds of columns, for tests that read them in more than one way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write_tables(folder: Path, texts: list[str], **options: Any) -> None:
    """Tables with nulls, a nested column of the same name, required strings, and no rows."""
    some = [None if i % 7 == 3 else text for i, text in enumerate(texts)]
    nested = [{"text": "not this"}] * len(texts)
    pq.write_table(pa.table({"outer": nested, "text": some}), folder / "a.parquet", **options)
    required = pa.schema([pa.field("text", pa.large_string(), nullable=False)])
    table = pa.table({"text": texts[::-1]}, schema=required)
    pq.write_table(table, folder / "b.parquet", **options)
    pq.write_table(table[:0], folder / "c.parquet")
