"""`load`, which reads a tokenizer from any supported format, and `pretokenize`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bytepair import _core
from bytepair._internal.checks import check_choice, refuse
from bytepair.errors import (
    FileFormatError,
    FormatError,
    NotFoundError,
    PatternError,
    VocabularyError,
)
from bytepair.files.safe import read_file
from bytepair.formats import NATIVE
from bytepair.properties.tokens import splitter
from bytepair.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tiktoken
    import tokenizers

MAGIC = b"BYTEPAIR"


def load(
    source: str | os.PathLike[str] | tiktoken.Encoding | tokenizers.Tokenizer | Any,
    format: str | None = None,
    *,
    pattern: str | Sequence[str] | None = None,
    special_tokens: Mapping[str, int] | str | os.PathLike[str] | None = None,
    allow_pickle: bool = False,
    lossy: bool = False,
    revision: str | None = None,
    check: bool = False,
    memory_map: bool = True,
    uncovered: Literal["error", "drop"] | None = None,
) -> Tokenizer:
    """Load a tokenizer from a file, a folder, another library's object or a published name.

    A file in the native format is memory-mapped, which takes less than a millisecond and shares
    memory between processes. It may be replaced while in use, as `save` does, but it must not be
    modified: ids would be wrong, and if it is truncated, the system ends the process (SIGBUS).
    `memory_map=False` reads the file instead.

    Files are untrusted: reading one cannot run code, and memory is bounded by its size. A feature
    that cannot be reproduced exactly raises an error with the name of the field.

    Args:
        source: a folder or a file: in the native format, `tokenizer.json`, a rank file, or another
            format in `docs/formats`; a `tiktoken.Encoding`, or a tokenizer of `tokenizers` or
            `transformers`; the name of a tiktoken encoding, such as `cl100k_base`; or a repository
            on the Hugging Face Hub, such as `owner/name` (extra `hub`).
        format: the format of the file, if it cannot be detected: `bytepair`, or a name in the table
            of `docs/formats`.
        pattern: the split pattern, for formats that do not contain one: a name in
            `bytepair.PATTERNS`, or a regular expression.
        special_tokens: the special tokens and their ids, for formats that do not contain them; or
            the path of a `tokenizer_config.json`, or of another JSON file with names and ids.
        allow_pickle: whether to read nanochat's `tokenizer.pkl`; no code in it is executed.
        lossy: whether to ignore features that cannot be reproduced exactly.
        revision: the commit, tag or branch of a repository on the Hub.
        check: for the native format, whether to rebuild all tables and compare them with the file.
            Accidental damage is always detected; this detects a manipulated file, with which
            encoding would be wrong. It takes up to some tenths of a second.
        memory_map: for the native format, whether to map the file instead of reading it.
        uncovered: what happens to text that no token covers, such as the byte 0x0B for Falcon:
            "error", or "drop" to leave it out before merging, as Hugging Face's tokenizers does.
            It is part of the tokenizer: saved and compared. None means as in the file, which is
            "error" for files of other libraries.

    Raises:
        NotFoundError: if the file does not exist.
        FileFormatError: if the file is damaged or of an unknown format; the message contains the
            place.
        FormatError: if the file contradicts the given pattern, special tokens or format.
        UnsupportedError: if the file uses a feature that cannot be reproduced exactly.

    Example:
        >>> import bytepair, tempfile
        >>> tok = bytepair.train(["hello"], vocab_size=265)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tok.save(folder)
        ...     bytepair.load(path) == tok
        True
        >>> bytepair.load(bytepair.compat.to_tiktoken(tok)) == tok
        True
    """
    if isinstance(source, str) and not source:
        raise NotFoundError("the path is empty", hint="pass a file, a folder or a name")
    if source is None or isinstance(source, bytes | list | tuple | dict):
        raise refuse("source", source, "a path, a name or a tokenizer of another library")
    check_choice("uncovered", uncovered, (None, "error", "drop"))
    regex = None if pattern is None else _core.pattern(pattern)
    if isinstance(special_tokens, str | os.PathLike):
        from bytepair.formats.tiktoken import listed

        special_tokens = listed(Path(special_tokens))
    own = _own_file(source, format)
    if own is not None and revision is None:
        tok = _native(own, check=check, memory_map=memory_map)
    else:
        from bytepair.formats import registry
        from bytepair.formats.parts import LoadOptions

        options = LoadOptions(regex, special_tokens, allow_pickle, lossy)
        tok = Tokenizer(registry.read(source, format, options, revision))
    _check_options(tok, regex, special_tokens or {}, str(source))
    if uncovered and _core.text_rules(tok).drops_uncovered != (uncovered == "drop"):
        tok = Tokenizer(_core.with_uncovered_dropped(tok, uncovered == "drop"))
    return tok


def _check_options(
    tok: Tokenizer,
    pattern: str | tuple[str, ...] | None,
    special_tokens: Mapping[str, int],
    place: str,
) -> None:
    """Check that a file does not contradict the values that were passed."""
    if pattern is not None and tok.pattern != pattern:
        text = f"the split pattern is {tok.pattern!r}, not {pattern!r}"
        raise FormatError(place, text, option="pattern", value=pattern, hint="omit pattern=")
    for name, id in special_tokens.items():
        if (actual := tok.special_tokens.get(name)) != id:
            there = "does not exist" if actual is None else f"has the id {actual}"
            text, hint = f"the special token {name!r} {there}, not {id}", "omit special_tokens="
            raise FormatError(place, text, option="special_tokens", value=name, hint=hint)


def _native(path: Path, *, check: bool, memory_map: bool) -> Tokenizer:
    if path.exists() and not path.is_file():
        raise FileFormatError(f"{path}: this is not a regular file")
    try:
        if check:
            _core.Model.check(path.read_bytes())
        if not memory_map:
            return Tokenizer(_core.Model.from_bytes(path.read_bytes()))
        return Tokenizer(_core.Model.map(path))
    except (FileFormatError, VocabularyError, PatternError) as error:
        raise FileFormatError(f"{path}: {error.message}", hint=error.hint) from None


def _own_file(source: Any, format: str | None) -> Path | None:
    """The path of a file in the native format, or None for any other source."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(source) / NATIVE if Path(source).is_dir() else Path(source)
    if format == "bytepair":
        return path
    if format is not None or not path.exists():
        return None
    return path if path.name == NATIVE or read_file(path, 8) == MAGIC else None


def pretokenize(text: str, pattern: str | Sequence[str] | Tokenizer = "nanochat") -> list[str]:
    """Split a text into pretokens, by a pattern or as a tokenizer does.

    Args:
        text: the text.
        pattern: the split pattern: a name in `bytepair.PATTERNS`, a regular expression, or several,
            of which each splits the pieces of the previous one; or a tokenizer.

    Returns:
        The pretokens, in order; their concatenation is the text.

    Example:
        >>> import bytepair
        >>> bytepair.pretokenize("hello world 2026", pattern="gpt4")
        ['hello', ' world', ' ', '202', '6']
    """
    if isinstance(pattern, Tokenizer):
        return _core.pretokenize(pattern, text)
    return splitter(_core.pattern(pattern)).pretokenize(text)
