"""Hugging Face: `tokenizer.json` and the files beside it.

Byte-level BPE models are read, with any order of keys and either form of merges. Each part of the
file is either reproduced exactly or rejected with its name:

- *Added tokens*, special or not, become special tokens. `tokenizers` matches them in every text, so
  its `encode(text, add_special_tokens=False)` equals our `encode(text, special="all")`. Which of
  them are not special there is stored in a note and written back. An added token may also be the
  part or the result of a merge. If it is special there, the merge is dropped, as `tokenizers` never
  gets to it; otherwise the token is an ordinary token as well.
- A *post-processor* adds tokens such as `<s>` around a text; here the caller adds them with
  `prepend=` and `append=`. It is stored in a note, with flags for BOS and EOS, and written back.
- A *normalizer* changes the text; only NFC and NFKC are supported. The pattern then begins with a
  mark, such as `(?#NFC)`.

A written file gives the same ids. Hugging Face merges listed pairs in the order of the list. A
tokenizer with the rule "merges" has that list. With the rule "ranks", any two neighbours whose
joined bytes are a token merge, the lowest rank first, the leftmost among equals. Such a tokenizer
is written as one pair for each token, in the order of ranks. This gives the same ids for every
text. Proof:

1. Consider any sequence of adjacent parts while the rule "ranks" is applied to a text. No merge so
   far crossed the ends of the sequence, since parts only grow. Each merge within it was the first
   candidate of the whole text, and so also the first candidate of the sequence. So the parts are an
   intermediate state of merging the bytes of the sequence alone.
2. Let two neighbours join to a token. By 1, they are the intermediate state with two parts of
   merging the bytes of that token alone. There is only one such state: the listed pair.
3. So at each step, the candidates of the rule "ranks" are exactly the listed pairs, in the same
   order. Both rules make the same merge.

By 2, other pairs that produce a token never occur. So a list that contains the pairs above in this
order gives the same merges as the rule "ranks", whatever other pairs it contains. The rule "ranks"
also turns a pretoken that is a token into that token, as `ignore_merges` does. Without
`ignore_merges`, merging does the same if every token of two or more bytes has a listed pair: by 1,
merging the bytes of the token alone leads to the pair, and then to the token.

A list for which both hold is read as the rule "ranks", whichever program wrote it: all pairs of
every token (as `transformers` converts tiktoken's files), one pair for each token (GPT-2, Qwen),
and our own files after another program saved them. Only our own file of a tokenizer with the rule
"merges" is marked as such and read as that rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bytepair import _core
from bytepair.errors import FormatError, LossError, UnsupportedError
from bytepair.formats import added_tokens, byte_fallback, companions, post_processor
from bytepair.formats.charmap import lost_twins, to_bytes
from bytepair.formats.files import parse_json, read_file, to_json, typed, write_whole
from bytepair.formats.gpt2 import check_ids, check_merges, read_pair, read_vocabulary
from bytepair.formats.oniguruma import means_the_same, to_oniguruma
from bytepair.formats.parts import THEN, UNICODE_FORMS, Asked, Parts, marked, marks
from bytepair.formats.pretokenizers import pattern_of

if TYPE_CHECKING:
    import tokenizers

FILE: Final = "tokenizer.json"

_BYTE_LEVEL: Final = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}

#: The note for content of a file that does not affect the tokenizer.
PRETOKENIZER_NOTE: Final = "huggingface.pre_tokenizer"


# ---------------------------------------------------------------------------- reading


def read(path: Path, asked: Asked) -> Parts:
    """Read a `tokenizer.json`, or a folder with one and the files that `transformers` wrote.

    Raises:
        FormatError: if a file is invalid.
        UnsupportedError: if it uses a feature that cannot be reproduced exactly.
    """
    folder = path if path.is_dir() else path.parent
    file = path / FILE if path.is_dir() else path
    parts = parse(read_file(file), asked)
    if file.name == FILE:
        parts.notes.update(companions.read(folder, parts, asked))
    parts.notes.update(companions.flag_notes(parts))
    return parts


def parse(data: bytes, asked: Asked, *, quick: bool = True) -> Parts:
    """The values in the bytes of a `tokenizer.json`.

    Args:
        data: the bytes.
        asked: the options passed by the caller.
        quick: whether the core may read the vocabulary and the merges, which it does if they have
            the usual form; the result is the same.
    """
    try:
        return _parse(data, asked, quick)
    except RecursionError:
        raise FormatError(FILE, "the JSON is nested too deeply") from None


def _parse(data: bytes, asked: Asked, quick: bool) -> Parts:
    listed, rest = (_core.JsonTables.parse(data) if quick else None) or (None, data)
    document = typed(parse_json(rest, FILE), dict, FILE)
    _check_rest(document, asked)
    if "model" not in document:
        raise FormatError(
            "model",
            "it is missing, so this is not a tokenizer.json; give the path of a tokenizer, such as "
            "the folder that has one",
        )
    model = typed(document["model"], dict, "model")
    _check_kind(model)
    merges_characters = byte_fallback.is_one(document)
    if not merges_characters:
        _check_decoder(document)
    _check_model(model)
    added = added_tokens.read(document, asked)
    if merges_characters:
        document = document if listed is None else parse_json(data, FILE)
        pairs = _merges(typed(document["model"].get("merges"), list, "model.merges"))
        user_defined = byte_fallback.user_defined(document, added)
        others = {name: token for name, token in added.items() if name not in user_defined}
        added_tokens.check_overlaps(others)
        notes = _notes(document, others)
        return byte_fallback.parts(document, pairs, (added, user_defined), notes, asked)
    added_tokens.check_overlaps(added)
    if listed is None:
        tokens, merges = _tables(model, added, asked)
        complete = all(bytes([byte]) in tokens for byte in range(256))
    else:
        added_tokens.check_ids(added, listed.added, listed.size)
        complete = listed.has_all_bytes()
    if not complete:
        _check_unknown(model)
    ignore = typed(model.get("ignore_merges", False), bool, "model.ignore_merges")
    may_be_ranks = _own_value(model, "merge_rule") != "merges"
    form = _form(document.get("normalizer"), added, asked)
    rule = _own_pattern(model, document) or pattern_of(
        document.get("pre_tokenizer"), "pre_tokenizer"
    )
    pattern = marked(form, added_tokens.flagged(added), rule)
    special = {name: token["id"] for name, token in added.items()}
    notes = _notes(document, added)
    if listed is not None:
        return Parts(listed, pattern, special, None, ignore, notes, may_be_ranks)
    return Parts(tokens, pattern, special, merges, ignore, notes, may_be_ranks)


def _tables(
    model: dict[str, Any], added: dict[str, added_tokens.Token], asked: Asked
) -> tuple[dict[bytes, int], list[tuple[bytes, bytes]]]:
    """Read and check the ordinary tokens and the merges."""
    ids = typed(model.get("vocab"), dict, "model.vocab")
    check_ids(ids, "model.vocab")
    added_tokens.check_ids(added, ids, len(ids))
    listed = typed(model.get("merges"), list, "model.merges")
    shared = _shared(added, (pair for _, pair in _merges(listed)))
    pairs = list(added_tokens.without_special(_merges(listed), added))
    ordinary = {name: id for name, id in ids.items() if name not in added or name in shared}
    tokens = read_vocabulary(ordinary, "model.vocab", asked)
    merges = [read_pair(pair, place) for place, pair in pairs]
    return tokens, check_merges(merges, tokens, "model.merges")


def _shared(added: dict[str, added_tokens.Token], merges: Iterable[list[str]]) -> set[str]:
    """The added tokens without `special` that merges name or make: they are ordinary tokens too.

    The text of an added token that merges name or make must be its name: a character such as
    U+0120, which stands for a space, is looked for in a text as that character.
    """
    merged = {part for pair in merges for part in (*pair, "".join(pair))}
    for name in sorted(merged & added.keys()):
        if to_bytes(name) != name.encode():
            raise UnsupportedError(
                "added_tokens",
                f"{name!r} is also what merges make of {to_bytes(name)!r}, and would be found in "
                "texts by its characters; leave it out of the added tokens",
            )
    return {name for name in merged & added.keys() if not added[name]["special"]}


def _check_rest(document: dict[str, Any], asked: Asked) -> None:
    """Reject parts other than the model that would change ids."""
    if document.get("version", "1.0") != "1.0":
        raise UnsupportedError("version", f"{document['version']!r} is not 1.0")
    for name, why in (
        ("truncation", "truncation is not supported"),
        ("padding", "padding is not supported"),
    ):
        if document.get(name) is not None and not asked.lossy:
            raise UnsupportedError(name, f"{why}; pass lossy=True to ignore it")


def _check_decoder(document: dict[str, Any]) -> None:
    decoder = document.get("decoder")
    if not isinstance(decoder, dict) or decoder.get("type") != "ByteLevel":
        raise UnsupportedError("decoder", "it is not ByteLevel")


def _form(normalizer: Any, added: dict[str, added_tokens.Token], asked: Asked) -> str | None:
    """The normalization form, if any; other normalizers are rejected."""
    kinds = set(_normalizers(normalizer))
    if not kinds <= set(UNICODE_FORMS):
        if asked.lossy:
            return None
        raise UnsupportedError(
            "normalizer",
            f"{min(kinds - set(UNICODE_FORMS))} is not supported, only "
            f"{' and '.join(UNICODE_FORMS)}; normalize texts yourself and pass lossy=True to "
            "ignore it",
        )
    for name, token in added.items():
        blank = kinds == {"NFC"} and name.isascii() and name.isspace()
        if kinds and token["normalized"] and not blank:
            raise UnsupportedError(
                "added_tokens",
                f"{name!r} is looked for in normalized text, which is not supported",
            )
    return max(kinds, default=None)


def _normalizers(normalizer: Any) -> list[str]:
    """The types of normalizers in nested sequences."""
    if normalizer is None:
        return []
    kind = typed(typed(normalizer, dict, "normalizer").get("type"), str, "normalizer.type")
    if kind != "Sequence":
        return [kind]
    inner = typed(normalizer.get("normalizers"), list, "normalizer.normalizers")
    return [kind for child in inner for kind in _normalizers(child)]


def _check_kind(model: dict[str, Any]) -> None:
    """Refuse models that do not merge, by their names; old files do not say their type."""
    vocabulary = model.get("vocab")
    guessed = "Unigram" if isinstance(vocabulary, list) else "WordPiece or WordLevel"
    kind = model.get("type", "BPE" if "merges" in model else guessed)
    if kind != "BPE":
        raise UnsupportedError(
            "model.type",
            f"a {kind} model is not BPE: it chooses tokens without merging; keep to the library "
            "tokenizers for it",
        )


def _check_model(model: dict[str, Any]) -> None:
    if model.get("dropout"):
        raise UnsupportedError("model.dropout", "dropout is not supported")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise UnsupportedError(f"model.{name}", f"the affix {model[name]!r} is not supported")


def _check_unknown(model: dict[str, Any]) -> None:
    """Reject replacements for bytes without a token; here they are an error."""
    for name in ("unk_token", "byte_fallback"):
        if model.get(name):
            raise UnsupportedError(f"model.{name}", "bytes without a token are replaced by it")


def _merges(listed: list[Any]) -> Iterator[tuple[str, list[str]]]:
    """The merges (strings with a space, or pairs), and the place of each."""
    for number, merge in enumerate(listed):
        place = f"model.merges[{number}]"
        if isinstance(merge, str):
            if merge.startswith("#version"):
                continue
            yield place, merge.split(" ")
        else:
            yield place, [typed(part, str, place) for part in typed(merge, list, place)]


def _notes(document: dict[str, Any], added: dict[str, added_tokens.Token]) -> dict[str, str]:
    notes = added_tokens.note(added)
    step = document.get("pre_tokenizer") or {}
    if step.get("type") == "Sequence" and len(step["pretokenizers"]) > 2:
        notes[PRETOKENIZER_NOTE] = json.dumps(step)
    processor = document.get("post_processor")
    if processor is not None:
        notes[post_processor.NOTE] = json.dumps(processor)
    return notes


def _own_value(model: dict[str, Any], name: str) -> Any:
    """A value of bytepair's own mark in a model, which other programs ignore."""
    mark = model.get("bytepair")
    return mark.get(name) if isinstance(mark, dict) else None


def _own_pattern(model: dict[str, Any], document: dict[str, Any]) -> str | None:
    """The pattern that the steps of the file were written from, if the file contains it."""
    own = _own_value(model, "pattern")
    if not isinstance(own, str) or _splits(own) != document.get("pre_tokenizer"):
        return None
    return own if _is_exact(own.split(THEN)) else None


def _is_exact(steps: list[str]) -> bool:
    """Whether `tokenizers` certainly splits as these patterns do, one after the other."""
    return all(means_the_same(step) and _core.match_lengths(step)[0] for step in steps)


# ---------------------------------------------------------------------------- writing


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What `tokenizer.json` cannot represent."""
    if tokenizer.merge_rule == "characters":
        return byte_fallback.losses(tokenizer)
    lost, steps = lost_twins(tokenizer), marks(tokenizer.pattern).rest.split(THEN)
    noted = _noted_steps(tokenizer) is not None
    if not noted and not all(_core.match_lengths(step)[0] for step in steps):
        lost.append("that matches of no characters split nothing: tokenizers splits there")
    if not noted and not all(map(means_the_same, steps)):
        lost.append(
            "the exact meaning of the split pattern: Oniguruma, the regex engine of tokenizers, "
            "may interpret parts of it differently"
        )
    return lost


def text(tokenizer: _core.Tokenizer) -> str:
    """The text of a `tokenizer.json`; an entry of the vocabulary or a merge on each line."""
    if tokenizer.merge_rule == "characters":
        document = byte_fallback.document(tokenizer, added_tokens.written(tokenizer))
        return to_json(document | {"post_processor": _processor(tokenizer)}).decode()
    rest = _rest(tokenizer)
    ranks = tokenizer.mergeable_ranks()
    ids = {
        token["content"]: token["id"]
        for token in rest["added_tokens"]
        if ranks.get(token["content"].encode()) != token["id"]  # it is in the vocabulary already
    }
    size = len(ranks)
    # Added tokens are numbered after the vocabulary, unless they are in it.
    in_it = [] if list(ids.values()) == list(range(size, size + len(ids))) else list(ids.items())
    vocabulary, merges = _core.json_texts(tokenizer, in_it)
    before, _, after = to_json(rest).decode().rpartition('"vocab": {},\n    "merges": []')
    return f'{before}"vocab": {vocabulary},\n    "merges": {merges}{after}'


def _rest(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """All fields except the vocabulary and the merges."""
    normalizer = marks(tokenizer.pattern).form
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens.written(tokenizer),
        "normalizer": {"type": normalizer} if normalizer else None,
        "pre_tokenizer": _noted_steps(tokenizer) or _splits(marks(tokenizer.pattern).rest),
        "post_processor": _processor(tokenizer),
        "decoder": {**_BYTE_LEVEL, "use_regex": True},
        "model": _model(tokenizer),
    }


def _processor(tokenizer: _core.Tokenizer) -> Any:
    """The post-processor, or None."""
    return post_processor.written(tokenizer)


def _noted_steps(tokenizer: _core.Tokenizer) -> dict[str, Any] | None:
    """The steps that the pattern was read from, if there is a matching note."""
    noted = json.loads(tokenizer.notes.get(PRETOKENIZER_NOTE, "null"))
    fits = noted and pattern_of(noted, PRETOKENIZER_NOTE) == marks(tokenizer.pattern).rest
    return noted if fits else None


def _splits(pattern: str) -> dict[str, Any]:
    """A split for each step of a pattern without marks."""
    splits = [
        {
            "type": "Split",
            "pattern": {"Regex": to_oniguruma(step)},
            "behavior": "Isolated",
            "invert": False,
        }
        for step in pattern.split(THEN)
    ]
    end = {**_BYTE_LEVEL, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [*splits, end]}


def _model(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    by_rank = tokenizer.merge_rule == "ranks"
    model: dict[str, Any] = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": by_rank or tokenizer.ignore_merges,
    }
    said: dict[str, str] = {"merge_rule": tokenizer.merge_rule}
    pattern = marks(tokenizer.pattern).rest
    if THEN in pattern and not _noted_steps(tokenizer):
        said["pattern"] = pattern
    return model | {"bytepair": said, "vocab": {}, "merges": []}


def is_alone(path: Path) -> bool:
    """Whether this is the path of a `tokenizer.json` alone, and not of a folder."""
    return path.suffix == ".json"


def write(tokenizer: _core.Tokenizer, path: Path) -> None:
    """Write a `tokenizer.json`, or a folder with it and the other files of `transformers`."""
    data = text(tokenizer).encode()
    if is_alone(path):
        write_whole(path, data)
        return
    path.mkdir(parents=True, exist_ok=True)
    companions.write(tokenizer, path)
    write_whole(path / FILE, data)


# ---------------------------------------------------------------------------- objects


def to_huggingface(tokenizer: _core.Tokenizer, *, special: bool = True) -> tokenizers.Tokenizer:
    """Create a `tokenizers.Tokenizer`; see `Tokenizer.to_huggingface`."""
    from bytepair._internal.extras import tokenizers

    if lost := losses(tokenizer):
        raise LossError("huggingface", lost)
    exported = tokenizers.Tokenizer.from_str(text(tokenizer))
    exported.encode_special_tokens = not special
    return exported


def is_object(value: Any) -> bool:
    """Whether this is a tokenizer of `tokenizers`, of our wrapper of it, or of `transformers`."""
    return hasattr(value, "backend_tokenizer") or hasattr(value, "to_str")


def of_object(value: Any, asked: Asked) -> Parts:
    """Read a tokenizer object through the `tokenizer.json` that it would write."""
    inner = getattr(value, "backend_tokenizer", value)
    parts = parse(inner.to_str().encode(), asked)
    parts.notes.update(companions.object_notes(value, parts))
    return parts
