"""Compatible wrappers: other libraries' names and behaviour, with bytepair inside.

    from bytepair.compat import tiktoken      # instead of: import tiktoken
    from bytepair.compat import rustbpe       # instead of: import rustbpe
    from bytepair.compat import nanochat      # instead of: from nanochat import tokenizer
    from bytepair.compat import huggingface   # huggingface.use(): transformers runs on bytepair

Each wrapper only translates. Its docstring names where it differs from the original.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.lazy import lazy as _lazy

if _TYPE_CHECKING:
    from bytepair.compat import huggingface, nanochat, rustbpe, tiktoken

_MODULES = ("huggingface", "nanochat", "rustbpe", "tiktoken")

__all__ = ["huggingface", "nanochat", "rustbpe", "tiktoken"]

_lazy(__name__, {name: f"bytepair.compat.{name}" for name in _MODULES})
