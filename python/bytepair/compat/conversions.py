"""A tokenizer as the object of another library, and what a format of another library loses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from bytepair import _core
from bytepair.formats.parts import Losses, WrittenFormat

if TYPE_CHECKING:
    import tiktoken
    import tokenizers
    import transformers


#: The formats that `Tokenizer.export` writes.
FORMATS: Final = get_args(WrittenFormat)


def to_tiktoken(tokenizer: _core.Tokenizer, name: str = "bytepair") -> tiktoken.Encoding:
    """Convert the tokenizer to a `tiktoken.Encoding`.

    Its ids are the same for every text.

    Args:
        tokenizer: the tokenizer.
        name: the name of the encoding.

    Raises:
        ValueError: if the merge rule is not "ranks", the pattern does not match all text, or
            texts are normalized: tiktoken supports none of these.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=270)
        >>> bytepair.compat.to_tiktoken(tok).encode_ordinary("hello") == tok.encode("hello")
        True
    """
    from bytepair._internal.extras import tiktoken
    from bytepair.formats.writing import encoding_values

    return tiktoken.Encoding(name, **encoding_values(tokenizer))


def to_huggingface(tokenizer: _core.Tokenizer, *, special: bool = True) -> tokenizers.Tokenizer:
    """Convert to a Hugging Face `tokenizers.Tokenizer`, which `transformers` can wrap.

    Its ids are the same; `docs/formats/tokenizer-json.md` says what is proved. Character
    classes are those of the Unicode version that `tokenizers` was built with.

    Args:
        tokenizer: the tokenizer.
        special: whether special tokens in texts become their ids, as is usual in `tokenizers`;
            if not, they are text, as in `Tokenizer.encode`.

    Raises:
        ImportError: if the package `tokenizers` is not installed.
        LossError: if a special token equals an ordinary token.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> bytepair.compat.to_huggingface(tok).encode("hello").ids == tok.encode("hello")
        True
    """
    from bytepair.formats import huggingface

    return huggingface.of_tokenizers(tokenizer, special=special)


def to_transformers(tokenizer: _core.Tokenizer) -> transformers.PreTrainedTokenizerFast:
    """Convert to a fast tokenizer of `transformers`, with roles, chat template and stops.

    It equals `AutoTokenizer.from_pretrained` of the folder that `Tokenizer.export` writes. As
    always in `transformers`, special tokens in texts become their ids.

    Args:
        tokenizer: the tokenizer.

    Returns:
        The tokenizer; its attribute `generation_config` says where generation stops, for
        `model.generation_config`.

    Raises:
        ImportError: if the package `transformers` is not installed.
        LossError: if a special token equals an ordinary token.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> theirs = bytepair.compat.to_transformers(tok)
        >>> theirs("hello").input_ids == tok.encode("hello"), theirs.eos_token
        (True, '<|assistant_end|>')
    """
    from bytepair.formats import huggingface

    return huggingface.of_transformers(tokenizer)


def export_losses(
    tokenizer: _core.Tokenizer,
    format: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
) -> Losses:
    """List what would be lost by writing the tokenizer in a format.

    Args:
        tokenizer: the tokenizer.
        format: a name in the table of `docs/formats`, such as `gguf`; or a path with a known
            file name, as in `export`.
        path: the file or folder to write, if `format` is a name: a `tokenizer.json` alone has
            no roles and no chat template, a folder has. None means a folder.

    Returns:
        A description of everything that the format cannot represent, or that programs which
        read it handle differently; empty if nothing is lost. Its attribute `hint` says how
        less is lost.

    Raises:
        ValueError: if the format does not exist.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello"], vocab_size=269)
        >>> bytepair.compat.export_losses(tok, "tiktoken")
        ['the split pattern', 'the special tokens']
    """
    from bytepair.formats import writing

    if isinstance(format, os.PathLike):
        format, path = writing.of_path(Path(format)), format
    return writing.losses(tokenizer, format, None if path is None else Path(path))
