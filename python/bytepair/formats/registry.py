"""The table of all formats: how a file is recognized, read and written.

The module of a format is imported when a file of it is met: most programs meet one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, get_args

from bytepair import _core
from bytepair.errors import (
    ArgumentError,
    FormatError,
    LossError,
    NotAFolderError,
    NotFoundError,
    PatternError,
    UnsupportedError,
    VocabularyError,
)
from bytepair.files.safe import read_file
from bytepair.formats.parts import GGUF_MAGIC, LoadOptions, Losses, Parts, WrittenFormat
from bytepair.properties.entries import NATIVE

#: The number of bytes at the beginning of a file that are inspected to detect its format.
HEAD_BYTES: Final = 1 << 16


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes:
        module: the module below `bytepair.formats` with its functions. `read(path, options)` makes
            parts of a path; it raises a `FormatError` if the file breaks a rule, or does not say
            what the caller does not say either; and an `UnsupportedError` if the file asks for what
            is not done exactly. `files(tokenizer, path)` gives the content of the files to write;
            it raises a `LossError` for what no program could read.
        suffixes: how the names of its files end.
        layout: the layout, where one module has several formats.
    """

    module: str
    suffixes: tuple[str, ...] = ()
    layout: str | None = None

    def function(self, name: str) -> Any:
        """A function of the module."""
        module = import_module(f"bytepair.formats.{self.module}")
        function = getattr(module, name)
        return partial(function, layout=getattr(module, self.layout)) if self.layout else function


FORMATS: Final[dict[str, Format]] = {
    "huggingface": Format("huggingface.folder", ("tokenizer.json",)),
    "tiktoken": Format("tiktoken", (".tiktoken",)),
    "gpt2": Format("gpt2", ("merges.txt", "vocab.json")),
    "nanochat": Format("nanochat", (".pkl",)),
    "llama2c": Format("llama2c"),
    "qwen3": Format("llama2c", (".tokenizer",), layout="QWEN3"),
    "gguf": Format("gguf.file", (".gguf",)),
    "tekken": Format("tekken", ("tekken.json",)),
    "sentencepiece": Format("sentencepiece"),
}

#: The tokenizer files that a folder may contain, in order of preference.
_IN_FOLDERS: Final = {
    "tokenizer.json": "huggingface",
    "tekken.json": "tekken",
    "tokenizer.pkl": "nanochat",
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
        from bytepair.formats import tiktoken
        from bytepair.formats.huggingface import folder as huggingface

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
        from bytepair.formats import hub, published

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
    read: Callable[[Path, LoadOptions], Parts] = _format(format).function("read")
    try:
        return read(path, options)
    except FormatError as error:
        error = error if error.place == str(path) else error.at(str(path))
        if options.lossy:  # a hint that was followed
            parts = [part for part in error.hint.split(", or ") if "lossy=True" not in part]
            error.hint = ", or ".join(parts)
        raise error from None


def model(parts: Parts, source: Any, options: LoadOptions) -> _core.Model:
    """Build a tokenizer; an error in its values is reported as one of its file."""
    try:
        return parts.model()
    except (VocabularyError, PatternError) as error:
        if isinstance(error, PatternError) and parts.rules == options.pattern:
            raise
        raise FormatError(
            str(source), error.message, option=error.option, value=error.value, hint=error.hint
        ) from None


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
    from bytepair.formats import gpt2, tekken, tiktoken

    if head.startswith(b"#version") or path.name in gpt2.NAMES:
        return "gpt2"
    if re.match(rb"\s*\{", head) or (re.match(rb"\s*\[", head) and b"\0" not in head):
        return "tekken" if tekken.is_one(head) else "huggingface"
    if tiktoken.is_rank_file(head):
        return "tiktoken"
    return _of_binary(path, head)


def _of_binary(path: Path, head: bytes) -> str:
    """The format of a binary file without a first word of its own."""
    from bytepair.formats import llama2c, sentencepiece

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


def save(tokenizer: _core.Tokenizer, folder: Path, *, tables: bool, overwrite: bool) -> Path:
    """Write the native file into a folder; see `Tokenizer.save`."""
    from bytepair.files.outputs import check_output_folder

    try:
        check_output_folder(folder)
    except NotAFolderError as error:
        hint = ", or ".join(filter(None, [error.hint, "write the file with export"]))
        raise NotAFolderError(error.message, hint=hint) from None
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NATIVE
    try:
        _write(tokenizer, path, tables=tables, overwrite=overwrite)
    except BaseException:
        if is_new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()
        raise
    return path


def _write(tokenizer: _core.Tokenizer, path: Path, *, tables: bool = True, overwrite: bool) -> None:
    """Write the native file."""
    from bytepair.files.outputs import check_replaced, write_whole

    data = tokenizer.to_bytes(tables=tables)
    if not overwrite:
        check_replaced(tokenizer, {path: data}, lambda: _core.Model.map(path))
    write_whole(path, data)


def export(
    tokenizer: _core.Tokenizer, path: Path, format: str | None, *, lossy: bool, overwrite: bool
) -> Path:
    """Write the tokenizer in any format; see `Tokenizer.export`."""
    written_format = format or of_path(path)
    if written_format != "bytepair":
        return _write_other(tokenizer, path, written_format, lossy=lossy, overwrite=overwrite)
    if not path.name.endswith(".bytepair"):
        return save(tokenizer, path, tables=True, overwrite=overwrite)
    _write(tokenizer, path, overwrite=overwrite)
    return path


def _write_other(
    tokenizer: _core.Tokenizer, path: Path, format: str, *, lossy: bool, overwrite: bool
) -> Path:
    """Write a tokenizer in a foreign format."""
    if format not in FORMATS:
        raise ArgumentError(f"there is no format {format!r}; these are written: {written()}")
    if format not in get_args(WrittenFormat):
        raise ArgumentError(f"the format {format} is only read; these are written: {written()}")
    from bytepair.files.outputs import check_replaced, write_files
    from bytepair.formats.losses import lost_units

    if reason := lost_units(tokenizer, format):
        raise UnsupportedError(
            format, f"{reason}", hint="write huggingface (tokenizer.json) or bytepair"
        )
    lost = losses(tokenizer, format, path)
    if lost and not lossy:
        raise LossError(format, lost, hint=lost.hint)
    entry = FORMATS[format]
    files = entry.function("files")(tokenizer, path)
    removed: list[Path] = []
    if format == "huggingface" and path.is_dir():
        from bytepair.formats.huggingface import companions

        removed = companions.stale(tokenizer, path)
    if not overwrite:
        options = LoadOptions(
            tokenizer.pattern, tokenizer.special_tokens, allow_pickle=True, lossy=True
        )
        read = entry.function("read")
        check_replaced(tokenizer, files, lambda: read(path, options).model(), removed=removed)
    write_files(path, files, removed=removed)
    return path


def written() -> str:
    """The names of the formats that are written, for messages."""
    return ", ".join(get_args(WrittenFormat))


def losses(tokenizer: _core.Tokenizer, format: str, path: Path | None = None) -> Losses:
    """What a format cannot represent of a tokenizer; see `bytepair.compat.export_losses`.

    A path with the name of one file has no place for what the format writes into other files.
    """
    if format == "bytepair":
        return Losses()
    _format(format)
    from bytepair.formats.losses import losses as losses_of

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
