"""This file verifies shards: is everything there that the manifest promises?

Every file is read whole: its size and the CRC-32 of every part; then the borders of documents, and
that every id stands for a token. A few documents are decoded, for people to look at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.progress import Bar, Callback
from bytepair.errors import FileFormatError, ShardError
from bytepair.properties.entries import NATIVE
from bytepair.properties.tokens import all_tokens
from bytepair.shards.layout import layout
from bytepair.shards.manifest import Manifest, Shard
from bytepair.shards.read import Dataset
from bytepair.shards.state import wrong_shards
from bytepair.tokenizer import load

SAMPLE_TOKENS: Final = 60
BLOCK_IDS: Final = 1 << 22


@dataclass(frozen=True)
class Report:
    """What verifying found. It is true if nothing is wrong.

    Attributes:
        manifest: what was promised.
        wrong: what is not as promised, a sentence each.
        samples: the beginnings of documents: their number and their text.
    """

    manifest: Manifest
    wrong: list[str]
    samples: list[tuple[int, str]]

    def __bool__(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        """The report as lines."""
        if self.wrong:
            return "\n".join(self.wrong)
        lines = [f"all is as promised: {self.manifest}, format {self.manifest.format}"]
        return "\n".join([*lines, *(f"document {n:,}: {text!r}" for n, text in self.samples)])


def verify(
    folder: str | os.PathLike[str], *, samples: int = 3, progress: bool | Callback | None = None
) -> Report:
    r"""Check everything that a manifest promises.

    Args:
        folder: the folder that `bytepair.shards.write` wrote.
        samples: how many documents to decode.
        progress: as in `bytepair.train`; the stage is "verify", and counts shards.

    Raises:
        ShardError: if there is no manifest, or it is damaged itself.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(bytepair.sample.paths(), 1000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = bytepair.shards.write(bytepair.sample.paths(), tok, folder, bos=False)
        ...     report = bytepair.shards.verify(folder, samples=1)
        >>> print(report)
        all is as promised: 1,061,790 tokens (uint16) of 61 documents in 1 shard, format bytepair
        document 0: 'First Citizen:\nBefore we proceed any further, hear me speak...'
    """
    path = Path(folder)
    manifest = Manifest.load(path)
    wrong = list(_wrong_tokenizer(path, manifest))
    tokens = None if wrong else all_tokens(load(path / NATIVE))
    valid = None if tokens is None else np.array([bool(t) for t in tokens], np.bool_)
    with Bar(progress) as bar:
        for shard, reasons in wrong_shards(path, manifest.shards):
            wrong += reasons or _wrong_ids(path, manifest, shard, valid)
            bar.update("verify", shard.number + 1, len(manifest.shards), "shards")
    return Report(manifest, wrong, [] if wrong else _samples(path, samples))


def _wrong_tokenizer(folder: Path, manifest: Manifest) -> Iterator[str]:
    try:
        tokenizer = load(folder / NATIVE, check=True)
    except (FileNotFoundError, FileFormatError) as error:
        yield str(error)
        return
    if tokenizer.fingerprint != manifest.fingerprint:
        yield (
            f"{NATIVE} is the tokenizer {tokenizer.fingerprint[:12]}, and the ids were made by "
            f"{manifest.fingerprint[:12]}"
        )


def _wrong_ids(
    folder: Path, manifest: Manifest, shard: Shard, valid: NDArray[np.bool_] | None
) -> list[str]:
    name = shard.parts[-1].file
    try:
        ids, ends = layout(manifest.format).open(folder, shard, manifest.dtype)
    except ShardError as error:
        return [str(error)]
    last = int(ends[-1]) if len(ends) else 0
    if last != shard.tokens or not (ends[1:] >= ends[:-1]).all():
        return [f"{name}: the borders of documents do not rise to {shard.tokens:,} tokens"]
    if valid is None:
        return []
    for start in range(0, len(ids), BLOCK_IDS):
        block = ids[start : start + BLOCK_IDS].astype(np.int64)
        is_token = (block >= 0) & (block < len(valid))
        is_token[is_token] = valid[block[is_token]]
        if not is_token.all():
            at = int(np.argmin(is_token))
            return [f"{shard.parts[0].file}: id {block[at]} at token {start + at} is not a token"]
    return []


def _samples(folder: Path, count: int) -> list[tuple[int, str]]:
    """The beginnings of documents that are spread over all shards."""
    data = Dataset(folder, split=None)
    tok = data.tokenizer
    numbers = np.linspace(0, max(len(data) - 1, 0), min(count, len(data)), dtype=np.int64)
    texts = ((int(n), tok.decode(data[int(n)][:SAMPLE_TOKENS].astype(np.uint32))) for n in numbers)
    return [(n, text if len(text) <= 60 else f"{text[:60]}...") for n, text in texts]
