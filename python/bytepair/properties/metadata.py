"""Reads the entries of the table (`roles`) of a tokenizer, and says what a file loses of them.

They come from its notes, or else from the names of its special tokens and its post-processor. An
entry that a reader would derive from these anyway is not lost without the note.

`tokenizers` and `transformers` add BOS and EOS as the post-processor says, whatever `add_bos_token`
says; llama.cpp has only the flags. The core has the post-processor (`TextRules.around`), and the
flags are derived from it. It is written back if it does what the flags say, or more than they can
say; otherwise a post-processor is made from the flags.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from bytepair import _core
from bytepair._core import to_bytes
from bytepair.errors import warn
from bytepair.properties import roles
from bytepair.properties.roles import ENTRIES, FLAGS, TOKENS, Metadata, MetadataEntry
from bytepair.properties.tokens import EMPTY

#: A flag that adds a token to texts, and the role of the token.
ADDED: Final = {"add_bos_token": "bos_token", "add_eos_token": "eos_token"}

#: The note with the post-processor of a file as it was, which the core writes in place of its own.
POST_PROCESSOR: Final = "huggingface.post_processor"

# ---------------------------------------------------------------------------- values


def of(tokenizer: _core.Tokenizer) -> Metadata:
    """What the notes of a tokenizer state."""
    return Metadata.of(tokenizer.notes)


def tokens(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The tokens with a role, by the keys of their notes."""
    by_note = {note: name for note, name in of(tokenizer).tokens.items() if name}
    return by_note | {roles.NOTES[role]: name for role, name in roles.roles(tokenizer).items()}


def engine_tokens(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The tokens with a role, for programs that run models: they stop at `eos_token`.

    It is the token that ends a turn, if there is one and no file or caller states `eos`. The one
    that ends a text is then in a field of its own, which is empty if there is none.
    """
    by_note = tokens(tokenizer)
    end = by_note.get("eot_token")
    stated = "eos_token" in tokenizer.notes or flags(tokenizer).get("add_eos_token")
    if stated or end is None or by_note.get("eos_token") == end:
        return by_note
    return {**by_note, "eos_token": end, roles.END_OF_TEXT: by_note.get("eos_token", "")}


def flags(tokenizer: _core.Tokenizer) -> dict[str, bool]:
    """The flags that are stated, or that the post-processor sets."""
    known = dict(of(tokenizer).flags)
    for side in _sides(around(tokenizer), tokenizer):
        if side.tokens and side.tokens == side.ends:
            known.setdefault(side.flag, True)
    return {entry.note: known[entry.note] for entry in FLAGS if entry.note in known}


def token_id(tokenizer: _core.Tokenizer, name: str) -> int | None:
    """The id of a token with a role; it may be an ordinary one, as Hugging Face writes it."""
    if name in tokenizer.special_tokens:
        return tokenizer.special_tokens[name]
    is_pieces = tokenizer.merge_rule == "characters"
    token = name.replace("▁", " ").encode() if is_pieces else to_bytes(name)
    return tokenizer.mergeable_ranks().get(token or b"")


def ends(tokenizer: _core.Tokenizer) -> list[str]:
    """The tokens that end a turn and a text, at which generation stops if nothing is stated."""
    by_note = tokens(tokenizer)
    return list(dict.fromkeys(filter(None, map(by_note.get, ("eot_token", "eos_token")))))


def stops(tokenizer: _core.Tokenizer) -> list[int]:
    """The ids at which generation stops."""
    special = tokenizer.special_tokens
    names = of(tokenizer).stops or ends(tokenizer)
    ids = [stop if isinstance(stop, int) else special.get(stop) for stop in names]
    return list(dict.fromkeys(id for id in ids if id is not None))


def named(ids: Iterable[int], special: Mapping[str, int]) -> list[str | int]:
    """The names of the special tokens among ids, which may get other ids; ordinary ones as ids."""
    names = {id: name for name, id in special.items()}
    return [names.get(id, id) for id in ids]


def values(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The value of each entry that a tokenizer has, by the key of its note.

    Flags that are false are left out, as they are where nothing is said; so are post-processors
    that only do what the flags say.
    """
    stated, surroundings = list(of(tokenizer).stops), around(tokenizer)
    templates = roles.chat_templates(tokenizer)
    by_note: dict[str, Any] = {
        **tokens(tokenizer),
        **flags(tokenizer),
        roles.TEMPLATE: templates.pop(roles.DEFAULT, None),
        roles.TEMPLATES: templates,
        roles.STOPS: [] if stated == ends(tokenizer) else stated,
        POST_PROCESSOR: surroundings if is_more(surroundings, tokenizer) else None,
    }
    return {note: value for note, value in by_note.items() if value}


# ---------------------------------------------------------------------------- losses


def lost(
    tokenizer: _core.Tokenizer, notes: Mapping[str, str] = MappingProxyType({})
) -> list[MetadataEntry]:
    """The entries that a file from which these notes are read would not have, or otherwise."""
    here = values(tokenizer)
    bare = _core.Model.from_ranks({}, r"(?s:.)", tokenizer.special_tokens, dict(notes))
    there = values(_core.Tokenizer(bare))
    return [entry for entry in ENTRIES if here.get(entry.note) != there.get(entry.note)]


def losses(tokenizer: _core.Tokenizer, format: str) -> list[str]:
    """The entries that a format has no place for, as `bytepair.compat.export_losses` reports them.

    Formats other than those of Hugging Face and GGUF have places for BOS and EOS at most.
    """
    if format == "huggingface":
        return [*unspeakable_flags(tokenizer), *_lost_around(tokenizer)]
    entries = lost(tokenizer)
    if format == "qwen3":
        by_note = tokens(tokenizer)
        end = engine_tokens(tokenizer).get("eos_token", by_note.get("eot_token"))
        is_kept = by_note.get("eos_token") == end
        entries = [each for each in entries if each.note not in ADDED.values()]
        entries += [each for each in TOKENS if each.note == "eos_token" and not is_kept]
    return described(tokenizer, entries)


def lost_alone(tokenizer: _core.Tokenizer) -> list[str]:
    """The entries that a `tokenizer.json` without the other files of its folder does not have."""
    notes = with_implied(Metadata(), tokenizer.special_tokens, _written(tokenizer)).to_notes()
    entries = [entry for entry in lost(tokenizer, notes) if entry.kind != "around"]
    return [
        f"{what} (export to a folder, whose other files have this)"
        for what in described(tokenizer, entries)
    ] + _lost_around(tokenizer, alone=True)


def described(tokenizer: _core.Tokenizer, entries: Iterable[MetadataEntry]) -> list[str]:
    """The loss of entries, those of one kind in one line."""
    notes: dict[str, list[str]] = {}
    for entry in entries:
        notes.setdefault(entry.kind, []).append(entry.note)
    stops = ", ".join(map(str, of(tokenizer).stops))
    words = {
        "token": f"the roles of tokens: {', '.join(notes.get('token', ()))}",
        "flag": f"the flags: {', '.join(notes.get('flag', ()))}",
        "template": "the chat template",
        "templates": f"the chat templates {', '.join(of(tokenizer).templates)}",
        "stops": f"the tokens at which generation stops: {stops}",
        "around": "what the post-processor puts around texts",
    }
    return [words[kind] for kind in notes]


def unspeakable_flags(tokenizer: _core.Tokenizer) -> list[str]:
    """The flags that add a token although no token has the role."""
    by_role, stated = tokens(tokenizer), flags(tokenizer)
    return [
        f"the flag {note}, since no token has the role {role}"
        for note, role in ADDED.items()
        if stated.get(note) and by_role.get(role) not in tokenizer.special_tokens
    ]


# ---------------------------------------------------------------------------- around a text

#: The names of the tokens before and after a text; "" for one that is not special.
Surroundings: TypeAlias = tuple[list[str], list[str]]


class _Side(NamedTuple):
    """One side of a text: its tokens, the one with the role in a list, its note, the flag."""

    tokens: list[str]
    ends: list[str]
    note: str
    flag: str


def _sides(surroundings: Surroundings, tokenizer: _core.Tokenizer) -> list[_Side]:
    by_role = {roles.NOTES[role]: name for role, name in roles.roles(tokenizer).items()}
    return [
        _Side(tokens, [by_role[note]] if note in by_role else [], note, flag)
        for tokens, (flag, note) in zip(surroundings, ADDED.items(), strict=True)
    ]


def around(tokenizer: _core.Tokenizer) -> Surroundings:
    """The tokens that the post-processor of a tokenizer puts around a text."""
    names = {id: name for name, id in tokenizer.special_tokens.items()}
    before, after = _core.text_rules(tokenizer).around
    return [names.get(id, "") for id in before], [names.get(id, "") for id in after]


def is_more(surroundings: Surroundings, tokenizer: _core.Tokenizer) -> bool:
    """Whether a post-processor does more than to add BOS and EOS."""
    return any(side.tokens not in ([], side.ends) for side in _sides(surroundings, tokenizer))


def with_implied(
    metadata: Metadata, special: Mapping[str, int], surroundings: Surroundings
) -> Metadata:
    """The metadata of a file with the flags that its post-processor implies, and its roles."""
    tokens, flags, usual = dict(metadata.tokens), dict(metadata.flags), roles.usual(special)
    by_name = {roles.NOTES[role]: name for role, name in usual.items()}
    for side, (flag, note) in zip(surroundings, ADDED.items(), strict=True):
        if len(side) != 1 or tokens.get(note, "") not in ("", side[0]):
            continue  # more than a flag says, or another token has the role
        if tokens.get(note, by_name.get(note)) != side[0]:
            tokens[note] = side[0]
        if flags.get(flag) is False:
            warn(
                f"{flag} is false, but the post-processor of tokenizer.json adds {side[0]!r} to "
                "texts; it is read as true"
            )
        flags[flag] = True
    return metadata._replace(tokens=tokens, flags=flags)


def _written(tokenizer: _core.Tokenizer) -> Surroundings:
    """What the post-processor to write puts around a text: the same, or else what flags say."""
    surroundings, known = around(tokenizer), flags(tokenizer)
    stated = any(tokenizer.notes.get(flag) for flag in ADDED)
    if not stated or is_more(surroundings, tokenizer):
        return surroundings
    sides = _sides(surroundings, tokenizer)
    before, after = (side.ends if known.get(side.flag) else [] for side in sides)
    return before, after


def _lost_around(tokenizer: _core.Tokenizer, *, alone: bool = False) -> list[str]:
    """What is read otherwise from the post-processor to write, since it adds its tokens.

    A `tokenizer.json` alone does not state the roles.
    """
    notes, lost = tokenizer.notes, []
    for tokens, ends, note, flag in _sides(_written(tokenizer), tokenizer):
        if tokens and tokens == ends and notes.get(flag) == "false":
            lost.append(f"the flag {flag}, which is false, while the post-processor adds the token")
        elif len(tokens) == 1 and (alone or not notes.get(note)) and tokens != ends:
            lost.append(
                f"the role {note} and the flag {flag}, which the post-processor sets otherwise"
            )
    return lost


def with_written(tokenizer: _core.Tokenizer) -> _core.Tokenizer:
    """The tokenizer with the post-processor to write, in the form of `transformers`."""
    surroundings = _written(tokenizer)
    if surroundings == around(tokenizer):
        return tokenizer
    special = tokenizer.special_tokens

    def part(letter: str, number: int) -> list[dict[str, Any]]:
        begin, end = (
            [{"SpecialToken": {"id": name, "type_id": number}} for name in side]
            for side in surroundings
        )
        return [*begin, {"Sequence": {"id": letter, "type_id": number}}, *end]

    processor: dict[str, Any] = {
        "type": "TemplateProcessing",
        "single": part("A", 0),
        "pair": [*part("A", 0), *part("B", 1)],
        "special_tokens": {
            name: {"id": name, "ids": [special[name]], "tokens": [name]}
            for side in surroundings
            for name in side
        },
    }
    trims = _core.text_rules(tokenizer).trim_offsets
    if trims is not None:
        bytes_first = {"type": "ByteLevel", "add_prefix_space": trims, "trim_offsets": True}
        processor = {"type": "Sequence", "processors": [bytes_first, processor]}
    notes = tokenizer.notes | {POST_PROCESSOR: json.dumps(processor)}
    return _core.Tokenizer(_core.with_notes(tokenizer, notes))


# ---------------------------------------------------------------------------- other ids

#: The notes that `Metadata` reads.
_NOTES: Final = {entry.note for entry in ENTRIES} | {roles.CONFIG}


def carried(tokenizer: _core.Tokenizer, special: Mapping[str, int]) -> dict[str, str]:
    """The notes for a tokenizer with other merges and the same special tokens, by new ids."""
    notes = {key: value for key, value in tokenizer.notes.items() if key in _NOTES}
    return renumbered(notes, special)


def renumbered(
    notes: Mapping[str, str], special: Mapping[str, int], ids: Mapping[int, int] | None = None
) -> dict[str, str]:
    """The notes of a tokenizer whose tokens get other ids; of ordinary ones, None if none does."""
    old = Metadata.of(notes)
    moved = [
        (stop if stop in special else None) if isinstance(stop, str)
        else stop if ids is None else ids.get(stop)
        for stop in old.stops
    ]  # fmt: skip
    new = old._replace(stops=[stop for stop in moved if stop is not None])
    new_notes = {key: "" if key in _NOTES else value for key, value in notes.items()}
    if ids is not None:
        new_notes.pop(EMPTY, None)
    return new_notes | new.to_notes()
