"""The tokenizer: text to ids and back, files to a tokenizer and back.

    >>> import bytepair
    >>> tok = bytepair.train(["one text, another text"], vocab_size=270)
    >>> tok.decode(tok.encode("another one"))
    'another one'

The files: `tokenizer` (the class), `loading` (how one is loaded), `batch` (rows, files, Arrow and
iterables), `session` (a text that grows), `cover` (a text that ends within a token), `generation`
(what programs want while a model generates), `special` (special tokens that are added), `pruning`
(tokens that are left out), `origins` (the old ids of new tokens), `display` (pictures).
"""

from bytepair.tokenizer.loading import load, pretokenize
from bytepair.tokenizer.origins import TokenParts
from bytepair.tokenizer.tokenizer import Pruned, Tokenizer

__all__ = ["Pruned", "TokenParts", "Tokenizer", "load", "pretokenize"]
