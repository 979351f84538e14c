"""Plugins that vLLM and SGLang find by themselves, by entry points of this package.

`vllm --tokenizer-mode bytepair`: the entry point `vllm.general_plugins` adds the mode in each
process of vLLM and changes nothing else. SGLang (`sglang.srt.plugins`) accepts no tokenizer
backends except its own. If the environment has `BYTEPAIR_TRANSFORMERS=1`, all tokenizers that
either loads through `transformers` run on bytepair. The ids are those of the original
(`bytepair.compat.huggingface`).
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any, Final

from bytepair.compat import huggingface

__all__ = ["MODE", "VllmTokenizer", "register_sglang", "register_vllm"]

log = logging.getLogger(__name__)

#: The name of the mode of vLLM.
MODE: Final = "bytepair"


def register_vllm() -> None:
    """Add the mode to the registries of vLLM, and use bytepair everywhere if that is asked for.

    A vLLM that has no such registries is left as it is, with a line in the log. vLLM calls it by
    itself, any number of times.

    Example:
        >>> from bytepair.engines import plugins
        >>> plugins.register_vllm()
    """
    if os.environ.get("BYTEPAIR_TRANSFORMERS") == "1":
        huggingface.use()
    try:
        tokenizers: Any = importlib.import_module("vllm.tokenizers")
        renderers: Any = importlib.import_module("vllm.renderers.registry")
        registries = tokenizers.TokenizerRegistry, renderers.RENDERER_REGISTRY
    except (ImportError, AttributeError) as error:
        log.warning(
            "there is no tokenizer mode %r, since this is not a vLLM with one: %s", MODE, error
        )
        return
    if MODE not in registries[0].tokenizers:
        registries[0].register(MODE, __name__, "VllmTokenizer")
        # Messages are rendered to prompts as for Hugging Face's tokenizers.
        registries[1].register(MODE, "vllm.renderers.hf", "HfRenderer")


class VllmTokenizer:
    """What the mode loads."""

    @classmethod
    def from_pretrained(cls, path_or_repo_id: Any, *args: Any, **options: Any) -> Any:
        """Load a tokenizer as vLLM's mode `hf` does, to run on bytepair where that is exact.

        From then on, all that this process loads through `transformers` does, because vLLM's
        stream of text must know both kinds. The arguments are those of
        `AutoTokenizer.from_pretrained`; so is the result, as vLLM wants it.
        """
        huggingface.use()
        theirs: Any = importlib.import_module("vllm.tokenizers.hf")
        return theirs.CachedHfTokenizer.from_pretrained(path_or_repo_id, *args, **options)


def register_sglang() -> None:
    """Have SGLang load tokenizers that run on bytepair, if the environment asks for it.

    SGLang calls it by itself, any number of times. To have it without the environment, call
    `bytepair.compat.huggingface.use()` before the engine is made; its processes are told by the
    environment alone.

    Example:
        >>> from bytepair.engines import plugins
        >>> plugins.register_sglang()
    """
    if os.environ.get("BYTEPAIR_TRANSFORMERS") == "1":
        huggingface.use()
