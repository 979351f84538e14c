"""Reads and writes tokenizers in file formats, one module per format."""

from typing import Final

#: The name of the native file in a folder.
NATIVE: Final = "tokenizer.bytepair"
