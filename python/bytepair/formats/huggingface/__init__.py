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
from bytepair.formats.parts import LoadOptions
from bytepair.properties import metadata

FILE: Final = "tokenizer.json"


def read(path: Path, options: LoadOptions) -> _core.Model:
    """Read a `tokenizer.json`, or a folder with one and the files that `transformers` wrote."""
    folder = path if path.is_dir() else path.parent
    file = path / FILE if path.is_dir() else path
    data = read_file(file)
    tok = _core.Tokenizer(parse(data, options))
    notes: dict[str, str] = {}
    if file.name == FILE:
        files = companions.objects(folder)
        if not companions.is_complete(tok, files):
            data = companions.completed(data, files, lossy=options.lossy)
            tok = _core.Tokenizer(parse(data, options))
        notes = companions.read(folder, tok.special_tokens, files)
        _warn_of_rebuilding(folder, files[CONFIG], tok)
    return _with_notes(tok, notes)


def _warn_of_rebuilding(folder: Path, config: dict[str, Any], tok: _core.Tokenizer) -> None:
    """Warn if transformers 5 gives a file other ids than the file says.

    Its class for Llama takes the vocabulary and the merges of a `tokenizer.json`, and puts spaces
    before texts in its own way: Phi-3 gets other ids after each special token.
    """
    kind = str(config.get("tokenizer_class", "")).removesuffix("Fast")
    spaces = ", ".join(_core.text_rules(tok).normalizer)
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


def _with_notes(tok: _core.Tokenizer, notes: dict[str, str]) -> _core.Model:
    """The tokenizer with what files state, and what its post-processor implies."""
    return _core.with_notes(tok, metadata.with_implied(tok.notes | notes, tok))


def parse(data: bytes, options: LoadOptions) -> _core.Model:
    """The tokenizer in the bytes of a `tokenizer.json`."""
    try:
        return _core.Model.from_tokenizer_json(data, options.lossy)
    except (VocabularyError, PatternError) as error:
        raise FormatError(FILE, str(error)) from None


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


def of_object(value: Any, options: LoadOptions) -> _core.Model:
    """Read a tokenizer object through the `tokenizer.json` that it would write."""
    data = getattr(value, "backend_tokenizer", value).to_str().encode()
    tok = _core.Tokenizer(parse(data, options))
    return _with_notes(tok, companions.of_object(value))
