"""Random split patterns on random texts, for as long as one likes; not run by pytest.

    python tests/fuzz_patterns.py --seconds 600 --seed 1

Patterns repeat classes, nest groups, have bounds of up to 1,000, look to both sides, and may have
steps. How the core splits is compared with Python's `regex` (`bytepair.reference`). A difference is
printed with its seed.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from typing import Any, NoReturn

import bytepair
from bytepair import reference
from bytepair.errors import BytepairError, PatternError

CLASSES = [
    r"\p{L}", r"\p{N}", r"\p{Lu}", r"\p{Ll}", r"\p{M}", r"\s", r"\S", r"\w", r"\d", "a", "x",
    "[ab]", "[^a]", "'", " ", r"[^\s\p{L}\p{N}]", r"[\r\n]", ".", r"[^\r\n\p{L}\p{N}]", "(?i:s)",
]  # fmt: skip
BOUNDS = [1, 2, 3, 7, 31, 62, 63, 64, 65, 127, 128, 191, 255, 999, 1000]
#: Longer than this, no pattern is tried.
SECONDS = 2.0
TEXTS = ["a", "b", "x", "A", "1", "é", "中", "'", "s", " ", "\n", "\r", ".", "\u0301", "😀"]


def quantifier(rng: random.Random) -> str:
    """A count of repetitions, greedy, lazy or possessive."""
    if rng.random() < 0.2:
        most = rng.choice(BOUNDS)
        least = rng.choice([0, 1, rng.randint(0, most)])
        return f"{{{least},{most}}}"
    return rng.choice(["+", "*", "?", "+", "+?", "*?", "??", "++", "*+"])


def expression(rng: random.Random, depth: int) -> str:
    """A sequence of a few parts, among which one class often comes twice."""
    classes = rng.sample(CLASSES, k=rng.choice([1, 1, 2, 3]))
    parts = []
    for _ in range(rng.choice([1, 2, 2, 3, 4])):
        part = rng.choice(classes)
        if depth and rng.random() < 0.3:
            inner = alternatives(rng, depth - 1)
            part = rng.choice(["(?:@)", "(?:@)", "(?>@)"]).replace("@", inner)
        if rng.random() < 0.15:
            part = rng.choice(["(?=@)", "(?!@)", "(?<=@)", "(?<!@)"]).replace("@", part)
        elif rng.random() < 0.7:
            part += quantifier(rng)
        parts.append(part)
    return "".join(parts)


def alternatives(rng: random.Random, depth: int) -> str:
    """A few expressions, which often begin with the same repetition."""
    prefix = rng.choice(["", "", rng.choice(CLASSES) + quantifier(rng)])
    return "|".join(prefix + expression(rng, depth) for _ in range(rng.choice([1, 1, 2, 3])))


def pattern_of(rng: random.Random) -> tuple[str, ...]:
    """The steps of a pattern: often runs of a class first, then any expression."""
    runs = (
        rng.choice(CLASSES) + rng.choice(["", "+", "{1,3}"]) for _ in range(rng.choice([0, 1, 2]))
    )
    return (*runs, alternatives(rng, 2))


def text(rng: random.Random) -> str:
    """Runs of few characters; some runs are longer than a bound."""
    few = rng.sample(TEXTS, k=rng.randint(1, 5))
    runs = (
        rng.choice(few) * rng.choice([1, 1, 1, 2, 3, 65, 130]) for _ in range(rng.randint(1, 9))
    )
    return "".join(runs)


def check(pattern: tuple[str, ...], rng: random.Random) -> str | None:
    """A difference on some texts; None if there is none, or if the pattern is refused or slow."""
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        bytepair.pretokenize("", pattern)
        return next(filter(None, (difference(pattern, text(rng)) for _ in range(20))), None)
    except (PatternError, TimeoutError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def stop(*_: Any) -> NoReturn:
    """End the search for a difference, since a pattern backtracks without end."""
    raise TimeoutError


def difference(pattern: tuple[str, ...], one: str) -> str | None:
    expected = [one] if one else []
    for step in pattern:
        pieces = [reference.split(piece, step) for piece in expected]
        expected = [pretoken.decode() for piece in pieces for pretoken in piece]
    try:
        ours = bytepair.pretokenize(one, pattern)
    except BytepairError:  # a limit of the engine
        return None
    return None if ours == expected else f"{pattern!r} on {one!r}: {ours}, reference {expected}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    until, seed, finds = time.monotonic() + args.seconds, args.seed, 0
    while time.monotonic() < until:
        rng = random.Random(seed)
        if found := check(pattern_of(rng), rng):
            finds += 1
            print(f"seed {seed}: {found}", flush=True)
        seed += 1
    print(f"{seed - args.seed:,} patterns, {finds} differences")
    return bool(finds)


if __name__ == "__main__":
    sys.exit(main())
