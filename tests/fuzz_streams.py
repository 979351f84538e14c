"""Random ids through streams of decoding, for as long as one likes; not run by pytest.

    python tests/fuzz_streams.py --seconds 600 --seed 1 FILE ...

FILE is a tokenizer file of any form: tokens of bytes, with byte fallback, or names. The parts that
a stream gives out, put together, are the text of all ids. A difference is printed with its seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

import bytepair


def random_ids(rng: random.Random, tok: bytepair.Tokenizer, bytes_: list[int]) -> list[int]:
    """Ids of any tokens, among them runs of the tokens of bytes."""
    result: list[int] = []
    few = rng.choices(range(tok.vocab_size), k=5)
    for _ in range(rng.randint(1, 30)):
        kind = rng.random()
        if kind < 0.3 and bytes_:
            result += rng.choices(bytes_, k=rng.choice([1, 2, 3, 70]))
        elif kind < 0.6:
            result += rng.choices(few, k=rng.choice([1, 2, 20]))
        elif kind < 0.8:
            word = rng.choice(["\n\n", "フォント", "é", " a", "ab" * 40, "😀", "\t", "中"])
            result += tok.encode(word) if encodes(tok, word) else []
        else:
            result.append(rng.randrange(tok.vocab_size))
    return [id for id in result if has_token(tok, id)]


def encodes(tok: bytepair.Tokenizer, text: str) -> bool:
    try:
        tok.encode(text)
    except bytepair.errors.BytepairError:
        return False
    return True


def has_token(tok: bytepair.Tokenizer, id: int) -> bool:
    try:
        tok.token_bytes(id)
    except bytepair.errors.UnknownIdError:
        return False
    return True


def byte_ids(tok: bytepair.Tokenizer) -> list[int]:
    """The ids of single bytes; under byte fallback, of names such as `<0x0A>`."""
    names = [bytes([byte]) for byte in range(256)]
    found = []
    for name in names:
        for one in (name, f"<0x{name[0]:02X}>".encode()):
            try:
                found.append(tok.token_id(one))
            except KeyError:
                continue
    return found


def difference(tok: bytepair.Tokenizer, sequence: list[int]) -> str | None:
    """How a stream differs from decoding all ids at once; None if it does not."""
    stream = tok.decode_stream()
    parts = [stream.push(id) for id in sequence] + [stream.flush()]
    whole = tok.decode(sequence)
    return None if "".join(parts) == whole else f"{sequence}: {parts}, whole {whole!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    toks = [bytepair.load(file) for file in args.files]
    of_bytes = [byte_ids(tok) for tok in toks]
    until, seed, finds = time.monotonic() + args.seconds, args.seed, 0
    while time.monotonic() < until:
        rng = random.Random(seed)
        number = seed % len(toks)
        tok = toks[number]
        if found := difference(tok, random_ids(rng, tok, of_bytes[number])):
            finds += 1
            print(f"seed {seed}, {args.files[number].name}: {found}"[:2000], flush=True)
        seed += 1
    print(f"{seed - args.seed:,} sequences, {finds} differences")
    return bool(finds)


if __name__ == "__main__":
    sys.exit(main())
