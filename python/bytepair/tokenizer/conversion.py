"""The methods of `Tokenizer` that convert it for another library, which is imported when called.

A tokenizer goes in, one of tiktoken, tokenizers or transformers comes out. Each is made from what
the writer of its format gives, so an object and a file cannot differ.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bytepair import _core
from bytepair._internal.arguments import checked
from bytepair._internal.later import Later
from bytepair.errors import LossError
from bytepair.formats.huggingface.folder import losses, text, write
from bytepair.formats.tiktoken import values
from bytepair.properties.entries import GENERATION

if TYPE_CHECKING:
    import tiktoken
    import tokenizers
    import transformers
else:
    transformers = Later("transformers")
    tiktoken = Later("tiktoken")
    tokenizers = Later("tokenizers")


class ConversionMethods(_core.Tokenizer):
    """The methods of `Tokenizer` that convert it for another library."""

    __slots__ = ()

    @checked
    def to_tiktoken(self, name: str = "bytepair") -> tiktoken.Encoding:
        """Convert the tokenizer to a `tiktoken.Encoding`.

        Its ids are the same for every text, provided that the split pattern matches all text, as
        all named patterns do (tiktoken drops text outside of matches), and the merge rule is
        "ranks".

        Args:
            name: the name of the encoding.

        Raises:
            ValueError: if the merge rule is not "ranks", or the pattern normalizes text: tiktoken
                supports neither.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=270)
            >>> tok.to_tiktoken().encode_ordinary("hello") == tok.encode("hello")
            True
        """
        from bytepair._internal.extras import tiktoken

        return tiktoken.Encoding(name, **values(self, exact=True))

    @checked
    def to_huggingface(self, *, special: bool = True) -> tokenizers.Tokenizer:
        """Convert to a Hugging Face `tokenizers.Tokenizer`, which `transformers` can wrap.

        Its ids are the same; `docs/formats/tokenizer-json.md` says what is proved. Character
        classes are those of the Unicode version that `tokenizers` was built with.

        Args:
            special: whether special tokens in texts become their ids, as is usual in `tokenizers`;
                if not, they are text, as in `Tokenizer.encode`.

        Raises:
            ImportError: if the package `tokenizers` is not installed.
            LossError: if a special token equals an ordinary token.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> tok.to_huggingface().encode("hello").ids == tok.encode("hello")
            True
        """
        from bytepair._internal.extras import tokenizers

        if lost := losses(self):
            raise LossError("huggingface", lost)
        exported = tokenizers.Tokenizer.from_str(text(self))
        exported.encode_special_tokens = not special
        return exported

    @checked
    def to_transformers(self) -> transformers.PreTrainedTokenizerFast:
        """Convert to a fast tokenizer of `transformers`, with roles, chat template and stops.

        It equals `AutoTokenizer.from_pretrained` of the folder that `Tokenizer.export` writes. As
        always in `transformers`, special tokens in texts become their ids.

        Returns:
            The tokenizer; its attribute `generation_config` says where generation stops, for
            `model.generation_config`.

        Raises:
            ImportError: if the package `transformers` is not installed.
            LossError: if a special token equals an ordinary token.

        Example:
            >>> import bytepair
            >>> tok = bytepair.train(["hello hello"], vocab_size=269)
            >>> theirs = tok.to_transformers()
            >>> theirs("hello").input_ids == tok.encode("hello"), theirs.eos_token
            (True, '<|assistant_end|>')
        """
        from bytepair._internal.extras import transformers

        if lost := losses(self):
            raise LossError("huggingface", lost)
        with TemporaryDirectory() as name:
            folder = Path(name)
            write(self, folder)
            fast = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
            stops = (folder / GENERATION).is_file()
            kind = transformers.GenerationConfig
            fast.generation_config = kind.from_pretrained(folder) if stops else kind()
        fast.name_or_path = self.notes.get("name", "")
        fast.init_kwargs["name_or_path"] = fast.name_or_path
        return fast
