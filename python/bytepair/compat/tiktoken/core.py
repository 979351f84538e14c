"""Replaces `tiktoken.core`, and has the same names."""

from bytepair.compat.tiktoken.encoding import Encoding

__all__ = ["Encoding"]
