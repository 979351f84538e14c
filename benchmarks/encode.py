"""Encoding side by side: new processes, ids compared first, the first pass and the second apart.

python benchmarks/encode.py CORPUS --rank-file cl100k_base.tiktoken --pattern gpt4
`table.py` measures all of its rows with this.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import hashlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bytepair
import runs
from bytepair.corpus import read
from bytepair.corpus.column import strings
from peers import PACKAGES, PEERS, SEPARATOR, Calls, Vocabulary, flat

MESSAGE = (
    "Hi! Could you please explain how byte pair encoding works, and why GPT-4 needs it? "
    "Thanks a lot :-)\n"
)
#: How many texts of 100 characters are encoded that the process has not encoded before.
FRESH = 4000
#: How many texts of 2,000 characters are encoded, of which the slowest counts.
REQUESTS = 25_000
#: How much is encoded at once where memory is measured, in bytes.
BATCH = 10_000_000
#: Loads a library.
Load = Callable[[], Calls]
Figures = dict[str, Any]


def documents(source: str, megabytes: float) -> Iterator[str]:
    size = 0.0
    for batch in read.read_batches(Path(source) if source else bytepair.sample.paths()):
        for text in strings(batch):
            if size >= megabytes * 1e6:
                return
            yield text
            size += len(text.encode())


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
    texts = list(documents(args.source, args.megabytes))
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
    texts = list(documents(args.source, args.megabytes))
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    return passes(load, megabytes, lambda calls: calls.lists(texts))


def arrays(load: Load, args: argparse.Namespace) -> Figures:
    """Strings to arrays; to lists, if a library has no call for arrays."""
    texts = list(documents(args.source, args.megabytes))
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
    """A message of 100 bytes, in microseconds: the first call, others, the same again."""
    texts = (text[:2000] for text in documents(args.source, args.megabytes))
    fresh = [text[at : at + 100] for text in texts for at in range(0, len(text), 100)][:FRESH]
    one = load().one
    first, _ = seconds(lambda: one(MESSAGE))
    others, _ = seconds(lambda: [one(text) for text in fresh])
    again = min(seconds(lambda: [one(MESSAGE) for _ in range(1000)])[0] for _ in range(15))
    times = {"first": 1e6 * first, "fresh": 1e6 * others / len(fresh), "again": 1e3 * again}
    return {**times, "digest": digest(*(np.asarray(one(t), np.uint32) for t in [MESSAGE, *fresh]))}


def slowest(load: Load, args: argparse.Namespace) -> Figures:
    """Texts of 2,000 characters, a call for each: milliseconds of the slowest after the first."""
    whole = (text for text in documents(args.source, args.megabytes))
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
    text = "".join(documents(args.source, args.megabytes))
    turns = [text[:end] for end in range(1000, 100_001, 1000)]
    one = load().one
    one(MESSAGE)
    taken, found = seconds(lambda: [one(turn) for turn in turns])
    ids = [np.asarray(ids, np.uint32) for ids in found]
    return {"turn": 1e6 * taken / len(turns), "digest": digest(*ids)}


def decode(load: Load, args: argparse.Namespace) -> Figures:
    """Ids to text, a call for each document: lists, and arrays."""
    texts = list(documents(args.source, args.megabytes))
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


def unsplittable() -> dict[str, str]:
    """Texts of 1 MB that are one pretoken."""
    rng = random.Random(1)
    return {
        "a": "a" * 10**6,
        "letters": "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=10**6)),
        "spaces": " " * 10**6,
        "chinese": "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(10**6 // 3)),
        "base64": "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789+/", k=10**6)),
    }


def hard(load: Load, args: argparse.Namespace) -> Figures:
    """One of them, `args.text`, in milliseconds."""
    text = unsplittable()[args.text]
    calls = load()
    calls.one(MESSAGE)
    taken, ids = seconds(lambda: calls.one(text))
    return {"ms": 1e3 * taken, "digest": digest(np.asarray(ids, np.uint32))}


def resident() -> float:
    """The memory of this process, in MB, without what Python and its allocator keep for later."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def varied(path: Path, megabytes: float) -> Iterator[list[str]]:
    """Batches of documents; each pass over the file shifts the lowercase letters."""
    letters, total = "abcdefghijklmnopqrstuvwxyz", 0
    for shift in range(len(letters)):
        others = str.maketrans(letters, letters[shift:] + letters[:shift])
        with path.open() as file:
            while text := file.read(BATCH):
                yield (text.translate(others) if shift else text).split(SEPARATOR)
                total += len(text)
                if total >= megabytes * 1e6:
                    return


def memory(load: Load, args: argparse.Namespace) -> Figures:
    """By how much the process has grown, in MB: loaded, and when all texts and ids are gone."""
    path = args.files / "documents.txt"
    for _ in varied(path, 2 * BATCH / 1e6):
        pass
    before = resident()
    calls = load()
    loaded, count = resident(), 0
    for batch in varied(path, args.megabytes):
        count += len(flat((calls.arrays or calls.lists)(batch))[0])
        del batch
    grown = {"loaded_mb": loaded - before, "resident_mb": resident() - before}
    return {**grown, "digest": str(count)}


KINDS: dict[str, Callable[[Load, argparse.Namespace], Figures]] = {
    kind.__name__: kind
    for kind in (lists, arrays, steady, file, message, slowest, growing, decode, hard, memory)
}


def work(args: argparse.Namespace) -> None:
    vocabulary = Vocabulary(args.files, args.rank_file, args.pattern, args.threads)
    runs.say(KINDS[args.output](partial(PEERS[args.worker], vocabulary), args))


def show(results: dict[str, list[dict[str, Any]]]) -> None:
    """A table of all figures."""
    rows = {name: rows for name, rows in results.items() if rows}
    keys = [key for key in rows["bytepair"][0] if key not in ("digest", "seconds")]
    print("| library | " + " | ".join(keys) + " | ids |")
    print("| --- " * (len(keys) + 2) + "|")
    for name, found in rows.items():
        figures = [f"{runs.median(found, key):.3g}" if key in found[0] else "" for key in keys]
        same = found[0]["digest"] == rows["bytepair"][0]["digest"]
        print(f"| {name} | " + " | ".join(figures) + f" | {'equal' if same else 'not equal'} |")


def arguments() -> argparse.Namespace:
    parser = runs.parser(__doc__, PEERS)
    runs.add_vocabulary(parser)
    parser.add_argument("source", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", choices=KINDS, default="lists", help="what is measured")
    parser.add_argument("--text", choices=unsplittable(), default="a", help="for `hard`")
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--files", type=Path, help="the vocabulary in each form; made if not given")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    runs.bind(args.threads)
    if args.worker:
        work(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(__file__).resolve()), *sys.argv[1:]]
        if not args.files:
            Vocabulary(Path(folder), args.rank_file, args.pattern).write()
            if args.output in ("file", "memory"):
                text = SEPARATOR.join(documents(args.source, args.megabytes))
                (Path(folder) / "documents.txt").write_text(text)
            command += ["--files", folder]
        results = runs.measure(command, args.peers, args.rounds)
    show(results)
    runs.record(args.record, results, [PACKAGES.get(name, name) for name in PEERS])


if __name__ == "__main__":
    main()
