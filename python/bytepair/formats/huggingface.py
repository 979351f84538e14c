"""Hugging Face: `tokenizer.json` and the files beside it.

What is read is a byte-level BPE model, whatever the order of its keys and however it writes merges.
Each part of the file is either done exactly or refused with its name:

- *added tokens*, special or not, become special tokens. `tokenizers` finds them in every text, so
  its `encode(text, add_special_tokens=False)` is our `encode(text, special="all")`. Which of them
  are not special there is noted and written back.
- a *post-processor* adds tokens such as `<s>` around a text; here the caller adds them with
  `prepend=` and `append=`. It is noted and written back.
- a *normalizer* changes the text; only NFC and NFKC are read. The pattern then begins with a
  mark, such as `(?#NFC)`.

What is written has the same ids. Hugging Face merges listed pairs in the order of the list. A
tokenizer with the rule of merges has that list. One with the rule of ranks merges any two
neighbours whose joined bytes are a token, so its list has every pair of tokens that makes a token,
in order of the rank of what they make; the file says so, and is read as ranks again.

What is proved: both merge the token of the lowest rank first, and they find the same places for it.
What is not: where two places of the same token overlap and divide it differently (`a|aa|a` for
`aaa`), the rule of ranks takes the left one, the list the pair that stands first in it. Only tokens
that repeat themselves can do that; tests on real text find no difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bytepair import _core
from bytepair.errors import FormatError, LossError, UnsupportedError
from bytepair.formats.charmap import lookalikes, to_characters
from bytepair.formats.files import (
    id_of,
    parse_json,
    read_file,
    to_json,
    typed,
    write_whole,
)
from bytepair.formats.gpt2 import check_ids, check_merges, quick_merges, read_pair, read_vocabulary
from bytepair.formats.oniguruma import means_the_same, to_oniguruma
from bytepair.formats.parts import MARKS, Asked, Parts, all_pairs, unmarked
from bytepair.formats.pretokenizers import pattern_of

if TYPE_CHECKING:
    import tokenizers

FILE: Final = "tokenizer.json"
CONFIG: Final = "tokenizer_config.json"
TEMPLATE: Final = "chat_template.jinja"

_BYTE_LEVEL: Final = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
_FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")
_USUAL: Final = {name: name == "special" for name in _FLAGS}
#: The tokens that a configuration names for a purpose.
ROLES: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token")

#: Notes on what a file says beside the values of a tokenizer.
FLAGS_NOTE: Final = "huggingface.added_tokens"
PROCESSOR_NOTE: Final = "huggingface.post_processor"
PRETOKENIZER_NOTE: Final = "huggingface.pre_tokenizer"
CONFIG_NOTE: Final = "huggingface.config"


# ---------------------------------------------------------------------------- reading


def read(path: Path, asked: Asked) -> Parts:
    """Read a `tokenizer.json`, or a folder with one and the files that `transformers` wrote.

    Raises:
        FormatError: if a file breaks a rule.
        UnsupportedError: if it asks for what is not done exactly.
    """
    folder = path if path.is_dir() else path.parent
    file = path / FILE if path.is_dir() else path
    parts = parse(read_file(file), asked)
    if file.name == FILE:
        parts.notes.update(_beside(folder, parts, asked))
    return parts


def parse(data: bytes, asked: Asked) -> Parts:
    """The values in the bytes of a `tokenizer.json`."""
    try:
        return _parse(data, asked)
    except RecursionError:
        raise FormatError(FILE, "the JSON is nested too deeply") from None


def _parse(data: bytes, asked: Asked) -> Parts:
    document = typed(parse_json(data, FILE), dict, FILE)
    _check_rest(document, asked)
    model = typed(document.get("model"), dict, "model")
    _check_model(model)
    added = _added(document, asked)
    ids = typed(model.get("vocab"), dict, "model.vocab")
    check_ids(ids, "model.vocab")
    _check_added(added, ids)
    special = {name: token["id"] for name, token in added.items()}
    ordinary = {name: id for name, id in ids.items() if name not in special}
    tokens = read_vocabulary(ordinary, "model.vocab")
    if len(tokens.keys() & {bytes([byte]) for byte in range(256)}) < 256:
        _check_unknown(model)
    listed = typed(model.get("merges"), list, "model.merges")
    merges = quick_merges(listed, ordinary, tokens)
    if merges is None:
        merges = check_merges(list(_merges(listed)), tokens, "model.merges")
    ignore = typed(model.get("ignore_merges", False), bool, "model.ignore_merges")
    pattern = pattern_of(document.get("pre_tokenizer"), "pre_tokenizer")
    notes = _notes(document, added)
    pattern = _mark(document.get("normalizer"), added, asked) + pattern
    if _says_ranks(model) and ignore and merges == all_pairs(tokens):
        return Parts(tokens, pattern, special, notes=notes)
    return Parts(tokens, pattern, special, merges, ignore, notes)


def _check_rest(document: dict[str, Any], asked: Asked) -> None:
    """Refuse what would change the ids beside the model."""
    if document.get("version", "1.0") != "1.0":
        raise UnsupportedError("version", f"{document['version']!r} is not the one we know, 1.0")
    for name, why in (
        ("truncation", "texts are not cut"),
        ("padding", "texts are not padded"),
    ):
        if document.get(name) is not None and not asked.lossy:
            raise UnsupportedError(name, f"{why}; pass lossy=True to read the rest")
    decoder = document.get("decoder")
    if not isinstance(decoder, dict) or decoder.get("type") != "ByteLevel":
        raise UnsupportedError("decoder", "it is not ByteLevel, so ids do not stand for bytes")


def _mark(normalizer: Any, added: dict[str, dict[str, Any]], asked: Asked) -> str:
    """The mark of the normalization that is asked for; what we do not do is refused."""
    kinds = set(_normalizers(normalizer))
    if not kinds <= set(MARKS):
        if asked.lossy:
            return ""
        raise UnsupportedError(
            "normalizer",
            f"{min(kinds - set(MARKS))} changes the text before it is split, and we only do "
            f"{' and '.join(MARKS)}; normalize texts yourself and pass lossy=True to read the rest",
        )
    for name, token in added.items():
        blank = kinds == {"NFC"} and name.isascii() and name.isspace()
        if kinds and token["normalized"] and not blank:
            raise UnsupportedError(
                "added_tokens", f"{name!r} is looked for in normalized text, and here in the text"
            )
    return MARKS[max(kinds)] if kinds else ""


def _normalizers(normalizer: Any) -> list[str]:
    """The types of normalizers in nested sequences."""
    if normalizer is None:
        return []
    kind = typed(typed(normalizer, dict, "normalizer").get("type"), str, "normalizer.type")
    if kind != "Sequence":
        return [kind]
    inner = typed(normalizer.get("normalizers"), list, "normalizer.normalizers")
    return [kind for child in inner for kind in _normalizers(child)]


def _check_model(model: dict[str, Any]) -> None:
    kind = model.get("type", "BPE" if "merges" in model else None)
    if kind != "BPE":
        raise UnsupportedError("model.type", f"{kind!r} is not BPE")
    if model.get("dropout"):
        raise UnsupportedError("model.dropout", "merges are not left out by chance")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise UnsupportedError(f"model.{name}", f"{model[name]!r} is not put around tokens")


def _check_unknown(model: dict[str, Any]) -> None:
    """Where a byte has no token, what becomes of it must be what we do: an error."""
    for name in ("unk_token", "byte_fallback"):
        if model.get(name):
            raise UnsupportedError(f"model.{name}", "not every byte has a token, and this is used")


def _added(document: dict[str, Any], asked: Asked) -> dict[str, dict[str, Any]]:
    """The added tokens by their text."""
    found: dict[str, dict[str, Any]] = {}
    listed = document.get("added_tokens")
    entries = typed([] if listed is None else listed, list, "added_tokens")
    for number, entry in enumerate(entries):
        place = f"added_tokens[{number}]"
        token = typed(entry, dict, place)
        name = typed(token.get("content"), str, f"{place}.content")
        flags = {f: typed(token.get(f, _USUAL[f]), bool, f"{place}.{f}") for f in _FLAGS}
        for flag in ("single_word", "lstrip", "rstrip"):
            if flags[flag] and not asked.lossy:
                raise UnsupportedError(
                    f"{place}.{flag}",
                    f"{name!r} would take its neighbours into account; pass lossy=True to read it "
                    "as if it did not",
                )
        if name in found:
            raise FormatError(f"{place}.content", f"{name!r} is given twice")
        found[name] = {"id": id_of(token.get("id"), f"{place}.id"), **flags}
    _check_overlaps(found)
    return found


def _check_overlaps(added: dict[str, dict[str, Any]]) -> None:
    """Refuse two kinds of added tokens of which one may get in the way of the other.

    Those that are not `normalized` are looked for first, then the others in what is left; we look
    for all at once, from left to right. It is the same if none of the others can begin before one
    of the first and reach into it.
    """
    first = [name for name, token in added.items() if not token["normalized"]]
    then = [name for name, token in added.items() if token["normalized"]]
    ends = {name[at:] for name in then for at in range(1, len(name))}
    starts = {name[:at] for name in first for at in range(1, len(name))}
    every = "\0".join(then)
    shared = (ends & starts) | {name for name in first if name in every}
    if shared:
        raise UnsupportedError(
            "added_tokens",
            f"tokens with and without `normalized` share {min(shared)!r} and may overlap in a text",
        )


def _check_added(added: dict[str, dict[str, Any]], ids: dict[str, int]) -> None:
    """Check the ids of added tokens against those that `tokenizers` would give them.

    It takes the id of the vocabulary, or else the next one after all that there are.
    """
    known: dict[str, int] = {}
    for number, (name, token) in enumerate(added.items()):
        id = token["id"]
        given = ids.get(name, max(len(ids), max(known.values(), default=-1) + 1))
        if given != id:
            raise FormatError(
                f"added_tokens[{number}].id",
                f"{name!r} has the id {id} here, and would be given {given}",
            )
        known[name] = id


def _merges(listed: list[Any]) -> Iterator[tuple[bytes, bytes]]:
    """The merges, which stand as strings with a space, or as pairs."""
    for number, merge in enumerate(listed):
        place = f"model.merges[{number}]"
        if isinstance(merge, str):
            if merge.startswith("#version"):
                continue
            yield read_pair(merge.split(" "), place)
        else:
            pair = typed(merge, list, place)
            yield read_pair([typed(part, str, place) for part in pair], place)


def _notes(document: dict[str, Any], added: dict[str, dict[str, Any]]) -> dict[str, str]:
    notes = {}
    flags = {
        name: {flag: token[flag] for flag in _FLAGS if token[flag] != _USUAL[flag]}
        for name, token in added.items()
    }
    flags = {name: unusual for name, unusual in flags.items() if unusual}
    if flags:
        notes[FLAGS_NOTE] = json.dumps(flags)
    step = document["pre_tokenizer"]
    if step["type"] == "Sequence" and len(step["pretokenizers"]) > 2:
        notes[PRETOKENIZER_NOTE] = json.dumps(step)
    processor = document.get("post_processor")
    if processor is not None:
        notes[PROCESSOR_NOTE] = json.dumps(processor)
    return notes


def _says_ranks(model: dict[str, Any]) -> bool:
    mark = model.get("bytepair")
    return isinstance(mark, dict) and mark.get("merge_rule") == "ranks"


# ---------------------------------------------------------------------------- files beside


def _beside(folder: Path, parts: Parts, asked: Asked) -> dict[str, str]:
    """Notes of the configuration and the chat template in a folder."""
    notes = {}
    if (folder / CONFIG).is_file():
        config = typed(parse_json(read_file(folder / CONFIG), CONFIG), dict, CONFIG)
        _check_config(config, parts, asked)
        template = config.pop("chat_template", None)
        if isinstance(template, str):
            notes["chat_template"] = typed(template, str, f"{CONFIG}: chat_template")
        elif template is not None:
            config["chat_template"] = template
        for role in ROLES:
            name = config.get(role)
            name = name.get("content") if isinstance(name, dict) else name
            if isinstance(name, str):
                notes[role] = typed(name, str, f"{CONFIG}: {role}")
        for name in ("added_tokens_decoder", "auto_map"):  # made anew; a pointer to code
            config.pop(name, None)
        notes[CONFIG_NOTE] = json.dumps(config)
    if (folder / TEMPLATE).is_file():
        try:
            notes["chat_template"] = read_file(folder / TEMPLATE).decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"{TEMPLATE}, byte {error.start}", "it is not UTF-8") from None
    return notes


def _check_config(config: dict[str, Any], parts: Parts, asked: Asked) -> None:
    """`transformers` adds the tokens that are listed here; they must be those we have."""
    place = f"{CONFIG}: added_tokens_decoder"
    listed = typed(config.get("added_tokens_decoder") or {}, dict, place)
    for id, token in listed.items():
        name = typed(token, dict, f"{place}[{id}]").get("content")
        if not isinstance(name, str) or str(parts.special_tokens.get(name)) != id:
            if asked.lossy:
                continue
            raise UnsupportedError(f"{place}[{id}]", f"{name!r} is not in {FILE} with this id")


# ---------------------------------------------------------------------------- writing


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What `tokenizer.json` cannot hold."""
    lost = []
    if twins := lookalikes(tokenizer):
        lost.append(f"special tokens that look like ordinary ones, such as {twins[0]!r}")
    if _noted_steps(tokenizer) is None and not means_the_same(unmarked(tokenizer.pattern)[1]):
        lost.append(
            "the exact meaning of the split pattern, which has parts that Oniguruma, the engine of "
            "tokenizers, may read in another way"
        )
    return lost


def document(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The content of a `tokenizer.json`."""
    processor = tokenizer.notes.get(PROCESSOR_NOTE)
    normalizer, _ = unmarked(tokenizer.pattern)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_document(tokenizer),
        "normalizer": {"type": normalizer} if normalizer else None,
        "pre_tokenizer": _pretokenizer(tokenizer),
        "post_processor": None if processor is None else json.loads(processor),
        "decoder": {**_BYTE_LEVEL, "use_regex": True},
        "model": _model_document(tokenizer),
    }


def _noted_steps(tokenizer: _core.Tokenizer) -> dict[str, Any] | None:
    """The steps that the pattern was read from, if a note of them fits it."""
    noted = json.loads(tokenizer.notes.get(PRETOKENIZER_NOTE, "null"))
    fits = noted and pattern_of(noted, PRETOKENIZER_NOTE) == unmarked(tokenizer.pattern)[1]
    return noted if fits else None


def _pretokenizer(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The steps that the pattern was read from, or else one split."""
    split = {
        "type": "Split",
        "pattern": {"Regex": to_oniguruma(unmarked(tokenizer.pattern)[1])},
        "behavior": "Isolated",
        "invert": False,
    }
    return _noted_steps(tokenizer) or {
        "type": "Sequence",
        "pretokenizers": [split, {**_BYTE_LEVEL, "use_regex": False}],
    }


def _model_document(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    ranks = tokenizer.mergeable_ranks
    by_rank = tokenizer.merge_rule == "ranks"
    merges = all_pairs(ranks) if by_rank else tokenizer.merges
    ids = {to_characters(token): id for token, id in ranks.items()}
    specials = [(token["content"], token["id"]) for token in _added_document(tokenizer)]
    if any(id != n for (_, id), n in zip(specials, count(len(ids)), strict=False)):
        # Added tokens are numbered after the vocabulary, so with other ids they stand in it.
        ids |= dict(specials)
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
    if by_rank:
        model["bytepair"] = {"merge_rule": "ranks"}
    model["vocab"] = dict(sorted(ids.items(), key=lambda item: item[1]))
    model["merges"] = [[to_characters(left), to_characters(right)] for left, right in merges]
    return model


def _added_document(tokenizer: _core.Tokenizer) -> list[dict[str, Any]]:
    unusual = json.loads(tokenizer.notes.get(FLAGS_NOTE, "{}"))
    left_out = lookalikes(tokenizer)
    return [
        {"id": id, "content": name, **_USUAL, **unusual.get(name, {})}
        for name, id in sorted(tokenizer.special_tokens.items(), key=lambda item: item[1])
        if name not in left_out
    ]


def config(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The content of a `tokenizer_config.json`: a class that takes `tokenizer.json` as it is."""
    kept = json.loads(tokenizer.notes.get(CONFIG_NOTE, "{}"))
    roles = {role: tokenizer.notes[role] for role in ROLES if role in tokenizer.notes}
    return {
        **kept,
        **roles,
        "added_tokens_decoder": {
            str(token["id"]): {flag: token[flag] for flag in ("content", *_FLAGS)}
            for token in _added_document(tokenizer)
        },
        "clean_up_tokenization_spaces": False,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def write(tokenizer: _core.Tokenizer, path: Path) -> None:
    """Write a `tokenizer.json`, or a folder with it and what `transformers` wants beside it."""
    data = to_json(document(tokenizer))
    if path.suffix == ".json":
        write_whole(path, data)
        return
    path.mkdir(parents=True, exist_ok=True)
    roles = {role: tokenizer.notes[role] for role in ROLES if role in tokenizer.notes}
    write_whole(path / CONFIG, to_json(config(tokenizer)))
    write_whole(path / "special_tokens_map.json", to_json(roles))
    if "chat_template" in tokenizer.notes:
        write_whole(path / TEMPLATE, tokenizer.notes["chat_template"].encode())
    write_whole(path / FILE, data)


# ---------------------------------------------------------------------------- objects


def to_huggingface(tokenizer: _core.Tokenizer, *, special: bool = True) -> tokenizers.Tokenizer:
    """Make a `tokenizers.Tokenizer`; `Tokenizer.to_huggingface` says it all."""
    from tokenizers import Tokenizer

    lost = losses(tokenizer)
    if lost:
        raise LossError("huggingface", lost)
    exported = Tokenizer.from_str(to_json(document(tokenizer), indent=None).decode())
    exported.encode_special_tokens = not special
    return exported


def is_object(value: Any) -> bool:
    """Whether this is a `tokenizers.Tokenizer`, or a fast tokenizer of `transformers`."""
    module = type(value).__module__.split(".")[0]
    return module == "tokenizers" or hasattr(value, "backend_tokenizer")


def of_object(value: Any, asked: Asked) -> Parts:
    """Read a tokenizer object through the `tokenizer.json` that it would write."""
    inner = getattr(value, "backend_tokenizer", value)
    parts = parse(inner.to_str().encode(), asked)
    for role in ROLES:
        name = getattr(value, role, None)
        if isinstance(name, str):
            parts.notes[role] = name
    template = getattr(value, "chat_template", None)
    if isinstance(template, str):
        parts.notes["chat_template"] = template
    return parts
