"""Reads and sets the entries of `bytepair.properties.entries` on a tokenizer.

They come from its notes, or else from the names of its special tokens (`roles`). An entry that a
reader would derive from the special tokens anyway is not lost without the note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from bytepair import _core
from bytepair._core import to_bytes
from bytepair.properties import post_processor, roles
from bytepair.properties.entries import (
    END_OF_TEXT,
    ENTRIES,
    FLAGS,
    JSON_NOTES,
    TOKENS,
    Metadata,
    MetadataEntry,
    templates_of,
)
from bytepair.properties.tokens import EMPTY

#: A flag that adds a token to texts, and the role of the token.
ADDED: Final = {"add_bos_token": "bos_token", "add_eos_token": "eos_token"}


# ---------------------------------------------------------------------------- values


def of(tokenizer: _core.Tokenizer) -> Metadata:
    """What the notes of a tokenizer state."""
    return Metadata.of(tokenizer.notes)


def tokens(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The tokens with a role, by the keys of their notes."""
    stated = of(tokenizer).tokens
    by_note = {note: name for note, name in stated.items() if name}
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
    return {**by_note, "eos_token": end, END_OF_TEXT: by_note.get("eos_token", "")}


def without_roles(tokenizer: _core.Tokenizer) -> list[str]:
    """The notes of the roles that a token would have by its name, and which were taken from it."""
    usual = roles.usual(tokenizer.special_tokens)
    return [
        note
        for role, note in roles.NOTES.items()
        if tokenizer.notes.get(note) == "" and role in usual
    ]


def flags(tokenizer: _core.Tokenizer) -> dict[str, bool]:
    """The flags that are stated, or that the post-processor sets."""
    stated = {**of(tokenizer).flags} | dict.fromkeys(post_processor.implied(tokenizer), True)
    return {entry.note: stated[entry.note] for entry in FLAGS if entry.note in stated}


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
    return list(
        dict.fromkeys(by_note[note] for note in ("eot_token", "eos_token") if note in by_note)
    )


def stops(tokenizer: _core.Tokenizer) -> list[int]:
    """The ids at which generation stops."""
    special = tokenizer.special_tokens
    tokens_at_ends = of(tokenizer).stops or ends(tokenizer)
    ids = [stop if isinstance(stop, int) else special.get(stop) for stop in tokens_at_ends]
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
    by_note: dict[str, Any] = dict(tokens(tokenizer))
    by_note |= {note: True for note, value in flags(tokenizer).items() if value}
    around = post_processor.of(tokenizer) if post_processor.is_more(tokenizer) else None
    stated = list(of(tokenizer).stops)
    more = {
        roles.TEMPLATE: roles.chat_template(tokenizer),
        roles.TEMPLATES: templates_of(tokenizer.notes),
        roles.STOPS: [] if stated == ends(tokenizer) else stated,
        post_processor.NOTE: around,
    }
    return by_note | {note: value for note, value in more.items() if value}


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

    Formats other than those of Hugging Face and GGUF have places for the roles at most.
    """
    if format == "huggingface":
        return [*unspeakable_flags(tokenizer), *post_processor.losses(tokenizer)]
    entries = [entry for entry in lost(tokenizer) if format not in entry.others]
    by_note = tokens(tokenizer)
    end = engine_tokens(tokenizer).get("eos_token", by_note.get("eot_token"))
    if format == "qwen3" and by_note.get("eos_token") != end:
        entries.append(next(entry for entry in TOKENS if entry.note == "eos_token"))
    return described(tokenizer, entries)


def lost_alone(tokenizer: _core.Tokenizer) -> list[str]:
    """The entries that a `tokenizer.json` without the other files of its folder does not have."""
    around = post_processor.written(tokenizer)
    notes = post_processor.with_implied(Metadata(), tokenizer.special_tokens, around).to_notes()
    entries = [entry for entry in lost(tokenizer, notes) if entry.kind != "around"]
    return [
        f"{what} (export to a folder, whose other files have this)"
        for what in described(tokenizer, entries)
    ]


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
        "templates": f"the chat templates {', '.join(templates_of(tokenizer.notes))}",
        "stops": f"the tokens at which generation stops: {stops}",
        "around": "what the post-processor puts around texts",
    }
    return [words[kind] for kind in notes]


def unspeakable_flags(tokenizer: _core.Tokenizer) -> list[str]:
    """The flags that add a token although no token has the role."""
    by_role = tokens(tokenizer)
    return [
        f"the flag {note}, since no token has the role {role}"
        for note, role in ADDED.items()
        if flags(tokenizer).get(note) and by_role.get(role) not in tokenizer.special_tokens
    ]


# ---------------------------------------------------------------------------- other ids

#: The notes that `Metadata` reads.
_NOTES: Final = {entry.note for entry in ENTRIES} | {*JSON_NOTES.values()}


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
    # A list or an object may contain ids.
    plain = {
        name: value for name, value in old.generation.items() if not isinstance(value, list | dict)
    }
    new = old._replace(
        stops=[stop for stop in moved if stop is not None],
        generation=plain,
    )
    new_notes = {key: "" if key in _NOTES else value for key, value in notes.items()}
    if ids is not None:
        new_notes.pop(EMPTY, None)
    return new_notes | new.to_notes()
