"""A tokenizer mode of vLLM: `--tokenizer-mode bytepair`.

vLLM finds `register` by the entry point `vllm.general_plugins` of this package, in each of its
processes. It adds the mode and changes nothing else, unless the environment has
`BYTEPAIR_TRANSFORMERS=1`; then all tokenizers that vLLM loads through `transformers` run on
bytepair, in every mode. Either way the ids are those of the original, see
`bytepair.compat.huggingface`.
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any, Final

from bytepair.compat import huggingface

__all__ = ["MODE", "VllmTokenizer", "register"]

log = logging.getLogger(__name__)

#: The name of the mode.
MODE: Final = "bytepair"


def register() -> None:
    """Add the mode to the registries of vLLM, and use bytepair everywhere if that is asked for.

    A vLLM that has no such registries is left as it is, with a line in the log. It may be called
    any number of times.

    Example:
        >>> from bytepair.engines import vllm
        >>> vllm.register()  # vLLM calls it by itself
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
        stream of text must know both kinds.

        Args:
            path_or_repo_id: a folder, or a name on the hub.
            args: as `AutoTokenizer.from_pretrained` takes them.
            options: likewise.

        Returns:
            A tokenizer of `transformers`, as vLLM wants it.
        """
        huggingface.use()
        theirs: Any = importlib.import_module("vllm.tokenizers.hf")
        return theirs.CachedHfTokenizer.from_pretrained(path_or_repo_id, *args, **options)
