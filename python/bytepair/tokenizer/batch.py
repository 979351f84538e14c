"""Encodes files, for the method of `Tokenizer` that needs the package `corpus`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bytepair import _core
from bytepair.corpus.column import Skip, SkipLog, TextBatch
from bytepair.corpus.files import is_plain_text
from bytepair.corpus.read import read_batches
from bytepair.corpus.source import Reading
from bytepair.errors import ArgumentError
from bytepair.tokenizer.results import IdArrays


def encode_file(
    tokenizer: _core.Tokenizer,
    path: str | os.PathLike[str],
    separator: str | bytes | None,
    reading: Reading,
    *,
    memory_map: bool,
    **options: Any,
) -> IdArrays:
    """The ids of a file; see `Tokenizer.encode_file`."""
    if separator is not None and not separator:
        raise ArgumentError(
            "separator is empty",
            option="separator",
            value=separator,
            hint="pass None for one document, or a string",
        )
    ending = separator.encode() if isinstance(separator, str) else separator
    skips, path = SkipLog(), Path(path)
    # A missing file raises the usual FileNotFoundError; a pipe can be opened only once.
    with nullcontext() if path.is_fifo() else path.open("rb"):
        if not is_plain_text(path):
            if separator is not None:
                raise ArgumentError(
                    f"separator is for plain text, but {path} is not",
                    option="separator",
                    value=separator,
                    hint="omit it",
                )
            batches = read_batches([path], reading, on_skip=skips.add)
            encoded = _encode_batches(tokenizer, batches, **options)
        elif reading.errors == "skip":
            texts = _documents(path, ending, skips)
            encoded = IdArrays(*tokenizer.encode_batch_to_numpy(texts, **options))
        else:
            encoded = IdArrays(
                *_core.encode_file(
                    tokenizer, os.fspath(path),
                    separator=ending or b"",
                    lossy=reading.errors == "replace", reads=not memory_map, **options,
                )
            )  # fmt: skip
    skips.warn()
    return encoded


def _encode_batches(
    tokenizer: _core.Tokenizer, batches: Iterator[TextBatch], **options: Any
) -> IdArrays:
    import numpy as np

    ids, ends = [tokenizer.encode_batch_to_numpy([])[0]], [np.zeros(1, np.int64)]
    for batch in batches:
        if isinstance(batch, list):
            some, offsets = tokenizer.encode_batch_to_numpy(batch, **options)
        else:
            some, offsets = _core.encode_utf8(tokenizer, batch.data, batch.offsets, **options)
        ids.append(some)
        ends.append(offsets[1:] + ends[-1][-1])
    return IdArrays(np.concatenate(ids), np.concatenate(ends))


def _documents(path: Path, ending: bytes | None, skips: SkipLog) -> list[str]:
    """The documents of a file of plain text that are UTF-8."""
    data = path.read_bytes()
    texts = []
    for number, document in enumerate([data] if ending is None else data.split(ending)):
        try:
            texts.append(document.decode())
        except UnicodeDecodeError as error:
            reason = f"the document is not UTF-8 at byte {error.start}"
            skips.add(Skip(str(path), number, 1, reason))
    return texts
