"""Byte-level BPE tokenizers: train, encode, decode, exactly and fast.

    >>> import bytepair
    >>> tok = bytepair.train(["one text", "another text", "and another"], vocab_size=270)
    >>> ids = tok.encode("another one")
    >>> tok.decode(ids)
    'another one'

Everything public is named here or in one of the modules `chat`, `corpus`, `errors`,
`evaluate`, `explore`, `plot`, `reference`, `report`, `sample` and `view`.
"""

import importlib as _importlib
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair import chat, corpus, errors, evaluate, plot, reference, report, sample, view
from bytepair._core import PATTERNS, UNICODE_VERSION
from bytepair.counting import count
from bytepair.counts import Counts
from bytepair.errors import BytepairError
from bytepair.grow import Verdict, extend, resume, verify
from bytepair.tokenizer import Tokenizer, load
from bytepair.train import NANOCHAT_SPECIAL_TOKENS, ExhaustedWarning, train

if _TYPE_CHECKING:
    from bytepair import explore

__version__ = _version("bytepair")

__all__ = [
    "NANOCHAT_SPECIAL_TOKENS",
    "PATTERNS",
    "UNICODE_VERSION",
    "BytepairError",
    "Counts",
    "ExhaustedWarning",
    "Tokenizer",
    "Verdict",
    "__version__",
    "chat",
    "corpus",
    "count",
    "errors",
    "evaluate",
    "explore",
    "extend",
    "load",
    "plot",
    "reference",
    "report",
    "resume",
    "sample",
    "train",
    "verify",
    "view",
]


def __getattr__(name: str) -> object:
    """Import the page of `explore`, which brings an HTTP server, when it is asked for."""
    if name == "explore":
        return _importlib.import_module("bytepair.explore")
    raise AttributeError(f"module 'bytepair' has no attribute {name!r}")
