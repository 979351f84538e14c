"""Differential fuzzing of every way to encode, in bulk on real and made texts; not run by pytest.

    python tests/fuzz_bulk.py FILE --texts ../shared/data --seconds 600 --seed 1

FILE is a rank file, whose ids are compared with tiktoken, or a `tokenizer.json`, compared with
`tokenizers`. The peer encodes each chunk of `bulk_texts` once, and its ids are one array; those of
each way of ours are compared with it as one array, and text by text only if they differ. The ways
are those of a tokenizer that has met other text (alone, in batches, as lists and arrays, from files
and columns, repeated, as streams, sessions, offsets and segments), and of tokenizers that were
saved, mapped, pickled or exported and read again, with cold caches and with small ones. Special
tokens are text in some chunks and found in others. A difference is printed with its seed.
"""

from __future__ import annotations

import argparse
import base64
import json
import pickle
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tiktoken

import against_tokenizers
import bytepair
from bulk_texts import Texts, cut
from bytepair.chat import encode_segments
from bytepair.tokenizer import Session, is_lossless
from conftest import MEMORY_FOLDER, VOCABULARIES, has_room

#: How many characters of a chunk are also encoded piece by piece.
SAMPLE = 20_000
#: How often the texts stand in a batch of repeated texts.
REPEATS = 8
#: A tokenizer is read again, with empty caches, after this many chunks.
COLD = 6
#: The documents of a file of plain text stand between these.
SEPARATOR = "\x1e\x1f\x1e"
#: Files that a tokenizer is exported to and read from again, where they can hold it.
FILES = ("tokenizer.json", "model.gguf", "ranks.tiktoken")


class Ids(NamedTuple):
    """The ids of texts, and where those of each text end."""

    ids: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]


#: What a way gave for texts: its name, their numbers, and their ids.
Given = tuple[str, Sequence[int], Ids | list[list[int]]]


def joined(rows: Sequence[Any]) -> Ids:
    """The ids of texts as one array."""
    ends = np.cumsum([0, *map(len, rows)])
    return Ids(np.concatenate([np.zeros(0, np.uint32), *rows]), ends)


def divided(whole: Ids) -> list[list[int]]:
    """The ids of each text as a list."""
    ids, ends = whole.ids.tolist(), whole.ends.tolist()
    return [ids[start:end] for start, end in pairwise(ends)]


class Pair(NamedTuple):
    """A vocabulary here, and how its own library encodes texts, with special tokens or without."""

    tok: bytepair.Tokenizer
    peer: Callable[[list[str], bool], Ids]
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

    def peer(texts: list[str], finds: bool) -> Ids:
        options: Any = {"allowed_special": set(special) if finds else set()}
        encode = theirs.encode_to_numpy
        return joined([encode(text, disallowed_special=(), **options) for text in texts])

    tok = bytepair.load(file, pattern=pattern, special_tokens=special)
    return Pair(tok, peer, [token.decode("utf-8", "replace") for token in ranks], True)


def of_document(file: Path) -> Pair:
    """A `tokenizer.json`, which `tokenizers` reads."""
    document = json.loads(file.read_text(encoding="utf-8"))
    plain = {**document, "post_processor": None}
    theirs = [against_tokenizers.theirs(plain, special=finds) for finds in (False, True)]

    def peer(texts: list[str], finds: bool) -> Ids:
        rows = theirs[finds].encode_batch_fast(texts, add_special_tokens=False)
        return joined([np.array(row.ids, np.uint32) for row in rows])

    tok = bytepair.load(file)
    only_special = all(token["special"] for token in document["added_tokens"])
    tokens = [tok.decode([id]) for id in range(0, tok.vocab_size, 7)]
    return Pair(tok, peer, [*tokens, *tok.special_tokens], only_special)


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


class Others:
    """Tokenizers of the same vocabulary that came here in other ways."""

    def __init__(self, tok: bytepair.Tokenizer, folder: Path) -> None:
        self.tok, self.named = tok, {"pickled": pickle.loads(pickle.dumps(tok))}
        self.named["mapped"] = bytepair.load(tok.save(folder / "saved"))
        self.named["little repeats"] = tok.replace(repeats=1 << 14)
        ranks: Any = {"pattern": tok.pattern, "special_tokens": tok.special_tokens}
        for name in FILES:
            with suppress(bytepair.errors.LossError, bytepair.errors.UnsupportedError):
                file = tok.export(folder / name)
                values = ranks if file.suffix == ".tiktoken" else {}
                self.named[name] = bytepair.load(file, **values)
        self.renew()

    def renew(self) -> None:
        """Tokenizers with empty caches instead of those that have met many texts."""
        for tables in (True, False):
            again = bytepair.Tokenizer.from_bytes(self.tok.to_bytes(tables=tables))
            self.named["with tables" if tables else "without tables"] = again


class Asked(NamedTuple):
    """Texts to encode, how special tokens in them are treated, and what files are written to."""

    texts: list[str]
    finds: bool
    folder: Path
    rng: random.Random

    @property
    def options(self) -> Any:
        return {"special": "all"} if self.finds else {}


def ways(pair: Pair, others: Others, asked: Asked, *, is_easy: bool) -> Iterator[Given]:
    """What each way to encode gives, one after the other."""
    texts, rng = asked.texts, asked.rng
    every, kept = range(len(texts)), [*files(asked)]
    names = rng.sample(list(others.named), 4 if is_easy else 2)
    for name, tok in [("", pair.tok), *((f"{name}, ", others.named[name]) for name in names)]:
        for way, ids in of_all(tok, asked, kept):
            yield name + way, [*every] * (REPEATS if way == "repeated" else 1), ids
    yield "encode", every, [pair.tok.encode(text, **asked.options) for text in texts]
    yield "encode_batch", every, pair.tok.encode_batch(texts, threads=1, **asked.options)
    yield "streams", every, streamed(pair.tok, asked)
    few = [n for n in rng.sample(every, min(len(every), 200)) if texts[n]]
    sizes = np.cumsum([len(texts[n]) for n in few])
    few = few[: int(np.searchsorted(sizes, SAMPLE, "right"))]
    for way, rows in in_pieces(pair, asked, [texts[n] for n in few]):
        yield way, few, rows


def of_all(
    tok: bytepair.Tokenizer, asked: Asked, files: Sequence[Kept]
) -> Iterator[tuple[str, Ids | list[list[int]]]]:
    """The ids of all texts, by each way of one tokenizer."""
    texts, options, rng = asked.texts, asked.options, asked.rng
    threads, column = rng.randint(2, 5), pa.array(texts, pa.large_string())
    yield "numpy", Ids(*tok.encode_batch_to_numpy(texts, threads=1, **options))
    yield "numpy threads", Ids(*tok.encode_batch_to_numpy(texts, threads=threads, **options))
    yield "int64", Ids(*tok.encode_batch_to_numpy(texts, dtype="int64", **options))
    yield "arrow", Ids(*tok.encode_batch_to_numpy(column, **options))
    yield "list", tok.encode_batch(texts, threads=threads, **options)
    again = tok.encode_batch_to_numpy(texts * REPEATS, threads=threads, **options)
    yield "repeated", Ids(*again)
    for kept in files:
        ids = tok.encode_file(kept.file, threads=threads, **kept.options, **options)
        yield kept.name, Ids(*ids)


def streamed(tok: bytepair.Tokenizer, asked: Asked) -> Ids:
    """The ids of texts that come in pieces of some kilobytes."""
    special, rng = asked.options.get("special"), asked.rng
    pieces = (cut(rng, text, 5000) if len(text) > 5000 else [text] for text in asked.texts)
    return joined([np.array([*tok.encode_stream(some, special=special)]) for some in pieces])


class Kept(NamedTuple):
    """Texts in a file, and the options to read it."""

    name: str
    file: Path
    options: dict[str, Any]


def files(asked: Asked) -> Iterator[Kept]:
    """The texts as files; some kinds only now and then."""
    texts, rng, file = asked.texts, asked.rng, asked.folder / "texts.txt"
    if not any(SEPARATOR[0] in text for text in texts):
        file.write_bytes(SEPARATOR.join(texts).encode())
        yield Kept("file", file, {"separator": SEPARATOR})
        yield Kept("file, read", file, {"separator": SEPARATOR, "memory_map": False})
    if rng.random() < 0.2:
        file = file.with_suffix(".parquet")
        pq.write_table(pa.table({"text": texts}), file, row_group_size=rng.choice([99, 99_999]))
        yield Kept("parquet", file, {})
    if rng.random() < 0.2:
        file = file.with_suffix(".jsonl")
        file.write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts))
        yield Kept("jsonl", file, {})


def in_pieces(pair: Pair, asked: Asked, texts: list[str]) -> Iterator[tuple[str, list[list[int]]]]:
    """The ids of a few texts, by the ways that take one text at a time."""
    tok, options, rng = pair.tok, asked.options, asked.rng
    yield "stream", [[*tok.encode_stream(cut(rng, text, 40), **options)] for text in texts]
    yield "session", [grown(Session(tok, **options), text, rng) for text in texts]
    yield "offsets", [tok.encode_offsets(text, **options).ids for text in texts]
    if pair.only_special and not asked.finds:
        yield "segments", [encode_segments(tok, [(text, "untrusted")]) for text in texts]


def grown(session: Session, text: str, rng: random.Random) -> list[int]:
    """The ids of a text that grows; at one place it forks, and the other text ends otherwise."""
    pieces = cut(rng, text, 40)
    fork = rng.randrange(len(pieces))
    for number, piece in enumerate(pieces):
        if number == fork:
            other, session = session, session.fork()
            other.append(text[::-1])
        session.append(piece)
    return list(session.ids)


class Totals(NamedTuple):
    """What was compared: texts; characters that ours and the peer encoded, and of new texts; and
    how often a text was compared."""

    texts: int = 0
    ours: int = 0
    peer: int = 0
    new: int = 0
    checks: int = 0

    def plus(self, other: Totals) -> Totals:
        return Totals(*(one + two for one, two in zip(self, other, strict=True)))


def differences(
    pair: Pair, others: Others, asked: Asked, right: Ids, *, is_easy: bool
) -> Iterator[tuple[str, Totals]]:
    """For each way how it differs, empty if it does not, and what was compared."""
    sizes, rows = np.array([len(text) for text in asked.texts]), divided(right)
    total = int(sizes.sum())
    for name, which, ids in ways(pair, others, asked, is_easy=is_easy):
        times, rest = divmod(len(which), len(rows))
        size = int(sizes[which].sum()) if rest or not times else times * total
        yield difference(name, which, ids, right, rows), Totals(ours=size, checks=len(which))
    counted = [pair.tok.count(text, **asked.options) for text in asked.texts]
    same = counted == np.diff(right.ends).tolist()
    yield "" if same else "count differs", Totals(checks=len(rows))
    if is_lossless(pair.tok):
        same = pair.tok.decode_batch(rows) == asked.texts
        yield "" if same else "decode_batch differs", Totals(checks=len(rows))


def difference(
    name: str, which: Sequence[int], got: Ids | list[list[int]], right: Ids, rows: list[list[int]]
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


def repeated(whole: Ids, times: int) -> Ids:
    """The ids of texts that were encoded several times at once."""
    if times == 1:
        return whole
    ends = [whole.ends[:1], *(whole.ends[1:] + n * whole.ends[-1] for n in range(times))]
    return Ids(np.tile(whole.ids, times), np.concatenate(ends))


def run(file: Path, folder: Path, seconds: float, seed: int, work: Path) -> tuple[Totals, int]:
    """Compare for some seconds; what was compared, and how many ways differed."""
    pair, totals, wrong = read(file), Totals(), 0
    texts, others = Texts(folder, pair.tokens), Others(pair.tok, work)
    until = time.monotonic() + seconds
    while time.monotonic() < until and wrong < 10:
        rng = random.Random(seed)
        chunk = texts.chunk(rng)
        seed += 1
        if not (some := covered(pair.tok, chunk.texts)):
            continue
        asked = Asked(some, rng.random() < 0.25, work, rng)
        if seed % COLD == 0:
            others.renew()
        right, size = pair.peer(some, asked.finds), sum(map(len, some))
        new = 0 if chunk.is_real else size
        totals = totals.plus(Totals(len(some), 0, size, new))
        for line, compared in differences(pair, others, asked, right, is_easy=chunk.is_easy):
            totals = totals.plus(compared)
            if line:
                wrong += 1
                print(f"seed {seed - 1}, {file.name}: {line}", flush=True)
    return totals, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    place = MEMORY_FOLDER if has_room(MEMORY_FOLDER) else None
    with tempfile.TemporaryDirectory(dir=place) as work:
        totals, wrong = run(args.file, args.texts, args.seconds, args.seed, Path(work))
    print(
        f"{totals.texts:,} texts, {totals.ours:,} characters, {totals.peer:,} by the peer, "
        f"{totals.new:,} new, {totals.checks:,} checks: {wrong} differ"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
