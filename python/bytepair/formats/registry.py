"""The table of all formats: how a file is recognized, read and written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

from bytepair import _core
from bytepair.errors import (
    ArgumentError,
    BytepairError,
    FormatError,
    LossError,
    NotFoundError,
    PatternError,
    UnsupportedError,
    VocabularyError,
)
from bytepair.files.outputs import check_replaced, write_files
from bytepair.files.safe import read_file
from bytepair.formats import gpt2, llama2c, nanochat, tekken, tiktoken
from bytepair.formats.gguf import file as gguf
from bytepair.formats.huggingface import companions
from bytepair.formats.huggingface import folder as huggingface
from bytepair.formats.losses import losses as losses_of
from bytepair.formats.losses import lost_units
from bytepair.formats.names import Losses, WrittenFormat
from bytepair.formats.parts import LoadOptions, Parts
from bytepair.formats.published import encodings as published
from bytepair.formats.published import hub
from bytepair.formats.sentencepiece import model as sentencepiece

_Read: TypeAlias = Callable[[Path, LoadOptions], Parts]
_Files: TypeAlias = Callable[[_core.Tokenizer, Path], dict[Path, bytes]]
_Stale: TypeAlias = Callable[[_core.Tokenizer, Path], list[Path]]

#: The number of bytes at the beginning of a file that are inspected to detect its format.
HEAD_BYTES: Final = 1 << 16


@dataclass(frozen=True)
class Format:
    """One format: its reader, and the content of its files, if it is written.

    Attributes:
        read: makes parts of a path. It raises a `FormatError` if the file breaks a rule, or does
            not say what the caller does not say either; and an `UnsupportedError` if the file asks
            for what is not done exactly.
        files: the content of the files to write for a path. It raises a `LossError` for what no
            program could read.
        suffixes: how the names of its files end.
        stale: the files in a folder that writing removes.
    """

    read: _Read
    files: _Files | None
    suffixes: tuple[str, ...] = ()
    stale: _Stale = lambda _tokenizer, _path: []


FORMATS: Final[dict[str, Format]] = {
    "huggingface": Format(
        huggingface.read,
        huggingface.files,
        ("tokenizer.json",),
        companions.stale,
    ),
    "tiktoken": Format(tiktoken.read, tiktoken.files, (".tiktoken",)),
    "gpt2": Format(gpt2.read, gpt2.files, ("merges.txt", "vocab.json")),
    "nanochat": Format(nanochat.read, nanochat.files, (".pkl",)),
    "llama2c": Format(llama2c.read, llama2c.files),
    "qwen3": Format(
        partial(llama2c.read, layout=llama2c.QWEN3),
        partial(llama2c.files, layout=llama2c.QWEN3),
        (".tokenizer",),
    ),
    "gguf": Format(gguf.read, gguf.files, (".gguf",)),
    "tekken": Format(tekken.read, None, ("tekken.json",)),
    "sentencepiece": Format(sentencepiece.read, None),
}

#: The tokenizer files that a folder may contain, in order of preference.
_IN_FOLDERS: Final = {
    huggingface.FILE: "huggingface",
    tekken.FILE: "tekken",
    nanochat.PICKLE_NAME: "nanochat",
    "tokenizer.model": None,
}


# ---------------------------------------------------------------------------- reading


def read(
    source: Any, format: str | None, options: LoadOptions, revision: str | None = None
) -> Parts:
    """Read a tokenizer of any foreign format; see `bytepair.load`."""
    if not isinstance(source, str | os.PathLike):
        _check_ignored(
            type(source).__name__, "an object in memory", format=format, revision=revision
        )
        if tiktoken.is_encoding(source):
            return tiktoken.of_encoding(source)
        if huggingface.is_object(source):
            return huggingface.of_object(source, options)
        raise ArgumentError(
            "a path, a name, a tiktoken.Encoding or a tokenizer of tokenizers or transformers is "
            f"loaded, not {type(source).__name__}"
        )
    path = Path(source)
    if path.exists():
        _check_ignored(str(path), "a file or folder", revision=revision)
    else:
        if isinstance(source, str) and published.is_name(source):
            _check_ignored(source, "a published encoding", format=format, revision=revision)
            return published.of_name(source)
        if isinstance(source, str) and hub.is_name(source):
            path = hub.folder(source, revision)
        else:
            meant = published.near(str(source))
            way_out = f"did you mean {meant!r}, a published encoding?" if meant else (
                "train one and save it there, or name an encoding of tiktoken or a repository of "
                "the hub"
            )  # fmt: skip
            raise NotFoundError(f"there is no tokenizer at {path}", hint=way_out)
    return _read_path(path, format, options)


def _check_ignored(place: str, kind: str, **options: str | None) -> None:
    """Reject options that have no effect for such a source."""
    for name, value in options.items():
        if value is not None:
            raise FormatError(
                place,
                f"{name}={value!r} does not apply to this, which is {kind}",
                option=name,
                value=value,
            )


def _read_path(path: Path, format: str | None, options: LoadOptions) -> Parts:
    if format is None:
        path, format = recognize(path)
    try:
        return _format(format).read(path, options)
    except FormatError as error:
        error = error if error.place == str(path) else error.at(str(path))
        if options.lossy:  # a hint that was followed
            parts = [part for part in error.hint.split(", or ") if "lossy=True" not in part]
            error.hint = ", or ".join(parts)
        raise error from None


def _within(source: Any, error: BytepairError) -> FormatError:
    """An error in the values of a file, as one of the file."""
    return FormatError(
        str(source), error.message, option=error.option, value=error.value, hint=error.hint
    )


def model(parts: Parts, source: Any, options: LoadOptions) -> _core.Model:
    """Build a tokenizer; an error in its values is reported as one of its file."""
    try:
        return parts.model()
    except VocabularyError as error:
        raise _within(source, error) from None
    except PatternError as error:
        if parts.rules == options.pattern:
            raise
        raise _within(source, error) from None


def _format(name: str) -> Format:
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
    if head.startswith(gguf.MAGIC):
        return "gguf"
    if path.name.endswith(".pkl") or re.match(rb"\x80[\x02-\x05](c|\x95)", head):
        return "nanochat"
    if head.startswith(b"#version") or path.name in gpt2.NAMES:
        return "gpt2"
    if re.match(rb"\s*\{", head) or (re.match(rb"\s*\[", head) and b"\0" not in head):
        return "tekken" if tekken.is_one(head) else "huggingface"
    if tiktoken.is_rank_file(head):
        return "tiktoken"
    if sentencepiece.is_one(head):
        return "sentencepiece"
    data = read_file(path)
    layouts = [one.name for one in (llama2c.LLAMA2C, llama2c.QWEN3) if llama2c.is_one(data, one)]
    if len(layouts) == 1:
        return layouts[0]
    what = f"it may be any of {', '.join(layouts)}" if layouts else "it is of no format we know"
    raise FormatError(
        str(path), f"{what}", option="format", hint=f"name its format, one of {', '.join(FORMATS)}"
    )


# ---------------------------------------------------------------------------- writing


def write(
    tokenizer: _core.Tokenizer, path: Path, format: str, *, lossy: bool, overwrite: bool
) -> Path:
    """Write a tokenizer in a foreign format; see `Tokenizer.export`."""
    if format not in FORMATS:
        raise ArgumentError(f"there is no format {format!r}; these are written: {written()}")
    entry = FORMATS[format]
    if entry.files is None:
        raise ArgumentError(f"the format {format} is only read; these are written: {written()}")
    if reason := lost_units(tokenizer, format):
        raise UnsupportedError(
            format, f"{reason}", hint="write huggingface (tokenizer.json) or bytepair"
        )
    lost = losses(tokenizer, format, path)
    if lost and not lossy:
        raise LossError(format, lost, hint=lost.hint)
    files, read = entry.files(tokenizer, path), entry.read
    removed = entry.stale(tokenizer, path) if path.is_dir() else []
    if not overwrite:
        options = LoadOptions(
            tokenizer.pattern, tokenizer.special_tokens, allow_pickle=True, lossy=True
        )
        check_replaced(tokenizer, files, lambda: read(path, options).model(), removed=removed)
    write_files(path, files, removed=removed)
    return path


def written() -> str:
    """The names of the formats that are written, for messages."""
    return ", ".join(get_args(WrittenFormat))


def losses(tokenizer: _core.Tokenizer, format: str, path: Path | None = None) -> Losses:
    """What a format cannot represent of a tokenizer; see `Tokenizer.export_losses`.

    A path with the name of one file has no place for what the format writes into other files.
    """
    if format == "bytepair":
        return Losses()
    _format(format)
    return losses_of(tokenizer, format, path)


def of_path(path: Path) -> str:
    """The format according to the name of a file; an error if there is none."""
    if path.name.endswith(".bytepair"):
        return "bytepair"
    for name, format in FORMATS.items():
        if path.name.endswith(format.suffixes) and format.suffixes:
            return name
    raise ArgumentError(
        f"the name {path.name!r} does not say which format to write",
        option="format",
        hint=f"pass format=, one of {written()}",
    )
