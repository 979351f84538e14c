"""Compatible wrappers: other libraries' names and behaviour, with bytepair inside.

    from bytepair.compat import tiktoken      # instead of: import tiktoken
    from bytepair.compat import rustbpe       # instead of: import rustbpe
    from bytepair.compat import nanochat      # instead of: from nanochat import tokenizer
    from bytepair.compat import huggingface   # huggingface.use(): transformers runs on bytepair

Each wrapper only translates. Its docstring names where it differs from the original.

Functions make what other libraries accept: `to_tiktoken`, `to_huggingface`, `to_transformers`,
`encode_arrow` (a column of ids for a column of texts), `pad` (rows of equal width); and
`export_losses` lists what one of their formats cannot hold.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.extras import lazy as _lazy

if _TYPE_CHECKING:
    from bytepair.compat import huggingface, nanochat, rustbpe, tiktoken
    from bytepair.compat.conversions import (
        FORMATS,
        encode_arrow,
        export_losses,
        pad,
        to_huggingface,
        to_tiktoken,
        to_transformers,
    )

__all__ = [
    "FORMATS", "encode_arrow", "export_losses", "huggingface", "nanochat", "pad",
    "rustbpe", "tiktoken", "to_huggingface", "to_tiktoken", "to_transformers",
]  # fmt: skip

_lazy(__name__, ["conversions", "huggingface", "nanochat", "rustbpe", "tiktoken"])
