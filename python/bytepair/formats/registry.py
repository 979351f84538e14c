"""Lists all formats and what their files can hold, and recognizes and reads files.

The module of a format is imported when it is first needed: most programs need one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from bytepair import _core
from bytepair.errors import (
    ArgumentError,
    FormatError,
    NotFoundError,
    PatternError,
    VocabularyError,
)
from bytepair.files.safe import read_file
from bytepair.formats.parts import GGUF_MAGIC, LoadOptions

#: The number of bytes at the beginning of a file that are inspected to detect its format.
HEAD_BYTES: Final = 1 << 16

#: How texts can be split: as the tokenizer asks; by one regular expression; by that of GPT-2; not
#: at all, since the file has no pattern; or the module of the format compares.
_Split: TypeAlias = Literal["all", "regex", "gpt2", "none", "own"]
#: Which added tokens a file has: all, that which ends a text in GPT-2, or none.
_Added: TypeAlias = Literal["all", "end", "none"]

#: What merging may start from.
BYTES: Final = "bytes"
CHARACTERS: Final = "characters, with byte fallback"
NAMES: Final = "symbols with names"


@dataclass(frozen=True)
class Format:
    """One format: where it is read and written, and what its files hold.

    Attributes:
        module: the module below `bytepair.formats` with its functions. `read(path, options)` reads
            a tokenizer; it raises a `FormatError` if the file breaks a rule, or does not say what
            the caller does not say either; and an `UnsupportedError` if the file asks for what is
            not done exactly. `files(tokenizer, path)` gives the content of the files to write; it
            raises a `LossError` for what no program could read. `losses(tokenizer)`, if it has one,
            says what else is lost than the values below tell, and `hints(tokenizer)` how less is
            lost.
        suffixes: how the names of its files end.
        layout: the layout, where one module has several formats.
        reader: the program that reads them.
        units: what merging may start from.
        split: how texts can be split.
        added: which added tokens a file has.
        holds: what else: flags of added tokens ("ordinary" means not special), a "normalizer",
            "merges" beside the rule of ranks, and "pretokens" that are tokens and never merged.
        characters: whether tokens are written in the characters of GPT-2, so that one name may
            stand for two of them.
        uncovered: what the reader does with a byte that no token covers; None if it does the same,
            or cannot have such a tokenizer.
    """

    module: str
    suffixes: tuple[str, ...] = ()
    layout: str | None = None
    reader: str = "the reader"
    units: tuple[str, ...] = (BYTES,)
    split: _Split = "regex"
    added: _Added = "all"
    holds: tuple[str, ...] = ("pretokens",)
    characters: bool = False
    uncovered: str | None = None

    def function(self, name: str) -> Any:
        """A function of the module; None if it has none of this name."""
        module = import_module(f"bytepair.formats.{self.module}")
        function = getattr(module, name, None)
        if function is None or self.layout is None:
            return function
        return partial(function, layout=getattr(module, self.layout))


#: What a reader does with a byte that no token covers, as a tokenizer may do itself.
DROPS: Final = "drops them"

FORMATS: Final[dict[str, Format]] = {
    "huggingface": Format(
        "huggingface", ("tokenizer.json",), reader="tokenizers", split="all",
        units=(BYTES, CHARACTERS, NAMES),
        holds=("lstrip", "rstrip", "single_word", "normalized", "ordinary", "normalizer", "merges",
               "pretokens"),
    ),
    "tiktoken": Format(
        "tiktoken", (".tiktoken",), reader="tiktoken", split="none", added="none",
        uncovered="panics",
    ),
    "gpt2": Format(
        "gpt2", ("merges.txt", "vocab.json"), split="gpt2", added="end", holds=("merges",),
        characters=True, uncovered=DROPS,
    ),
    "nanochat": Format("nanochat", (".pkl",), reader="tiktoken", uncovered="panics"),
    "llama2c": Format("llama2c", reader="the engines", split="none", added="none"),
    "qwen3": Format(
        "llama2c", (".tokenizer",), "QWEN3", reader="the engines", split="none", added="none"
    ),
    "gguf": Format(
        "gguf", (".gguf",), reader="llama.cpp", split="own",
        holds=("ordinary", "merges", "pretokens"), characters=True, uncovered=DROPS,
    ),
    "tekken": Format("tekken", ("tekken.json",)),
    "sentencepiece": Format("sentencepiece"),
}  # fmt: skip

#: The tokenizer files that a folder may contain, in order of preference.
_IN_FOLDERS: Final = {
    "tokenizer.json": "huggingface",
    "tekken.json": "tekken",
    "tokenizer.pkl": "nanochat",
    "tokenizer.model": None,
    "tiktoken.model": None,
}


def read(
    source: Any, format: str | None, options: LoadOptions, revision: str | None = None
) -> _core.Model:
    """Read a tokenizer of any foreign format; see `bytepair.load`."""
    kind, read = "an object in memory", partial(_of_object, source, options)
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    if path is not None and path.exists():
        kind, read = "a file or folder", partial(_read_path, path, format, options)
    elif path is not None:
        from bytepair.formats import published

        name = source if isinstance(source, str) else ""
        if re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", name):  # a repository
            return _read_path(published.folder(name, revision), format, options)
        if not published.is_name(name):
            hint = "train one, or name an encoding of tiktoken or a repository of the hub"
            raise NotFoundError(f"there is no tokenizer at {path}", hint=hint)
        kind, read = "a published encoding", partial(published.of_name, name)
    ignored = {"revision": revision} | ({} if kind == "a file or folder" else {"format": format})
    for option, value in ignored.items():
        if value is not None:
            place = type(source).__name__ if path is None else str(path)
            what = f"{option}={value!r} does not apply to this, which is {kind}"
            raise FormatError(place, what, option=option, value=value)
    try:
        return read()
    except (VocabularyError, PatternError) as error:  # its values are those of a file
        if isinstance(error, PatternError) and options.pattern is not None:
            raise
        raise FormatError(
            str(source), error.message, option=error.option, value=error.value, hint=error.hint
        ) from None


def _of_object(source: Any, options: LoadOptions) -> _core.Model:
    from bytepair.formats import huggingface, tiktoken

    if tiktoken.is_encoding(source):
        return tiktoken.of_encoding(source)
    if huggingface.is_object(source):
        return huggingface.of_object(source, options)
    raise ArgumentError(
        "a path, a name, a tiktoken.Encoding or a tokenizer of tokenizers or transformers is "
        f"loaded, not {type(source).__name__}"
    )


def _read_path(path: Path, format: str | None, options: LoadOptions) -> _core.Model:
    if format is None:
        path, format = recognize(path)
    read: Callable[[Path, LoadOptions], _core.Model] = format_of(format).function("read")
    try:
        return read(path, options)
    except FormatError as error:
        error = error if error.place == str(path) else error.at(str(path))
        if options.lossy:  # a hint that was followed
            parts = [part for part in error.hint.split(", or ") if "lossy=True" not in part]
            error.hint = ", or ".join(parts)
        raise error from None


def format_of(name: str) -> Format:
    """The format of a name; an error if there is none."""
    if name not in FORMATS:
        raise ArgumentError(
            f"there is no format {name!r}; there are bytepair, {', '.join(FORMATS)}"
        )
    return FORMATS[name]


def recognize(path: Path) -> tuple[Path, str]:
    """The relevant file, or the folder of several files, and its format."""
    if path.is_dir():
        for name, format in _IN_FOLDERS.items():
            if (path / name).is_file():
                return (path, format) if format else recognize(path / name)
        from bytepair.formats import gpt2

        if gpt2.find(path):
            return path, "gpt2"
        raise NotFoundError(
            f"there is no tokenizer at {path}, no file in it is of a known format",
            hint="train one and save it there",
        )
    return path, _of_content(path, read_file(path, HEAD_BYTES))


def _of_content(path: Path, head: bytes) -> str:
    if reason := _core.mistaken(head):
        text, hint = reason
        raise FormatError(str(path), text, hint=hint)
    if head.startswith(GGUF_MAGIC):
        return "gguf"
    if path.name.endswith(".pkl") or re.match(rb"\x80[\x02-\x05](c|\x95)", head):
        return "nanochat"
    from bytepair.formats import gpt2, tekken

    if head.startswith(b"#version") or path.name in gpt2.NAMES:
        return "gpt2"
    if re.match(rb"\s*\{", head) or (re.match(rb"\s*\[", head) and b"\0" not in head):
        return "tekken" if tekken.is_one(head) else "huggingface"
    if _core.is_rank_file(head):
        return "tiktoken"
    return _of_binary(path, head)


def _of_binary(path: Path, head: bytes) -> str:
    """The format of a binary file without a first word of its own."""
    from bytepair.formats import llama2c, sentencepiece

    if sentencepiece.is_one(head):
        return "sentencepiece"
    data = read_file(path)
    headers = {"llama2c": llama2c.LLAMA2C, "qwen3": llama2c.QWEN3}
    layouts = [name for name, header in headers.items() if llama2c.is_one(data, header)]
    if len(layouts) == 1:
        return layouts[0]
    what = f"it may be any of {', '.join(layouts)}" if layouts else "it is of no format we know"
    raise FormatError(
        str(path), f"{what}", option="format", hint=f"name its format, one of {', '.join(FORMATS)}"
    )
