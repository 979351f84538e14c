"""Byte-level BPE tokenizers: train, encode, decode, exactly and fast.

    >>> import bytepair
    >>> tok = bytepair.train(["one text", "another text", "and another"], vocab_size=270)
    >>> ids = tok.encode("another one")
    >>> tok.decode(ids)
    'another one'

Everything public is named here or in one of the modules `chat`, `corpus`, `distributed`,
`download`, `errors`, `plan`, `reference`, `sample`, `shards` and `view`.
"""

from importlib.metadata import version as _version

from bytepair import (
    chat,
    corpus,
    distributed,
    download,
    errors,
    plan,
    reference,
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
    "distributed",
    "documents",
    "download",
    "errors",
    "extend",
    "load",
    "pipeline",
    "plan",
    "reference",
    "resume",
    "sample",
    "shards",
    "train",
    "verify",
    "view",
]
