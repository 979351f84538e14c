"""Counting within a limit of memory: varied text that is generated while it is counted.

python benchmarks/memory.py --gigabytes 4 --limit-mb 500

Words have seven letters. Half of them are among 4,096, the others any of `--words`, so that the
distinct ones do not fit the limit. Prints the time, the peak memory of the process, and a digest of
the counts, by which runs with other limits are compared.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import bytepair

WORDS_A_DOCUMENT = 1024
DOCUMENTS = 512
LETTERS = 26


def documents(size: int, words: int) -> Iterator[pa.Array]:
    """Columns of documents, about `size` bytes in all."""
    random = np.random.default_rng(7)
    shape = (DOCUMENTS * WORDS_A_DOCUMENT,)
    for _ in range(size // (shape[0] * 8)):
        often = random.integers(0, 4096, shape)
        rarely = random.integers(0, words, shape)
        numbers = np.where(random.random(shape) < 0.5, often, rarely)
        # The factor is coprime to the number of all words, so different numbers stay different.
        numbers = numbers * 2_654_435_761 % LETTERS**7
        text = np.full((shape[0], 8), ord(" "), np.uint8)
        for letter in range(1, 8):
            numbers, rest = np.divmod(numbers, LETTERS)
            text[:, letter] = rest + ord("a")
        ends = np.arange(DOCUMENTS + 1, dtype=np.int32) * (WORDS_A_DOCUMENT * 8)
        data = pa.py_buffer(text.reshape(-1))
        yield pa.StringArray.from_buffers(DOCUMENTS, pa.py_buffer(ends), data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--words", type=int, default=12_000_000)
    parser.add_argument("--limit-mb", type=int, help="none: take what there is")
    args = parser.parse_args()
    limit = 1 << 40 if args.limit_mb is None else args.limit_mb * 10**6
    started = time.perf_counter()
    text = documents(int(args.gigabytes * 1e9), args.words)
    counts = bytepair.count(text, pattern="gpt2", reading=bytepair.Reading(memory_limit=limit))
    seconds = time.perf_counter() - started
    counted_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    digest = hashlib.sha256()
    columns = counts.core.columns()
    for column in (columns.data, columns.offsets, columns.counts):
        digest.update(column.data)
    print(
        f"{counts.text_bytes / 1e9:.2f} GB, {len(counts):,} distinct pretokens: {seconds:.1f} s, "
        f"peak {counted_mb:.0f} MB, digest {digest.hexdigest()[:12]}"
    )


if __name__ == "__main__":
    main()
