"""GGUF's tokenizer model `llama`: pieces with scores, as llama.cpp stores those of SentencePiece.

llama.cpp encodes as `bytepair.formats.pieces` says, with these differences, each of
which is refused, or is a loss when written:

- A space is put before each part of a text, or nowhere. Nothing splits a text.
- Two neighbours merge if their joined text is any token, also the name of a special token or of a
  byte; and a character merges whether or not it is a piece.
- User-defined pieces have spaces instead of U+2581 in the file, and are found in the text as it is;
  so one with a space is not found where a text has U+2581 itself. A space is put behind them as
  well, so where spaces are put before text, they are read as special tokens.

A tokenizer has merges instead of scores. Tokens get falling scores in the order of their first
merges. Where the merges of a run of one character are listed among others, as those of runs of
spaces are, all runs of the character get one score, for which the rule for runs asks
(`bytepair.formats.pieces`). It is written if these scores lead back to the same merges.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import UnsupportedError
from bytepair.formats import pieces
from bytepair.formats.parts import LoadOptions, Parts
from bytepair.formats.pieces import META, ScoredPiece
from bytepair.properties.tokens import form, ordinary

#: The name in `tokenizer.ggml.model`.
NAME: Final = "llama"
_TOKENS: Final = "tokenizer.ggml.tokens"
_PREFIX: Final = "tokenizer.ggml.add_space_prefix"

_Merges: TypeAlias = Iterable[tuple[str, str]]


def parts(
    values: Mapping[str, Any],
    entries: Mapping[int, ScoredPiece],
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
    if names := _merged_names(entries.values()):
        raise UnsupportedError(_TOKENS, f"llama.cpp would merge text into {names[0]!r}")
    spaces = "spaces always" if values.get(_PREFIX, True) else "spaces"
    pieces_by_id = dict(entries)
    user_defined = []
    for id, piece in entries.items():
        if piece.kind != pieces.USER_DEFINED:
            continue
        if spaces == "spaces" and (own is None or id in own):
            user_defined.append(id)
            pieces_by_id[id] = piece._replace(text=piece.text.replace(" ", META))
        else:
            pieces_by_id[id] = piece._replace(kind=pieces.CONTROL)
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


def _merged_names(scored: Collection[ScoredPiece]) -> list[str]:
    """The names of special tokens, bytes and unused ids that two symbols of a text may make."""
    texts = {piece.text for piece in scored}
    # Ordinary pieces are no longer; longer names would be merged of names alone.
    lengths = {1, *(n for n in map(len, texts) if n <= pieces.MOST_CHARS)}

    def is_merged(text: str) -> bool:
        cuts = (at for at in range(1, len(text)) if {at, len(text) - at} <= lengths)
        parts = ((text[:at], text[at:]) for at in cuts)
        return any(all(part in texts or len(part) == 1 for part in pair) for pair in parts)

    users = {pieces.NORMAL, pieces.USER_DEFINED}
    return [piece.text for piece in scored if piece.kind not in users and is_merged(piece.text)]


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
    by_id = pieces_of(tokenizer)
    losses = [f"that no text is merged into {name!r}" for name in _merged_names(by_id.values())]
    _, merges = _names_and_merges(tokenizer)
    try:
        again = pieces.merges_of(by_id.values(), _TOKENS)
    except UnsupportedError as error:
        return [*losses, f"the order of merges: {error}"]
    scores = {piece.text: piece.score for piece in by_id.values()}
    if _in_groups(again, scores) != _in_groups(merges, scores):
        losses.append("the merges: llama.cpp merges any two tokens whose joined text is a token")
    single = {text for text in scores if len(text) == 1}
    normal = (piece.text for piece in by_id.values() if piece.kind == pieces.NORMAL)
    if unknown := next((text for text in normal if not single.issuperset(text)), None):
        losses.append(f"that {unknown!r} has a character that is not a token")
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
    scores = _scores(merges)
    least = min(scores.values(), default=0.0)
    user_defined, by_id = set(_core.text_rules(tokenizer).user_defined), {}
    for number, (id, name) in enumerate(names.items(), 1):
        kind, score = pieces.NORMAL, scores.get(name, least - number)
        if id in user_defined or name in pieces.BYTES:
            kind, score = pieces.USER_DEFINED if id in user_defined else pieces.BYTE, 0.0
        by_id[id] = ScoredPiece(name, score, kind)
    users, unknown = ordinary(tokenizer), tokenizer.notes.get("unk_token")
    for name, id in tokenizer.special_tokens.items():
        kind = (
            pieces.UNKNOWN
            if name == unknown
            else pieces.USER_DEFINED
            if id in users
            else pieces.CONTROL
        )
        by_id[id] = ScoredPiece(name, 0.0, kind)
    return by_id


def _names_and_merges(tokenizer: _core.Tokenizer) -> tuple[dict[int, str], list[tuple[str, str]]]:
    """The names of the ordinary tokens by id, and the merges, as a `tokenizer.json` has them."""
    model = json.loads(_core.tokenizer_json(tokenizer))["model"]
    ids = {*tokenizer.mergeable_ranks().values(), *_core.twin_ids(tokenizer)}
    names = {id: name for name, id in model["vocab"].items() if id in ids}
    merges = [one.split(" ") if isinstance(one, str) else one for one in model["merges"]]
    return dict(sorted(names.items())), [(left, right) for left, right in merges]


def _scores(merges: _Merges) -> dict[str, float]:
    """The score of each text that is merged."""
    places: dict[str, list[int]] = {}
    for place, pair in enumerate(merges, 1):
        places.setdefault("".join(pair), []).append(place)
    scores = {text: -float(listed[0]) for text, listed in places.items()}
    among_others = {
        pieces.run_of(text)
        for text, listed in places.items()
        if listed[-1] - listed[0] >= len(listed)
    }
    shared: dict[str, float] = {}
    for text in scores:  # in the order of first merges
        if (run := pieces.run_of(text)) and run in among_others:
            scores[text] = shared.setdefault(run, scores[text])
    return scores


def entries(tokenizer: _core.Tokenizer) -> dict[int, ScoredPiece]:
    """The pieces as a file holds them: user-defined ones have spaces."""
    by_id = pieces_of(tokenizer)
    for id in _core.text_rules(tokenizer).user_defined:
        by_id[id] = by_id[id]._replace(text=by_id[id].text.replace(META, " "))
    return by_id
