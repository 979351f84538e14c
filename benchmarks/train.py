"""Training side by side: whole processes, merges compared first.

python benchmarks/train.py CORPUS --vocab-size 32768
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bytepair
import runs


def with_bytepair(args: argparse.Namespace) -> list[bytes]:
    source = Path(args.source) if args.source else bytepair.sample.paths()
    tok = bytepair.train(
        source, args.vocab_size, special_tokens=[], pattern=args.pattern, ties=args.ties,
        threads=args.threads,
    )  # fmt: skip
    return list(tok.mergeable_ranks())


def with_rustbpe(args: argparse.Namespace) -> list[bytes]:
    import rustbpe

    tok = rustbpe.Tokenizer()
    pattern = bytepair.PATTERNS[args.pattern]
    tok.train_from_iterator(runs.texts(args.source), args.vocab_size, pattern=pattern)
    return [bytes(token) for token, _ in tok.get_mergeable_ranks()]


def with_tokenizers(args: argparse.Namespace) -> list[bytes]:
    """Its ties are broken as `--ties hf` does."""
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
    tok.train_from_iterator(runs.texts(args.source), trainer)
    return from_characters(
        [token for token, _ in sorted(tok.get_vocab().items(), key=lambda item: item[1])]
    )


def with_gigabpe(args: argparse.Namespace) -> list[bytes]:
    """It takes a text file and knows GPT-2's pattern only; its ties are those of hf."""
    import gigabpe

    vocab, _ = gigabpe.train_bpe(
        [args.lines],
        vocab_size=args.vocab_size,
        pretokenizer="bytelevel",
        special_tokens=[],
        threads=args.threads,
    )
    return from_characters(sorted(vocab, key=vocab.__getitem__))


def from_characters(names: list[str]) -> list[bytes]:
    """Tokens as bytes, from GPT-2's encoding of one character per byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    byte = {chr(code): bytes([code]) for code in shown}
    byte |= {chr(256 + place): bytes([code]) for place, code in enumerate(hidden)}
    return [b"".join(byte[character] for character in name) for name in names]


PEERS: dict[str, Callable[[argparse.Namespace], list[bytes]]] = {
    "bytepair": with_bytepair,
    "rustbpe": with_rustbpe,
    "tokenizers": with_tokenizers,
    "gigabpe": with_gigabpe,
}


def work(args: argparse.Namespace) -> None:
    started = time.perf_counter()
    tokens = PEERS[args.worker](args)
    seconds = time.perf_counter() - started
    # A library whose alphabet is only the bytes of the text makes a few merges more.
    tokens = [token for token in tokens if len(token) > 1][: args.vocab_size - 256]
    digest = hashlib.sha256(b"\0".join(tokens)).hexdigest()[:12]
    runs.say({"train": seconds, "tokens": len(tokens), "digest": digest})


def main() -> None:
    parser = runs.parser(__doc__, PEERS)
    parser.add_argument("source", nargs="?", default="")
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--pattern", default="nanochat")
    parser.add_argument("--ties", default="rustbpe", help="rustbpe, or hf as the last two peers")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--lines", help="a text file; made from the source if there is none")
    args = parser.parse_args()
    runs.bind(args.threads)
    if args.worker:
        work(args)
        return
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="", suffix=".txt") as lines:
        if not args.lines:
            lines.writelines(text + "\n" for text in runs.texts(args.source))
            lines.flush()
        command = runs.again(*([] if args.lines else ["--lines", lines.name]))
        results = runs.measure(command, args.peers, args.rounds)
    runs.show(results)
    runs.record(args.record, results)


if __name__ == "__main__":
    main()
