"""Differential fuzzing of encoding against tiktoken, for as long as one likes; not run by pytest.

    python tests/fuzz_encode.py RANK_FILE PATTERN --seconds 3600 --seed 1

Texts are made of the pieces at which splitting and merging go wrong: all classes of characters that
a pattern can tell apart, alignments to blocks of 64 bytes, long runs, halves of characters, lone
surrogates, names of special tokens, tokens in any order. Each text is encoded by both, several
times by ours (cold and warm, on more threads than one, as lists and as arrays), counted and decoded
again; and so are long texts with repeated passages, which the encoder caches. The first difference
ends the run and prints the text.
"""

from __future__ import annotations

import argparse
import base64
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import tiktoken

import bytepair
from texts import CLASSES

#: After this many batches, the tokenizer is read again from its file, with empty caches.
COLD = 10
#: Makers of pieces; each takes the random number generator and returns a piece of text.
PIECES: list[Callable[[random.Random], str]] = [
    lambda rng: "".join(rng.choices(CLASSES, k=rng.randint(1, 8))),
    lambda rng: rng.choice(CLASSES) * rng.randint(1, 150),
    lambda rng: "".join(rng.choices("etaoin shrdlu", k=rng.randint(1, 70))),
    lambda rng: "".join(rng.choices("etaoinshrdluETAOIN", k=rng.randint(1, 700))),
    lambda rng: "".join(chr(rng.randint(0x20, 0x2FF)) for _ in range(rng.randint(1, 12))),
    lambda rng: "".join(chr(rng.randint(0x4E00, 0x4E40)) for _ in range(rng.randint(1, 40))),
    lambda rng: "".join(chr(rng.randint(0x0E01, 0x0E4F)) for _ in range(rng.randint(1, 40))),
    lambda rng: "".join(chr(rng.randint(0x0410, 0x044F)) for _ in range(rng.randint(1, 40))),
    lambda rng: rng.choice(
        ["'s", "'LL", "’ve", "\r\n", " \n ", "//", "1234567", "<|end", "\u017f"]
    ),
    lambda rng: rng.choice(["<|endoftext|>", "<|fim|>", "<|endoftext", "|>"]),
    lambda rng: rng.randbytes(rng.randint(1, 24)).decode("utf-8", "replace"),
    lambda rng: chr(rng.randint(0xD800, 0xDFFF)),
    lambda rng: "a" * (64 * rng.randint(0, 2) + rng.randint(0, 63)),
]


def text(rng: random.Random, tokens: Sequence[str] = ()) -> str:
    """A text of a few pieces, of tokens, or of tokens that a pattern leaves together."""
    if tokens and rng.random() < 0.05:
        count = rng.choice([8, 20, 60, 400])
        return "".join(token for token in rng.choices(tokens, k=count) if token.isalpha())
    if tokens and rng.random() < 0.3:
        return "".join(rng.choices(tokens, k=rng.randint(1, 12)))
    return "".join(rng.choice(PIECES)(rng) for _ in range(rng.randint(1, 6)))


def expected(theirs: tiktoken.Encoding, text: str) -> list[int]:
    """The ids of tiktoken, which replaces lone surrogates by U+FFFD."""
    return theirs.encode(text, disallowed_special=())


def long_texts(batch: list[str]) -> list[str]:
    """Texts of some 20 kB each that share their beginning, some of them repeated."""
    start, *ends = ("".join(batch[at : at + 250]) for at in range(0, len(batch), 250))
    return [start, *(start + end for end in ends), start, *(start + end for end in ends), start]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ranks", type=Path)
    parser.add_argument("pattern", choices=bytepair.PATTERNS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    lines = map(bytes.split, args.ranks.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    special = {"<|endoftext|>": len(ranks) + 1, "<|fim|>": len(ranks) + 5}
    pattern = bytepair.PATTERNS[args.pattern]
    ours = bytepair.Tokenizer.from_ranks(ranks, pattern=pattern, special_tokens=special)
    theirs = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    tokens, saved = [token.decode("utf-8", "replace") for token in ranks], ours.to_bytes()
    rng, done, size, until = random.Random(args.seed), 0, 0, time.monotonic() + args.seconds
    while time.monotonic() < until:
        batch = [text(rng, tokens) for _ in range(1000)]
        if done % (COLD * len(batch)) == 0:
            ours = bytepair.Tokenizer.from_bytes(saved)
        arrays, ends = ours.encode_batch_to_numpy(batch)
        again = ours.encode_batch(batch, threads=1 + done % 3)
        for number, one in enumerate(batch):
            right = expected(theirs, one)
            array = arrays[ends[number] : ends[number + 1]].tolist()
            if not (right == array == again[number] == ours.encode(one)):
                print(f"different on {one!r}: {right} {array} {again[number]}", file=sys.stderr)
                return 1
            if ours.count(one) != len(right) or ours.decode(right) != theirs.decode(right):
                print(f"count or decode differ on {one!r}", file=sys.stderr)
                return 1
            size += len(one)
        for one in long_texts(batch):
            right = expected(theirs, one)
            if not (right == ours.encode(one) == ours.encode_batch_to_numpy([one]).ids.tolist()):
                print(f"different on {one!r}", file=sys.stderr)
                return 1
        done += len(batch)
    print(f"{done:,} texts of {size:,} characters, no difference (seed {args.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
