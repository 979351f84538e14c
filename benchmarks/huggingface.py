"""`AutoTokenizer` on tokenizers, on bytepair and on fastokens: ids compared first, in turn.

python benchmarks/huggingface.py CORPUS --rank-file qwen3.tiktoken --pattern qwen2
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import runs

Task = tuple[Callable[[Any, Any], Any], list[Any]]


def use_bytepair() -> None:
    from bytepair.compat import huggingface

    huggingface.use()


def use_fastokens() -> None:
    import fastokens

    with contextlib.redirect_stdout(sys.stderr):
        fastokens.patch_transformers()


#: Makes `AutoTokenizer` run on another library.
PEERS: dict[str, Callable[[], None]] = {
    "tokenizers": lambda: None,
    "bytepair": use_bytepair,
    "fastokens": use_fastokens,
}


def corpus(source: str) -> str:
    import bytepair
    from bytepair.corpus import read
    from bytepair.corpus.column import strings

    batches = read.read_batches(Path(source) if source else bytepair.sample.paths())
    texts = (text for batch in batches for text in strings(batch))
    return "\n".join(islice(texts, 6000))[:30_000_000]


def pieces(text: str, length: int, number: int) -> list[str]:
    """Up to `number` pieces of `length` characters from all over a text, without overlap."""
    step = max(length, len(text) // number)
    return [text[at : at + length] for at in range(0, len(text) - length, step)][:number]


def tasks(text: str) -> dict[str, Task]:
    """What is measured: the call, and inputs that the process has not encoded before."""
    each = pieces(text, 1000, 4000)
    batches = [each[at : at + 1000] for at in range(0, len(each) - 999, 1000)]
    one = lambda tok, given: tok(given)  # noqa: E731
    return {
        "100 bytes": (one, pieces(text, 100, 4000)),
        "100 kB": (one, pieces(text, 100_000, 20)),
        "1,000 texts of 1 kB": (one, batches),
        "1,000 texts of 1 kB, padded": (lambda tok, given: tok(given, padding=True), batches),
        "1,000 texts of 1 kB, with offsets": (
            lambda tok, given: tok(given, return_offsets_mapping=True),
            batches,
        ),
        "decode 100 kB": (lambda tok, ids: tok.decode(ids, skip_special_tokens=True), []),
    }


def work(args: argparse.Namespace) -> None:
    """Half of the inputs are for warming up, half are measured, then measured again."""
    from transformers import AutoTokenizer

    PEERS[args.worker]()
    tok = AutoTokenizer.from_pretrained(args.files)
    text = corpus(args.source)
    row: dict[str, Any] = {}
    gc.disable()
    for name, (call, inputs) in tasks(text).items():
        given = inputs or [tok(one).input_ids for one in pieces(text, 100_000, 10)]
        half = len(given) // 2
        try:
            for one in given[:half]:
                call(tok, one)
        except NotImplementedError as error:
            print(f"{args.worker} does not do {name}: {error}", file=sys.stderr)
            continue
        digest = hashlib.sha256()
        for when in ("new", "again"):
            times = [timed(call, tok, one, digest) for one in given[half:]]
            row[f"{name}, {when}"] = 1e6 * statistics.median(times)
        row[f"digest of {name}"] = digest.hexdigest()[:12]
    runs.say(row)


def timed(call: Callable[[Any, Any], Any], tok: Any, given: Any, digest: Any) -> float:
    started = time.perf_counter()
    found = call(tok, given)
    taken = time.perf_counter() - started
    if isinstance(found, str):
        digest.update(found.encode())
        return taken
    for key in ("input_ids", "attention_mask"):
        for ids in found[key] if isinstance(given, list) else [found[key]]:
            digest.update(array("I", ids).tobytes())
    return taken


def write_model(rank_file: str, pattern: str, folder: Path) -> None:
    """A folder that `AutoTokenizer` reads."""
    import bytepair

    ranks = runs.ranks(rank_file)
    special = {"<|endoftext|>": len(ranks)}
    tok = bytepair.Tokenizer.from_ranks(ranks, pattern=pattern, special_tokens=special)
    named = tok.replace(roles={"eos": "<|endoftext|>", "pad": "<|endoftext|>"})
    named.export(folder, format="huggingface")


def show(results: dict[str, list[dict[str, Any]]]) -> None:
    """The median of the inputs in the best round, and how many times bytepair's that is."""
    print(f"| call | {' | '.join(results)} |\n| --- {'| ---: ' * len(results)}|")
    for key in results["bytepair"][0]:
        if key.startswith("digest") or key in {"peak_mb", "seconds"}:
            continue
        ours = min(row[key] for row in results["bytepair"])
        print(f"| {key} | {' | '.join(cells(results, key, ours))} |")


def cells(results: dict[str, list[dict[str, Any]]], key: str, ours: float) -> Iterable[str]:
    for name, rows in results.items():
        if key not in rows[0]:
            yield "not done"
            continue
        taken = min(row[key] for row in rows)
        times = "" if name == "bytepair" else f" ({taken / ours:.1f}×)"
        yield f"{taken:,.0f} µs{times}" if taken >= 100 else f"{taken:.1f} µs{times}"


def main() -> None:
    parser = runs.parser(__doc__, PEERS, rounds=5)
    parser.add_argument("source", nargs="?", default="")
    runs.add_vocabulary(parser)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--files", type=Path, help="the vocabulary as a folder; made if not given")
    args = parser.parse_args()
    runs.bind(args.threads)
    if args.worker:
        work(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_model(args.rank_file, args.pattern, Path(folder))
        command = [str(Path(__file__).resolve()), *sys.argv[1:], "--files", folder]
        results = runs.measure(command, args.peers, args.rounds)
    rows = [row for rows in results.values() for row in rows]
    for key in {key for row in rows for key in row if key.startswith("digest")}:
        if len({row[key] for row in rows if key in row}) > 1:
            sys.exit(f"the {key} is not equal; nothing else matters")
    show(results)
    packages = ["bytepair", "transformers", "tokenizers", "fastokens"]
    runs.record(args.record, results, packages)


if __name__ == "__main__":
    main()
