"""Differential fuzzing of every way to encode, in bulk on real and made texts; not run by pytest.

    python tests/fuzz_bulk.py FILE --texts ../shared/data --seconds 600 --seed 1

FILE is a rank file, whose ids are compared with tiktoken, or a `tokenizer.json`, compared with
`tokenizers`. The peer encodes a batch of some 500,000 characters once; then each way of ours does:
alone, in batches on several threads, as lists and arrays, from files, with cold and with warm
caches, repeated, as one long text, and for a few texts as streams, sessions, offsets and segments.
Batches are documents of the parquet files and text files below `--texts`, as they are, or cut at
random, doubled and mixed; and texts of `fuzz_encode`. A difference is printed with its seed.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tiktoken

import against_tokenizers
import bytepair
import fuzz_encode
from bytepair.chat import encode_segments
from bytepair.tokenizer import Session, is_lossless
from conftest import VOCABULARIES

#: The characters of a batch, more or less.
BATCH = 500_000
#: How many texts of a batch are also encoded piece by piece.
SAMPLE = 8
#: The tokenizer is read again, with empty caches, after this many batches.
COLD = 5


class Ids(NamedTuple):
    """The ids of a batch of texts, and where those of each text end."""

    ids: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]


#: One way to encode: its name, what it gives, and which texts of the batch.
Way = tuple[str, Callable[[], Ids | list[list[int]]], Sequence[int]]


def joined(rows: Sequence[Any]) -> Ids:
    """The ids of texts as one array."""
    ends = np.cumsum([0, *map(len, rows)])
    return Ids(np.concatenate([np.zeros(0, np.uint32), *rows]), ends)


def divided(batch: Ids) -> list[list[int]]:
    """The ids of each text as a list."""
    return [row.tolist() for row in np.split(batch.ids, batch.ends[1:-1])]


class Pair(NamedTuple):
    """A vocabulary here, and how its own library encodes."""

    tok: bytepair.Tokenizer
    peer: Callable[[list[str]], Ids]
    tokens: list[str]
    #: Whether all added tokens are special: untrusted segments have no others.
    only_special: bool


def read(file: Path) -> Pair:
    """The vocabulary of a file in both libraries."""
    return of_document(file) if file.suffix == ".json" else of_ranks(file)


def of_ranks(file: Path) -> Pair:
    """A rank file, which tiktoken reads."""
    lines = map(bytes.split, file.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines if token}
    pattern = bytepair.PATTERNS[VOCABULARIES.get(file.stem, "gpt2")]
    special = {"<|endoftext|>": len(ranks) + 1, "<|fim|>": len(ranks) + 5}
    values: Any = {"special_tokens": special}
    theirs = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, **values)

    def peer(texts: list[str]) -> Ids:
        rows = [theirs.encode_to_numpy(text, disallowed_special=()) for text in texts]
        return joined(rows)

    tok = bytepair.load(file, pattern=pattern, special_tokens=special)
    return Pair(tok, peer, [token.decode("utf-8", "replace") for token in ranks], True)


def of_document(file: Path) -> Pair:
    """A `tokenizer.json`, which `tokenizers` reads."""
    document = json.loads(file.read_text(encoding="utf-8"))
    theirs = against_tokenizers.theirs({**document, "post_processor": None}, special=False)

    def peer(texts: list[str]) -> Ids:
        rows = theirs.encode_batch_fast(texts, add_special_tokens=False)
        return joined([np.array(row.ids, np.uint32) for row in rows])

    tok = bytepair.load(file)
    only_special = all(token["special"] for token in document["added_tokens"])
    tokens = [tok.decode([id]) for id in range(0, tok.vocab_size, 7)]
    return Pair(tok, peer, tokens, only_special)


class Texts:
    """The texts of a folder, read a part at a time."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted([*folder.rglob("*.parquet"), *folder.rglob("*.txt")])
        if not self.files:
            raise SystemExit(f"{folder} has no parquet files or text files")

    def part(self, rng: random.Random) -> list[str]:
        """Documents of one place of one file."""
        file = rng.choice(self.files)
        if file.suffix == ".txt":
            return [file.read_text(encoding="utf-8")]
        table = pq.ParquetFile(file)
        group = table.read_row_group(rng.randrange(table.num_row_groups), ["text"])
        texts: list[str] = group["text"].to_pylist()
        rng.shuffle(texts)
        return texts


def batch(rng: random.Random, texts: Texts, tokens: Sequence[str]) -> list[str]:
    """Some texts, in which special tokens' names are text and no surrogate is alone."""
    kind = rng.choice(["real", "real", "cut", "mixed", "one", "made"])
    if kind == "made":
        made = (fuzz_encode.text(rng, tokens) for _ in range(5000))
        return [text.encode("utf-8", "replace").decode() for text in made]
    real = limited(texts.part(rng))
    if kind == "real":
        return real
    if kind == "one":
        return ["".join(real)]
    pieces = [piece for text in real for piece in cut(rng, text, rng.choice([50, 700, 9000]))]
    if kind == "mixed":
        pieces = rng.choices([*pieces, *rng.choices(tokens, k=50)], k=len(pieces))
    size = rng.choice([1, 5, 40])
    return ["".join(pieces[at : at + size]) for at in range(0, len(pieces), size)]


def covered(tok: bytepair.Tokenizer, texts: list[str]) -> list[str]:
    """The texts without characters that no token covers, which `tokenizers` leaves out."""

    def is_covered(text: str) -> bool:
        try:
            tok.count(text)
        except bytepair.errors.SplitError as error:
            if "no token" not in str(error):
                raise
            return False
        return True

    return texts if is_covered("".join(texts)) else [*filter(is_covered, texts)]


def limited(texts: list[str]) -> list[str]:
    """The first texts, up to the size of a batch."""
    sizes = np.cumsum([len(text) for text in texts])
    return [text[:BATCH] for text in texts[: int(np.searchsorted(sizes, BATCH)) + 1]]


def cut(rng: random.Random, text: str, size: int) -> list[str]:
    """A text in pieces of about this many characters, which end anywhere."""
    places = sorted(rng.sample(range(len(text)), k=len(text) // size))
    return [text[start:end] for start, end in pairwise([0, *places, len(text)])]


def ways(tok: bytepair.Tokenizer, texts: list[str], rng: random.Random, folder: Path) -> list[Way]:
    """Every way to encode the texts."""
    threads = rng.randint(2, 5)
    file = folder / "texts.parquet"
    pq.write_table(pa.table({"text": texts}), file, row_group_size=rng.choice([7, 1000, 99_999]))
    every = range(len(texts))
    few = rng.choices(every, k=SAMPLE)
    again = [*every] * 4
    part = [texts[n][:9000] for n in few]
    whole = [n for n, text in zip(few, part, strict=True) if text == texts[n]]
    short = [texts[n] for n in whole]
    column = pa.array(texts, pa.large_string())
    return [
        ("encode", lambda: [tok.encode(text) for text in texts], every),
        ("encode_batch", lambda: tok.encode_batch(texts, threads=1), every),
        ("threads", lambda: tok.encode_batch(texts, threads=threads), every),
        ("numpy", lambda: Ids(*tok.encode_batch_to_numpy(texts, threads=1)), every),
        ("numpy threads", lambda: Ids(*tok.encode_batch_to_numpy(texts, threads=threads)), every),
        ("arrow", lambda: Ids(*tok.encode_batch_to_numpy(column)), every),
        ("file", lambda: Ids(*tok.encode_file(file, threads=threads)), every),
        ("repeated", lambda: Ids(*tok.encode_batch_to_numpy(texts * 4, threads=2)), again),
        ("stream", lambda: [streamed(tok, text, rng) for text in short], whole),
        ("session", lambda: [grown(tok, text, rng) for text in short], whole),
        ("offsets", lambda: [tok.encode_offsets(text).ids for text in short], whole),
        ("segments", lambda: [untrusted(tok, text) for text in short], whole),
    ]  # fmt: skip


def streamed(tok: bytepair.Tokenizer, text: str, rng: random.Random) -> list[int]:
    """The ids of a text that comes in pieces."""
    return list(tok.encode_stream(cut(rng, text, 40)))


def grown(tok: bytepair.Tokenizer, text: str, rng: random.Random) -> list[int]:
    """The ids of a text that grows."""
    session = Session(tok)
    for piece in cut(rng, text, 40):
        session.append(piece)
    return list(session.ids)


def untrusted(tok: bytepair.Tokenizer, text: str) -> list[int]:
    """The ids of one untrusted segment."""
    return encode_segments(tok, [(text, "untrusted")])


class Totals(NamedTuple):
    """What was compared: texts, characters that ours and the peer encoded, and checks of texts."""

    texts: int = 0
    ours: int = 0
    peer: int = 0
    checks: int = 0

    def plus(self, other: Totals) -> Totals:
        return Totals(*(one + two for one, two in zip(self, other, strict=True)))


def differences(
    pair: Pair, tok: bytepair.Tokenizer, texts: list[str], right: Ids, rng: random.Random
) -> Iterator[tuple[str, Totals]]:
    """For each way how it differs, empty if it does not, and what was compared."""
    sizes, rows = [len(text) for text in texts], divided(right)
    with tempfile.TemporaryDirectory() as folder:
        for name, call, which in ways(tok, texts, rng, Path(folder)):
            if name == "segments" and not pair.only_special:
                continue
            totals = Totals(0, sum(sizes[n] for n in which), 0, len(which))
            yield difference(name, call(), right, rows, which), totals
    lengths = [len(row) for row in rows]
    counts = [tok.count(text) for text in texts]
    yield "" if counts == lengths else "count differs", Totals(0, sum(sizes), 0, len(texts))
    if is_lossless(pair.tok):
        same = tok.decode_batch(rows) == texts
        yield "" if same else "decode_batch differs", Totals(checks=len(texts))


def difference(
    name: str, got: Ids | list[list[int]], right: Ids, rows: list[list[int]], which: Sequence[int]
) -> str:
    """Where a way differs first; empty if it does not."""
    if isinstance(got, Ids):
        if all(map(np.array_equal, got, repeated(right, len(which) // len(rows)))):
            return ""
        got = divided(got)
    expected = [rows[n] for n in which]
    if got == expected:
        return ""
    for number, (here, there) in enumerate(zip(got, expected, strict=False)):
        if here != there:
            return f"{name} differs in text {number}: {here[:50]} instead of {there[:50]}"
    return f"{name} gives {len(got)} texts instead of {len(expected)}"


def repeated(batch: Ids, times: int) -> Ids:
    """The ids of a batch that was encoded several times at once."""
    ends = [batch.ends[:1], *(batch.ends[1:] + n * batch.ends[-1] for n in range(times))]
    return Ids(np.tile(batch.ids, times), np.concatenate(ends))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    pair, texts, totals, wrong = read(args.file), Texts(args.texts), Totals(), 0
    tok, saved, until = pair.tok, pair.tok.to_bytes(), time.monotonic() + args.seconds
    seed = args.seed
    while time.monotonic() < until and wrong < 10:
        rng = random.Random(seed)
        some = batch(rng, texts, pair.tokens)
        if seed % COLD == 0:
            tok = bytepair.Tokenizer.from_bytes(saved)
        some = covered(pair.tok, some)
        right = pair.peer(some)
        totals = totals.plus(Totals(len(some), 0, sum(map(len, some)), 0))
        for line, compared in differences(pair, tok, some, right, rng):
            totals = totals.plus(compared)
            if line:
                wrong += 1
                print(f"seed {seed}, {args.file.name}: {line}", flush=True)
        seed += 1
    print(
        f"{totals.texts:,} texts, {totals.ours:,} characters, {totals.peer:,} by the peer, "
        f"{totals.checks:,} checks: {wrong} differ"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
