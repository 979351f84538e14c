"""GGUF's tokenizer model `llama`: pieces with scores, as llama.cpp stores those of SentencePiece.

llama.cpp encodes as `bytepair.formats.pieces` says, with these differences, each of
which is refused, or is a loss when written:

- A space is put before each part of a text, or nowhere. Nothing splits a text.
- Two neighbours merge if their joined text is any token, also the name of a special token or of a
  byte; and a character merges whether or not it is a piece.
- User-defined pieces have spaces instead of U+2581 in the file, and are found in the text as it is;
  so one with a space is not found where a text has U+2581 itself. A space is put behind them as
  well, so where spaces are put before text, they are read as special tokens.

A tokenizer has merges instead of scores. Tokens get falling scores in the order of their merges,
and one score if their merges are listed in turn, as those of runs of spaces are. Then the other
runs of the character whose merges come right before or after get the same score, since the rule
for runs (`bytepair.formats.pieces`) asks for one score. It is written if these scores
lead back to the same merges.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import UnsupportedError
from bytepair.formats import pieces
from bytepair.formats.parts import LoadOptions, Parts
from bytepair.formats.pieces import (
    BYTE,
    BYTES,
    CONTROL,
    META,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    ScoredPiece,
)
from bytepair.properties.tokens import form, ordinary

#: The name in `tokenizer.ggml.model`.
NAME: Final = "llama"
_TOKENS: Final = "tokenizer.ggml.tokens"
_PREFIX: Final = "tokenizer.ggml.add_space_prefix"

#: The text, the score and the type of an id.
Entry: TypeAlias = tuple[str, float, int]
_Merges: TypeAlias = Iterable[tuple[str, str]]


# ---------------------------------------------------------------------------- reading


def parts(
    values: Mapping[str, Any],
    entries: Mapping[int, Entry],
    own: Collection[int] | None,
    options: LoadOptions,
) -> Parts:
    """The tokenizer of a file with these keys and the entries of the ids that are used.

    If bytepair listed the ids of the user-defined tokens, they are `own`. What llama.cpp does that
    cannot be reproduced is an `UnsupportedError`.
    """
    for key in ("remove_extra_whitespaces", "precompiled_charsmap"):
        if values.get(f"tokenizer.ggml.{key}"):
            raise UnsupportedError(f"tokenizer.ggml.{key}", "texts are changed before encoding")
    if names := _merged_names(ScoredPiece(*entry) for entry in entries.values()):
        raise UnsupportedError(_TOKENS, f"llama.cpp would merge text into {names[0]!r}")
    spaces = "spaces always" if values.get(_PREFIX, True) else "spaces"
    user_defined = {id for id, entry in entries.items() if entry[2] == USER_DEFINED}
    if spaces != "spaces":
        user_defined = set()
    elif own is not None:
        user_defined &= set(own)
    pieces_by_id = {
        id: ScoredPiece(text.replace(" ", META), score, kind)
        if id in user_defined
        else ScoredPiece(text, score, CONTROL if kind == USER_DEFINED else kind)
        for id, (text, score, kind) in entries.items()
    }
    spaced = sorted(pieces_by_id[id].text for id in user_defined if META in pieces_by_id[id].text)
    if spaced and not options.lossy:
        raise UnsupportedError(
            _TOKENS,
            f"the user-defined {spaced[0]!r} is found where a text has U+2581 itself, unlike in "
            "llama.cpp",
            option="lossy",
            value=False,
            hint="pass lossy=True to find it there as well",
        )
    return pieces.parts(pieces_by_id, spaces, {}, _TOKENS)


def _merged_names(scored: Iterable[ScoredPiece]) -> list[str]:
    """The names of special tokens, bytes and unused ids that two symbols of a text may make."""
    scored = list(scored)
    texts = {piece.text for piece in scored}
    lengths = {1, *map(len, texts)}

    def is_merged(text: str) -> bool:
        cuts = (at for at in range(1, len(text)) if {at, len(text) - at} <= lengths)
        parts = ((text[:at], text[at:]) for at in cuts)
        return any(all(part in texts or len(part) == 1 for part in pair) for pair in parts)

    users = {NORMAL, USER_DEFINED}
    return [piece.text for piece in scored if piece.kind not in users and is_merged(piece.text)]


# ---------------------------------------------------------------------------- writing


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What a file cannot represent of a tokenizer that merges pieces."""
    rules, lost = _core.text_rules(tokenizer), []
    if not isinstance(rules.pattern, str) or not _core.is_harmless(rules.pattern):
        lost.append("the split pattern: llama.cpp splits no text that is merged by characters")
    if form(rules) not in {"spaces", "spaces always"}:
        lost.append("where a space is put: llama.cpp puts one before each part of a text, or none")
    if rules.user_defined and form(rules) != "spaces":
        lost.append("that no space is put behind user-defined tokens")
    tokens = (tokenizer.token_bytes(id) for id in rules.user_defined)
    if spaced := next((token for token in tokens if b" " in token), None):
        name = spaced.decode(errors="replace").replace(" ", META)
        lost.append(f"that the user-defined {name!r} is found where a text has U+2581 itself")
    ordinary = set(tokenizer.mergeable_ranks().values())
    if shared := [name for name, id in tokenizer.special_tokens.items() if id in ordinary]:
        lost.append(f"that {shared[0]!r} is a special and an ordinary token")
    return lost + _losses_of_merges(tokenizer)


def _losses_of_merges(tokenizer: _core.Tokenizer) -> list[str]:
    """What scores cannot represent of the merges."""
    by_id = pieces_of(tokenizer)
    losses = [f"that no text is merged into {name!r}" for name in _merged_names(by_id.values())]
    single = {piece.text for piece in by_id.values() if len(piece.text) == 1}
    _, merges = _names_and_merges(tokenizer)
    try:
        again = pieces.merges_of(by_id.values(), _TOKENS)
    except UnsupportedError as error:
        return [*losses, f"the order of merges: {error}"]
    scores = {piece.text: piece.score for piece in by_id.values()}
    if _in_groups(again, scores) != _in_groups(merges, scores):
        losses.append("the merges: llama.cpp merges any two tokens whose joined text is a token")
    normal = (piece.text for piece in by_id.values() if piece.kind == NORMAL)
    if unknown := [text for text in normal if not single.issuperset(text)]:
        losses.append(f"that {unknown[0]!r} has a character that is not a token")
    return losses


def _in_groups(merges: _Merges, scores: Mapping[str, float]) -> list[Any]:
    """The merges of each score: in order if they make several tokens, as a set otherwise."""
    groups: list[Any] = []
    for _, group in groupby(merges, lambda pair: scores["".join(pair)]):
        pairs = list(group)
        several = len({"".join(pair) for pair in pairs}) > 1
        groups.append(pairs if several else set(pairs))
    return groups


def pieces_of(tokenizer: _core.Tokenizer) -> dict[int, ScoredPiece]:
    """The pieces by their ids; unused ids have none."""
    names, merges = _names_and_merges(tokenizer)
    # Texts whose merges are listed in turn share a score.
    groups = enumerate(_joined_runs(_groups(merges)), 1)
    scores = {text: -float(number) for number, group in groups for text in group}
    least = min(scores.values(), default=0.0)
    user_defined = set(_core.text_rules(tokenizer).user_defined)
    by_id = {}
    for number, (id, name) in enumerate(names.items(), 1):
        kind = USER_DEFINED if id in user_defined else BYTE if name in _BYTES else NORMAL
        score = scores.get(name, least - number) if kind == NORMAL else 0.0
        by_id[id] = ScoredPiece(name, score, kind)
    users, unknown = ordinary(tokenizer), tokenizer.notes.get("unk_token")
    for name, id in tokenizer.special_tokens.items():
        kind = UNKNOWN if name == unknown else USER_DEFINED if id in users else CONTROL
        by_id[id] = ScoredPiece(name, 0.0, kind)
    return by_id


_BYTES: Final = frozenset(BYTES)


def _names_and_merges(tokenizer: _core.Tokenizer) -> tuple[dict[int, str], list[tuple[str, str]]]:
    """The names of the ordinary tokens by id, and the merges, as a `tokenizer.json` has them."""
    model = json.loads(_core.tokenizer_json(tokenizer))["model"]
    ids = {*tokenizer.mergeable_ranks().values(), *_core.twin_ids(tokenizer)}
    names = {id: name for name, id in model["vocab"].items() if id in ids}
    merges = [one.split(" ") if isinstance(one, str) else one for one in model["merges"]]
    return dict(sorted(names.items())), [(left, right) for left, right in merges]


def _groups(merges: _Merges) -> list[dict[str, None]]:
    """The texts that are merged, in order; texts whose merges are listed in turn are a group."""
    texts = ["".join(pair) for pair in merges]
    last = {text: place for place, text in enumerate(texts)}
    groups: list[dict[str, None]] = []
    end = -1
    for place, text in enumerate(texts):
        if place > end:
            groups.append({})
        end = max(end, last[text])
        groups[-1][text] = None
    return groups


def _joined_runs(groups: Iterable[dict[str, None]]) -> Iterator[Iterable[str]]:
    """The groups, with neighbours joined if they are runs of one character and one has several."""
    for character, neighbours in groupby(groups, _run_character):
        run = list(neighbours)
        if character and any(len(group) > 1 for group in run):
            yield [text for group in run for text in group]
        else:
            yield from run


def _run_character(group: Iterable[str]) -> str:
    """The character of which all texts of a group are runs, or an empty text."""
    first, *others = {text[0] if text == text[0] * len(text) else "" for text in group}
    return "" if others else first


def entries(tokenizer: _core.Tokenizer) -> dict[int, Entry]:
    """The text, score and type of each id that is used, as a file holds them."""
    user_defined = set(_core.text_rules(tokenizer).user_defined)
    return {
        id: (p.text.replace(META, " ") if id in user_defined else p.text, p.score, p.kind)
        for id, p in pieces_of(tokenizer).items()
    }
