"""Loading side by side: how long, how much memory, and how long to the first ids; new processes.

python benchmarks/load.py --rank-file cl100k_base.tiktoken --pattern gpt4
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import runs

TEXT = "The quick brown fox jumps over 12345 lazy dogs: 敏捷的棕色狐狸 — naïve café."

#: Imports a library; returns a function that loads, and one that encodes a text.
Peer = Callable[[argparse.Namespace], tuple[Callable[[], Any], Callable[[Any], Iterable[int]]]]


def prepare(args: argparse.Namespace, folder: Path) -> None:
    """The same vocabulary in the form that each library reads."""
    import bytepair

    tok = bytepair.Tokenizer.from_ranks(runs.ranks(args.rank_file), pattern=args.pattern)
    tok.save(folder)
    (folder / "small").mkdir()
    tok.save(folder / "small", tables=False)
    tok.export(folder / "ranks.tiktoken", lossy=True)
    bytepair.compat.to_huggingface(tok, special=False).save(str(folder / "tokenizer.json"))
    try:
        import tokie

        tokie.Tokenizer.from_json(str(folder / "tokenizer.json")).save(str(folder / "tokie.tkz"))
    except (ImportError, ValueError) as error:
        print(f"no file for tokie: {error}", file=sys.stderr)


def with_bytepair(args: argparse.Namespace, folder: str = ".") -> Any:
    import bytepair

    path = args.files / folder / "tokenizer.bytepair"
    return lambda: bytepair.load(path), lambda tok: tok.encode(TEXT)


def with_tiktoken(args: argparse.Namespace) -> Any:
    """As tiktoken loads its own encodings, from a file that is already there."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    def load() -> tiktoken.Encoding:
        read = load_tiktoken_bpe(str(args.files / "ranks.tiktoken"))
        return tiktoken.Encoding("x", pat_str=args.regex, mergeable_ranks=read, special_tokens={})

    return load, lambda tok: tok.encode_ordinary(TEXT)


def with_tokenizers(args: argparse.Namespace) -> Any:
    from tokenizers import Tokenizer

    path = str(args.files / "tokenizer.json")
    encode = lambda tok: tok.encode(TEXT, add_special_tokens=False).ids  # noqa: E731
    return lambda: Tokenizer.from_file(path), encode


def with_gigatoken(args: argparse.Namespace) -> Any:
    import gigatoken

    name = {"gpt4": "gpt4", "gpt4o": "o200k", "gpt2": "gpt2", "qwen2": "qwen2"}[args.pattern]
    path = str(args.files / "ranks.tiktoken")
    return lambda: gigatoken.Tokenizer.from_tiktoken(path, name), lambda tok: tok.encode(TEXT)


def with_tokie(args: argparse.Namespace, name: str = "tokie.tkz") -> Any:
    import tokie

    path, make = str(args.files / name), tokie.Tokenizer
    read = make.from_json if name.endswith("json") else make.from_file
    return lambda: read(path), lambda tok: tok.encode(TEXT, add_special_tokens=False).ids


#: Each library, and the file that it reads.
PEERS: dict[str, tuple[Peer, str]] = {
    "bytepair": (with_bytepair, "tokenizer.bytepair"),
    "bytepair, without tables": (
        lambda args: with_bytepair(args, "small"),
        "small/tokenizer.bytepair",
    ),
    "tiktoken": (with_tiktoken, "ranks.tiktoken"),
    "tokenizers": (with_tokenizers, "tokenizer.json"),
    "gigatoken": (with_gigatoken, "ranks.tiktoken"),
    "tokie, own file": (with_tokie, "tokie.tkz"),
    "tokie": (lambda args: with_tokie(args, "tokenizer.json"), "tokenizer.json"),
}


def private() -> tuple[float, float]:
    """The memory that this process shares with no other, and what of it was written to, in MB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 / 1e6 for line in lines[1:]}
    return sizes["Private_Clean"] + sizes["Private_Dirty"], sizes["Private_Dirty"]


def work(args: argparse.Namespace) -> None:
    started = time.perf_counter()
    load, encode = PEERS[args.worker][0](args)
    imported = time.perf_counter() - started
    private()  # reading it takes memory too, the first time
    before, started = private(), time.perf_counter()
    tok = load()
    first, loaded = time.perf_counter() - started, private()
    started = time.perf_counter()
    ids = encode(tok)
    encoded, used = time.perf_counter() - started, private()
    digest = hashlib.sha256(json.dumps([int(id) for id in ids]).encode()).hexdigest()[:12]
    again: list[float] = []
    while len(again) < 3 or (len(again) < 50 and sum(again) < 1):
        started = time.perf_counter()
        tok = load()
        again.append(time.perf_counter() - started)
    row = {"import": imported, "first": first, "again": min(again), "encode": encoded}
    row = {name: 1e3 * value for name, value in row.items()}
    memory = {"private": loaded[0] - before[0], "used": used[0] - before[0]}
    memory |= {"written": used[1] - before[1]}
    runs.say({**row, **memory, "digest": digest})


def show(results: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Times are the best of all rounds, memory is the median."""
    columns = ["file, MB", "load, ms", "again, ms", "private, MB"]
    columns += ["first encode, ms", "private, MB", "of it written"]
    print("| library | " + " | ".join(columns) + " |")
    print("| --- " * (len(columns) + 1) + "|")
    expected = results["bytepair"][0]["digest"]
    for name, rows in results.items():
        size = (folder / PEERS[name][1]).stat().st_size / 1e6
        best = {key: min(row[key] for row in rows) for key in ("first", "again", "encode")}
        memory = {key: runs.median(rows, key) for key in ("private", "used", "written")}
        cells = [size, best["first"], best["again"], memory["private"]]
        cells += [best["encode"], memory["used"], memory["written"]]
        said = [f"{cell:.2f}" if cell < 10 else f"{cell:.0f}" for cell in cells]
        other = "" if rows[0]["digest"] == expected else " (other ids)"
        print(f"| {name}{other} | {' | '.join(said)} |")


def main() -> None:
    parser = runs.parser(__doc__, PEERS, rounds=7)
    runs.add_vocabulary(parser)
    parser.add_argument("--regex", help="the pattern as a regular expression; found if not given")
    parser.add_argument("--files", type=Path, help="the vocabulary in each form; made if not given")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if args.worker:
        work(args)
        return
    import bytepair

    with tempfile.TemporaryDirectory() as folder:
        prepare(args, Path(folder))
        command = [str(Path(__file__).resolve()), *sys.argv[1:], "--files", folder]
        command += ["--regex", bytepair.PATTERNS[args.pattern]]
        results = runs.measure(command, args.peers, args.rounds)
        show(results, Path(folder))
    packages = ["bytepair", "tiktoken", "tokenizers", "gigatoken", "tokie"]
    runs.record(args.record, results, packages)


if __name__ == "__main__":
    main()
