"""Chunks of text for `fuzz_bulk.py`: real documents, and what is made of them or of nothing.

A chunk has up to two million characters and follows from a seed. Its texts are documents as they
are, joined, cut, mixed with tokens and hard pieces, or mutated; or hard pieces, characters of
random blocks of Unicode, and long runs. Everything is made in bulk, since encoding is fast.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

import fuzz_encode
from texts import CLASSES

#: The kinds of chunks, and how many characters one has at most: less where caches help little, so
#: that each kind takes about as long.
SIZES = {
    "real": 2_000_000,
    "one": 2_000_000,
    "cut": 2_000_000,
    "mixed": 500_000,
    "mutated": 700_000,
    "hard": 200_000,
    "blocks": 150_000,
    "runs": 300_000,
}
#: The kinds, as often as they are chosen.
KINDS = [*SIZES, "real", "real", "one", "cut"]
#: So many hard texts are kept to be combined, with so many new ones for each chunk of them.
HARD, NEW = 4000, 200
#: The characters that a pattern can tell apart, as numbers.
CODES = np.array([ord(one) for one in CLASSES], np.uint32)


class Chunk(NamedTuple):
    """Some texts, and their kind."""

    texts: list[str]
    kind: str

    @property
    def is_real(self) -> bool:
        """Whether these are documents as they are, perhaps joined."""
        return self.kind in ("real", "one")

    @property
    def is_easy(self) -> bool:
        """Whether most words come again and again, so that encoding is fast."""
        return self.is_real or self.kind == "cut"


class Texts:
    """Makes chunks of the texts below a folder, of tokens, and of nothing."""

    def __init__(self, folder: Path, tokens: Sequence[str]) -> None:
        tables = sorted(folder.rglob("*.parquet"))
        plain: dict[Path, list[Path]] = {}
        for file in sorted(folder.rglob("*.txt")):
            plain.setdefault(file.parent, []).append(file)
        if not tables:
            raise SystemExit(f"{folder} has no parquet files")
        # Each folder as often as any other, whatever it has of files.
        folders = sorted({file.parent for file in tables})
        self.sources = [[f for f in tables if f.parent == one] for one in folders]
        self.sources += list(plain.values())
        self.tokens, rng = tokens, random.Random(0)
        self.hard = [hard(rng, tokens) for _ in range(HARD)]

    def chunk(self, rng: random.Random) -> Chunk:
        """The next chunk."""
        kind = rng.choice(KINDS)
        size = SIZES[kind]
        if kind == "hard":
            return Chunk(self.made(rng), kind)
        if kind in ("blocks", "runs"):
            codes = blocks(rng, size) if kind == "blocks" else runs(rng, size)
            return Chunk(cut(rng, as_text(codes), size_of_texts(rng)), kind)
        documents = limited(self.documents(rng), size)
        if kind in ("real", "one"):
            return Chunk(documents if kind == "real" else ["".join(documents)], kind)
        whole = "".join(documents)
        if kind == "mixed":
            whole = self.mixed(rng, whole)
        elif kind == "mutated":
            whole = mutated(rng, whole)
        return Chunk(cut(rng, whole, size_of_texts(rng)), kind)

    def documents(self, rng: random.Random) -> list[str]:
        """Documents of one place: a row group, or a folder of plain text."""
        files = rng.choice(self.sources)
        if files[0].suffix == ".txt":
            texts = [file.read_bytes().decode() for file in files]
        else:
            table = pq.ParquetFile(rng.choice(files))
            group = table.read_row_group(rng.randrange(table.num_row_groups), ["text"])
            texts = group["text"].to_pylist()
        rng.shuffle(texts)
        return texts

    def mixed(self, rng: random.Random, text: str) -> str:
        """Pieces of a text in another order, with tokens and hard texts between them."""
        pieces = cut(rng, text, rng.choice([20, 60, 900]))
        other = rng.choices([*rng.choices(self.tokens, k=3000), *self.hard], k=len(pieces) // 4)
        return "".join(rng.choices(pieces + other, k=len(pieces)))[: SIZES["mixed"]]

    def made(self, rng: random.Random) -> list[str]:
        """Hard texts, alone and together."""
        new = [hard(rng, self.tokens) for _ in range(NEW)]
        texts = rng.choices(self.hard + 5 * new, k=SIZES["hard"] // 100)
        size = rng.choice([1, 2, 9, 500])
        return ["".join(texts[at : at + size]) for at in range(0, len(texts), size)]


def hard(rng: random.Random, tokens: Sequence[str]) -> str:
    """A text of `fuzz_encode`, in which no surrogate is alone."""
    return fuzz_encode.text(rng, tokens).encode("utf-8", "replace").decode()


def limited(texts: list[str], most: int) -> list[str]:
    """The first texts, up to about this many characters."""
    sizes = np.cumsum([len(text) for text in texts])
    return [text[:most] for text in texts[: int(np.searchsorted(sizes, most)) + 1]]


def size_of_texts(rng: random.Random) -> int:
    """About how many characters the texts of a chunk have."""
    return rng.choice([80, 600, 3000, 3000, 30_000, 2_000_000])


def cut(rng: random.Random, text: str, size: int) -> list[str]:
    """A text in pieces of about this many characters, which end anywhere."""
    numbers: Any = np.random.default_rng(rng.getrandbits(64))
    places = np.sort(numbers.integers(0, len(text) + 1, len(text) // size)).tolist()
    return [text[start:end] for start, end in pairwise([0, *places, len(text)])]


def mutated(rng: random.Random, text: str) -> str:
    """A text in which single characters are others: hard ones, of other places, the next code."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).copy()
    numbers: Any = np.random.default_rng(rng.getrandbits(64))
    for change in range(3):
        places = numbers.integers(0, len(codes), len(codes) // rng.choice([6, 40, 1000]))
        values = [numbers.choice(CODES, len(places)), codes[places[::-1]], codes[places] ^ 32]
        codes[places] = values[change]
    return as_text(codes)


def blocks(rng: random.Random, size: int) -> Any:
    """Characters of some blocks of Unicode, anywhere in it, in words of one block each."""
    numbers: Any = np.random.default_rng(rng.getrandbits(64))
    starts = numbers.integers(0, rng.choice([0x3000, 0x3000, 0x20000, 0x10FF00]), 40)
    words = size // 6
    start = np.repeat(numbers.choice(starts, words), numbers.integers(1, 12, words))
    codes = start + numbers.integers(0, rng.choice([4, 30, 200]), len(start))
    codes[numbers.random(len(codes)) < 0.1] = 32
    return codes


def runs(rng: random.Random, size: int) -> Any:
    """Characters that are repeated, a few of them thousands of times, between other ones."""
    numbers: Any = np.random.default_rng(rng.getrandbits(64))
    lengths = 1 + np.minimum(numbers.pareto(rng.choice([0.4, 0.8, 1.5]), size // 2), 9000)
    return np.repeat(numbers.choice(CODES, len(lengths)), lengths.astype(int))[:size]


def as_text(codes: Any) -> str:
    """The text of these code points, with U+FFFD for what is none."""
    codes = codes.astype("<u4")
    codes[(codes >= 0xD800) & (codes < 0xE000) | (codes > 0x10FFFF)] = 0xFFFD
    return bytes(codes.tobytes()).decode("utf-32-le")
