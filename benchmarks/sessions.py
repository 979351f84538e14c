"""A chat that grows to 38,000 tokens: what each turn costs, with a session and encoded anew.

python benchmarks/sessions.py CORPUS --rank-file cl100k_base.tiktoken

Each turn adds a message of the user and an answer, 200 tokens together on average. `session`
appends it; `encode` and the other libraries encode the whole conversation again. `word by word`
appends one pretoken at a time, as while a model answers. The ids after the last turn are
compared.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import bytepair
import peers
import runs

Encode = Callable[[str], list[int]]
Pieces = Callable[[str], list[str]]

#: Characters that a turn adds, and how many tokens the conversation has in the end.
TURN = 800
TOKENS = 38_000


def turns(args: argparse.Namespace, tok: bytepair.Tokenizer) -> list[str]:
    """Pieces of the corpus with the markup of a chat between them, up to `TOKENS` tokens."""
    paths = [Path(args.source)] if args.source else bytepair.sample.paths()
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    found, count = [], 0
    for start in range(0, len(text), TURN):
        piece = text[start : start + TURN]
        half = len(piece) // 2
        found.append(f"<|user|>{piece[:half]}<|end|>\n<|assistant|>{piece[half:]}<|end|>\n")
        count += tok.count(found[-1])
        if count > TOKENS:
            return found
    raise ValueError(f"the text has {count} tokens, and {TOKENS} are wanted; pass a longer one")


def grow(tok: bytepair.Tokenizer, new: list[str], pieces: Pieces) -> tuple[list[int], list[float]]:
    """Append to a session; the caller keeps a list of ids as well."""
    session, ids, seconds = bytepair.tokenizer.Session(tok), list[int](), []
    for parts in map(pieces, new):
        started = time.perf_counter()
        for part in parts:
            removed, fresh = session.append(part)
            ids[len(ids) - removed :] = fresh
        seconds.append(time.perf_counter() - started)
    return ids, seconds


def again(encode: Encode, new: list[str]) -> tuple[list[int], list[float]]:
    """Encode the whole conversation after each turn."""
    text, ids, seconds = "", [], []
    for turn in new:
        text += turn
        started = time.perf_counter()
        ids = encode(text)
        seconds.append(time.perf_counter() - started)
    return ids, seconds


def measure(name: str, args: argparse.Namespace) -> dict[str, object]:
    """Time each turn; the figures are those of the first and the last tenth, and the sum."""
    vocabulary = peers.Vocabulary(Path(args.folder), args.rank_file, args.pattern)
    tok = bytepair.load(vocabulary.folder / "tokenizer.bytepair")
    new = turns(args, tok)
    if name == "session":
        ids, seconds = grow(tok, new, lambda turn: [turn])
    elif name == "word by word":
        ids, seconds = grow(tok, new, lambda text: bytepair.pretokenize(text, tok))
    else:
        ids, seconds = again(peers.PEERS[name](vocabulary).one, new)
    tenth = len(seconds) // 10
    return {
        "ids": hashlib.sha256(np.asarray(ids, np.uint32).tobytes()).hexdigest(),
        "tokens": len(ids),
        "first_us": median(seconds[:tenth]) * 1e6,
        "last_us": median(seconds[-tenth:]) * 1e6,
        "all_ms": sum(seconds) * 1e3,
    }


def main() -> None:
    """Compare, or measure as a worker."""
    names = ["session", "word by word", "bytepair", "tiktoken", "tokenizers", "gigatoken"]
    options = runs.parser(__doc__, names)
    options.add_argument("source", nargs="?", default="", help="a text; none: that of the sample")
    options.add_argument("--folder", default="", help=argparse.SUPPRESS)
    runs.add_vocabulary(options)
    args = options.parse_args()
    if args.worker:
        runs.say(measure(args.worker, args))
        return
    with tempfile.TemporaryDirectory() as folder:
        peers.Vocabulary(Path(folder), args.rank_file, args.pattern).write()
        worker = [str(Path(__file__).resolve()), *sys.argv[1:], "--folder", folder]
        results = runs.measure(worker, args.peers, args.rounds)
    wanted = results["session"][0]["ids"]
    print(f"{'':14}{'first turns, µs':>18}{'last turns, µs':>18}{'all turns, ms':>18}")
    for name, rows in results.items():
        figures = [runs.median(rows, key) for key in ("first_us", "last_us", "all_ms")]
        other = "" if rows[0]["ids"] == wanted else "   other ids"
        print(f"{name:14}" + "".join(f"{figure:18,.1f}" for figure in figures) + other)
    runs.record(args.record, results, ["bytepair", "tiktoken", "tokenizers", "gigatoken"])


if __name__ == "__main__":
    main()
