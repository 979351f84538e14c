"""Random tokenizers through every format, for as long as one likes; not run by pytest.

    python tests/fuzz_exports.py --seconds 600 --seed 1

A tokenizer has up to four of the values of `test_export_losses`, or is a random `tokenizer.json`.
Where no loss is named beyond those of the plain tokenizer, the library of the format gives the same
ids on random texts. A difference is printed with its seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import bytepair
import json_documents
import test_export_losses as losses
from bytepair.compat import export_losses
from formats import TARGETS, load

if find_spec("xllamacpp") is None or find_spec("gguf") is None:
    del losses.LIBRARIES["gguf"]
PLAIN = {format: set(export_losses(load(losses.base()), format)) for format in losses.LIBRARIES}
PIECES = [*losses.TEXTS, *json_documents.PIECES, "\x0b", "<|endoftext|>", "</s>", "hell", "word"]


def tokenizer(rng: random.Random) -> tuple[str, bytepair.Tokenizer]:
    """A tokenizer, and what it has."""
    if rng.random() < 0.3:
        return "random", load(json_documents.document(rng))
    names = rng.sample(list(losses.VALUES), k=rng.randint(1, 4))
    document = losses.base()
    for name in names:
        losses.VALUES[name](document)
    return " + ".join(names), load(document)


def difference(
    rng: random.Random, tok: bytepair.Tokenizer, folder: Path, done: Counter[str]
) -> str:
    """How a format's library differs where no loss is named; empty if it does not."""
    for format, ids in losses.LIBRARIES.items():
        if set(export_losses(tok, format)) - PLAIN[format]:
            continue
        losses.TEXTS[:] = ["".join(rng.choices(PIECES, k=rng.randint(1, 8))) for _ in range(8)]
        path = tok.export(folder / TARGETS[format], format, lossy=True, overwrite=True)
        done[format] += 1
        for text, row in zip(losses.TEXTS, ids(path, tok), strict=True):
            here = losses.ids_here(tok, text)
            if here != row and not (here is None and format == "huggingface"):
                return f"{format}: {text!r}: {here} here, {row} there"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=sys.maxsize)
    args = parser.parse_args()
    until, done, wrong = time.monotonic() + args.seconds, Counter[str](), 0
    for seed in range(args.seed, args.seed + args.cases):
        if time.monotonic() > until or wrong >= 10:
            break
        rng = random.Random(seed)
        try:
            names, tok = tokenizer(rng)
        except (bytepair.errors.UnsupportedError, bytepair.errors.FormatError):
            done["refused"] += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            line = difference(rng, tok, Path(folder), done)
        if line:
            wrong += 1
            print(f"seed {seed}: {names}: {line}", flush=True)
    print(f"{done.total():,} cases, {wrong} differ: {dict(done)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
