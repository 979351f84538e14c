"""Byte-level BPE tokenizers: train, encode, decode, exactly and fast.

    >>> import bytepair
    >>> tok = bytepair.train(["one text", "another text", "and another"], vocab_size=270)
    >>> ids = tok.encode("another one")
    >>> tok.decode(ids)
    'another one'

The public API is exported here and from the modules `chat`, `compat`, `corpus`, `distributed`,
`engines`, `errors`, `evaluate`, `explore`, `plan`, `plot`, `reference`, `report`, `sample` and
`shards`.
A module that is called like a function says which of its functions to call.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair import _core, errors
from bytepair._core import PATTERNS, UNICODE_VERSION, AddedToken
from bytepair._internal.lazy import lazy as _lazy
from bytepair.tokenizer import Tokenizer, load, pretokenize
from bytepair.training import (
    NANOCHAT_SPECIAL_TOKENS,
    Counts,
    Parity,
    Superwords,
    TrainOptions,
    count,
    load_counts,
    train,
)

if _TYPE_CHECKING:
    from bytepair import (
        chat,
        compat,
        corpus,
        distributed,
        engines,
        evaluate,
        explore,
        plan,
        plot,
        reference,
        report,
        sample,
        shards,
    )
    from bytepair._internal.drawing import readable
    from bytepair.formats.published.available import list_vocabularies
    from bytepair.pipeline import run_pipeline
    from bytepair.tokenizer.asynchronous import AsyncTokenizer
    from bytepair.training.grow import extend, resume, verify_merges
    from bytepair.training.infer import infer_mixture

_MODULES = (
    "chat", "compat", "corpus", "distributed", "engines", "evaluate", "explore", "plan", "plot",
    "reference", "report", "sample", "shards",
)  # fmt: skip
_lazy(
    __name__,
    {name: f"bytepair.{name}" for name in _MODULES}
    | dict.fromkeys(("extend", "resume", "verify_merges"), "bytepair.training.grow")
    | {
        "AsyncTokenizer": "bytepair.tokenizer.asynchronous",
        "infer_mixture": "bytepair.training.infer",
        "list_vocabularies": "bytepair.formats.published.available",
        "readable": "bytepair._internal.drawing",
        "run_pipeline": "bytepair.pipeline",
    },
)

__version__ = _core.VERSION

__all__ = [
    "NANOCHAT_SPECIAL_TOKENS",
    "PATTERNS",
    "UNICODE_VERSION",
    "AddedToken",
    "AsyncTokenizer",
    "Counts",
    "Parity",
    "Superwords",
    "Tokenizer",
    "TrainOptions",
    "__version__",
    "chat",
    "compat",
    "corpus",
    "count",
    "distributed",
    "engines",
    "errors",
    "evaluate",
    "explore",
    "extend",
    "infer_mixture",
    "list_vocabularies",
    "load",
    "load_counts",
    "plan",
    "plot",
    "pretokenize",
    "readable",
    "reference",
    "report",
    "resume",
    "run_pipeline",
    "sample",
    "shards",
    "train",
    "verify_merges",
]
