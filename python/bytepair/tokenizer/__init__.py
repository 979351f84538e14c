"""The tokenizer: text to ids and back, files to a tokenizer and back.

    >>> import bytepair
    >>> tok = bytepair.train(["one text, another text"], vocab_size=270)
    >>> tok.decode(tok.encode("another one"))
    'another one'

The files: `tokenizer` (the class, and how one is loaded), `batch` (files, Arrow and iterables).
"""

from bytepair.tokenizer.tokenizer import Tokenizer, load

__all__ = ["Tokenizer", "load"]
