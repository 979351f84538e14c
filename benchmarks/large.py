"""Counting and training on more text than a disk has: time and memory, with and without a limit.

    python benchmarks/large.py DATA --gigabytes 20 --limits none 1000
    python benchmarks/large.py DATA --gigabytes 100 --limits 2000 --rounds 1 --count-only

Input: the folder of texts of `texts.py`. Its English documents are made into a stream of any
length. In each copy some letters are exchanged, drawn by the number of the copy, so that words stay
new however long the stream is. Limits are in MB. A process for each limit counts the stream and
then trains on the counts; they take turns. The time of making text is not counted. The digest of
the counts must be the same with all limits. Linux only.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import bytepair
import runs
import texts

#: Letters that are exchanged in a copy of the text.
LETTERS = 6


class Timed:
    """Passes on what another iterable makes, and knows how long that took but for the first."""

    def __init__(self, made: Iterable[pa.Array]) -> None:
        self.made = iter(made)
        self.next = next(self.made, None)
        self.seconds = self.processor = 0.0

    def __iter__(self) -> Iterator[pa.Array]:
        while self.next is not None:
            yield self.next
            started, used = time.perf_counter(), time.thread_time()
            self.next = next(self.made, None)
            self.seconds += time.perf_counter() - started
            self.processor += time.thread_time() - used


def digest(counts: bytepair.Counts) -> str:
    """A hash of all pretokens and their counts."""
    return counts.core.fingerprint[:12]


def processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def work(args: argparse.Namespace) -> dict[str, Any]:
    """Count within the limit, and train on the counts: seconds and memory of both."""
    limit = None if args.worker == "none" else int(args.worker) * 10**6
    text = Timed(texts.varied(args.data / "large", int(args.gigabytes * 1e9), LETTERS))
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now
    before, written = runs.peak_mb(), written_mb()
    started, used = time.perf_counter(), processor()
    counts = bytepair.count(text, pattern="gpt2", reading=bytepair.Reading(memory_limit=limit))
    figures = {
        "count": time.perf_counter() - started - text.seconds,
        "processor": processor() - used - text.processor,
        "before_mb": before,
        "peak_count_mb": runs.peak_mb(),
        "written_mb": round(written_mb() - written),
        "distinct": len(counts),
    }
    if not args.count_only:
        started = time.perf_counter()
        bytepair.train(counts, args.vocab_size, special_tokens=[])
        figures |= {"train": time.perf_counter() - started, "peak_train_mb": runs.peak_mb()}
    # Last, because it reads counts that are in mapped files.
    return {**figures, "digest": digest(counts)}


def written_mb() -> float:
    """What this process has written to files, in MB."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"]) / 1e6


def main() -> None:
    parser = runs.parser(__doc__, rounds=3)
    parser.add_argument("data", type=Path, help="the folder of texts")
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--limits", nargs="*", default=["none", "1000"], help="MB, or none")
    parser.add_argument("--vocab-size", type=int, default=65_536)
    parser.add_argument("--count-only", action="store_true", help="do not train")
    args = parser.parse_args()
    if args.worker:
        runs.say(work(args))
        return
    results = runs.measure(runs.again(), args.limits, args.rounds)
    runs.show(results)
    runs.record(args.record, results)


if __name__ == "__main__":
    main()
