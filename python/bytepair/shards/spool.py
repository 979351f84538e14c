"""A source in memory in, a parquet file out that exists while its shards are written.

Shards can be resumed and written again, since each document has an address: a file and a row in it.
Texts, data frames and data sets have none, so their text is first written to a temporary parquet
file; the same source gives the same file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bytepair.corpus import arrow
from bytepair.corpus.column import Column, TextBatch
from bytepair.corpus.files import Files, Input, of_split
from bytepair.corpus.read import read_batches
from bytepair.corpus.skips import SkipLog
from bytepair.corpus.source import ResolvedSource, Source, resolve_or_files
from bytepair.files.outputs import scratch

if TYPE_CHECKING:
    from bytepair.shards.job import ShardOptions

#: The name of the source in manifests and messages.
NAME: Final = "the source"


@contextmanager
def on_disk(source: Source, options: ShardOptions) -> Iterator[Source | Files]:
    """The source itself if it is files, else a file with its text, which is removed at the end.

    Args:
        source: as in `write`.
        options: the column, and how to treat invalid texts.

    Raises:
        CorpusError: as in `bytepair.train`.
    """
    resolved = resolve_or_files(source, options.split)
    if isinstance(resolved, Files):
        yield resolved
        return
    with scratch() as folder:
        path = folder / "source.parquet"
        _write(resolved, path, options)
        file = Input(NAME, path.stat().st_size, None, str(path))
        yield of_split(Files([file]), options.split)


def _write(resolved: ResolvedSource, path: Path, options: ShardOptions) -> None:
    """Write the text of a source to a parquet file with one column."""
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_parquet as parquet

    skips = SkipLog()
    batches = read_batches(
        resolved, column=options.column, errors=options.errors, on_skip=skips.add,
        max_document_bytes=options.max_document_bytes,
    )  # fmt: skip
    schema = pa.schema([(options.column, pa.large_string())])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(arrow.record_batch(_column(batch), options.column))
    skips.warn()


def _column(batch: TextBatch) -> Column:
    """Documents as the column that they are, or as one of the bytes of texts."""
    if isinstance(batch, Column):
        return batch
    texts = [text.encode() for text in batch]
    offsets = np.cumsum([0, *map(len, texts)])
    return Column(np.frombuffer(b"".join(texts), np.uint8), offsets, NAME)
