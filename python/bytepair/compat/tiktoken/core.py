"""What tiktoken has in `tiktoken.core`; as a stand-in this file is imported under that name too."""

from bytepair.compat.tiktoken.encoding import Encoding

__all__ = ["Encoding"]
