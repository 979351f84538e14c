"""Encoding side by side: new processes, ids compared first, the first pass and the second apart.

python benchmarks/encode.py CORPUS --rank-file cl100k_base.tiktoken --pattern gpt4
`table.py` measures all of its rows with this.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bytepair
import runs
from peers import MODELS, PEERS, SEPARATOR, Calls, Vocabulary, flat

#: What is encoded before single texts are timed.
MESSAGE = "Hi! Could you please explain how byte pair encoding works, and why GPT-4 needs it?\n"
#: How many texts of 100 characters are encoded that the process has not encoded before.
FRESH = 4000
#: How many texts of 2,000 characters are encoded, of which the slowest counts.
REQUESTS = 25_000
#: Loads a library.
Load = Callable[[], Calls]
Figures = dict[str, Any]
#: A call of `AutoTokenizer`, and its inputs.
Task = tuple[Callable[[Any, Any], Any], list[Any]]


def digest(*parts: Any) -> str:
    return hashlib.sha256(b"".join(map(bytes, parts))).hexdigest()[:12]


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """How long a call takes, and its result."""
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def passes(load: Load, megabytes: float, encode: Callable[[Calls], Any]) -> Figures:
    """Rates of two passes; `loaded` counts loading, `first` does not."""
    # As in `timeit`: what garbage collection costs depends on every object made before.
    gc.collect()
    gc.disable()
    loading, calls = seconds(load)
    first, result = seconds(lambda: encode(calls))
    second, _ = seconds(lambda: encode(calls))
    rates = {"load": 1e3 * loading, "loaded": megabytes / (loading + first)}
    # The number of ids of each document is hashed too, so no id can move to the next document.
    same = digest(*(part.tobytes() for part in flat(result)))
    return {**rates, "first": megabytes / first, "second": megabytes / second, "digest": same}


def steady(load: Load, args: argparse.Namespace) -> Figures:
    """Strings to arrays: the first half of the texts warms the caches, the second half is timed."""
    texts = list(runs.texts(args.source, args.megabytes))
    half = len(texts) // 2
    met, new = texts[:half], texts[half:]
    gc.collect()
    gc.disable()
    calls = load()
    encode = calls.arrays or calls.lists
    encode(met)
    taken, result = seconds(lambda: encode(new))
    megabytes = sum(len(text.encode()) for text in new) / 1e6
    same = digest(*(part.tobytes() for part in flat(result)))
    return {"steady": megabytes / taken, "digest": same}


def lists(load: Load, args: argparse.Namespace) -> Figures:
    """Strings to lists."""
    texts = list(runs.texts(args.source, args.megabytes))
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    return passes(load, megabytes, lambda calls: calls.lists(texts))


def arrays(load: Load, args: argparse.Namespace) -> Figures:
    """Strings to arrays; to lists, if a library has no call for arrays."""
    texts = list(runs.texts(args.source, args.megabytes))
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    return passes(load, megabytes, lambda calls: (calls.arrays or calls.lists)(texts))


def file(load: Load, args: argparse.Namespace) -> Figures:
    """A file to arrays; libraries that read no files get strings, and making these is timed."""
    path = args.files / "documents.txt"

    def encode(calls: Calls) -> Any:
        if calls.file:
            return calls.file(str(path))
        return (calls.arrays or calls.lists)(path.read_bytes().decode().split(SEPARATOR))

    return passes(load, path.stat().st_size / 1e6, encode)


def message(load: Load, args: argparse.Namespace) -> Figures:
    """New texts of 100 characters, a call for each, in microseconds."""
    texts = (text[:2000] for text in runs.texts(args.source, args.megabytes))
    fresh = [text[at : at + 100] for text in texts for at in range(0, len(text), 100)][:FRESH]
    one = load().one
    one(MESSAGE)
    taken, found = seconds(lambda: [one(text) for text in fresh])
    ids = [np.asarray(ids, np.uint32) for ids in found]
    return {"fresh": 1e6 * taken / len(fresh), "digest": digest(*ids)}


def slowest(load: Load, args: argparse.Namespace) -> Figures:
    """Texts of 2,000 characters, a call for each: milliseconds of the slowest after the first."""
    whole = runs.texts(args.source, args.megabytes)
    texts = [text[at : at + 2000] for text in whole for at in range(0, len(text), 2000)][:REQUESTS]
    gc.collect()
    gc.disable()
    one = load().one
    taken, found = zip(*(seconds(partial(one, text)) for text in texts), strict=True)
    times = sorted(1e3 * one for one in taken[1:])
    figures = {
        "slowest": times[-1],
        "p99.9": times[-len(times) // 1000],
        "median": times[len(times) // 2],
    }
    return {**figures, "digest": digest(*(np.asarray(ids, np.uint32) for ids in found))}


def growing(load: Load, args: argparse.Namespace) -> Figures:
    """A conversation is sent again with 1,000 characters more, 100 times: microseconds each."""
    text = "".join(runs.texts(args.source, args.megabytes))
    turns = [text[:end] for end in range(1000, 100_001, 1000)]
    one = load().one
    one(MESSAGE)
    taken, found = seconds(lambda: [one(turn) for turn in turns])
    ids = [np.asarray(ids, np.uint32) for ids in found]
    return {"turn": 1e6 * taken / len(turns), "digest": digest(*ids)}


def decode(load: Load, args: argparse.Namespace) -> Figures:
    """Ids to text, a call for each document: lists, and arrays."""
    texts = list(runs.texts(args.source, args.megabytes))
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    ids = bytepair.load(args.files / "tokenizer.bytepair").encode_batch(texts)
    calls = load()
    found: Figures = {}
    if calls.decode:
        found["list"], found["digest"] = decoding(calls.decode, ids, megabytes)
    if calls.decode_array:
        sequences = [np.array(one, np.uint32) for one in ids]
        found["array"], _ = decoding(calls.decode_array, sequences, megabytes)
    return found


def decoding(
    call: Callable[[Any], str | bytes], sequences: list[Any], megabytes: float
) -> tuple[float, str]:
    """The best rate of three passes, and a hash of the texts."""
    taken = []
    for _ in range(3):
        one, texts = seconds(lambda: [call(ids) for ids in sequences])
        taken.append(one)
    plain = (text if isinstance(text, bytes) else text.encode() for text in texts)
    return megabytes / min(taken), digest(*plain)


def pieces(text: str, length: int, most: int) -> list[str]:
    """Up to `most` pieces of `length` characters from all over a text, without overlap."""
    step = max(length, len(text) // most)
    return [text[at : at + length] for at in range(0, len(text) - length, step)][:most]


def tasks(text: str) -> dict[str, Task]:
    """What is measured of `AutoTokenizer`: the call, and inputs that are new to the process."""
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


def models(load: Load, args: argparse.Namespace) -> Figures:
    """`AutoTokenizer`, in microseconds: half of the inputs warm it up, the other half is timed."""
    tok: Any = load()
    text = "\n".join(runs.texts(args.source, args.megabytes))
    gc.disable()
    figures: Figures = {}
    for name, (call, inputs) in tasks(text).items():
        given = inputs or [tok(one).input_ids for one in pieces(text, 100_000, 10)]
        half = len(given) // 2
        try:
            for one in given[:half]:
                call(tok, one)
        except NotImplementedError as error:
            print(f"{args.worker} does not do {name}: {error}", file=sys.stderr)
            continue
        for when in ("new", "again"):
            taken, found = zip(
                *(seconds(partial(call, tok, one)) for one in given[half:]), strict=True
            )
            figures[f"{name}, {when}"] = 1e6 * statistics.median(taken)
        figures[f"digest of {name}"] = digest(*map(plain, found))
    return figures


def plain(found: Any) -> bytes:
    """A text, or the ids and masks of one text or several, as bytes."""
    if isinstance(found, str):
        return found.encode()
    return json.dumps([found["input_ids"], found["attention_mask"]]).encode()


KINDS: dict[str, Callable[[Load, argparse.Namespace], Figures]] = {
    kind.__name__: kind
    for kind in (lists, arrays, steady, file, message, slowest, growing, decode, models)
}


def work(args: argparse.Namespace) -> None:
    vocabulary = Vocabulary(args.files, args.rank_file, args.pattern, args.threads)
    known: dict[str, Callable[[Vocabulary], Any]] = MODELS if args.output == "models" else PEERS
    runs.say(KINDS[args.output](partial(known[args.worker], vocabulary), args))


def arguments() -> argparse.Namespace:
    parser = runs.parser(__doc__)
    runs.add_vocabulary(parser)
    parser.add_argument("source", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", choices=KINDS, default="lists", help="what is measured")
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--peers", nargs="*", help="those that are compared; all, if not given")
    args = parser.parse_args()
    args.peers = args.peers or [*(MODELS if args.output == "models" else PEERS)]
    return args


def main() -> None:
    args = arguments()
    runs.bind(args.threads)
    if args.worker:
        work(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        command = runs.again()
        if not args.files:
            Vocabulary(Path(folder), args.rank_file, args.pattern).write()
            if args.output == "file":
                text = SEPARATOR.join(runs.texts(args.source, args.megabytes))
                (Path(folder) / "documents.txt").write_text(text)
            command += ["--files", folder]
        results = runs.measure(command, args.peers, args.rounds)
    runs.show(results)
    runs.record(args.record, results)


if __name__ == "__main__":
    main()
