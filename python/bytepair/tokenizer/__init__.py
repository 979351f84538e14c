"""The class `Tokenizer`: encoding, decoding, loading and saving.

    >>> import bytepair
    >>> tok = bytepair.train(["one text, another text"], vocab_size=270)
    >>> tok.decode(tok.encode("another one"))
    'another one'

The modules: `tokenizer` (the class), `loading` (`load`), `saving` (`save`, `export`), `batch`
(files, Arrow, iterables), `padding` (rows and tensors), `asynchronous` (coroutines), `session`
(growing texts), `cover` (prompts that end within a token), `generation` (prompts), `habits`
(names of other libraries), `special` (adding special tokens), `pruning` (removing tokens, with
`parents` and `renumber`), `origins` (the old ids of new tokens), `display` (output for terminals
and notebooks), `results` (results of several arrays), `callables` (what the core calls).
"""

from bytepair.tokenizer import callables
from bytepair.tokenizer.loading import load, pretokenize
from bytepair.tokenizer.origins import TokenParts
from bytepair.tokenizer.results import IdArrays, IdsWithOffsets
from bytepair.tokenizer.tokenizer import Pruned, Tokenizer

callables.register()

__all__ = ["IdArrays", "IdsWithOffsets", "Pruned", "TokenParts", "Tokenizer", "load", "pretokenize"]
