"""tiktoken: rank files, and `tiktoken.Encoding` objects.

A rank file has one token per line: its bytes in base64, a space, and its rank, which is also its
id. It contains no split pattern and no special tokens, so the caller must pass them; they are never
guessed. If the caller passes no special tokens, those of a `tokenizer_config.json` beside it are
read, because the rank files of Kimi and Qwen are published with one. If it names Kimi's code, the
pattern is the one in that code.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair.errors import warn
from bytepair.files.safe import id_of, parse_json, read_file, typed
from bytepair.formats.huggingface.companions import CONFIG, of_decoder
from bytepair.formats.parts import LoadOptions, build
from bytepair.properties.tokens import EMPTY, empty_token


def read(path: Path, options: LoadOptions) -> _core.Model:
    """Read a rank file, with the pattern and the special tokens passed by the caller."""
    tokens, notes = read_ranks(read_file(path))
    special = options.special_tokens
    config = path.parent / CONFIG
    is_kimi = (
        options.pattern is None and config.is_file() and b"tokenization_kimi" in read_file(config)
    )
    pattern = _core.PATTERNS["kimi"] if is_kimi else options.named_pattern("a rank file")
    if special is None:
        special = listed(config) if config.is_file() else {}
    return build(tokens, pattern, dict(special), notes=notes)


def listed(path: Path) -> dict[str, int]:
    """The special tokens that a `tokenizer_config.json` lists, or a file of names and ids."""
    name = path.name
    value = typed(parse_json(read_file(path), name), dict, name)
    if name != CONFIG and "added_tokens_decoder" not in value:
        return {typed(key, str, name): id_of(id, f"{name}: {key}") for key, id in value.items()}
    added = value.get("added_tokens_decoder", {})
    entries = typed(added, dict, f"{name}: added_tokens_decoder")
    return {token["content"]: token["id"] for _, token in of_decoder(entries, set())}


def read_ranks(data: bytes) -> tuple[dict[bytes, int], dict[str, str]]:
    """The tokens and ranks of the bytes of a rank file, and notes."""
    ranks, empty = _core.rank_file(data)
    return ranks, {} if empty is None else {EMPTY: str(empty)}


def files(tokenizer: _core.Tokenizer, path: Path) -> dict[Path, bytes]:
    """The content of a rank file, in order of rank."""
    ranks = {rank: base64.b64encode(token) for token, rank in tokenizer.mergeable_ranks().items()}
    if (empty := empty_token(tokenizer)) is not None:
        ranks = dict(sorted((ranks | {empty: b"="}).items()))
    return {path: b"".join(b"%b %d\n" % (token, rank) for rank, token in ranks.items())}


#: The classes of encodings by module and name: tiktoken's own, and the one of our wrapper.
ENCODING_CLASSES: Final = (
    ("tiktoken.core", "Encoding"),
    ("bytepair.compat.tiktoken", "Encoding"),
)


def is_encoding(value: Any) -> bool:
    """Whether this is a `tiktoken.Encoding`, or one of our wrapper."""
    return (type(value).__module__, type(value).__name__) in ENCODING_CLASSES


def values(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The arguments of an `Encoding` of a tokenizer."""
    return {
        "pat_str": tokenizer.pattern,
        "mergeable_ranks": tokenizer.mergeable_ranks(),
        "special_tokens": tokenizer.special_tokens,
    }


def of_encoding(encoding: Any) -> _core.Model:
    """Convert a `tiktoken.Encoding`.

    Where two special tokens have one id, as in o200k_harmony, the first keeps it and a warning
    names the other: an id stands for one name here.
    """
    special: dict[int, str] = {}
    for name, id in encoding._special_tokens.items():
        if special.setdefault(id, name) != name:
            warn(
                f"the encoding {encoding.name} has two special tokens with the id {id}; "
                f"{special[id]!r} is kept, {name!r} is not"
            )
    names = {name: id for id, name in special.items()}
    notes = {"name": str(encoding.name)}
    ranks = dict(encoding._mergeable_ranks)
    if (empty := ranks.pop(b"", None)) is not None:
        notes[EMPTY] = str(empty)
    return build(ranks, encoding._pat_str, names, notes=notes)
