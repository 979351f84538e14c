"""Hugging Face: `tokenizer.json` and the files beside it.

The core reads and writes `tokenizer.json`; here are the folder around it and the objects of
`tokenizers` and `transformers`. `docs/formats/tokenizer-json.md` lists what each part of a file
becomes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair.errors import BytepairWarning, FormatError, PatternError, VocabularyError, warn
from bytepair.files.safe import read_file
from bytepair.formats.huggingface import companions
from bytepair.formats.huggingface.companions import CONFIG
from bytepair.formats.parts import LoadOptions, Parts
from bytepair.properties import metadata
from bytepair.properties.roles import Metadata
from bytepair.properties.tokens import flags, form

FILE: Final = "tokenizer.json"


def read(path: Path, options: LoadOptions) -> Parts:
    """Read a `tokenizer.json`, or a folder with one and the files that `transformers` wrote."""
    folder = path if path.is_dir() else path.parent
    file = path / FILE if path.is_dir() else path
    data = read_file(file)
    parts = parse(data, options)
    if file.name == FILE:
        files = companions.objects(folder)
        if not companions.is_complete(parts, files):
            parts = parse(companions.completed(data, files, lossy=options.lossy), options)
        stated = companions.read(folder, Metadata.of(parts.notes), parts.special_tokens, files)
        parts.notes.update(stated.to_notes())
        _warn_of_rebuilding(folder, files[CONFIG], parts)
    return _with_implied(parts)


def _warn_of_rebuilding(folder: Path, config: dict[str, Any], parts: Parts) -> None:
    """Warn if transformers 5 gives a file other ids than the file says.

    Its class for Llama takes the vocabulary and the merges of a `tokenizer.json`, and puts spaces
    before texts in its own way: Phi-3 gets other ids after each special token.
    """
    kind = str(config.get("tokenizer_class", "")).removesuffix("Fast")
    assert isinstance(parts.rules, _core.TextRules)
    spaces = form(parts.rules) or ""
    if kind != "LlamaTokenizer" or not spaces.startswith("spaces"):
        return
    prefix = " missing" if config.get("legacy") else " first"
    if spaces != ("spaces" if config.get("add_prefix_space") is False else f"spaces{prefix}"):
        warn(
            BytepairWarning(
                f"{folder}: these are the ids of {FILE}; transformers 5 puts spaces before texts "
                f"in another way, because {CONFIG} names the class {kind}",
                hint="bytepair.load(AutoTokenizer.from_pretrained(folder)) has its ids",
            )
        )


def _with_implied(parts: Parts) -> Parts:
    """The parts with the notes that their post-processor implies."""
    stated, around = Metadata.of(parts.notes), metadata.around(_core.Tokenizer(parts.model()))
    implied = metadata.with_implied(stated, parts.special_tokens, around)
    parts.notes.update(implied.to_notes())
    return parts


def parse(data: bytes, options: LoadOptions) -> Parts:
    """The values in the bytes of a `tokenizer.json`."""
    try:
        model = _core.Model.from_tokenizer_json(data, options.lossy)
    except (VocabularyError, PatternError) as error:
        raise FormatError(FILE, str(error)) from None
    read = _core.Tokenizer(model)
    return Parts(
        model, _core.text_rules(read), read.special_tokens, notes=read.notes, flags=flags(read)
    )


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What `tokenizer.json` cannot represent."""
    return _core.tokenizer_json_losses(tokenizer)


def text(tokenizer: _core.Tokenizer) -> str:
    """The text of a `tokenizer.json`; an entry of the vocabulary or a merge on each line."""
    return _core.tokenizer_json(metadata.with_written(tokenizer))


def is_alone(path: Path) -> bool:
    """Whether this is the path of a `tokenizer.json` alone, and not of a folder."""
    return path.suffix == ".json"


def files(tokenizer: _core.Tokenizer, path: Path) -> dict[Path, bytes]:
    """The content of a `tokenizer.json`, or of all files of a folder of `transformers`."""
    data = text(tokenizer).encode()
    if is_alone(path):
        return {path: data}
    return companions.files(tokenizer, path) | {path / FILE: data}


def is_object(value: Any) -> bool:
    """Whether this is a tokenizer of `tokenizers`, of our wrapper of it, or of `transformers`."""
    return hasattr(value, "backend_tokenizer") or hasattr(value, "to_str")


def of_object(value: Any, options: LoadOptions) -> Parts:
    """Read a tokenizer object through the `tokenizer.json` that it would write."""
    inner = getattr(value, "backend_tokenizer", value)
    parts = parse(inner.to_str().encode(), options)
    stated = companions.of_object(value, Metadata.of(parts.notes), parts.special_tokens)
    parts.notes.update(stated.to_notes())
    return _with_implied(parts)
