"""Whatever a tokenizer is kept in, in; the tokenizer out. And text split without a tokenizer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bytepair import _core
from bytepair.errors import FileFormatError, FormatError, PatternError, VocabularyError
from bytepair.formats.files import FILE_NAME, read_file
from bytepair.formats.parts import Asked, marks, splitter
from bytepair.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tiktoken
    import tokenizers

MAGIC = b"BYTEPAIR"


def load(
    source: str | os.PathLike[str] | tiktoken.Encoding | tokenizers.Tokenizer | Any,
    format: str | None = None,
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    allow_pickle: bool = False,
    lossy: bool = False,
    revision: str | None = None,
    check: bool = False,
    repeats: int | None = None,
) -> Tokenizer:
    """Load a tokenizer, whatever it is kept in.

    Our own file is mapped into memory, which takes less than a millisecond and no memory of its
    own. It must not be written to while it is in use, but may be replaced, as `save` does.

    A file of a stranger is read with care: it cannot run code, and it cannot take more memory than
    its size allows. What it asks for is done exactly, or it is an error that names the field.

    Args:
        source: a folder or a file: our own, `tokenizer.json`, a rank file, or another format of
            `docs/formats.md`; or a `tiktoken.Encoding`, or a tokenizer of `tokenizers` or
            `transformers`; or the name of an encoding of tiktoken, such as `cl100k_base`; or of a
            repository of the hub, such as `owner/name` (extra `hub`).
        format: which format the file has, if its content does not say it: `bytepair`, or a name of
            the table in `docs/formats.md`.
        pattern: the split pattern, for formats that do not hold one: a name of
            `bytepair.PATTERNS` or a regular expression.
        special_tokens: the special tokens and their ids, for formats that do not name them.
        allow_pickle: whether the values of an encoding may be taken out of nanochat's
            `tokenizer.pkl`; no code in it is run.
        lossy: whether to leave out what cannot be done exactly, and read the rest.
        revision: the commit, tag or branch of a repository of the hub.
        check: of our own format, whether to make all tables of the file anew and compare. Damage is
            found in any case; this finds a file that somebody made up, for which encoding would be
            wrong. It takes up to some tenths of a second.
        repeats: the limit in bytes of the cache of repeated text, which holds text that was encoded
            more than twice and its ids, so that prompts that begin alike cost little; 0 switches it
            off. None means 32 MiB.

    Raises:
        ValueError: if `repeats` is negative.
        FileNotFoundError: if there is no such file.
        FileFormatError: if the file is damaged or of another kind; the message says where.
        FormatError: if it contradicts the pattern, the special tokens or the format that are asked
            for, or is in no repository and there is a revision.
        UnsupportedError: if it asks for what cannot be done exactly.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(["hello"], vocab_size=265)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tok.save(folder)
        ...     bytepair.load(path) == tok
        True
        >>> bytepair.load(tok.to_tiktoken()) == tok
        True
    """
    if repeats is not None and repeats < 0:
        raise ValueError(f"repeats is {repeats}; it must be a number of bytes, 0 for none")
    regex = None if pattern is None else _core.pattern(pattern)
    asked = Asked(regex, special_tokens, allow_pickle, lossy)
    own = _own_file(source, format)
    if own is not None and revision is None:
        tok = _mapped(own, check=check)
    else:
        from bytepair.formats import registry

        parts = registry.read(source, format, asked, revision)
        tok = Tokenizer(registry.model(parts, source, asked))
    _check_asked(tok, asked, str(source))
    return tok if repeats is None else Tokenizer(_core.with_repeats(tok, repeats))


def _check_asked(tok: Tokenizer, asked: Asked, place: str) -> None:
    """What the caller says beside the file, the file must not contradict."""
    if asked.pattern is not None and marks(tok.pattern).rest != marks(asked.pattern).rest:
        raise FormatError(
            place,
            f"the split pattern is {tok.pattern!r}, and not {asked.pattern!r} as asked; "
            "leave out pattern=",
        )
    for name, id in (asked.special_tokens or {}).items():
        known = tok.special_tokens.get(name)
        if known != id:
            there = "is none" if known is None else f"has the id {known}"
            raise FormatError(
                place,
                f"the special token {name!r} {there}, and not {id} as asked; "
                "leave out special_tokens=",
            )


def _mapped(path: Path, *, check: bool) -> Tokenizer:
    """The tokenizer of our own file."""
    if path.exists() and not path.is_file():
        raise FileFormatError(f"{path}: this is not a regular file")
    try:
        if check:
            _core.Model.check(path.read_bytes())
        return Tokenizer(_core.Model.map(path))
    except (FileFormatError, VocabularyError, PatternError) as error:
        raise FileFormatError(f"{path}: {error}") from None


def _own_file(source: Any, format: str | None) -> Path | None:
    """The path of a file in our own format, or None if it is something else."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(source) / FILE_NAME if Path(source).is_dir() else Path(source)
    if format == "bytepair":
        return path
    if format is not None or not path.exists():
        return None
    return path if path.name == FILE_NAME or read_file(path, 8) == MAGIC else None


def pretokenize(text: str, pattern: str = "nanochat") -> list[str]:
    """Split a text into pretokens, without a tokenizer.

    Args:
        text: the text.
        pattern: the split pattern: a name of `bytepair.PATTERNS` or a regular expression.

    Returns:
        The pretokens, in order; their concatenation is the text (normalized, if the pattern says
        so).

    Raises:
        PatternError: if the pattern is neither a name nor a regular expression.
        SplitError: if the pattern gives up on the text.

    Example:
        >>> import bytepair
        >>> bytepair.pretokenize("hello world 2026", pattern="gpt4")
        ['hello', ' world', ' ', '202', '6']
    """
    return splitter(_core.pattern(pattern)).pretokenize(text)
