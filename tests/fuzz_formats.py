"""Damaged files of every format, made and read for as long as one likes; not run by pytest.

    python tests/fuzz_formats.py --seconds 600 --seed 1 [FORMAT ...]

Of small files of each format, bits are flipped, pieces cut out, doubled and put elsewhere, numbers
made huge, parts of JSON replaced, lines exchanged; checksums are made right again, so that what
they protect is read too. What comes out must be a tokenizer that works, or a documented error. Each
format is read in a process of its own, with limits of memory and time for each file. A process
that dies, and an error of another kind, is a find: the file is kept in the folder of `--finds`.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import faulthandler
import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import tokenizers

import bytepair
from bytepair.errors import (
    BytepairError,
    CountsError,
    FileFormatError,
    PatternError,
    ShardError,
    SplitError,
    VocabularyError,
)
from bytepair.formats import huggingface
from bytepair.formats.huggingface import companions
from bytepair.formats.parts import LoadOptions
from bytepair.shards import manifest
from bytepair.shards.order import Packing
from formats import small, written
from pieces import field, gemma, learnt, model

#: How much memory one file may take, beyond that of the process before.
MEMORY_BYTES = 1 << 30
SECONDS = 2.0

TEXTS = ["hello hell", "é\ud800\0 12", "<|bos|>he<|endoftext|>", "hell" * 50]
PATTERNS = [
    r"(a+)+$",
    r"(a*)*b",
    r"(?=(\w+))\1:",
    "a{99999}",
    "(" * 300,
    r"[^",
    "x*",
    r"(?i:s)",
    "",
]
STRANGE: list[Any] = [
    None, True, 0, -1, 1.5, 1e400, 1 << 31, 1 << 63, 1 << 70, "", "a", "\ud800", "\0", "▁", [], {},
    [[]], ["a", "b"], "a b", {"type": "Sequence"}, {"type": "NFC"}, *PATTERNS,
]  # fmt: skip

Mutate = Callable[[random.Random, bytes], bytes]


# ---------------------------------------------------------------------------- damage


def flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def splice(rng: random.Random, data: bytes) -> bytes:
    """A piece is taken out, doubled, or put elsewhere."""
    start, size = rng.randrange(len(data) + 1), rng.choice([1, 2, 4, 8, 16, 64, 1000])
    piece, rest = data[start : start + size], data[:start] + data[start + size :]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + piece * rng.choice([0, 1, 2, 2, 9]) + rest[at:]


def number(rng: random.Random, data: bytes) -> bytes:
    """A number of 4 or 8 bytes, mostly near the beginning, becomes a strange one."""
    size = rng.choice([4, 8])
    near = rng.choice([64, 256, 4096, len(data)])
    at = rng.randrange(max(1, min(near, len(data)))) // rng.choice([1, 4]) * rng.choice([1, 4])
    value = rng.choice([0, 1, 2, (1 << 31) - 1, 1 << 31, (1 << 8 * size) - 1, rng.getrandbits(31)])
    return data[:at] + (value % (1 << 8 * size)).to_bytes(size, "little") + data[at + size :]


def line(rng: random.Random, data: bytes) -> bytes:
    """Lines are exchanged, doubled, or become another."""
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    strange = [lines[other], b"", b" ", b"= 1", b"YQ== -1", b"YQ== 99999999999", b"a a a", b"\xff"]
    lines[one] = rng.choice(strange)
    return b"\n".join(lines)


def json_part(rng: random.Random, data: bytes) -> bytes:
    """A part of a JSON text becomes a strange one, or is taken from elsewhere in it."""
    try:
        document = json.loads(data)
        for _ in range(rng.choice([1, 1, 1, 3]) if isinstance(document, dict | list) else 0):
            _replace(rng, document, document)
        text = json.dumps(document)
    except (ValueError, RecursionError):
        return flip(rng, data)
    if rng.random() < 0.02:
        depth = rng.choice([100, 900, 5000])
        text = text.replace("null", "[" * depth + "]" * depth, 1)
    return text.encode()


def _replace(rng: random.Random, node: Any, document: Any) -> None:
    keys = list(node) if isinstance(node, dict) else range(len(node))
    if not keys:
        return
    key = rng.choice(keys[:40] if len(keys) > 40 and rng.random() < 0.5 else keys)
    inner = node[key]
    if isinstance(inner, dict | list) and inner and rng.random() < 0.85:
        return _replace(rng, inner, document)
    way = rng.random()
    if way < 0.15:
        del node[key]
    elif way < 0.3 and isinstance(node, dict):
        node[rng.choice([str(key) + "x", "", "\ud800", "a"])] = node.pop(key)
    elif way < 0.4:
        node[key] = copy.deepcopy(node[rng.choice(keys)])
    elif way < 0.55 and isinstance(inner, int):
        node[key] = inner + rng.choice([-1, 1, 256])
    else:
        node[key] = copy.deepcopy(rng.choice(STRANGE))
    return None


def checked(data: bytes) -> bytes:
    """A native file with the right length and checksum."""
    if len(data) < 64:
        return data
    bare = data[:16] + struct.pack("<Q", len(data)) + b"\0" * 4 + data[28:]
    return bare[:24] + struct.pack("<I", zlib.crc32(bare)) + bare[28:]


def make_right(folder: Path) -> None:
    """Make the sizes and checksums of shards, and that of their manifest, right again."""
    record = folder / "manifest.json"
    with contextlib.suppress(Exception):  # where it cannot be read, it is damaged more than that
        values = json.loads(record.read_bytes())
        for part in (part for shard in values["shards"] for part in shard["parts"]):
            data = (folder / part["file"]).read_bytes()[part["offset"] :][: part["bytes"]]
            part.update(bytes=len(data), crc32=f"{zlib.crc32(data):08x}")
        del values["crc32"]
        values["crc32"] = f"{zlib.crc32(manifest._dumped(values)):08x}"
        manifest.write_json(record, values)


BINARY: list[Mutate] = [flip, cut, splice, number, number]
TEXT: list[Mutate] = [flip, cut, splice, line, line]
JSON: list[Mutate] = [json_part, json_part, json_part, json_part, flip, cut, splice]


# ---------------------------------------------------------------------------- formats


def tekken() -> dict[str, Any]:
    """A small `tekken.json`."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"he", b"ll", b"hell"]
    return {
        "config": {
            "pattern": r"\p{L}+|\P{L}", "num_vocab_tokens": 259, "default_vocab_size": 262,
            "default_num_special_tokens": 3, "version": "v7",
        },
        "vocab": [
            {"rank": n, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for n, token in enumerate(tokens)
        ],
        "special_tokens": [
            {"rank": n, "token_str": name, "is_control": True}
            for n, name in enumerate(["<unk>", "<s>", "</s>"])
        ],
    }  # fmt: skip


def seeds(format: str, folder: Path) -> list[Path]:
    """Good files of a format; each is a file, or a folder of several."""
    if format == "tekken":
        path = folder / "tekken.json"
        path.write_text(json.dumps(tekken()))
        return [path]
    if format == "counts":
        path = folder / "counts.parquet"
        bytepair.count(bytepair.sample.paths()).save(path)
        return [path]
    if format == "shards":
        source = folder / "source.jsonl"
        source.write_text('{"text": "hello hell, some text"}\n' * 60)
        for layout in bytepair.shards.LAYOUTS:
            options: dict[str, Any] = {"bos": True, "format": layout, "tokens_per_shard": 200}
            bytepair.shards.write(source, TRAINED, folder / layout, **options)
        return [folder / layout for layout in bytepair.shards.LAYOUTS]
    if format == "sentencepiece":
        forms = [model(learnt(60)), gemma(field(1, b"identity"))]
        for n, data in enumerate(forms):
            (folder / str(n)).mkdir()
            (folder / str(n) / "tokenizer.model").write_bytes(data)
        return [folder / str(n) / "tokenizer.model" for n in range(len(forms))]
    paths = []
    for n, tok in enumerate([small(), TRAINED, LISTED]):
        (folder / str(n)).mkdir()
        target = "hf" if format == "companions" else None
        if target:
            paths.append(tok.export(folder / str(n) / target, "huggingface"))
        else:
            paths.append(written(tok, folder / str(n), format))
    return paths


def read(format: str, path: Path) -> None:
    """Read a file, and use what comes out; errors that are documented are passed over."""
    try:
        if format == "counts":
            bytepair.training.load_counts(path, pattern="gpt2").total  # noqa: B018
            return
        if format == "shards":
            bytepair.shards.verify(path)
            data = bytepair.shards.Dataset(path, split=None)
            if len(data):
                data[len(data) - 1].sum()
                for packing in get_args(Packing):
                    next(data.batches(1, 8, seed=1, packing=packing), None)
            return
        options: dict[str, Any] = {"pattern": "gpt2", "allow_pickle": True}
        if format == "sentencepiece":
            options.pop("pattern")
        if format in {"tiktoken", "llama2c", "qwen3", "gpt2"}:
            options |= {"special_tokens": {}}
        if format == "huggingface":
            compare_readers(path.read_bytes())
        name = None if format == "companions" else format
        use(bytepair.load(path, name, **options))
    except (FileFormatError, CountsError, PatternError, ShardError):
        pass


def compare_readers(data: bytes) -> None:
    """What is read of a damaged `tokenizer.json` must be what `tokenizers` reads of it."""
    try:
        own = bytepair.Tokenizer(huggingface.parse(data, LoadOptions()))
    except BytepairError:
        return
    try:
        theirs = tokenizers.Tokenizer.from_buffer(data)
    except Exception:  # it refuses more: fields that change nothing here
        return
    theirs.no_padding()
    theirs.no_truncation()
    for text in ("hello the  world", "<|bos|>he\n\u00e9", "aab 12"):
        try:
            ids = own.encode(text, special="all")
        except SplitError:  # a byte without a token, which tokenizers leaves out
            continue
        if ids != theirs.encode(text, add_special_tokens=False).ids:
            raise AssertionError(f"{text!r} has other ids in tokenizers")


def use(tok: bytepair.Tokenizer) -> None:
    for text in TEXTS:
        try:
            ids = tok.encode(text, special="all")
        except SplitError:
            continue
        tok.decode_bytes(ids)
    try:
        data = tok.to_bytes()
    except VocabularyError:  # the merges of a forged native file are checked when they are listed
        return
    if bytepair.Tokenizer.from_bytes(data) != tok:
        raise AssertionError("it does not come back from its native bytes")
    companions.config(tok)


TRAINED = bytepair.train(bytepair.sample.paths(), 400, pattern="gpt2", special_tokens=["<|bos|>"])
LISTED = bytepair.Tokenizer.from_merges(
    TRAINED.mergeable_ranks(), TRAINED.merges(), pattern="llama3", ignore_merges=True,
    special_tokens={"<|endoftext|>": 500},
)  # fmt: skip

WAYS: dict[str, list[Mutate]] = {
    "bytepair": [*BINARY, lambda rng, data: checked(rng.choice(BINARY)(rng, data))] * 2,
    "huggingface": JSON,
    "companions": JSON,
    "tiktoken": TEXT,
    "gpt2": [*JSON, *TEXT],
    "nanochat": BINARY,
    "llama2c": BINARY,
    "qwen3": BINARY,
    "gguf": BINARY,
    "tekken": JSON,
    "sentencepiece": BINARY,
    "counts": BINARY,
    "shards": [*BINARY, *JSON],
}


# ---------------------------------------------------------------------------- processes


def work(format: str, seed: int, until: float, folder: Path, finds: Path) -> int:
    """Damage and read files until the time is over; the number of files, or an error."""
    rng, done = random.Random(seed), 0
    good = seeds(format, folder / "good")
    read(format, good[0])  # everything is imported before the time of a file is measured
    seen: set[str] = set()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, resource.RLIM_INFINITY))
    while time.monotonic() < until:
        case = lay(rng.choice(good), folder / "case")
        files = sorted(
            file for file in (case.rglob("*") if case.is_dir() else [case]) if file.is_file()
        )
        victim = rng.choice(files)
        data = victim.read_bytes()
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            data = rng.choice(WAYS[format])(rng, data)
        victim.write_bytes(data)
        if format == "shards" and rng.random() < 0.7:
            make_right(case)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            read(format, case)
        except Exception as error:
            place = f"{type(error)} {traceback.extract_tb(error.__traceback__)[-1].lineno}"
            if place not in seen:
                keep(case, finds / f"{format}-{seed}-{done}", traceback.format_exc())
            seen.add(place)
        faulthandler.cancel_dump_traceback_later()
        done += 1
    return done


def lay(good: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if good.is_dir():
        shutil.copytree(good, folder / good.name)
    else:
        shutil.copy(good, folder / good.name)
    return folder / good.name


def keep(case: Path, folder: Path, why: str) -> None:
    lay(case, folder)
    (folder / "why").write_text(why)
    print(f"FIND {folder}: {why.strip().splitlines()[-1][:200]}", flush=True)


def fuzz(format: str, seed: int, seconds: float, finds: Path) -> int:
    """Work in processes until the time is over; how many of them died."""
    until, dead = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "good").mkdir()
            child = os.fork()
            if child == 0:
                try:
                    done = work(format, seed, until, folder, finds)
                    print(f"{format}: {done:,} files (seed {seed})", flush=True)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if status:
                (folder / "case").mkdir(exist_ok=True)
                case = next((folder / "case").iterdir(), folder / "case")
                keep(case, finds / f"{format}-{seed}-dead", f"the process ended with {status}")
                dead, seed = dead + 1, seed + 1000
    return dead


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("formats", nargs="*", help=", ".join(WAYS))
    parser.add_argument("--seconds", type=float, default=60, help="for each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--finds", type=Path, default=Path("finds"))
    args = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for format in args.formats or WAYS:
        fuzz(format, args.seed, args.seconds, args.finds)
    finds = sorted(args.finds.iterdir()) if args.finds.exists() else []
    print(f"{len(finds)} finds", *finds, sep="\n")
    return bool(finds)


if __name__ == "__main__":
    sys.exit(main())
