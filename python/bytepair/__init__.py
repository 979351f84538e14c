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

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair import _core, errors
from bytepair._core import PATTERNS, UNICODE_VERSION
from bytepair.counting import count
from bytepair.counts import Counts

# These functions have the names of their modules. Imported here once, they stay what the names
# mean, whoever imports the modules later.
from bytepair.documents import documents
from bytepair.errors import BytepairError
from bytepair.late import late as _late
from bytepair.pipeline import pipeline
from bytepair.tokenizer import Tokenizer, load
from bytepair.train import NANOCHAT_SPECIAL_TOKENS, ExhaustedWarning, train

if _TYPE_CHECKING:
    from bytepair import (
        chat,
        corpus,
        distributed,
        download,
        evaluate,
        explore,
        plan,
        plot,
        reference,
        report,
        sample,
        shards,
        view,
    )
    from bytepair.grow import Verdict, extend, resume, verify

_MODULES = (
    "chat", "corpus", "distributed", "download", "evaluate", "explore", "plan", "plot", "reference",
    "report", "sample", "shards", "view",
)  # fmt: skip
_late(
    __name__,
    {name: f"bytepair.{name}" for name in _MODULES}
    | dict.fromkeys(("Verdict", "extend", "resume", "verify"), "bytepair.grow"),
)

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
