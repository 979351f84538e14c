"""GGUF: the keys `tokenizer.ggml.*` of a model file, or of a file with only these keys.

A file contains the name of a split rule of llama.cpp instead of a pattern, so a tokenizer can be
written exactly only if llama.cpp has a name for its pattern. Tokenizers with byte fallback (the
model `llama`) are pieces with scores, as in SentencePiece, and are only read.

A file is read as llama.cpp reads it. The keys of bytepair's own restore nothing that changes ids.
"""

from __future__ import annotations

import mmap
import struct
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair._core import to_bytes, to_characters
from bytepair.errors import FormatError, LossError, UnsupportedError
from bytepair.files.safe import MAX_VOCAB_SIZE, Cursor, read_file, typed
from bytepair.formats import pieces as scored
from bytepair.formats.gguf import llamacpp
from bytepair.formats.gguf import metadata as gguf_metadata
from bytepair.formats.gpt2 import check_merges, merge_lines, read_pair, read_vocabulary
from bytepair.formats.parts import GGUF_MAGIC, LoadOptions, build
from bytepair.formats.pieces import META, ScoredPiece
from bytepair.properties.roles import giving
from bytepair.properties.tokens import AddedToken, ordinary

VERSIONS: Final = (2, 3)

# The types of values.
_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
                   12: "d"}  # fmt: skip
_U32, _I32, _BOOL, _STRING, _ARRAY = 4, 5, 7, 8, 9

_TOKENS: Final = "tokenizer.ggml.tokens"
_RULE_KEY: Final = "bytepair.merge_rule"


def read(path: Path, options: LoadOptions) -> _core.Model:
    """Read the tokenizer of a GGUF file; all other content is ignored."""
    read_file(path, len(GGUF_MAGIC))  # a pipe would never open
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (ValueError, OSError) as error:  # an empty file, or not a file
            raise FormatError(str(path), f"it cannot be memory-mapped: {error}") from None
        with data:
            return _model(_values(Cursor(data)), options)


def _values(cursor: Cursor) -> dict[str, Any]:
    if cursor.take(4, "the magic number") != GGUF_MAGIC:
        raise FormatError("byte 0", "it does not start with GGUF")
    version = cursor.u32("the version")
    if version not in VERSIONS:
        raise UnsupportedError("byte 4", f"version {version} is not one of {VERSIONS}")
    cursor.u64("the number of tensors")
    count = cursor.u64("the number of keys")
    if count > cursor.left // 13:  # each has a length, a type and at least one byte
        raise FormatError("byte 16", f"{count} keys do not fit {cursor.left} bytes")
    values: dict[str, Any] = {}
    for _ in range(count):
        at = cursor.at
        key = _string(cursor)
        if key in values:
            raise FormatError(f"byte {at}", f"the key {key!r} is a duplicate")
        values[key] = _value(cursor, key.startswith(("tokenizer.", "bytepair.")))
    return values


def _value(cursor: Cursor, is_kept: bool) -> Any:
    """A value after its type; unneeded arrays of numbers are skipped."""
    at = cursor.at
    kind = cursor.u32("a kind")
    if kind == _STRING:
        return _string(cursor)
    if kind != _ARRAY:
        return cursor.number(_number(kind, at), "a number")
    at = cursor.at
    kind, count = cursor.u32("a kind"), cursor.u64("a count")
    if kind == _ARRAY:
        raise UnsupportedError(f"byte {at}", "arrays of arrays are not supported")
    if kind == _STRING:
        if count > cursor.left // 8:
            raise FormatError(f"byte {at}", f"{count} strings do not fit {cursor.left} bytes")
        return [_string(cursor) for _ in range(count)]
    layout = struct.Struct("<" + _number(kind, at))
    data = cursor.take(count * layout.size, "an array")
    return [value for (value,) in layout.iter_unpack(data)] if is_kept else None


def _string(cursor: Cursor) -> str:
    at = cursor.at
    data = cursor.take(cursor.u64("a length"), "a text")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FormatError(f"byte {at}", "a text is not UTF-8") from None


def _number(kind: int, at: int) -> str:
    if kind not in _NUMBERS:
        raise FormatError(f"byte {at}", f"{kind} is not a type of value")
    return _NUMBERS[kind]


def _model(values: dict[str, Any], options: LoadOptions) -> _core.Model:
    model = values.get("tokenizer.ggml.model")
    if model not in ("gpt2", "llama"):
        raise UnsupportedError(
            "tokenizer.ggml.model",
            f"{model!r} is neither gpt2 (byte-level BPE) nor llama (BPE with byte fallback)",
        )
    names = _list(values, _TOKENS, str)
    if len(names) > MAX_VOCAB_SIZE:
        raise FormatError(_TOKENS, f"there are more than {MAX_VOCAB_SIZE} tokens")
    kinds = llamacpp.kinds(names, _per_token(values, "token_type", int, names, scored.NORMAL))
    is_pieces = model == "llama"
    scores = _per_token(values, "scores", float, names) if is_pieces else [0.0] * len(names)
    entries = {
        id: ScoredPiece(name, scores[id], kinds[id])
        for id, name in enumerate(names)
        if not (kinds[id] == scored.UNUSED and name == _hole(id))
    }
    build_model = _model_of_pieces if is_pieces else _model_of_bytes
    tok = _core.Tokenizer(build_model(values, entries, options))
    return _core.with_notes(tok, gguf_metadata.read(values, names, tok.special_tokens))


def _model_of_bytes(
    values: dict[str, Any], entries: Mapping[int, ScoredPiece], options: LoadOptions
) -> _core.Model:
    """The tokenizer of a file whose tokens are written in the characters of GPT-2."""
    name = values.get("tokenizer.ggml.pre", "default")
    rule = llamacpp.rule(str(name))
    rules = rule.pattern if rule else options.pattern
    if rules is None:
        raise UnsupportedError(
            "tokenizer.ggml.pre",
            f"the split pattern {name!r} is not known exactly",
            option="pattern",
            hint="pass pattern= to choose one",
        )
    ids: dict[str, int] = {}
    added: dict[str, AddedToken] = {}
    for id, (text, _, kind) in entries.items():
        if text in ids or text in added:
            raise FormatError(f"{_TOKENS}[{id}]", f"{text!r} is a duplicate")
        if kind == scored.BYTE:
            raise UnsupportedError(f"{_TOKENS}[{id}]", "a byte token in a byte-level vocabulary")
        if kind in {scored.UNKNOWN, scored.CONTROL, scored.USER_DEFINED}:
            # llama.cpp finds user-defined tokens in every text
            is_special = kind != scored.USER_DEFINED
            added[text] = AddedToken(text, id, special=is_special)
        else:
            ids[text] = id
    tokens = read_vocabulary(ids, _TOKENS, options)
    place = "tokenizer.ggml.merges"
    lines = enumerate(_list(values, place, str))
    pairs = [read_pair(line.split(" "), f"{place}[{number}]") for number, line in lines]
    # Special tokens may be merged from texts as well, since llama.cpp asks for no type.
    merged = {token for left, right in pairs for token in (left, right, left + right)}
    for text, one in added.items():
        if (token := text.encode()) in merged and to_bytes(text) == token:
            tokens[token] = one.id
    merges = check_merges(pairs, tokens, place)
    ignore, is_ranks = bool(rule and rule.ignores_merges), values.get(_RULE_KEY) == "ranks"
    return build(
        tokens, rules, [*added.values()], merges, ignore_merges=ignore, may_be_ranks=is_ranks
    )


def _model_of_pieces(
    values: dict[str, Any], entries: Mapping[int, ScoredPiece], options: LoadOptions
) -> _core.Model:
    """The tokenizer of a file whose tokens are pieces with scores.

    llama.cpp encodes as `bytepair.formats.pieces` says, except that a space is put before each part
    of a text or nowhere, and nothing splits a text; and that neighbours merge if their joined text
    is a token of any type, which is refused. User-defined pieces have spaces instead of U+2581 in
    the file, and are found in the text as it is. A space is put behind them as well, so where
    spaces are put before text, they are read as special tokens.
    """
    for key in ("remove_extra_whitespaces", "precompiled_charsmap"):
        if values.get(f"tokenizer.ggml.{key}"):
            raise UnsupportedError(f"tokenizer.ggml.{key}", "texts are changed before encoding")
    if names := _merged_names(entries.values()):
        raise UnsupportedError(_TOKENS, f"llama.cpp would merge text into {names[0]!r}")
    form = "spaces always" if values.get("tokenizer.ggml.add_space_prefix", True) else "spaces"
    pieces = dict(entries)
    users = [(id, piece) for id, piece in entries.items() if piece.kind == scored.USER_DEFINED]
    for id, piece in users:
        name = piece.text.replace(" ", META)
        pieces[id] = (
            piece._replace(text=name) if form == "spaces" else piece._replace(kind=scored.CONTROL)
        )
    spaced = sorted(pieces[id].text for id, _ in users if META in pieces[id].text)
    if form == "spaces" and spaced and not options.lossy:
        raise UnsupportedError(
            _TOKENS,
            f"the user-defined {spaced[0]!r} is found where a text has U+2581 itself, unlike in "
            "llama.cpp",
            option="lossy",
            value=False,
            hint="pass lossy=True to find it there as well",
        )
    return scored.model(pieces, form, {}, _TOKENS, {id for id, _ in users})


def _merged_names(every: Collection[ScoredPiece]) -> list[str]:
    """The names of special tokens, bytes and unused ids that two symbols of a text may make."""
    texts = {piece.text for piece in every}
    # Ordinary pieces are no longer; longer names would be merged of names alone.
    lengths = {1, *(n for n in map(len, texts) if n <= scored.MOST_CHARS)}

    def is_merged(text: str) -> bool:
        cuts = (at for at in range(1, len(text)) if {at, len(text) - at} <= lengths)
        parts = ((text[:at], text[at:]) for at in cuts)
        return any(all(part in texts or len(part) == 1 for part in pair) for pair in parts)

    users = {scored.NORMAL, scored.USER_DEFINED}
    return [piece.text for piece in every if piece.kind not in users and is_merged(piece.text)]


def _per_token(
    values: dict[str, Any], name: str, kind: type, names: list[str], default: Any = None
) -> list[Any]:
    """An array with a value for each token; it may be missing if there is a default."""
    key = f"tokenizer.ggml.{name}"
    if default is not None and key not in values:
        return [default] * len(names)
    items = _list(values, key, kind)
    if len(items) != len(names):
        raise FormatError(key, f"there are {len(items)} values for {len(names)} tokens")
    return items


def _list(values: dict[str, Any], key: str, kind: type) -> list[Any]:
    items = typed(values.get(key), list, key)
    if all(type(value) is kind for value in items):
        return items
    return [typed(value, kind, f"{key}[{number}]") for number, value in enumerate(items)]


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What a GGUF file loses beside the values that the table of formats has."""
    lost = list(llamacpp.losses(tokenizer))
    kinds = {name: kind for name, _, kind in _added(tokenizer).values()}
    ranks = tokenizer.mergeable_ranks()
    known = (name for name in llamacpp.RETYPED if name not in kinds and name.encode() in ranks)
    kinds |= dict.fromkeys(known, scored.NORMAL)
    lost += llamacpp.lost_kinds(kinds) + llamacpp.lost_order(tokenizer.special_tokens)
    return lost + gguf_metadata.losses(tokenizer)


def hints(tokenizer: _core.Tokenizer) -> list[str]:
    """How a file loses less."""
    return [] if "eos_token" in gguf_metadata.role_ids(tokenizer) else [giving("eos")]


def _added(tokenizer: _core.Tokenizer) -> dict[int, ScoredPiece]:
    users = ordinary(tokenizer)
    return {
        id: ScoredPiece(name, 0.0, scored.USER_DEFINED if id in users else scored.CONTROL)
        for name, id in tokenizer.special_tokens.items()
    }


def files(tokenizer: _core.Tokenizer, path: Path) -> dict[Path, bytes]:
    """A file without tensors; llama.cpp rejects files in which two ids have the same text."""
    ranks, unused = tokenizer.mergeable_ranks(), ScoredPiece("", 0.0, scored.UNUSED)
    entries = {id: ScoredPiece(to_characters(t), 0.0, scored.NORMAL) for t, id in ranks.items()}
    entries |= _added(tokenizer)
    ids = range(tokenizer.vocab_size)
    names = [entries[id].text if id in entries else _hole(id) for id in ids]
    ((twin, times),) = Counter(names).most_common(1)
    if times > 1:
        raise LossError("gguf", [f"two ids with the same text {twin!r}"])
    values: dict[str, gguf_metadata.Value] = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": llamacpp.nearest(tokenizer).names[0],
        _TOKENS: names,
        "tokenizer.ggml.token_type": [entries.get(id, unused).kind for id in ids],
        "tokenizer.ggml.merges": merge_lines(tokenizer),
        "tokenizer.ggml.add_space_prefix": False,
        _RULE_KEY: tokenizer.merge_rule,
    }
    values |= gguf_metadata.keys(tokenizer)
    header = struct.pack("<4sIQQ", GGUF_MAGIC, 3, 0, len(values))
    parts = (part for key, value in values.items() for part in (_text(key), _typed(value)))
    return {path: b"".join([header, *parts])}


def _typed(value: gguf_metadata.Value) -> bytes | bytearray:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _U32, value)
    if all(isinstance(each, str) for each in value):  # also none: merges are texts for llama.cpp
        content = bytearray(struct.pack("<IIQ", _ARRAY, _STRING, len(value)))
        for each in value:
            content += _text(str(each))
        return content
    return struct.pack(f"<IIQ{len(value)}i", _ARRAY, _I32, len(value), *value)


def _hole(id: int) -> str:
    return f"[PAD{id}]"


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
