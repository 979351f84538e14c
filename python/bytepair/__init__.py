"""Byte-level BPE tokenizers: train, encode, decode, exactly and fast.

    >>> import bytepair
    >>> tok = bytepair.train(["one text", "another text", "and another"], vocab_size=270)
    >>> ids = tok.encode("another one")
    >>> tok.decode(ids)
    'another one'

The public API is exported here and from the modules `chat`, `compat`, `corpus`, `distributed`,
`engines`, `errors`, `evaluate`, `explore`, `plan`, `plot`, `reference`, `sample`, `shards`,
`tokenizer` and `training`. All names are imported on first use.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from bytepair import (
        chat,
        compat,
        corpus,
        distributed,
        engines,
        errors,
        evaluate,
        explore,
        plan,
        plot,
        reference,
        sample,
        shards,
        tokenizer,
        training,
    )
    from bytepair._core import PATTERNS
    from bytepair.corpus.source import Reading
    from bytepair.errors import BytepairError
    from bytepair.properties.tokens import AddedToken
    from bytepair.tokenizer import Tokenizer, load, pretokenize
    from bytepair.tokenizer.pruning import prune
    from bytepair.training import Counts, TrainOptions, count, extend, train

__version__: str

__all__ = [
    "PATTERNS", "AddedToken", "BytepairError", "Counts", "Reading", "Tokenizer", "TrainOptions",
    "__version__", "chat", "compat", "corpus", "count", "distributed", "engines", "errors",
    "evaluate", "explore", "extend", "load", "plan", "plot", "pretokenize", "prune", "reference",
    "sample", "shards", "tokenizer", "train", "training",
]  # fmt: skip

#: Where the names stand (PEP 562): a signal during the import of the rest finds its handler, and
#: who needs one module does not wait for all.
_HOMES = {
    "_core": ("PATTERNS",),
    "corpus.source": ("Reading",),
    "errors": ("BytepairError",),
    "properties.tokens": ("AddedToken",),
    "tokenizer": ("Tokenizer", "load", "pretokenize"),
    "tokenizer.pruning": ("prune",),
    "training": ("Counts", "TrainOptions", "count", "extend", "train"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """A public name, imported on first use; the error for another one may say what to use."""
    value: object
    if name == "__version__":
        value = _import_module("bytepair._core").VERSION
    elif name in _HOME_OF:
        value = getattr(_import_module(f"bytepair.{_HOME_OF[name]}"), name)
    elif name in __all__:
        value = _import_module(f"bytepair.{name}")
    else:
        text = f"module 'bytepair' has no attribute {name!r}{_hint(name)}"
        raise AttributeError(text, name=name)
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    """What to use instead of a name that is not here."""
    from bytepair._internal.hints import MODULE_NAMES

    if name in MODULE_NAMES:
        return f"; use {MODULE_NAMES[name]}"
    rooms = ("training", "tokenizer", "chat", "corpus", "evaluate", "engines", "shards")
    for room in () if name.startswith("_") else rooms:
        if name in _import_module(f"bytepair.{room}").__all__:
            return f"; use bytepair.{room}.{name}"
    return ""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
