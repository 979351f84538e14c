"""SGLang on bytepair: a plugin that has the tokenizers that it loads run on it.

SGLang finds `register` by the entry point `sglang.srt.plugins` of this package, in each of its
processes. It does something only if the environment has `BYTEPAIR_TRANSFORMERS=1`, because SGLang
knows no tokenizer backends beside its own. The ids are those of the original
(`bytepair.compat.huggingface`).
"""

from __future__ import annotations

import os

from bytepair.compat import huggingface

__all__ = ["register"]


def register() -> None:
    """Have SGLang load tokenizers that run on bytepair, if the environment asks for it.

    It may be called any number of times. To have it without the environment, call
    `bytepair.compat.huggingface.use()` before the engine is made; its processes are told by the
    environment alone.

    Example:
        >>> from bytepair.engines import sglang
        >>> sglang.register()  # SGLang calls it by itself
    """
    if os.environ.get("BYTEPAIR_TRANSFORMERS") == "1":
        huggingface.use()
