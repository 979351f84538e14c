"""`tokenizer.json` with byte fallback: Llama 2, Mistral 7B, Phi-3, Gemma, and SentencePiece models.

The model merges characters (`characters`). What stands around it says where a space is put before
text, in one of two ways that `transformers` writes:

- a *normalizer* of `Replace`, which writes U+2581 for spaces, perhaps with `Prepend`, which puts
  one before each part of a text; and no pre-tokenizer, or one that splits at spaces, of which none
  are left;
- a pre-tokenizer `Metaspace`, which does both, only where no space is, before each part (`always`)
  or at the start of a text (`first`); it may also split before spaces.

A space that is put there must be what the *decoder* takes away. All else is refused by its name.

An *added token* without `special` that merges name or make is an ordinary token as well: its id
comes from its text, where the caller looks for special tokens, and from merges. In a text it stands
by its name, so Gemma's runs of U+2581 are found where a text has that character; runs of spaces are
merged. Merges that name or make an added token with `special` are dropped: `tokenizers` finds it in
a text before it merges.

`tokenizers` looks for `normalized` added tokens after the others, in the normalized text. That is
how SentencePiece finds *user-defined* pieces, so they are written as such. A mark of our own in the
model says that they are read back as user-defined, and not as special tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.formats import added_tokens, characters
from bytepair.formats.characters import BYTES, META
from bytepair.formats.files import typed
from bytepair.formats.gpt2 import check_ids
from bytepair.formats.parts import Asked, Parts, marks

_SPACE: Final = {"String": " "}
_TO_META: Final = {"type": "Replace", "pattern": _SPACE, "content": META}
_PREPEND: Final = {"type": "Prepend", "prepend": META}
_FROM_META: Final = {"type": "Replace", "pattern": {"String": META}, "content": " "}
_STRIP: Final = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
_DECODER: Final = [_FROM_META, {"type": "ByteFallback"}, {"type": "Fuse"}]

#: The form of spaces for each `prepend_scheme` of `Metaspace`.
_SCHEMES: Final = {"always": "spaces missing", "first": "spaces first", "never": "spaces"}


# ---------------------------------------------------------------------------- reading


def is_one(document: dict[str, Any]) -> bool:
    """Whether a document has a model with byte fallback, and no byte-level decoder."""
    model, decoder = document.get("model"), document.get("decoder")
    kind = decoder.get("type") if isinstance(decoder, dict) else None
    return isinstance(model, dict) and bool(model.get("byte_fallback")) and kind != "ByteLevel"


def parts(
    document: dict[str, Any],
    listed: Iterable[tuple[str, list[str]]],
    all_added: tuple[dict[str, added_tokens.Token], set[str]],
    notes: dict[str, str],
    asked: Asked,
) -> Parts:
    """The values in a document whose settings, model and added tokens were checked.

    `listed` are the merges with the place of each, `all_added` the added tokens and the names of
    those that are user-defined.
    """
    added, user_defined = all_added
    model = document["model"]
    if model.get("ignore_merges"):
        raise UnsupportedError(
            "model.ignore_merges", "a text that is a token would become that token without merging"
        )
    form, split = _form(document)
    _check_decoder(document.get("decoder"), form, asked)
    ids = typed(model.get("vocab"), dict, "model.vocab")
    check_ids(ids, "model.vocab")
    _check_twice(ids)
    added_tokens.check_ids(added, ids, len(ids))
    merges = list(_merges(added_tokens.without_special(listed, added), ids))
    added = {name: token for name, token in added.items() if name not in user_defined}
    _check_added(added, form, asked)
    shared = _shared(added, merges, ids)
    ordinary = {name: id for name, id in ids.items() if name not in added or name in shared}
    ordinary |= {name: added[name]["id"] for name in shared}
    special = {name: token["id"] for name, token in added.items()}
    around = (form, added_tokens.flagged(added), split)
    # If a pair is listed twice, its last place counts.
    once = list(dict.fromkeys(reversed(merges)))[::-1]
    return characters.parts(ordinary, once, around, special, notes, "model.vocab", user_defined)


def user_defined(document: dict[str, Any], added: dict[str, added_tokens.Token]) -> set[str]:
    """The names of the added tokens that a document of ours marks as user-defined."""
    model, kinds = document["model"], _normalizers(document.get("normalizer"))
    mark, ids = model.get("bytepair"), model.get("vocab")
    says_so = isinstance(mark, dict) and mark.get("user_defined") is True
    if not says_so or kinds != [_TO_META] or not isinstance(ids, dict):
        return set()
    plain = {"special": False, "normalized": True, "lstrip": False, "rstrip": False}
    return {
        name
        for name, token in added.items()
        if name in ids and token.items() >= plain.items() and " " not in name
    }


def _form(document: dict[str, Any]) -> tuple[str, str | None]:
    """Where spaces are put (a name of `MARKS`), and the pattern if the file splits text."""
    kinds = _normalizers(document.get("normalizer"))
    step = document.get("pre_tokenizer")
    if step is not None:
        step = typed(step, dict, "pre_tokenizer")
        if not kinds and step.get("type") == "Metaspace":
            return _metaspace(step)
        at_spaces = step.get("type") == "Split" and step.get("pattern") == _SPACE
        if not (kinds and at_spaces):
            raise UnsupportedError(
                "pre_tokenizer",
                f"{step.get('type')} is not supported with byte fallback; supported are Metaspace "
                "without a normalizer, and no pre-tokenizer with a normalizer",
            )
    if kinds == [_TO_META]:
        return "spaces", None
    if kinds in ([_PREPEND, _TO_META], [_TO_META, _PREPEND]):
        return "spaces always", None
    raise UnsupportedError(
        "normalizer",
        "it is not Replace (of spaces by U+2581), alone or with Prepend; normalize texts yourself "
        "and write a tokenizer.json with these alone",
    )


def _normalizers(node: Any) -> list[dict[str, Any]]:
    """The normalizers in nested sequences."""
    if node is None:
        return []
    node = typed(node, dict, "normalizer")
    if node.get("type") != "Sequence":
        return [node]
    inner = typed(node.get("normalizers"), list, "normalizer.normalizers")
    return [kind for child in inner for kind in _normalizers(child)]


def _metaspace(step: dict[str, Any]) -> tuple[str, str | None]:
    """Where a `Metaspace` puts spaces, and the pattern; old files only have `add_prefix_space`."""
    place = "pre_tokenizer"
    if step.get("replacement") != META:
        raise UnsupportedError(f"{place}.replacement", f"{step.get('replacement')!r} is not U+2581")
    usual = "always" if step.get("add_prefix_space", True) else "never"
    scheme = typed(step.get("prepend_scheme", usual), str, f"{place}.prepend_scheme")
    if scheme not in _SCHEMES:
        raise UnsupportedError(
            f"{place}.prepend_scheme", f"{scheme!r} is not one of {', '.join(_SCHEMES)}"
        )
    splits = typed(step.get("split", True), bool, f"{place}.split")
    return _SCHEMES[scheme], characters.BEFORE_SPACES if splits else None


def _check_decoder(decoder: Any, form: str, asked: Asked) -> None:
    """Check that decoding removes exactly the space that encoding puts before text."""
    decoder = typed(decoder, dict, "decoder")
    steps = decoder.get("decoders") if decoder.get("type") == "Sequence" else [decoder]
    wanted = _decoder(form)["decoders"]
    if steps != wanted and not asked.lossy:
        kinds = ", ".join(step["type"] for step in wanted)
        raise UnsupportedError(
            "decoder",
            f"it is not the usual sequence for this normalizer or pre-tokenizer ({kinds}); pass "
            "lossy=True to decode with that sequence",
        )


def _check_twice(ids: dict[str, int]) -> None:
    names: dict[int, str] = {}
    for name, id in ids.items():
        if names.setdefault(id, name) != name:
            raise FormatError(f"model.vocab[{name!r}]", f"{names[id]!r} has the id {id} too")


def _shared(
    added: dict[str, added_tokens.Token], merges: list[tuple[str, str]], ids: dict[str, int]
) -> set[str]:
    """The added tokens that are ordinary tokens too.

    These are what merges name or make, characters with which merging starts, and what has U+2581,
    which is decoded as a space. Tokens with `special` are never ordinary tokens.
    """
    merged = {part for pair in merges for part in (*pair, "".join(pair))}
    names = [name for name, token in added.items() if not token["special"]]
    first = {name for name in names if len(name) == 1 and name != " " and name in ids}
    spaced = {name for name in names if META in name and " " not in name}
    return first | spaced | (merged & set(names))


def _check_added(added: dict[str, added_tokens.Token], form: str, asked: Asked) -> None:
    """Refuse added tokens that conflict with byte tokens or with the spaces."""
    names = set(BYTES)
    for name, token in added.items():
        if name in names:
            raise UnsupportedError(
                "added_tokens",
                f"{name!r} is the token of a byte, to which characters of ordinary text are "
                "encoded; leave it out of the added tokens",
            )
        if META in name and (" " in name or token["special"]) and not asked.lossy:
            both = "a space too" if " " in name else '"special": true'
            raise UnsupportedError(
                "added_tokens",
                f"{name!r} has U+2581, which would be decoded as a space, and {both}; pass "
                "lossy=True to decode it as it stands",
            )
        moves = form == "spaces always" or (form == "spaces" and " " in name)
        if moves and token["normalized"] and not asked.lossy:
            raise UnsupportedError(
                "added_tokens",
                f"{name!r} is looked for in normalized text, that is behind a space, here in "
                'the text; write "normalized": false, or pass lossy=True to look for it there',
            )


def _merges(
    listed: Iterable[tuple[str, list[str]]], ids: dict[str, int]
) -> Iterator[tuple[str, str]]:
    """The merges; their parts and results must be tokens, and not byte tokens."""
    names = set(BYTES)
    for place, pair in listed:
        if len(pair) != 2 or not all(pair):
            raise FormatError(place, f"a merge must be two tokens, not {pair!r}")
        left, right = pair
        for name in (left, right, left + right):
            if name not in ids:
                raise FormatError(place, f"{name!r} is not in the vocabulary")
            if name in names:
                raise UnsupportedError(place, f"it merges the byte token {name!r}")
        yield left, right


# ---------------------------------------------------------------------------- writing


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What `tokenizer.json` cannot represent of a tokenizer that merges characters."""
    found = marks(tokenizer.pattern)
    lost = []
    if found.rest != characters.BEFORE_SPACES and not characters.is_harmless(found.rest):
        lost.append("the split pattern: with byte fallback there is only Metaspace")
    if found.user_defined and found.form != "spaces":
        lost.append(
            "that user-defined tokens are found behind the space before a text, and that no space "
            "is put behind them: tokenizers encodes the text between added tokens by itself"
        )
    return lost


def document(tokenizer: _core.Tokenizer, added: list[dict[str, Any]]) -> dict[str, Any]:
    """A `tokenizer.json` with these added tokens, without a post-processor."""
    names = characters.names(tokenizer)
    last = max(names)
    special = {name: id for name, id in tokenizer.special_tokens.items() if id < last}
    vocabulary = {name: id for id, name in names.items()} | special
    own = marks(tokenizer.pattern).user_defined
    found = [_user_defined(id, names[id]) for id in own]
    mark = {"bytepair": {"user_defined": True}} if own else {}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted([*added, *found], key=lambda token: token["id"]),
        **_around(tokenizer),
        "post_processor": None,
        "decoder": _decoder(marks(tokenizer.pattern).form or ""),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            **mark,
            "vocab": dict(sorted(vocabulary.items(), key=lambda item: item[1])),
            "merges": [f"{left} {right}" for left, right in characters.named_merges(tokenizer)],
        },
    }


def _user_defined(id: int, name: str) -> added_tokens.Token:
    flags = dict.fromkeys(added_tokens.FLAGS, False)
    return {"id": id, "content": name, **flags, "normalized": True}


def _around(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The normalizer and the pre-tokenizer."""
    found = marks(tokenizer.pattern)
    splits = found.rest == characters.BEFORE_SPACES
    scheme = next((name for name, form in _SCHEMES.items() if form == found.form), None)
    if splits or found.form in {"spaces missing", "spaces first"}:
        step = {"type": "Metaspace", "replacement": META, "prepend_scheme": scheme, "split": splits}
        return {"normalizer": None, "pre_tokenizer": step}
    kinds = [_PREPEND, _TO_META] if found.form == "spaces always" else [_TO_META]
    return {"normalizer": {"type": "Sequence", "normalizers": kinds}, "pre_tokenizer": None}


def _decoder(form: str) -> dict[str, Any]:
    strip = [] if form == "spaces" else [_STRIP]
    return {"type": "Sequence", "decoders": [*_DECODER, *strip]}
