"""What happens to a text before and after merging, in plain Python; `reference` has the rest.

The rules are those of a `tokenizer.json`, in the form of that file. A text is encoded in four
stages: *added tokens* are cut out of it, a *normalizer* changes the rest, a *pre-tokenizer* splits
it, and the *model* merges each piece. A *post-processor* puts ids around the result; a *decoder*
makes text of ids again. This code is written to be obvious, not fast; where the fast library gives
a different result, the fast library is wrong.

A text is a list of characters with their spans in the original text (`Aligned`), so that every id
has a span, whatever was changed. Spans are in characters.

    >>> model = {"vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3}, "merges": [["a", "b"]]}
    >>> step = {"type": "ByteLevel", "add_prefix_space": False}
    >>> document = {"model": model, "pre_tokenizer": step}
    >>> encode("ab b", document)
    [(2, (0, 2)), (3, (2, 3)), (1, (3, 4))]
    >>> decode([2, 3, 1], {**document, "decoder": {"type": "ByteLevel"}})
    'ab b'

Source: the Rust code of Hugging Face tokenizers 0.23.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

__all__ = ["around", "decode", "divide", "encode", "normalize", "pre_tokenize"]

Span: TypeAlias = tuple[int, int]
Aligned: TypeAlias = list[tuple[str, Span]]
Rule: TypeAlias = dict[str, Any]
#: A piece of text, or the id of an added token with the span of its text.
TextOrToken: TypeAlias = Aligned | tuple[int, Span]

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def byte_characters() -> list[str]:
    """GPT-2's character for each byte: itself if it is printable, else one from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = itertools.count(0x100)
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def plain(text: Aligned) -> str:
    """The characters without their spans."""
    return "".join(character for character, _ in text)


def span(text: Aligned) -> Span:
    """The span of a piece: from that of its first to that of its last character."""
    return (text[0][1][0], text[-1][1][1]) if text else (0, 0)


# ---------------------------------------------------------------------------- normalizers


def changed(text: Aligned, characters: Iterable[tuple[str, int]], removed: int = 0) -> Aligned:
    """A changed text, given its characters and how each came about.

    A character with 0 replaces the next one of the text, with -n the next one and n more after it,
    and with 1 it is new and has the span of the one before it. `removed` are the characters that
    are left out at the start.
    """
    result, at = Aligned(), removed
    for character, change in characters:
        if change > 0:
            result.append((character, text[at - 1][1] if at else (0, 0)))
        else:
            result.append((character, text[at][1]))
            at += 1 - change
    return result


def decomposed(text: str, compatible: bool) -> Iterator[tuple[str, int]]:
    """NFD or NFKD, with the change of each character; marks in the order of their classes."""
    waiting: list[tuple[str, int]] = []
    for character in text:
        parts = unicodedata.normalize("NFKD" if compatible else "NFD", character)
        for index, part in enumerate(parts):
            if unicodedata.combining(part) == 0:
                yield from sorted(waiting, key=lambda item: unicodedata.combining(item[0]))
                waiting = [(part, int(index > 0))]
            else:
                waiting.append((part, int(index > 0)))
    yield from sorted(waiting, key=lambda item: unicodedata.combining(item[0]))


def composed(characters: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Compose decomposed characters; one that is composed of several stands for all of them."""
    result: list[tuple[str, int]] = []
    starter, last_class = -1, 0
    for character, change in characters:
        own_class = unicodedata.combining(character)
        if starter >= 0 and (last_class < own_class or starter == len(result) - 1):
            both = unicodedata.normalize("NFC", result[starter][0] + character)
            if len(both) == 1:
                result[starter] = (both, result[starter][1] + change - 1)
                continue
        if own_class == 0:
            starter = len(result)
        result.append((character, change))
        last_class = own_class
    return result


def prepended(text: Aligned, before: str) -> Aligned:
    """The text behind another; an empty text stays empty."""
    return [(character, text[0][1]) for character in before] + text if text else text


def replaced(text: Aligned, pattern: Rule, content: str) -> Aligned:
    """The text with `content`, which has the span of the last character, for each match."""
    result = Aligned()
    for start, end, is_match in matches(text, expression(pattern)):
        if is_match:
            last = text[end - 1][1] if end else (0, 0)
            result += [(character, last) for character in content]
        else:
            result += text[start:end]
    return result


def stripped(text: Aligned, left: bool, right: bool) -> Aligned:
    """The text without white space at its ends."""
    start, end = 0, len(text)
    while left and start < end and is_space(text[start][0]):
        start += 1
    while right and start < end and is_space(text[end - 1][0]):
        end -= 1
    return text[start:end]


def normalize(text: Aligned, rule: Rule | None) -> Aligned:
    """Apply a normalizer."""
    if rule is None:
        return text
    if rule["type"] == "Sequence":
        for step in rule["normalizers"]:
            text = normalize(text, step)
        return text
    return _NORMALIZERS[rule["type"]](text, rule)


_NORMALIZERS: dict[str, Callable[[Aligned, Rule], Aligned]] = {
    "NFC": lambda text, _: changed(text, composed(decomposed(plain(text), compatible=False))),
    "NFKC": lambda text, _: changed(text, composed(decomposed(plain(text), compatible=True))),
    "NFD": lambda text, _: changed(text, decomposed(plain(text), compatible=False)),
    "NFKD": lambda text, _: changed(text, decomposed(plain(text), compatible=True)),
    "Lowercase": lambda text, _: [(low, at) for c, at in text for low in c.lower()],
    "StripAccents": lambda text, _: [(c, at) for c, at in text if not is_mark(c)],
    "Strip": lambda text, rule: stripped(text, rule["strip_left"], rule["strip_right"]),
    "Prepend": lambda text, rule: prepended(text, rule["prepend"]),
    "Replace": lambda text, rule: replaced(text, rule["pattern"], rule["content"]),
}


# ---------------------------------------------------------------------------- added tokens


def find_added(text: Aligned, tokens: list[tuple[str, Rule]], special: bool) -> list[TextOrToken]:
    """Cut added tokens out of a text: from left to right, the longest first.

    `tokens` are the texts to look for, with the added token of each. Unless `special` is true,
    special tokens stay in the text; other tokens are not found inside them either.
    """
    whole, pieces, done, at = plain(text), list[TextOrToken](), 0, 0
    while at < len(whole):
        here = [pair for pair in tokens if pair[0] and whole.startswith(pair[0], at)]
        if not here:
            at += 1
            continue
        content, token = max(here, key=lambda pair: len(pair[0]))
        start, end, at = at, at + len(content), at + len(content)
        if token.get("special") and not special:
            continue
        if token.get("single_word") and (
            (start > 0 and is_word(whole[start - 1])) or (end < len(whole) and is_word(whole[end]))
        ):
            continue
        if token.get("lstrip"):
            start = max(len(without_spaces(whole[:start])), done)
        while token.get("rstrip") and end < len(whole) and is_space(whole[end]):
            end += 1
        pieces += [text[done:start]] if done < start else []
        pieces += [(token["id"], span(text[start:end]))] if start < end else []
        done = end
    return [*pieces, text[done:]] if done < len(text) else pieces


def without_spaces(text: str) -> str:
    """The text without white space at its end."""
    while text and is_space(text[-1]):
        text = text[:-1]
    return text


def divide(text: str, document: Rule, special: str) -> list[TextOrToken]:
    """Cut all added tokens out of a text, and normalize the rest.

    Tokens that are not `normalized` are found first, in the original text. The others are found in
    the normalized text between them, where their own text is normalized too.

    Args:
        text: the text.
        document: the rules.
        special: `"all"` finds all added tokens, `"text"` those that are not special, `"none"` none.
    """
    tokens = document.get("added_tokens") or []
    active = [] if special == "none" else tokens
    rule = document.get("normalizer")
    original = [(character, (at, at + 1)) for at, character in enumerate(text)]
    first = [(t["content"], t) for t in active if not t.get("normalized", True)]
    then = [
        (plain(normalize([(c, (0, 0)) for c in t["content"]], rule)), t)
        for t in active
        if t.get("normalized", True)
    ]
    pieces: list[TextOrToken] = []
    for piece in find_added(original, first, special == "all"):
        if isinstance(piece, tuple):
            pieces.append(piece)
        else:
            pieces += find_added(normalize(piece, rule), then, special == "all")
    return pieces


# ---------------------------------------------------------------------------- pre-tokenizers


def is_space(character: str) -> bool:
    """Whether a character has the property White_Space."""
    return character.isspace() and character not in "\x1c\x1d\x1e\x1f"


def is_word(character: str) -> bool:
    r"""Whether a character is matched by `\w`."""
    from bytepair._internal.extras import regex

    return regex.match(r"\w", character) is not None


def is_mark(character: str) -> bool:
    """Whether a character has a category M."""
    return unicodedata.category(character).startswith("M")


def is_punctuation(character: str) -> bool:
    """Whether a character is punctuation: of ASCII, or of a category P."""
    in_ascii = character.isascii() and character.isprintable() and not character.isalnum()
    return (in_ascii and character != " ") or unicodedata.category(character).startswith("P")


def is_numeric(character: str) -> bool:
    """Whether a character has a category N."""
    return unicodedata.category(character).startswith("N")


def expression(pattern: Rule) -> str:
    """The regular expression of a pattern, which may be a literal text."""
    from bytepair._internal.extras import regex

    return str(pattern["Regex"]) if "Regex" in pattern else regex.escape(pattern["String"])


def matches(text: Aligned, pattern: str) -> Iterator[tuple[int, int, bool]]:
    """The matches of an expression and the parts between them, which cover the text."""
    from bytepair._internal.extras import regex

    end = 0
    for match in regex.finditer(pattern, plain(text), flags=regex.VERSION0):
        if end < match.start():
            yield end, match.start(), False
        yield match.start(), match.end(), True
        end = match.end()
    if end < len(text):
        yield end, len(text), False


def of_characters(text: Aligned, test: Callable[[str], bool]) -> Iterator[tuple[int, int, bool]]:
    """As `matches`, where each character that passes a test is a match."""
    for is_match, group in itertools.groupby(enumerate(text), lambda item: test(item[1][0])):
        places = [at for at, _ in group]
        if is_match:
            yield from ((at, at + 1, True) for at in places)
        else:
            yield places[0], places[-1] + 1, False


def cut(text: Aligned, ranges: Iterable[tuple[int, int, bool]], behavior: str) -> list[Aligned]:
    """Split a text at matches."""
    parts: list[tuple[int, int, bool]] = list(ranges)
    if behavior == "Removed":
        parts = [part for part in parts if not part[2]]
    elif behavior == "Contiguous":
        groups = [list(group) for _, group in itertools.groupby(parts, lambda part: part[2])]
        parts = [(group[0][0], group[-1][1], group[0][2]) for group in groups]
    elif behavior == "MergedWithPrevious":
        parts = joined(parts)
    elif behavior == "MergedWithNext":
        turned = joined([(-end, -start, is_match) for start, end, is_match in reversed(parts)])
        parts = [(-end, -start, is_match) for start, end, is_match in reversed(turned)]
    return [text[start:end] for start, end, _ in parts if start < end]


def joined(parts: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    """Append each match to the part before it, unless that is a match too."""
    result, after_match = list[tuple[int, int, bool]](), False
    for start, end, is_match in parts:
        if is_match and not after_match and result:
            result[-1] = (result[-1][0], end, False)
        else:
            result.append((start, end, is_match))
        after_match = is_match
    return result


def byte_level(text: Aligned, rule: Rule) -> list[Aligned]:
    """GPT-2's split, if asked for, and its character for each byte."""
    if rule.get("add_prefix_space", True) and not plain(text).startswith(" "):
        text = prepended(text, " ")
    pieces = [text]
    if rule.get("use_regex", True):
        pieces = cut(text, matches(text, _GPT2), "Isolated")
    table = byte_characters()
    return [[(table[b], at) for c, at in piece for b in c.encode()] for piece in pieces]


def metaspace(text: Aligned, rule: Rule) -> list[Aligned]:
    """U+2581 for spaces, one before the text, and a split before each."""
    mark = rule["replacement"]
    scheme = rule.get("prepend_scheme", "always" if rule.get("add_prefix_space", True) else "never")
    text = [(mark if character == " " else character, at) for character, at in text]
    starts = scheme == "always" or (scheme == "first" and span(text)[0] == 0)
    if starts and not plain(text).startswith(mark):
        text = prepended(text, mark)
    if not rule.get("split", True):
        return [text]
    return cut(text, of_characters(text, lambda c: c == mark), "MergedWithNext")


def words(text: Aligned) -> list[Aligned]:
    """The parts between white space."""
    return cut(text, of_characters(text, is_space), "Removed")


def split_by_pattern(text: Aligned, rule: Rule) -> list[Aligned]:
    """The step `Split`."""
    ranges = matches(text, expression(rule["pattern"]))
    turned = [(start, end, is_match != rule["invert"]) for start, end, is_match in ranges]
    return cut(text, turned, rule["behavior"])


def split_digits(text: Aligned, rule: Rule) -> list[Aligned]:
    """The step `Digits`."""
    behavior = "Isolated" if rule["individual_digits"] else "Contiguous"
    return cut(text, of_characters(text, is_numeric), behavior)


def split_punctuation(text: Aligned, behavior: str) -> list[Aligned]:
    """The step `Punctuation`."""
    return cut(text, of_characters(text, is_punctuation), behavior)


def split_whitespace(text: Aligned) -> list[Aligned]:
    """The step `Whitespace`."""
    ranges = matches(text, r"\w+|[^\w\s]+")
    return cut(text, [(start, end, not is_match) for start, end, is_match in ranges], "Removed")


def split_by_length(text: Aligned, length: int) -> list[Aligned]:
    """The step `FixedLength`."""
    return [text[at : at + length] for at in range(0, len(text), length)]


def pre_tokenize(text: Aligned, rule: Rule | None) -> list[Aligned]:
    """Split a text by a pre-tokenizer; empty pieces are left out."""
    if not text or rule is None:
        return [text] if text else []
    if rule["type"] == "Sequence":
        pieces = [text]
        for step in rule["pretokenizers"]:
            pieces = [part for piece in pieces for part in pre_tokenize(piece, step)]
        return pieces
    return _PRE_TOKENIZERS[rule["type"]](text, rule)


_PRE_TOKENIZERS: dict[str, Callable[[Aligned, Rule], list[Aligned]]] = {
    "ByteLevel": byte_level,
    "Metaspace": metaspace,
    "Split": split_by_pattern,
    "Digits": split_digits,
    "Punctuation": lambda text, rule: split_punctuation(text, rule.get("behavior", "Isolated")),
    "Whitespace": lambda text, _: split_whitespace(text),
    "WhitespaceSplit": lambda text, _: words(text),
    "BertPreTokenizer": lambda text, _: [
        part for word in words(text) for part in split_punctuation(word, "Isolated")
    ],
    "CharDelimiterSplit": lambda text, rule: cut(
        text, of_characters(text, lambda character: character == rule["delimiter"]), "Removed"
    ),
    "FixedLength": lambda text, rule: split_by_length(text, rule.get("length", 5)),
}


# ---------------------------------------------------------------------------- the model


def symbols(text: str, model: Rule) -> list[tuple[int, int]]:
    """The ids from which merging starts, each with the number of bytes of its text.

    A run of unknown characters ends at the next character with a token. The bytes of characters
    without one do not end it, so its id comes after theirs; `tokenizers` does that too.
    """
    result: list[tuple[int, int]] = []
    vocabulary, unknown, pending = model["vocab"], model.get("unk_token"), 0
    for at, character in enumerate(text):
        name = (model.get("continuing_subword_prefix") or "") * (at > 0) + character
        name += (model.get("end_of_word_suffix") or "") * (at == len(text) - 1)
        of_bytes = [vocabulary.get(f"<0x{byte:02X}>") for byte in name.encode()]
        is_known, size = name in vocabulary, len(character.encode())
        if not is_known and model.get("byte_fallback") and None not in of_bytes:
            result += [(id, 1) for id in of_bytes]
            continue
        if not is_known and unknown is None:
            raise ValueError(f"no token covers {character!r}")
        if pending and (is_known or not model.get("fuse_unk", False)):
            result.append((vocabulary[unknown], pending))
            pending = 0
        if is_known:
            result.append((vocabulary[name], size))
        else:
            pending += size
    return [*result, (vocabulary[unknown], pending)] if pending else result


def merge(ids: list[tuple[int, int]], model: Rule) -> list[tuple[int, int]]:
    """Merge listed pairs: the first of the list first, of equals the leftmost."""
    vocabulary, prefix = model["vocab"], model.get("continuing_subword_prefix") or ""
    ranks: dict[tuple[int, int], tuple[int, int]] = {}
    for rank, pair in enumerate(model["merges"]):
        left, right = pair.split(" ") if isinstance(pair, str) else pair
        new = vocabulary[left + right[len(prefix) :]]
        ranks[vocabulary[left], vocabulary[right]] = (rank, new)  # the last of equals counts
    while True:
        pairs = [(one[0], two[0]) for one, two in itertools.pairwise(ids)]
        candidates = [(ranks[pair], at) for at, pair in enumerate(pairs) if pair in ranks]
        if not candidates:
            return ids
        (_, new), at = min(candidates, key=lambda item: (item[0][0], item[1]))
        ids = [*ids[:at], (new, ids[at][1] + ids[at + 1][1]), *ids[at + 2 :]]


def tokens_of(piece: Aligned, model: Rule) -> list[tuple[int, Span]]:
    """The ids of one pretoken and their spans; part of a character covers the character."""
    text, at, result = plain(piece), 0, list[tuple[int, Span]]()
    if model.get("ignore_merges") and text in model["vocab"]:
        return [(model["vocab"][text], span(piece))]
    spans = [place for character, place in piece for _ in character.encode()]
    for id, size in merge(symbols(text, model), model):
        covered = spans[at : at + size] or spans[-1:]
        result.append((id, (covered[0][0], covered[-1][1])))
        at += size
    return result


def encode(text: str, document: Rule, special: str = "text") -> list[tuple[int, Span]]:
    """The ids of a text by the rules of a `tokenizer.json`, each with its span in characters.

    `special` is as in `divide`. The post-processor is not applied; `around` does that.
    """
    result: list[tuple[int, Span]] = []
    for piece in divide(text, document, special):
        if isinstance(piece, tuple):
            result.append(piece)
            continue
        for pretoken in pre_tokenize(piece, document.get("pre_tokenizer")):
            result += tokens_of(pretoken, document["model"])
    return result


def around(ids: list[int], rule: Rule | None) -> list[int]:
    """The ids of a text with those that a post-processor puts around them.

    >>> around([7], {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]})
    [1, 7, 2]
    """
    if rule is None or rule["type"] == "ByteLevel":
        return ids
    if rule["type"] == "Sequence":
        for step in rule["processors"]:
            ids = around(ids, step)
        return ids
    if rule["type"] != "TemplateProcessing":
        return [rule["cls"][1], *ids, rule["sep"][1]]
    result: list[int] = []
    for piece in rule["single"]:
        name = piece.get("SpecialToken", {}).get("id")
        result += ids if name is None else rule["special_tokens"][name]["ids"]
    return result


# ---------------------------------------------------------------------------- decoders


def decode(ids: Iterable[int], document: Rule, skip_special_tokens: bool = False) -> str:
    """The text of ids; without a decoder the names of the tokens, joined by spaces."""
    names = {id: name for name, id in document["model"]["vocab"].items()}
    special = set()
    for token in document.get("added_tokens") or []:
        name = token["content"]
        if token.get("normalized", True):
            name = plain(normalize([(c, (0, 0)) for c in name], document.get("normalizer")))
        names[token["id"]] = name
        special |= {token["content"]} if token.get("special") else set()
    tokens = [names[id] for id in ids if id in names]
    tokens = [name for name in tokens if not (skip_special_tokens and name in special)]
    rule = document.get("decoder")
    return " ".join(tokens) if rule is None else "".join(decoded(tokens, rule))


def decoded(names: list[str], rule: Rule) -> list[str]:
    """Apply a decoder to the names of tokens."""
    if rule["type"] == "Sequence":
        for step in rule["decoders"]:
            names = decoded(names, step)
        return names
    return _DECODERS[rule["type"]](names, rule)


def bytes_of(names: Iterable[str]) -> bytes:
    """The bytes of names in GPT-2's characters; other names stand for themselves."""
    table = {character: byte for byte, character in enumerate(byte_characters())}
    are_known = (all(character in table for character in name) for name in names)
    return b"".join(
        bytes(table[character] for character in name) if is_known else name.encode()
        for name, is_known in zip(names, are_known, strict=True)
    )


def fallen_back(names: Iterable[str]) -> list[str]:
    """Runs of names of bytes become their text, or U+FFFD for each if they are not UTF-8."""
    result: list[str] = []
    for byte, group in itertools.groupby(names, lambda name: byte_of(name) is not None):
        run = list(group)
        if not byte:
            result += run
            continue
        data = bytes(byte_of(name) or 0 for name in run)
        try:
            result.append(data.decode())
        except UnicodeDecodeError:
            result += ["\ufffd"] * len(data)
    return result


def byte_of(name: str) -> int | None:
    """The byte that a name such as `<0x0A>` stands for."""
    is_byte = len(name) == 6 and name.startswith("<0x") and name.endswith(">")
    digits = name[3:5]
    return (
        int(digits, 16) if is_byte and all(c in "0123456789abcdefABCDEF" for c in digits) else None
    )


def stripped_of(name: str, rule: Rule) -> str:
    """A name without up to `start` and `stop` characters of a kind at its ends."""
    start, end = 0, len(name)
    while start < min(rule["start"], len(name)) and name[start] == rule["content"]:
        start += 1
    while len(name) - end < rule["stop"] and end > start and name[end - 1] == rule["content"]:
        end -= 1
    return name[start:end]


def word_piece(name: str, rule: Rule, is_first: bool) -> str:
    """A name behind a space, unless it continues a word."""
    if not is_first:
        name = name.removeprefix(rule["prefix"]) if name.startswith(rule["prefix"]) else " " + name
    if rule["cleanup"]:
        for old, new in (
            (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"),
            (" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
        ):  # fmt: skip
            name = name.replace(old, new)
    return name


def without_marks(names: list[str], rule: Rule) -> list[str]:
    """The decoder `Metaspace`: spaces for its mark, which is left out in the first token."""
    keeps, mark = rule.get("prepend_scheme", "always") == "never", rule["replacement"]
    return [name.replace(mark, " " if at or keeps else "") for at, name in enumerate(names)]


def without_suffixes(names: list[str], suffix: str) -> list[str]:
    """The decoder `BPEDecoder`: spaces for the suffix, which is left out in the last token."""
    last = len(names) - 1
    return [name.replace(suffix, " " * (at < last)) for at, name in enumerate(names)]


def with_replacements(names: list[str], rule: Rule) -> list[str]:
    """The decoder `Replace`."""
    texts = ([(character, (0, 0)) for character in name] for name in names)
    return [plain(replaced(text, rule["pattern"], rule["content"])) for text in texts]


_DECODERS: dict[str, Callable[[list[str], Rule], list[str]]] = {
    "ByteLevel": lambda names, _: [bytes_of(names).decode(errors="replace")],
    "ByteFallback": lambda names, _: fallen_back(names),
    "Fuse": lambda names, _: ["".join(names)],
    "Replace": with_replacements,
    "Strip": lambda names, rule: [stripped_of(name, rule) for name in names],
    "Metaspace": without_marks,
    "BPEDecoder": lambda names, rule: without_suffixes(names, rule["suffix"]),
    "WordPiece": lambda names, rule: [word_piece(n, rule, at == 0) for at, n in enumerate(names)],
}
