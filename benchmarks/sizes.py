"""Measures how the size of a vocabulary changes the tokens of other text: docs/vocabulary-size.md.

python benchmarks/sizes.py 'DATA/train*.parquet' DATA/val.parquet

Trains the largest size once, cuts it to the smaller ones, and writes a row of Markdown for each:
bytes per token of the second text, how many tokens fewer than with half the size, and the share of
ids that do not occur in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise

import bytepair

SIZES = [2048 << n for n in range(7)]


def row(tok: bytepair.Tokenizer, texts: Sequence[str]) -> tuple[int, float, float]:
    """The size, the bytes per token and the share of unused ids of a tokenizer on some texts."""
    use = bytepair.evaluate.use(tok, texts)
    return tok.vocab_size, use.bytes / use.tokens, len(use.unused) / tok.vocab_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train", help="a glob of the files to train on")
    parser.add_argument("val", help="a glob of the files to measure on")
    args = parser.parse_args()
    reading = bytepair.Reading(split="all")
    largest = bytepair.train(args.train, SIZES[-1], special_tokens=[], reading=reading)
    texts = bytepair.evaluate.documents(args.val, max_chars=10**12)
    sizes = [size for size in SIZES if size < largest.vocab_size] + [largest.vocab_size]
    rows = [row(largest.replace(vocab_size=size), texts) for size in sizes]
    for (_, before, _), (size, ratio, unused) in pairwise(rows):
        print(f"| {size:,} | {ratio:.2f} | {1 - before / ratio:.1%} | {unused:.0%} |")


if __name__ == "__main__":
    main()
