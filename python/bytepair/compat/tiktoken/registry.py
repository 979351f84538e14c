"""What tiktoken has in `tiktoken.registry`; as a stand-in this file has that name too."""

from bytepair.compat.tiktoken.encoding import (
    ENCODING_CONSTRUCTORS,
    ENCODINGS,
    get_encoding,
    list_encoding_names,
)

__all__ = ["ENCODINGS", "ENCODING_CONSTRUCTORS", "get_encoding", "list_encoding_names"]
