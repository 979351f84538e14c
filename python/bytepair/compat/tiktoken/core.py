"""Stands in for `tiktoken.core`: the names that tiktoken has there."""

from bytepair.compat.tiktoken.encoding import Encoding

__all__ = ["Encoding"]
