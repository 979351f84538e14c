"""A worker process, since each process selects its instruction set once.

A question is a line of JSON, an answer too. `test_simd.py` asks.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import bytepair

load = functools.cache(bytepair.load)


def splitter(tokenizer: str) -> str:
    """How a tokenizer splits."""
    return bytepair.tokenizer.split_engine(load(tokenizer))


def ids(tokenizer: str, text: str) -> list[int]:
    """The ids of a text."""
    return load(tokenizer).encode(text)


def hash_of_ids(tokenizer: str, folder: str) -> str:
    """One hash of the ids of all documents in a folder."""
    tok, digest = load(tokenizer), hashlib.sha256()
    for texts in bytepair.corpus.read_documents(Path(folder)):
        lists = bytepair.compat.encode_arrow(tok, texts["text"])
        for array in (lists.values, lists.offsets):
            digest.update(array.to_numpy())
    return digest.hexdigest()


def hash_of_training(sources: list[str], pattern: str) -> str:
    """The merges learnt from some folders."""
    tok = bytepair.train([Path(source) for source in sources], 4096, pattern=pattern)
    return tok.fingerprint


QUESTIONS: dict[str, Callable[..., object]] = {
    function.__name__: function for function in (splitter, ids, hash_of_ids, hash_of_training)
}

if __name__ == "__main__":
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        sys.stdout.write(json.dumps(QUESTIONS[name](*arguments)) + "\n")
        sys.stdout.flush()
