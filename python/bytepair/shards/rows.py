"""Parquet files in, documents as ids out: read and encoded by threads of the core.

The core reads rows in parts. If a part cannot be read or encoded as a whole, nothing of it is
taken, and `columns` continues at its beginning, document by document. So the shards do not depend
on which module read the documents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bytepair import _core
from bytepair.corpus.bounds import Expansion
from bytepair.corpus.files import Input
from bytepair.corpus.kinds import compression_of, kind_of
from bytepair.shards.job import Address, EncodedRows, ShardJob

#: The maximum number of files that the threads have open at once.
OPEN_FILES: Final = 64


def is_read(file: Input) -> bool:
    """Whether a file may be read here, by its name."""
    is_table = compression_of(file.path) is None and kind_of(file.path) == "parquet"
    return file.cloud is None and is_table


def encode(
    job: ShardJob,
    start: Address,
    stop: int,
    take: Callable[[EncodedRows], None],
    threads: int | None = None,
) -> Address:
    """Read and encode the documents from `start` up to the input number `stop`, exclusive.

    Returns:
        The address of the first document that is left: the input `stop`, the input after
        `OPEN_FILES` inputs, or the place at which the core cannot read or encode.
    """
    files = job.files[start.input : min(stop, start.input + OPEN_FILES)]
    expansions = [Expansion(file.name, file.size) for file in files]

    def took(ids: Any, offsets: Any, text_ends: Any, parts: list[_core.RowRange]) -> None:
        ends = np.cumsum([part.rows for part in parts])
        starts = np.concatenate([[0], ends[:-1]])
        places = [Address(start.input + part.file, part.row) for part in parts]
        for part, size in zip(parts, np.diff(text_ends[[*starts, -1]]), strict=True):
            expansions[part.file].add(int(size))
        take(EncodedRows(ids.astype(job.dtype, copy=False), offsets, text_ends, starts, places))

    end = _core.encode_rows(
        job.tokenizer, [file.path for file in files], job.values["column"], took,
        first=start.row, doc_cap=job.values["doc_cap"],
        prepend=job.values["bos"], append=job.values["eos"],
        most_bytes=job.values["max_document_bytes"], threads=threads,
    )  # fmt: skip
    return Address(start.input + end.file, end.row)
