"""Encoding side by side: new processes, ids compared first, the first pass and the second apart.

python benchmarks/encode.py CORPUS --rank-file cl100k_base.tiktoken --pattern gpt4
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import bytepair
import runs
from bytepair import corpus

#: What a library gives for texts: its own lists or arrays; `flat` reads them all.
Encode = Callable[[list[str]], Any]


def documents(args: argparse.Namespace) -> list[str]:
    texts: list[str] = []
    size = 0
    for batch in corpus.batches(Path(args.source) if args.source else bytepair.sample.paths()):
        for text in batch if isinstance(batch, list) else corpus.strings(batch):
            if size < args.megabytes * 1e6:
                texts.append(text)
                size += len(text.encode())
    return texts


def ours(args: argparse.Namespace) -> bytepair.Tokenizer:
    """From our own file, as a user would have it."""
    return bytepair.load(args.files / "tokenizer.bytepair")


def with_bytepair(args: argparse.Namespace) -> Encode:
    tok = ours(args)
    if args.output == "arrays":
        return lambda texts: tok.encode_batch_to_numpy(texts, threads=args.threads)
    return lambda texts: tok.encode_batch(texts, threads=args.threads)


def with_tiktoken(args: argparse.Namespace) -> Encode:
    import tiktoken

    pattern = bytepair.PATTERNS[args.pattern]
    tok = tiktoken.Encoding(
        "x", pat_str=pattern, mergeable_ranks=runs.ranks(args), special_tokens={}
    )
    if args.output == "arrays":
        return lambda texts: [tok.encode_to_numpy(text, disallowed_special=()) for text in texts]
    if args.threads == 1:
        return lambda texts: [tok.encode_ordinary(text) for text in texts]
    return lambda texts: tok.encode_ordinary_batch(texts, num_threads=args.threads)


def with_tokenizers(args: argparse.Namespace) -> Encode:
    """The same vocabulary as a list of merges; threads are set before the library starts any."""
    from tokenizers import Tokenizer

    tok = Tokenizer.from_file(str(args.files / "tokenizer.json"))
    return lambda texts: [e.ids for e in tok.encode_batch_fast(texts, add_special_tokens=False)]


def with_gigatoken(args: argparse.Namespace) -> Encode:
    import gigatoken

    name = {"gpt4": "gpt4", "gpt4o": "o200k", "gpt2": "gpt2", "qwen2": "qwen2"}[args.pattern]
    tok = gigatoken.Tokenizer.from_tiktoken(args.rank_file, name)
    encode = tok.encode_batch if args.output == "arrays" else tok.encode_batch_list
    return lambda texts: encode(texts, parallel=args.threads > 1)


def from_json(args: argparse.Namespace, module: str) -> Encode:
    """Fastokens and snaptokens have the same face."""
    tok = importlib.import_module(module).Tokenizer.from_file(str(args.files / "tokenizer.json"))
    if args.output == "arrays":
        return tok.encode_batch_flat
    return lambda texts: [encoding.ids for encoding in tok.encode_batch(texts)]


def with_tokie(args: argparse.Namespace) -> Encode:
    import tokie

    tok = tokie.Tokenizer.from_json(str(args.files / "tokenizer.json"))
    return lambda texts: [e.ids for e in tok.encode_batch(texts, add_special_tokens=False)]


def with_quicktok(args: argparse.Namespace) -> Encode:
    """It knows the published encodings by their names."""
    import quicktok

    tok = quicktok.get_encoding(Path(args.rank_file).stem)
    if args.output == "arrays":
        return lambda texts: tok.encode_batch(texts, args.threads)
    encode = getattr(tok, "encode_ordinary", tok.encode)
    return lambda texts: [encode(text) for text in texts]


def with_toktok(args: argparse.Namespace) -> Encode:
    """It knows the published encodings by their names."""
    import toktok

    tok = toktok._encoding(Path(args.rank_file).stem)
    if args.output == "arrays":
        return lambda texts: tok.encode_batch_to_numpy(texts, threads=args.threads)
    return lambda texts: [tok.encode_ordinary(text) for text in texts]


PEERS: dict[str, Callable[[argparse.Namespace], Encode]] = {
    "bytepair": with_bytepair,
    "tiktoken": with_tiktoken,
    "tokenizers": with_tokenizers,
    "gigatoken": with_gigatoken,
    "fastokens": lambda args: from_json(args, "fastokens"),
    "snaptokens": lambda args: from_json(args, "snaptokens"),
    "quicktok": with_quicktok,
    "toktok": with_toktok,
    "tokie": with_tokie,
}


def flat(result: Any) -> tuple[Any, Any]:
    """Ids and the number of ids of each text, whatever a library gives; not timed."""
    if isinstance(result, tuple):
        ids, ends = (
            np.frombuffer(part, kind) if isinstance(part, bytes) else np.asarray(part)
            for part, kind in zip(result, (np.uint32, np.uint64), strict=True)
        )
        return ids.astype(np.uint32), np.diff(ends.astype(np.int64))
    if type(result).__module__.startswith("awkward"):
        import awkward

        ids = np.asarray(awkward.flatten(result), np.uint32)
        return ids, np.asarray(awkward.num(result), np.int64)
    ids = np.concatenate([np.asarray(part, np.uint32) for part in result])
    return ids, np.array([len(part) for part in result], np.int64)


def work(args: argparse.Namespace) -> None:
    texts = documents(args)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    times = [time.perf_counter()]
    encode = PEERS[args.worker](args)
    for _ in range(3):
        times.append(time.perf_counter())
        result = encode(texts)
    times.append(time.perf_counter())
    load, first, second, third = np.diff(times).tolist()
    rates = {"load": 1e3 * load, "first": megabytes / (load + first)}
    rates |= {"without": megabytes / first, "again": megabytes / min(second, third)}
    # How many ids each document has is hashed too, so none can move from one to the next.
    digest = hashlib.sha256(b"".join(part.tobytes() for part in flat(result))).hexdigest()
    runs.say({**rates, "megabytes": megabytes, "digest": digest[:12]})


def main() -> None:
    parser = runs.parser(__doc__, PEERS)
    parser.add_argument("source", nargs="?", default="")
    runs.add_vocabulary(parser)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", choices=["lists", "arrays"], default="lists")
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--files", type=Path, help="the vocabulary in each form; made if not given")
    args = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if args.threads == 1 else "true"
    if args.worker:
        work(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(__file__).resolve()), *sys.argv[1:]]
        if not args.files:
            tok = bytepair.Tokenizer.from_ranks(runs.ranks(args), pattern=args.pattern)
            tok.save(folder)
            tok.to_huggingface(special=False).save(str(Path(folder) / "tokenizer.json"))
            command += ["--files", folder]
        results = runs.measure(command, args.peers, args.rounds)
    show(results)
    runs.record(args.record, results, list(PEERS))


def show(results: dict[str, list[dict[str, Any]]]) -> None:
    """A table; the first pass counts the time to load."""
    digest = results["bytepair"][0]["digest"]
    print("| library | load, ms | first pass, MB/s | its encoding alone | again | peak MB | ids |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, rows in results.items():
        keys = ("load", "first", "without", "again", "peak_mb")
        figures = " | ".join(f"{runs.median(rows, key):.0f}" for key in keys)
        same = "equal" if rows[0]["digest"] == digest else "not equal"
        print(f"| {name} | {figures} | {same} |")


if __name__ == "__main__":
    main()
