"""A wrapper with the API of autoresearch's tokenizer.

Import it with `from bytepair.compat.autoresearch import Tokenizer`.

It has the names of the tokenizer in `prepare.py` of karpathy/autoresearch: 8,192 ids, the last four
of them `<|reserved_0|>` to `<|reserved_3|>`, of which the first begins documents. `train` and
`save`, which are functions of that script, are methods here.

`save` writes bytepair's own file and the `tokenizer.pkl` that autoresearch reads. A folder that has
only the pickle is read if `allow_pickle=True`; no code in it can run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from bytepair.compat import tiktoken
from bytepair.compat.nanochat import RustBPETokenizer, learnt
from bytepair.formats import nanochat
from bytepair.tokenizer import Tokenizer as _Tokenizer
from bytepair.tokenizer import load

__all__ = [
    "BOS_TOKEN", "SPECIAL_TOKENS", "TOKENIZER_DIR", "VOCAB_SIZE", "Tokenizer", "get_token_bytes",
]  # fmt: skip

VOCAB_SIZE: Final = 8192
SPECIAL_TOKENS: Final = [f"<|reserved_{number}|>" for number in range(4)]
BOS_TOKEN: Final = SPECIAL_TOKENS[0]
TOKENIZER_DIR: Final = str(Path("~/.cache/autoresearch/tokenizer").expanduser())


class Tokenizer:
    """autoresearch's tokenizer, with bytepair inside.

    Attributes:
        enc: the tokenizer with the API of tiktoken.
        tokenizer: the tokenizer itself.
        bos_token_id: the id that begins documents.

    Example:
        >>> from bytepair.compat.autoresearch import Tokenizer
        >>> tokenizer = Tokenizer.train(["hello hello"], 262)
        >>> tokenizer.decode(tokenizer.encode("hello", prepend=tokenizer.get_bos_token_id()))
        '<|reserved_0|>hello'
    """

    def __init__(self, enc: tiktoken.Encoding | _Tokenizer) -> None:
        """Take a tokenizer, or one with the API of tiktoken; it must have `<|reserved_0|>`."""
        self._inner = RustBPETokenizer(enc, BOS_TOKEN)
        self.enc, self.tokenizer = self._inner.enc, self._inner.tokenizer
        self.bos_token_id = self._inner.bos_token_id

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int = VOCAB_SIZE) -> Tokenizer:
        """Train on texts; `vocab_size` includes the special tokens."""
        return cls(learnt(texts, vocab_size, SPECIAL_TOKENS))

    @classmethod
    def from_directory(
        cls, tokenizer_dir: str | os.PathLike[str] = TOKENIZER_DIR, *, allow_pickle: bool = False
    ) -> Tokenizer:
        """Read a tokenizer from a folder, as `bytepair.load` does.

        Args:
            tokenizer_dir: the folder.
            allow_pickle: whether `tokenizer.pkl` may be read if bytepair's own file is not there.

        Raises:
            FileNotFoundError: if the folder holds no tokenizer.
            FileFormatError: if there is only a pickle and it is not allowed, or holds other things
                than an encoding.
        """
        return cls(load(Path(tokenizer_dir), allow_pickle=allow_pickle))

    def save(self, tokenizer_dir: str | os.PathLike[str] = TOKENIZER_DIR) -> None:
        """Write `tokenizer.bytepair`, and `tokenizer.pkl` and `token_bytes.pt` for autoresearch."""
        path = self.tokenizer.save(tokenizer_dir, overwrite=True)
        nanochat.write(self.tokenizer, path.parent)

    def get_vocab_size(self) -> int:
        """How many ids there are, special tokens included."""
        return self._inner.get_vocab_size()

    def get_bos_token_id(self) -> int:
        """The id that begins documents."""
        return self.bos_token_id

    def encode(self, text: Any, prepend: str | int | None = None, num_threads: int = 8) -> Any:
        """Encode a text into ids, or a list of texts into lists of ids; see `Tokenizer.encode`."""
        return self._inner.encode(text, prepend=prepend, num_threads=num_threads)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids; bytes that are not UTF-8 become U+FFFD."""
        return self.enc.decode(ids)


def get_token_bytes(device: str = "cpu") -> Any:
    """How many bytes each id stands for, 0 for special tokens, as a torch tensor of int32.

    A folder that autoresearch wrote counts the bytes of U+FFFD for tokens that are not UTF-8.
    """
    import torch

    path = Path(TOKENIZER_DIR) / nanochat.TOKEN_BYTES_NAME
    return torch.load(path, map_location=device, weights_only=True)
