"""Byte-level BPE tokenizers: train, encode, decode, exactly and fast.

    >>> import bytepair
    >>> tok = bytepair.train(["one text", "another text", "and another"], vocab_size=270)
    >>> ids = tok.encode("another one")
    >>> tok.decode(ids)
    'another one'

The public API is exported here and from the modules `chat`, `compat`, `corpus`, `distributed`,
`engines`, `errors`, `evaluate`, `explore`, `plan`, `plot`, `reference`, `sample` and `shards`,
which are imported on first use.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair import _core, errors
from bytepair._core import PATTERNS, UNICODE_VERSION, AddedToken
from bytepair.errors import BytepairError
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
        sample,
        shards,
    )
    from bytepair._internal.drawing import readable
    from bytepair.formats.published.available import list_vocabularies
    from bytepair.tokenizer.pruning import prune
    from bytepair.tokenizer.vocabulary import parts_in
    from bytepair.training.grow import extend, resume, verify_merges
    from bytepair.training.infer import infer_mixture

__version__ = _core.VERSION

__all__ = [
    "NANOCHAT_SPECIAL_TOKENS", "PATTERNS", "UNICODE_VERSION", "AddedToken", "BytepairError",
    "Counts", "Parity", "Superwords", "Tokenizer", "TrainOptions", "__version__", "chat", "compat",
    "corpus", "count", "distributed", "engines", "errors", "evaluate", "explore", "extend",
    "infer_mixture", "list_vocabularies", "load", "load_counts", "parts_in", "plan", "plot",
    "pretokenize", "prune", "readable", "reference", "resume", "sample",
    "shards", "train", "verify_merges",
]  # fmt: skip

#: The modules, and where the functions stand that are imported on first use (PEP 562), since numpy
#: and others take longer to import than the rest of the package.
_LATER = {
    "chat": "", "compat": "", "corpus": "", "distributed": "", "engines": "", "evaluate": "",
    "explore": "", "plan": "", "plot": "", "reference": "", "sample": "",
    "shards": "",
    "extend": "training.grow", "resume": "training.grow", "verify_merges": "training.grow",
    "infer_mixture": "training.infer",
    "list_vocabularies": "formats.published.available",
    "parts_in": "tokenizer.vocabulary", "prune": "tokenizer.pruning",
    "readable": "_internal.drawing",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """A name that is imported on first use; the error for another one may say what to use."""
    if name not in _LATER:
        from bytepair.tokenizer.names import MODULE_NAMES

        hint = f"; use {MODULE_NAMES[name]}" if name in MODULE_NAMES else ""
        raise AttributeError(f"module 'bytepair' has no attribute {name!r}{hint}", name=name)
    home = _LATER[name]
    module = _import_module(f"bytepair.{home or name}")
    value = getattr(module, name) if home else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
