"""Random `tokenizer.json` documents over all forms of BPE, and texts that are hard for them.

`document(rng)` gives a small document: a vocabulary of bytes, of characters with byte fallback, or
of characters alone, some merges, and any combination of normalizers, pre-tokenizers, added tokens,
post-processors and decoders. `text(rng, document)` gives a text in which these matter. Everything
follows from the random number generator.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

from reference_rules import normalize, plain

Document: TypeAlias = dict[str, Any]

META = "\u2581"
#: The characters of texts and of vocabularies of characters.
LETTERS = "abcAB"
OTHERS = [
    "é",
    "e",
    "\u0301",
    "\u0327",
    "中",
    "ß",
    "İ",
    "ﬁ",
    "½",
    "²",
    "1",
    "2",
    "٣",
    "😀",
    "\ufeff",
]
MARKS = [".", ",", "!", "'", "-", "_", "«", "|", "<", ">", "$", "+"]
SPACES = [" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", META]
PIECES = [
    *LETTERS,
    *OTHERS,
    *MARKS,
    *SPACES,
    "ab",
    "abc",
    "'s",
    " the",
    "123",
    "<s>",
    "</w>",
    "##a",
]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SPLITS = [
    "Split", "Split", "Split", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit",
    "BertPreTokenizer", "CharDelimiterSplit", "UnicodeScripts", "FixedLength",
]  # fmt: skip
#: Expressions that Oniguruma and other engines read alike.
EXPRESSIONS = [GPT2, r"\s+", r"\p{N}{1,3}", r"[^\s]+|\s+", r"\p{L}+", " ?[a-z]+", r"[\r\n]", r"\d"]


def characters() -> list[str]:
    """GPT-2's character for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def maybe(rng: random.Random, chance: float, make: Callable[[], Any], other: Any = None) -> Any:
    """What `make` makes, with some probability."""
    return make() if rng.random() < chance else other


# ---------------------------------------------------------------------------- the model


def units(rng: random.Random, kind: str) -> list[str]:
    """The names of the tokens from which merging starts."""
    if kind == "bytes":
        all_bytes = characters()
        return rng.sample(all_bytes, 200) if rng.random() < 0.2 else all_bytes
    alphabet = [*LETTERS, *MARKS, META, " ", "\n", *rng.sample(OTHERS, 8)]
    alphabet = list(dict.fromkeys(rng.sample(alphabet, len(alphabet) - rng.randint(0, 3))))
    if kind == "characters":
        return alphabet
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    return [*maybe(rng, 0.1, lambda: names[: rng.randint(0, 256)], names), *alphabet]


def model(rng: random.Random, kind: str) -> Document:
    """A model of type BPE."""
    names = units(rng, kind)
    prefix = maybe(rng, 0.08, lambda: "##", maybe(rng, 0.3, lambda: ""))
    suffix = maybe(rng, 0.12, lambda: "</w>", maybe(rng, 0.3, lambda: ""))
    affixed = [name for name in names if not name.startswith("<0x")]
    more = [prefix + name for name in affixed] if prefix else []
    ends = [name + suffix for name in [*affixed, *more]] if suffix else []
    vocabulary = list(dict.fromkeys([*names, *more, *ends]))
    likely = [
        n for n in vocabulary if n.strip("#")[:1] in {*"abcAB1'<>s", "Ġ", "Ċ", META, " ", "Ã", "é"}
    ]
    merges, entries = [], set(vocabulary)
    for _ in range(rng.randint(0, 60)):
        left, right = rng.choice(likely), rng.choice(likely)
        if suffix and left.endswith(suffix):
            continue
        if prefix and not right.startswith(prefix):
            continue
        joined = left + right[len(prefix or "") :]
        if [left, right] in merges or joined.startswith("#version"):
            continue
        if joined not in entries:
            entries.add(joined)
            vocabulary.append(joined)
            likely += [joined] * 3
        merges.append([left, right])
    unknown = maybe(rng, 0.5 if kind != "bytes" else 0.1, lambda: "<unk>")
    if unknown and unknown not in entries:
        vocabulary.insert(rng.randint(0, len(vocabulary)), unknown)
    if rng.random() < 0.1:
        rng.shuffle(vocabulary)
    as_strings = all(" " not in part for pair in merges for part in pair) and rng.random() < 0.5
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": prefix,
        "end_of_word_suffix": suffix,
        "fuse_unk": rng.random() < 0.5,
        "byte_fallback": kind == "fallback",
        "ignore_merges": rng.random() < 0.2,
        "vocab": {name: id for id, name in enumerate(vocabulary)},
        "merges": [" ".join(pair) for pair in merges] if as_strings else merges,
    }


# ---------------------------------------------------------------------------- around the model


def pattern(rng: random.Random) -> Document:
    """A literal text or an expression."""
    if rng.random() < 0.5:
        return {"String": rng.choice([" ", "a", "ab", "é", "<", "  ", META, ".", "''"])}
    return {"Regex": rng.choice(EXPRESSIONS)}


def normalizer(rng: random.Random) -> Document:
    """One normalizer."""
    kind = rng.choice(
        ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Replace", "Prepend"]
    )
    more: dict[str, Callable[[], Document]] = {
        "Strip": lambda: {"strip_left": rng.random() < 0.6, "strip_right": rng.random() < 0.6},
        "Replace": lambda: {
            "pattern": pattern(rng),
            "content": rng.choice([META, " ", "", "x", "é", "ab"]),
        },
        "Prepend": lambda: {"prepend": rng.choice([META, " ", "ab"])},
    }
    return {"type": kind, **more.get(kind, dict)()}


def usual_normalizer(rng: random.Random, kind: str) -> Document | None:
    """A normalizer as published files have them, or a random sequence."""
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": META}
    before = {"type": "Prepend", "prepend": META}
    usual: list[Document | None] = [None, None, {"type": "NFC"}, {"type": "NFKC"}]
    if kind != "bytes":
        usual += [
            spaces,
            {"type": "Sequence", "normalizers": [before, spaces]},
            {"type": "Sequence", "normalizers": [spaces]},
        ]
    if rng.random() < 0.6:
        return rng.choice(usual)
    steps = [normalizer(rng) for _ in range(rng.randint(1, 3))]
    return {"type": "Sequence", "normalizers": steps} if len(steps) > 1 else steps[0]


def byte_level(rng: random.Random) -> Document:
    return {
        "type": "ByteLevel",
        "add_prefix_space": rng.random() < 0.25,
        "trim_offsets": rng.random() < 0.5,
        "use_regex": rng.random() < 0.5,
    }


def split(rng: random.Random) -> Document:
    """One step of a pre-tokenizer."""
    kind = rng.choice(SPLITS)
    more: dict[str, Callable[[], Document]] = {
        "Split": lambda: {
            "pattern": pattern(rng),
            "behavior": rng.choice(BEHAVIORS),
            "invert": rng.random() < 0.25,
        },
        "Digits": lambda: {"individual_digits": rng.random() < 0.5},
        "Punctuation": lambda: {"behavior": rng.choice(BEHAVIORS)},
        "CharDelimiterSplit": lambda: {"delimiter": rng.choice([" ", "a", META])},
        "FixedLength": lambda: {"length": rng.randint(1, 5)},
    }
    return {"type": kind, **more.get(kind, dict)()}


def metaspace(rng: random.Random) -> Document:
    return {
        "type": "Metaspace",
        "replacement": META,
        "prepend_scheme": rng.choice(["always", "first", "never"]),
        "split": rng.random() < 0.5,
    }


def pre_tokenizer(rng: random.Random, kind: str) -> Document | None:
    """A pre-tokenizer; that of a model of bytes maps them to GPT-2's characters."""
    steps = [split(rng) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
    if kind == "bytes":
        steps.insert(
            rng.randint(0, len(steps)) if rng.random() < 0.3 else len(steps), byte_level(rng)
        )
    elif rng.random() < 0.5:
        steps.insert(rng.randint(0, len(steps)), metaspace(rng))
    if not steps:
        return None
    if len(steps) == 1 and rng.random() < 0.8:
        return steps[0]
    return {"type": "Sequence", "pretokenizers": steps}


def decoder(rng: random.Random, kind: str) -> Document | None:
    """A decoder as published files have them, or a random sequence."""
    strip = {
        "type": "Strip",
        "content": rng.choice([" ", "a"]),
        "start": rng.randint(0, 2),
        "stop": 0,
    }
    usual: dict[str, list[Document]] = {
        "bytes": [
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        ],
        "fallback": [
            {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": META}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Fuse"},
                    *rng.choice([[], [{**strip, "content": " ", "start": 1}]]),
                ],
            },
            {
                "type": "Sequence",
                "decoders": [
                    {"type": "ByteFallback"},
                    {
                        "type": "Metaspace",
                        "replacement": META,
                        "prepend_scheme": "always",
                        "split": True,
                    },
                ],
            },
        ],
        "characters": [
            {"type": "BPEDecoder", "suffix": "</w>"},
            {"type": "Metaspace", "replacement": META, "prepend_scheme": "always", "split": True},
            {"type": "WordPiece", "prefix": "##", "cleanup": rng.random() < 0.5},
        ],
    }
    if rng.random() < 0.6:
        return rng.choice(usual[kind])
    steps: list[Document] = [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Replace", "pattern": pattern(rng), "content": rng.choice(["", " ", "x"])},
        strip,
        {"type": "Metaspace", "replacement": META, "prepend_scheme": "first", "split": True},
        {"type": "BPEDecoder", "suffix": "</w>"},
        {"type": "WordPiece", "prefix": "##", "cleanup": rng.random() < 0.5},
    ]
    chosen = rng.sample(steps, rng.randint(0, 3))
    if not chosen:
        return None
    return chosen[0] if len(chosen) == 1 else {"type": "Sequence", "decoders": chosen}


def added_tokens(
    rng: random.Random, vocabulary: dict[str, int], rule: Document | None
) -> list[Document]:
    """Added tokens, inside the vocabulary or after it, with any flags.

    Of tokens that the normalizer makes equal, the first stays: which one is found is left open.
    """
    contents = [
        "<s>",
        "</s>",
        "<unk>",
        "[X]",
        "[Y] ",
        "  ",
        "   ",
        "\t\t",
        "ab",
        "é",
        "A",
        "bc",
        " a",
        "<",
        META,
    ]
    contents += rng.sample(sorted(vocabulary), min(2, len(vocabulary)))
    chosen = rng.sample(list(dict.fromkeys(contents)), rng.choice([0, 1, 2, 4, 6]))
    often = rng.random()
    tokens, following, seen = [], len(vocabulary), set()
    for content in chosen:
        id = vocabulary.get(content, following)
        flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
        chances = (0.1, 0.2, 0.2, often, 0.5)
        values = {flag: rng.random() < chance for flag, chance in zip(flags, chances, strict=True)}
        # bytepair never gives a special token for text that is merged.
        values["special"] &= content not in vocabulary or len(content) == 1
        text = normalized(content, rule) if values["normalized"] else content
        if text and (text, values["normalized"]) not in seen:
            seen.add((text, values["normalized"]))
            tokens.append({"id": id, "content": content, **values})
            following = max(following, id + 1)
    return tokens


def normalized(text: str, rule: Document | None) -> str:
    """The text after a normalizer."""
    return plain(normalize([(character, (0, 0)) for character in text], rule))


def post_processor(rng: random.Random, tokens: list[Document]) -> Document | None:
    """A post-processor; templates use the added tokens."""
    special = [(token["content"], token["id"]) for token in tokens]
    if not special or rng.random() < 0.4:
        return byte_level(rng) if rng.random() < 0.4 else None
    (first, one), (last, two) = rng.choice(special), rng.choice(special)
    if rng.random() < 0.3:
        kind = rng.choice(["RobertaProcessing", "BertProcessing"])
        more = {"trim_offsets": True, "add_prefix_space": rng.random() < 0.5}
        return {
            "type": kind, "sep": [last, two], "cls": [first, one],
            **(more if kind.startswith("R") else {}),
        }  # fmt: skip

    def token(name: str) -> Document:
        return {"SpecialToken": {"id": name, "type_id": 0}}

    text, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    template = {
        "type": "TemplateProcessing",
        "single": [
            *maybe(rng, 0.7, lambda: [token(first)], []),
            text,
            *maybe(rng, 0.5, lambda: [token(last)], []),
        ],
        "pair": [token(first), text, token(last), second],
        "special_tokens": {
            name: {"id": name, "ids": [id], "tokens": [name]}
            for name, id in {first: one, last: two}.items()
        },
    }
    if rng.random() < 0.2:
        return {"type": "Sequence", "processors": [byte_level(rng), template]}
    return template


def has_spans(document: Document) -> bool:
    """Whether the spans of `tokenizers` lie in the text without overlaps: affixes break both."""
    model = document["model"]
    suffix = model.get("byte_fallback") and model.get("end_of_word_suffix")
    return not (model.get("continuing_subword_prefix") or suffix)


def document(rng: random.Random) -> Document:
    """A document of any form."""
    kind = rng.choice(["bytes", "bytes", "fallback", "characters"])
    bpe = model(rng, kind)
    rule = usual_normalizer(rng, kind)
    tokens = added_tokens(rng, bpe["vocab"], rule)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": tokens,
        "normalizer": rule,
        "pre_tokenizer": pre_tokenizer(rng, kind),
        "post_processor": post_processor(rng, tokens),
        "decoder": decoder(rng, kind),
        "model": bpe,
    }


def text(rng: random.Random, document: Document) -> str:
    """A text of pieces that the document treats in some special way."""
    own = [token["content"] for token in document["added_tokens"]] * 4
    tables = characters()
    back = {name: bytes([byte]) for byte, name in enumerate(tables)}
    for name in rng.sample(sorted(document["model"]["vocab"]), 8):
        own.append(b"".join(back.get(c, b"") for c in name).decode("utf-8", "ignore") or name)
    return "".join(rng.choice([*PIECES, *own]) for _ in range(rng.randint(0, 25)))
