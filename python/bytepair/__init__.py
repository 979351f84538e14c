"""Byte-level BPE tokenizers: train, encode, decode, exactly and fast.

    >>> import bytepair
    >>> tok = bytepair.train(["one text", "another text", "and another"], vocab_size=270)
    >>> ids = tok.encode("another one")
    >>> tok.decode(ids)
    'another one'

Everything public is named here or in one of the modules `chat`, `corpus`, `distributed`,
`download`, `errors`, `evaluate`, `explore`, `plan`, `plot`, `reference`, `report`, `sample`,
`shards` and `view`.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair import (
    _core,
    chat,
    corpus,
    distributed,
    errors,
    evaluate,
    plan,
    plot,
    reference,
    report,
    sample,
    shards,
    view,
)
from bytepair._core import PATTERNS, UNICODE_VERSION
from bytepair.counting import count
from bytepair.counts import Counts
from bytepair.documents import documents
from bytepair.errors import BytepairError
from bytepair.grow import Verdict, extend, resume, verify
from bytepair.pipeline import pipeline
from bytepair.tokenizer import Tokenizer, load
from bytepair.train import NANOCHAT_SPECIAL_TOKENS, ExhaustedWarning, train

if _TYPE_CHECKING:
    from bytepair import download, explore

__version__ = _core.VERSION

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
    "distributed",
    "documents",
    "download",
    "errors",
    "evaluate",
    "explore",
    "extend",
    "load",
    "pipeline",
    "plan",
    "plot",
    "reference",
    "report",
    "resume",
    "sample",
    "shards",
    "train",
    "verify",
    "view",
]


def __getattr__(name: str) -> object:
    """Import what brings HTTP with it when it is asked for."""
    if name in ("download", "explore"):
        return _importlib.import_module(f"bytepair.{name}")
    raise AttributeError(f"module 'bytepair' has no attribute {name!r}")
