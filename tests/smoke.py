"""Whether an installed wheel works: `python tests/smoke.py`, with numpy, click and rich alone.

It trains, saves, loads, encodes against recorded ids, decodes, writes shards, kills a run that does
and resumes it, uses one tokenizer in several threads, and runs the command. The page of the package
must have absolute links. It ends with one line, and with 0 if all is well.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib.metadata import metadata
from pathlib import Path

import bytepair

#: Texts in several scripts, and bytes that are not UTF-8.
TEXT = "The quick brown fox — 1234567 δοκιμή 你好, नमस्ते! \t\n  it's 🙂 <|bos|>"
#: The result of training on the sample, on every system and processor.
FINGERPRINT = "0d445e925597250a688d1549a7d844be3233419433a05641569e54d2dcfa873c"
IDS = [
    431, 597, 992, 269, 1213, 933, 120, 32, 494, 148, 32, 49, 50, 51, 52, 53, 54, 55, 1726, 664,
    1005, 547, 1287, 1747, 32, 1885, 160, 229, 165, 189, 44, 334, 168, 1435, 1473, 1428, 549, 33,
    32, 9, 10, 32, 395, 374, 32, 240, 159, 153, 130, 32, 60, 124, 98, 623, 124, 62,
]  # fmt: skip

#: Shards enough to kill a run between two of them.
TOKENS_PER_SHARD = 20_000
COPIES = 12


def train() -> bytepair.Tokenizer:
    """Training is exact: the same merges everywhere."""
    tok = bytepair.train(bytepair.sample.paths(), vocab_size=2_000)
    ids = tok.encode(TEXT)
    assert tok.fingerprint == FINGERPRINT, f"the fingerprint is {tok.fingerprint}"
    assert ids == IDS, f"the ids are {ids}"
    assert tok.decode(ids) == TEXT
    assert tok.decode_bytes(range(256)) == b"".join(tok.token_bytes(id) for id in range(256))
    return tok


def save(tok: bytepair.Tokenizer, folder: Path) -> None:
    """A saved tokenizer loads as an equal one, also when it is saved over its own mapped file."""
    path = tok.save(folder)
    loaded = bytepair.load(folder)
    assert loaded == tok
    assert loaded.encode(TEXT) == IDS
    other = bytepair.train(bytepair.corpus.Texts(["another one"]), vocab_size=270)
    assert bytepair.load(other.save(folder, overwrite=True)) == other
    assert loaded.encode(TEXT) == IDS, "what is loaded changed with its file"
    assert bytepair.load(tok.save(folder, overwrite=True)) == tok
    assert path.is_file()


def shard(tok: bytepair.Tokenizer, folder: Path) -> None:
    """A killed run, resumed, writes the same bytes as one that was not killed."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for number in range(COPIES):
        for path in bytepair.sample.paths():
            (corpus / f"{number}-{path.name}").write_bytes(path.read_bytes())
    tok.save(folder / "tokenizer")
    whole, killed = folder / "whole", folder / "killed"
    write(folder, whole).wait()
    run = write(folder, killed)
    while run.poll() is None and not any(killed.glob(".progress/00*.json")):
        time.sleep(0.001)
    run.kill()
    run.wait()
    stopped = not (killed / "manifest.json").exists()
    assert write(folder, killed).wait() == 0
    assert hashes(whole) == hashes(killed)
    bytepair.shards.verify(killed)
    print("  killed and resumed" if stopped else "  the run had ended before it was killed")


def write(folder: Path, out: Path) -> subprocess.Popen[bytes]:
    """Begin to write shards in another process."""
    code = (
        "import sys, bytepair\n"
        "bytepair.shards.write(sys.argv[1], bytepair.load(sys.argv[2]), sys.argv[3],"
        f" tokens_per_shard={TOKENS_PER_SHARD}, bos=True)\n"
    )
    words = [folder / "corpus", folder / "tokenizer", out]
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)])


def hashes(folder: Path) -> dict[str, str]:
    """The content of every file."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


def threads(tok: bytepair.Tokenizer) -> None:
    """Threads that encode, decode, train and share one tokenizer do not disturb each other."""
    texts = [path.read_text(encoding="utf-8")[:20_000] for path in bytepair.sample.paths()[:8]]
    expected = [tok.encode(text) for text in texts]
    small = bytepair.train(bytepair.corpus.Texts(texts), vocab_size=400)
    failures: list[BaseException] = []

    def checked(action: Callable[[], bool]) -> None:
        try:
            assert all(action() for _ in range(3))
        except BaseException as error:
            failures.append(error)

    actions: list[Callable[[], bool]] = [
        lambda: [tok.encode(text) for text in texts] == expected,
        lambda: tok.encode_batch(texts) == expected,
        lambda: tok.decode_batch(expected) == texts,
        lambda: bytepair.train(bytepair.corpus.Texts(texts), vocab_size=400) == small,
    ]
    running = [threading.Thread(target=checked, args=(action,)) for action in actions * 2]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert not failures, failures[0]


def command(folder: Path) -> None:
    """The command reads and writes pipes."""
    words = [sys.executable, "-m", "bytepair"]
    tok = ["-t", str(folder / "tokenizer")]
    data = TEXT.encode()
    ids = subprocess.run([*words, "encode", *tok], input=data, capture_output=True, check=True)
    assert ids.stdout.decode("ascii").split() == list(map(str, IDS))
    text = subprocess.run(
        [*words, "decode", *tok], input=ids.stdout, capture_output=True, check=True
    )
    assert text.stdout.rstrip(b"\n") == data
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    subprocess.run([*words, "inspect", tok[1]], env=environment, capture_output=True, check=True)


def page() -> None:
    """A package index shows the description alone, so each link is absolute or an anchor."""
    headers = metadata("bytepair")
    shown = headers["Description"] or str(headers.get_payload())  # type: ignore[attr-defined]
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", shown, flags=re.M | re.S))
    assert len(links) > 25, f"the description has {len(links)} links"
    relative = [link for link in links if not link.startswith(("https://", "#"))]
    assert not relative, f"not absolute: {relative}"


def main() -> None:
    """Run all of it in a temporary folder."""
    assert Path(bytepair.__file__).is_relative_to(sys.prefix), f"{bytepair.__file__} is no wheel"
    with tempfile.TemporaryDirectory(prefix="bytepair-smoke-") as name:
        folder = Path(name)
        tok = train()
        save(tok, folder / "saved")
        shard(tok, folder)
        threads(tok)
        command(folder)
    page()
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(
        f"bytepair {bytepair.__version__} works: Python {platform.python_version()}"
        f"{'' if gil else ', free-threaded'}, {platform.system()} {platform.machine()}"
    )


if __name__ == "__main__":
    main()
