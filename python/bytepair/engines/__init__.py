"""Engines that run models: vocabularies for grammars, token healing, ids for `run.c`, plugins.

    >>> import bytepair
    >>> tok = bytepair.train(["hello hello"], vocab_size=269)
    >>> bytepair.engines.with_sentencepiece_ids(tok).special_tokens["<|bos|>"]
    1

`to_llguidance`, `to_xgrammar` and `to_outlines` give libraries that constrain generation the
vocabulary in their own form; `with_sentencepiece_ids` gives the tokens the ids that `run.c` of
llama2.c expects; `cover` heals prompts that end within a token. The modules `vllm` and `sglang` are
plugins that these engines find by themselves.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bytepair._internal.lazy import lazy as _lazy

if _TYPE_CHECKING:
    from bytepair.engines import sglang, vllm
    from bytepair.engines.grammar import to_llguidance, to_outlines, to_xgrammar
    from bytepair.engines.llama2c import with_sentencepiece_ids
    from bytepair.tokenizer.cover import cover

__all__ = [
    "cover", "sglang", "to_llguidance", "to_outlines", "to_xgrammar", "vllm",
    "with_sentencepiece_ids",
]  # fmt: skip

_lazy(
    __name__,
    {name: f"bytepair.engines.{name}" for name in ("sglang", "vllm")}
    | dict.fromkeys(("to_llguidance", "to_outlines", "to_xgrammar"), "bytepair.engines.grammar")
    | {
        "cover": "bytepair.tokenizer.cover",
        "with_sentencepiece_ids": "bytepair.engines.llama2c",
    },
)
