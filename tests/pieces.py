"""Vocabularies of characters with byte fallback, made for tests: no library, no download.

`learnt` merges the most frequent pair of neighbours of some lines, as SentencePiece does, with
U+2581 for spaces. `document` writes the pieces as a `tokenizer.json`, `model` as the protocol
buffer of SentencePiece.
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from typing import Any

META = "\u2581"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
CONTROL = ["<unk>", "<s>", "</s>"]

LINES = [
    "the quick brown fox jumps over the lazy dog, the other dog doesn't",
    "def main(self, other):    return self.other  # other things",
    "le café était déjà fermé, le théâtre aussi: 1234 5678 2024",
    "中文字符没有空格，中文的字符。没有中文",
    "the theatre there, then them; other others mother father",
]


def learnt(count: int, *, across: bool = False) -> list[str]:
    """The texts of pieces in order: those of `count` merges, then the characters.

    With `across`, pieces may have spaces behind other characters.
    """
    lines = [line.replace(" ", META) for line in LINES]
    words = [[*line] for line in lines]
    if not across:
        words = [[*META, *word] for line in lines for word in line.split(META)]
    pieces: list[str] = []
    while len(pieces) < count:
        pairs = Counter(pair for word in words for pair in itertools.pairwise(word))
        if not pairs:
            break
        pair = max(pairs, key=lambda pair: (pairs[pair], pair))
        if "".join(pair) not in pieces:
            pieces.append("".join(pair))
        words = [merged(word, pair) for word in words]
    return [*pieces, *sorted({*META, *"".join(lines)})]


def merged(word: list[str], pair: tuple[str, str]) -> list[str]:
    """A word with each occurrence of a pair of neighbours joined to one part."""
    out: list[str] = []
    for part in word:
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return out


def document(pieces: list[str], **changes: Any) -> dict[str, Any]:
    """A `tokenizer.json` as that of Llama 2; `model` among the changes is merged into its model."""
    names = [*CONTROL, *BYTES, *pieces]
    vocabulary = set(pieces)
    merges = [
        f"{piece[:at]} {piece[at:]}"
        for piece in pieces
        for at in range(1, len(piece))
        if piece[:at] in vocabulary and piece[at:] in vocabulary
    ]
    model = {
        "type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True,
        "vocab": {name: id for id, name in enumerate(names)}, "merges": merges,
    }  # fmt: skip
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    added = [
        {"id": id, "content": name, **flags, "normalized": False, "special": True}
        for id, name in enumerate(CONTROL)
    ]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        **around("prepend"), "post_processor": None, **changes,
        "model": model | changes.get("model", {}),
    }  # fmt: skip


def around(kind: str) -> dict[str, Any]:
    """The components around a model: normalizer, pre-tokenizer, decoder.

    A kind is `prepend` (Llama 2), `replace` (Gemma), or `metaspace` with `-first`, `-always`,
    `-never` and perhaps `-split`.
    """
    space = {"String": " "}
    replace = {"type": "Replace", "pattern": space, "content": META}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    decoders = [
        {"type": "Replace", "pattern": {"String": META}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"},
        *([] if kind.startswith(("replace", "metaspace-never")) else [strip]),
    ]  # fmt: skip
    parts: dict[str, Any] = {
        "normalizer": None,
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
    }
    if kind == "prepend":
        both = [{"type": "Prepend", "prepend": META}, replace]
        return parts | {"normalizer": {"type": "Sequence", "normalizers": both}}
    if kind == "replace":
        split = {"type": "Split", "pattern": space, "invert": False}
        split["behavior"] = "MergedWithPrevious"
        return parts | {"normalizer": replace, "pre_tokenizer": split}
    _, scheme, *splits = kind.split("-")
    step = {"type": "Metaspace", "replacement": META, "prepend_scheme": scheme}
    return parts | {"pre_tokenizer": step | {"split": bool(splits)}}


# ---------------------------------------------------------------------------- protocol buffers


def number(value: int) -> bytes:
    """A number of variable length."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def field(key: int, value: int | bytes | float) -> bytes:
    """A field of a message."""
    if isinstance(value, bytes):
        return number(key << 3 | 2) + number(len(value)) + value
    if isinstance(value, float):
        return number(key << 3 | 5) + struct.pack("<f", value)
    return number(key << 3) + number(value)


def piece(text: str, score: float, kind: int = 1) -> bytes:
    """A piece of a model."""
    return field(1, field(1, text.encode()) + field(2, score) + field(3, kind))


def model(
    pieces: list[str],
    *,
    training: bytes = field(3, 2) + field(35, 1),
    normalization: bytes = field(1, b"identity") + field(3, 1) + field(4, 0),
    more: bytes = b"",
) -> bytes:
    """A `tokenizer.model`: control pieces, bytes, and the pieces with falling scores."""
    control = [piece("<unk>", 0.0, 2), piece("<s>", 0.0, 3), piece("</s>", 0.0, 3)]
    ordinary = [piece(text, -float(rank)) for rank, text in enumerate(pieces)]
    entries = [*control, *(piece(name, 0.0, 6) for name in BYTES), *ordinary]
    return b"".join(entries) + more + field(2, training) + field(3, normalization)


# ---------------------------------------------------------------------------- Gemma

#: What is one token wherever it stands: runs, tags, and two that may overlap.
RUNS = [c * length for c in ("\n", META, "\t") for length in range(1, 9) if c * length != META]
TAGS = ["<h1>", "</h1>", "<table>", "[multimodal]", "ab", "bcd"]
#: The control pieces of Gemma.
NAMES = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>"]


def gemma(normalization: bytes, pieces: list[str] | None = None) -> bytes:
    """A `tokenizer.model` of the shape of Gemma's."""
    pieces = gemma_pieces() if pieces is None else pieces
    entries = [piece(name, 0.0, 2 if name == "<unk>" else 3) for name in NAMES]
    entries += [piece(text, 0.0, 4) for text in (*RUNS, *TAGS)]
    entries += [piece(name, 0.0, 6) for name in BYTES]
    entries += [piece(text, -float(rank)) for rank, text in enumerate(pieces)]
    training = (
        field(3, 2) + field(35, 1) + field(40, 3) + field(41, 2) + field(42, 1) + field(43, 0)
    )
    return b"".join(entries) + field(2, training) + field(3, normalization)


def gemma_pieces() -> list[str]:
    """The ordinary pieces, one of which has a space behind a character."""
    markers = {*RUNS, *TAGS}
    pieces = [text for text in learnt(150) if text not in markers and META * 2 not in text]
    more = [c for c in "<>h1ta" if c not in pieces]
    return [*pieces[:-1], ">" + META, *more, "\x0b", pieces[-1]]


def gemma_document(*, tabs: bool = True) -> dict[str, Any]:
    """The `tokenizer.json` that `transformers` makes of `gemma`."""
    runs = [run for run in RUNS if tabs or "\t" not in run]
    pieces = gemma_pieces()
    names = [*NAMES, *runs, *TAGS, *BYTES, *pieces]
    ids = {name: id for id, name in enumerate(names)}
    scores = dict.fromkeys(names, 0.0) | {text: -float(at) for at, text in enumerate(pieces)}
    merges = [
        (name[:at], name[at:])
        for name in names
        for at in range(1, len(name))
        if name[:at] in ids and name[at:] in ids
    ]
    merges.sort(key=lambda m: (scores["".join(m)], len(m[0]), len(m[1])), reverse=True)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": ids[name], "content": name, **flags, "special": name in NAMES}
        for name in (*NAMES, *runs, *TAGS)
    ]
    data = document([], **around("replace"), added_tokens=added)
    data["model"] |= {"vocab": ids, "merges": [f"{left} {right}" for left, right in merges]}
    return data
