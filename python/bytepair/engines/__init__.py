"""Adapts tokenizers to engines: vocabularies for grammars, token healing, ids for `run.c`, plugins.

    >>> import bytepair
    >>> tok = bytepair.train(["hello hello"], vocab_size=269)
    >>> bytepair.engines.with_sentencepiece_ids(tok).special_tokens["<|bos|>"]
    1

`to_llguidance`, `to_xgrammar` and `to_outlines` convert the vocabulary for libraries that constrain
generation; `with_sentencepiece_ids` renumbers the tokens as `run.c` of llama2.c expects; `cover`
heals prompts that end within a token. The module `plugins` is for vLLM and SGLang, which find it by
themselves.
"""

from bytepair.engines import plugins
from bytepair.engines.vocabularies import (
    to_llguidance,
    to_outlines,
    to_xgrammar,
    with_sentencepiece_ids,
)
from bytepair.tokenizer.cover import cover

__all__ = [
    "cover", "plugins", "to_llguidance", "to_outlines", "to_xgrammar", "with_sentencepiece_ids",
]  # fmt: skip
