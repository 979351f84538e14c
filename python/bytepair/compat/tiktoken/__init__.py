"""A wrapper with the API of tiktoken: `from bytepair.compat import tiktoken`.

An `Encoding` has the public methods and properties of tiktoken's, but for `encode_with_unstable`
(`bytepair.engines.cover` is exact instead), with the same ids, the same rules for special tokens
and the same types of errors. One difference: text that the pattern does not match becomes pretokens
of its own, where tiktoken drops it; published patterns match all text.

It can replace tiktoken in an unchanged program, if nothing has imported tiktoken yet:

    sys.modules["tiktoken"] = bytepair.compat.tiktoken

Then `tiktoken.core` and `tiktoken.registry` belong to this wrapper. `tiktoken.load`, which
downloads and caches ranks, and `tiktoken.model`, which knows the encodings of models, are
tiktoken's own files; they are found because tiktoken's folder is in the path of this package. So
tiktoken must be installed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec

from bytepair.compat.tiktoken import core, registry
from bytepair.compat.tiktoken.encoding import (
    DisallowedSpecialTokenError,
    Encoding,
    get_encoding,
    list_encoding_names,
)

_original = find_spec("tiktoken")
if _original is None:
    raise ImportError(
        "bytepair.compat.tiktoken needs files of the package tiktoken; install it with: "
        "pip install 'bytepair[tiktoken]'",
        name="tiktoken",
    )
__path__ += list(_original.submodule_search_locations or ())

load, model = (import_module(f"{__name__}.{name}") for name in ("load", "model"))
encoding_for_model: Callable[[str], Encoding] = model.encoding_for_model
encoding_name_for_model: Callable[[str], str] = model.encoding_name_for_model

__version__ = version("tiktoken")

__all__ = [
    "DisallowedSpecialTokenError", "Encoding", "core", "encoding_for_model",
    "encoding_name_for_model", "get_encoding", "list_encoding_names", "load", "model", "registry",
]  # fmt: skip
