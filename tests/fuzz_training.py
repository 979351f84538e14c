"""Random trainings against the reference, for as long as one likes; not run by pytest.

    python tests/fuzz_training.py --seconds 600 --seed 1

Texts have few letters, runs, and pieces of real text, so that many pairs have equal counts. Each
training has a random pattern, rule for ties, least count, size and number of threads; its merges
are those of `bytepair.reference`, which counts all pairs again before each. A difference is printed
with its seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from typing import get_args

import bytepair
from bytepair import reference
from bytepair.training.options import Ties

LETTERS = [
    "a",
    "b",
    "ab",
    " ",
    "'s",
    "\n",
    "1",
    "23",
    "é",
    "中",
    "\u0301",
    "😀",
    ".",
    "The",
    " the",
]
REAL = bytepair.sample.paths()[0].read_text(encoding="utf-8")
#: The texts of one training have at most about this many characters: the reference is slow.
CHARACTERS = 3000


def texts(rng: random.Random) -> list[str]:
    """Some texts of few letters, and perhaps of real text."""
    few = rng.sample(LETTERS, k=rng.randint(1, 6))
    made = ["".join(rng.choices(few, k=rng.randint(0, 60))) for _ in range(rng.randint(0, 9))]
    made += [rng.choice(few) * rng.randint(1, 300) for _ in range(rng.randint(0, 2))]
    start, size = rng.randrange(len(REAL)), rng.choice([0, 200, CHARACTERS])
    return [*made, REAL[start : start + size], rng.choice(LETTERS)]


def difference(seed: int) -> tuple[str, int]:
    """How a training differs from the reference, empty if it does not; and its characters."""
    rng = random.Random(seed)
    corpus, pattern = texts(rng), rng.choice(list(bytepair.PATTERNS))
    ties, least = rng.choice(get_args(Ties)), rng.choice([1, 1, 2, 5])
    merges, threads = rng.choice([1, 20, 300]), rng.randint(1, 5)
    tok = bytepair.train(
        bytepair.corpus.Texts(corpus),
        256 + merges,
        pattern=pattern,
        special_tokens=[],
        ties=ties,
        threads=threads,
        options=bytepair.TrainOptions(min_count=least),
    )
    counts = reference.count(corpus, bytepair.PATTERNS[pattern])
    expected = reference.vocabulary(reference.train(counts, merges, ties, least))
    here = list(tok.mergeable_ranks())
    size = sum(map(len, corpus))
    if here == expected:
        return "", size
    at = next((n for n, (a, b) in enumerate(zip(here, expected, strict=False)) if a != b), None)
    return f"{pattern}, {ties}, {threads} threads: token {at} differs, of {corpus!r}", size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore", bytepair.errors.ExhaustedWarning)
    until, seed, size, wrong = time.monotonic() + args.seconds, args.seed, 0, 0
    while time.monotonic() < until and wrong < 10:
        line, characters = difference(seed)
        size += characters
        if line:
            wrong += 1
            print(f"seed {seed}: {line}"[:2000], flush=True)
        seed += 1
    print(f"{seed - args.seed:,} trainings of {size:,} characters, {wrong} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
