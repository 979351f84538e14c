"""Compatible wrappers: other libraries' names and behaviour, with bytepair inside.

    from bytepair.compat import tiktoken      # instead of: import tiktoken
    from bytepair.compat import rustbpe       # instead of: import rustbpe
    from bytepair.compat import nanochat      # instead of: from nanochat import tokenizer
    from bytepair.compat import autoresearch  # instead of: from prepare import Tokenizer
    from bytepair.compat import huggingface   # huggingface.use(): transformers runs on bytepair

Each wrapper only translates. Its docstring names where it differs from the original.
`to_tiktoken`, `to_huggingface` and `to_transformers` give a tokenizer as an object of these
libraries themselves.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.lazy import lazy as _lazy
from bytepair._internal.modules import call_instead

if _TYPE_CHECKING:
    from bytepair.compat import autoresearch, huggingface, nanochat, rustbpe, tiktoken
    from bytepair.compat.objects import to_huggingface, to_tiktoken, to_transformers

_MODULES = ("autoresearch", "huggingface", "nanochat", "rustbpe", "tiktoken")
_FUNCTIONS = ("to_huggingface", "to_tiktoken", "to_transformers")

__all__ = [
    "autoresearch", "huggingface", "nanochat", "rustbpe", "tiktoken", "to_huggingface",
    "to_tiktoken", "to_transformers",
]  # fmt: skip

_lazy(
    __name__,
    {name: f"bytepair.compat.{name}" for name in _MODULES}
    | dict.fromkeys(_FUNCTIONS, "bytepair.compat.objects"),
)

call_instead(__name__, "bytepair.compat.to_tiktoken(tok), or import one of its wrappers")
