"""Encoding side by side: new processes, ids compared first, the first pass and the second apart.

python benchmarks/encode.py CORPUS --rank-file cl100k_base.tiktoken --pattern gpt4
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import bytepair
import runs
from bytepair import corpus

Lists = list[list[int]]


def documents(args: argparse.Namespace) -> list[str]:
    texts: list[str] = []
    size = 0
    for batch in corpus.batches(Path(args.source) if args.source else bytepair.sample.paths()):
        for text in batch if isinstance(batch, list) else corpus.strings(batch):
            if size < args.megabytes * 1e6:
                texts.append(text)
                size += len(text.encode())
    return texts


def ranks(args: argparse.Namespace) -> dict[bytes, int]:
    if not args.rank_file:
        return bytepair.train(bytepair.sample.paths(), 8192, special_tokens=[]).mergeable_ranks
    lines = Path(args.rank_file).read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}


def with_bytepair(args: argparse.Namespace) -> Callable[[list[str]], Lists]:
    tok = bytepair.Tokenizer.from_ranks(ranks(args), pattern=args.pattern)
    return lambda texts: tok.encode_batch(texts, threads=args.threads)


def with_tiktoken(args: argparse.Namespace) -> Callable[[list[str]], Lists]:
    import tiktoken

    pattern = bytepair.PATTERNS[args.pattern]
    tok = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks(args), special_tokens={})
    if args.threads == 1:
        return lambda texts: [tok.encode_ordinary(text) for text in texts]
    return lambda texts: tok.encode_ordinary_batch(texts, num_threads=args.threads)


def with_tokenizers(args: argparse.Namespace) -> Callable[[list[str]], Lists]:
    """The same vocabulary as a list of merges; threads are set before the library starts any."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if args.threads == 1 else "true"
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    ours = bytepair.Tokenizer.from_ranks(ranks(args), pattern=args.pattern)
    tok = ours.to_huggingface(special=False)
    return lambda texts: [e.ids for e in tok.encode_batch_fast(texts, add_special_tokens=False)]


PEERS: dict[str, Callable[[argparse.Namespace], Callable[[list[str]], Lists]]] = {
    "bytepair": with_bytepair,
    "tiktoken": with_tiktoken,
    "tokenizers": with_tokenizers,
}


def work(args: argparse.Namespace) -> None:
    texts = documents(args)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    encode = PEERS[args.worker](args)
    rates = {}
    for name in ("first", "again"):
        started = time.perf_counter()
        lists = encode(texts)
        rates[name] = megabytes / (time.perf_counter() - started)
    # The length of each document is hashed too, so ids cannot move from one document to the next.
    flat = b"".join(array("I", [len(ids), *ids]).tobytes() for ids in lists)
    digest = hashlib.sha256(flat).hexdigest()
    print(json.dumps({**rates, "megabytes": megabytes, "digest": digest[:12]}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", default="")
    parser.add_argument("--rank-file", default="")
    parser.add_argument("--pattern", default="gpt4")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--record", type=Path)
    parser.add_argument("--worker")
    args = parser.parse_args()
    if args.worker:
        work(args)
        return
    results = runs.measure([str(Path(__file__).resolve()), *sys.argv[1:]], args.peers, args.rounds)
    if len({rows[0]["digest"] for rows in results.values()}) > 1:
        sys.exit("the ids are not equal; nothing else matters")
    print("| library | first pass, MB/s | again, MB/s | peak MB |\n| --- | --- | --- | --- |")
    for name, rows in results.items():
        first, again, peak = (runs.median(rows, key) for key in ("first", "again", "peak_mb"))
        print(f"| {name} | {first:.1f} | {again:.1f} | {peak:.0f} |")
    runs.record(args.record, results, list(PEERS))


if __name__ == "__main__":
    main()
