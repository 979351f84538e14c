"""Training side by side: whole processes, merges compared first.

python benchmarks/train.py CORPUS --vocab-size 32768
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import bytepair
import runs
from bytepair import corpus


def texts(source: str) -> Iterator[str]:
    for batch in corpus.batches(Path(source) if source else bytepair.sample.paths()):
        yield from batch if isinstance(batch, list) else corpus.strings(batch)


def with_bytepair(args: argparse.Namespace) -> list[bytes]:
    source = Path(args.source) if args.source else bytepair.sample.paths()
    tok = bytepair.train(source, args.vocab_size, special_tokens=[], pattern=args.pattern)
    return list(tok.mergeable_ranks)


def with_bytepair_strings(args: argparse.Namespace) -> list[bytes]:
    """The same input as the others get: Python strings from an iterator."""
    strings = texts(args.source)
    tok = bytepair.train(strings, args.vocab_size, special_tokens=[], pattern=args.pattern)
    return list(tok.mergeable_ranks)


def with_rustbpe(args: argparse.Namespace) -> list[bytes]:
    import rustbpe

    tok = rustbpe.Tokenizer()
    pattern = bytepair.PATTERNS[args.pattern]
    tok.train_from_iterator(texts(args.source), args.vocab_size, pattern=pattern)
    return [bytes(token) for token, _ in tok.get_mergeable_ranks()]


def with_tokenizers(args: argparse.Namespace) -> list[bytes]:
    """Its ties are broken in another way, so its merges are others."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tok = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(bytepair.PATTERNS[args.pattern]), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tok.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    trainer = trainers.BpeTrainer(
        vocab_size=args.vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tok.train_from_iterator(texts(args.source), trainer)
    return [token.encode() for token in tok.get_vocab()]


PEERS: dict[str, Callable[[argparse.Namespace], list[bytes]]] = {
    "bytepair": with_bytepair,
    "bytepair-strings": with_bytepair_strings,
    "rustbpe": with_rustbpe,
    "tokenizers": with_tokenizers,
}


def work(args: argparse.Namespace) -> None:
    started = time.perf_counter()
    tokens = PEERS[args.worker](args)
    seconds = time.perf_counter() - started
    digest = hashlib.sha256(b"\0".join(tokens)).hexdigest()[:12]
    print(json.dumps({"train": seconds, "tokens": len(tokens), "digest": digest}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", default="")
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--pattern", default="nanochat")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--record", type=Path)
    parser.add_argument("--worker")
    args = parser.parse_args()
    if args.worker:
        work(args)
        return
    results = runs.measure([str(Path(__file__).resolve()), *sys.argv[1:]], args.peers, args.rounds)
    print("| library | seconds | peak MB | times ours | merges |\n| --- | --- | --- | --- | --- |")
    ours = runs.median(results["bytepair"], "train")
    digest = results["bytepair"][0]["digest"]
    for name, rows in results.items():
        seconds = runs.median(rows, "train")
        same = "equal" if rows[0]["digest"] == digest else "its own"
        peak = runs.median(rows, "peak_mb")
        print(f"| {name} | {seconds:.2f} | {peak:.0f} | {seconds / ours:.1f} | {same} |")
    runs.record(args.record, results, list(PEERS))


if __name__ == "__main__":
    main()
