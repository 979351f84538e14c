"""Byte-level BPE tokenizers: train, encode, decode, exactly and fast.

    >>> import bytepair
    >>> tok = bytepair.train(["one text", "another text", "and another"], vocab_size=270)
    >>> ids = tok.encode("another one")
    >>> tok.decode(ids)
    'another one'

The public API is exported here and from the modules `chat`, `compat`, `corpus`, `distributed`,
`engines`, `errors`, `evaluate`, `explore`, `plan`, `plot`, `reference`, `report`, `sample` and
`shards`.
Modules are named by nouns and functions by verbs, so no function shadows a module.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair import _core, errors
from bytepair._core import PATTERNS, UNICODE_VERSION, AddedToken
from bytepair._internal.lazy import lazy as _lazy
from bytepair.errors import BytepairError
from bytepair.tokenizer import Pruned, Tokenizer, TokenParts, load, pretokenize
from bytepair.training import (
    NANOCHAT_SPECIAL_TOKENS,
    Counts,
    ExhaustedWarning,
    Parity,
    SkippedWarning,
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
    from bytepair.corpus.documents import read_documents
    from bytepair.corpus.download import download_dataset
    from bytepair.evaluate.comparison import compare
    from bytepair.formats.published.available import Vocabularies, list_vocabularies
    from bytepair.pipeline import run_pipeline
    from bytepair.tokenizer.asynchronous import AsyncTokenizer
    from bytepair.training.grow import Verdict, extend, resume, verify_merges
    from bytepair.training.infer import InferredMixture, infer_mixture

_MODULES = (
    "chat", "compat", "corpus", "distributed", "engines", "evaluate", "explore", "plan", "plot",
    "reference", "report", "sample", "shards",
)  # fmt: skip
_lazy(
    __name__,
    {name: f"bytepair.{name}" for name in _MODULES}
    | dict.fromkeys(("Verdict", "extend", "resume", "verify_merges"), "bytepair.training.grow")
    | dict.fromkeys(("Vocabularies", "list_vocabularies"), "bytepair.formats.published.available")
    | {
        "AsyncTokenizer": "bytepair.tokenizer.asynchronous",
        "InferredMixture": "bytepair.training.infer",
        "compare": "bytepair.evaluate.comparison",
        "download_dataset": "bytepair.corpus.download",
        "infer_mixture": "bytepair.training.infer",
        "readable": "bytepair._internal.drawing",
        "read_documents": "bytepair.corpus.documents",
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
    "BytepairError",
    "Counts",
    "ExhaustedWarning",
    "InferredMixture",
    "Parity",
    "Pruned",
    "SkippedWarning",
    "Superwords",
    "TokenParts",
    "Tokenizer",
    "TrainOptions",
    "Verdict",
    "Vocabularies",
    "__version__",
    "chat",
    "compare",
    "compat",
    "corpus",
    "count",
    "distributed",
    "download_dataset",
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
    "read_documents",
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
