"""Replaces `tiktoken.registry`, and has the same names."""

from bytepair.compat.tiktoken.encoding import (
    ENCODING_CONSTRUCTORS,
    ENCODINGS,
    get_encoding,
    list_encoding_names,
)

__all__ = ["ENCODINGS", "ENCODING_CONSTRUCTORS", "get_encoding", "list_encoding_names"]
