"""Rendering 100,000 conversations side by side; ids and masks are compared before times.

python benchmarks/chat.py CORPUS --rounds 3

`plain` renders as nanochat does, with tiktoken: one message after the other, into lists of int.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bytepair
import runs
from bytepair.corpus import read
from bytepair.corpus.column import strings

Talks = list[dict[str, Any]]
Rendered = tuple[bytes, bytes]


def sentences(source: str) -> list[str]:
    texts: list[str] = []
    for batch in read.read_batches(Path(source) if source else bytepair.sample.paths()):
        texts += strings(batch)
    found = (s for text in texts for s in re.split(r"(?<=[.!?\n])\s", text[:50_000]))
    return [s for s in found if 10 < len(s) < 1000][:200_000]


def conversations(args: argparse.Namespace) -> Talks:
    """Four messages on average; one in ten begins with a system message, one in ten has a tool."""
    pick = random.Random(0)
    said = sentences(args.source)

    def text() -> str:
        return " ".join(pick.choices(said, k=pick.randint(1, 4)))

    def reply() -> Any:
        if pick.random() < 0.9:
            return text()
        kinds = ("text", "python", "python_output", "text")
        return [{"type": kind, "text": pick.choice(said)} for kind in kinds]

    talks = []
    for _ in range(args.conversations):
        messages = [{"role": "system", "content": text()}] if pick.random() < 0.1 else []
        for _ in range(pick.randint(1, 3)):
            messages += [{"role": "user", "content": text()}]
            messages += [{"role": "assistant", "content": reply()}]
        talks.append({"messages": messages})
    return talks


def plainly(tok: bytepair.Tokenizer, talks: Talks) -> Rendered:
    encoding = bytepair.compat.to_tiktoken(tok)
    special, encode = tok.special_tokens, encoding.encode_ordinary
    around = {"python": ("<|python_start|>", "<|python_end|>", 1)}
    around["python_output"] = ("<|output_start|>", "<|output_end|>", 0)

    def render(messages: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
        if messages[0]["role"] == "system":
            joined = messages[0]["content"] + "\n\n" + messages[1]["content"]
            messages = [{"role": "user", "content": joined}, *messages[2:]]
        ids, mask = [special["<|bos|>"]], [0]

        def add(tokens: list[int], trained: int) -> None:
            ids.extend(tokens)
            mask.extend([trained] * len(tokens))

        for message in messages:
            role, content = message["role"], message["content"]
            trained = int(role == "assistant")
            add([special[f"<|{role}_start|>"]], 0)
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for part in parts:
                before, after, here = around.get(part["type"], ("", "", trained))
                add([special[before]] if before else [], here)
                add(encode(part["text"]), here)
                add([special[after]] if after else [], here)
            add([special[f"<|{role}_end|>"]], trained)
        return ids[:2048], mask[:2048]

    pairs = [render(talk["messages"]) for talk in talks]
    return (
        b"".join(array("I", ids).tobytes() for ids, _ in pairs),
        b"".join(bytes(mask) for _, mask in pairs),
    )


def one_by_one(tok: bytepair.Tokenizer, talks: Talks) -> Rendered:
    pairs = [tok.render_conversation(talk) for talk in talks]
    return (
        b"".join(array("I", ids).tobytes() for ids, _ in pairs),
        b"".join(bytes(mask) for _, mask in pairs),
    )


def batched(tok: bytepair.Tokenizer, talks: Talks, **options: Any) -> Rendered:
    batch = tok.render_batch(talks, **options)
    return batch.input_ids.tobytes(), batch.loss_mask.tobytes()


PEERS: dict[str, Callable[[bytepair.Tokenizer, Talks], Rendered]] = {
    "plain": plainly,
    "bytepair, one by one": one_by_one,
    "bytepair, a batch": batched,
    "bytepair, a batch on one thread": lambda tok, talks: batched(tok, talks, threads=1),
}


def work(args: argparse.Namespace) -> None:
    talks = conversations(args)
    tok = bytepair.train(bytepair.sample.paths(), args.vocab_size)
    started = time.perf_counter()
    ids, mask = PEERS[args.worker](tok, talks)
    taken = time.perf_counter() - started
    digest = hashlib.sha256(ids + mask).hexdigest()[:12]
    runs.say({"taken": taken, "digest": digest, "ids": len(mask)})


def main() -> None:
    parser = runs.parser(__doc__)
    parser.add_argument("source", nargs="?", default="")
    parser.add_argument("--conversations", type=int, default=100_000)
    parser.add_argument("--vocab-size", type=int, default=8192)
    args = parser.parse_args()
    if args.worker:
        work(args)
        return
    worker = [str(Path(__file__).resolve()), *sys.argv[1:]]
    results = runs.measure(worker, list(PEERS), args.rounds)
    if len({rows[0]["digest"] for rows in results.values()}) > 1:
        sys.exit("the ids are not equal; nothing else matters")
    print("| rendering | seconds | million ids a second | peak MB |\n| --- | --- | --- | --- |")
    for name, rows in results.items():
        taken, ids, peak = (runs.median(rows, key) for key in ("taken", "ids", "peak_mb"))
        print(f"| {name} | {taken:.2f} | {ids / taken / 1e6:.1f} | {peak:.0f} |")
    runs.record(args.record, results, ["bytepair", "tiktoken"])


if __name__ == "__main__":
    main()
