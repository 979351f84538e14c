"""Reads the entries of the table (`roles`) of a tokenizer, and says what a file loses of them.

They come from its notes, or else from the names of its special tokens and its post-processor. An
entry that a reader would derive from these anyway is not lost without the note.

`tokenizers` and `transformers` add BOS and EOS as the post-processor says, whatever `add_bos_token`
says; llama.cpp has only the flags. So if the core has a post-processor (`TextRules.around`), the
flags say what it does; otherwise one is made from the flags.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bytepair import _core
from bytepair._core import to_bytes
from bytepair.properties import roles
from bytepair.properties.roles import ENTRIES, FLAGS, TOKENS, MetadataEntry
from bytepair.properties.tokens import EMPTY

#: A flag that adds a token to texts, and the role of the token.
ADDED: Final = {"add_bos_token": "bos_token", "add_eos_token": "eos_token"}

#: The note with the post-processor of a file as it was, which the core writes in place of its own.
POST_PROCESSOR: Final = "huggingface.post_processor"


def tokens(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The tokens with a role, by the keys of their notes."""
    notes = tokenizer.notes
    by_note = {entry.note: notes[entry.note] for entry in TOKENS if notes.get(entry.note)}
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
    known, sides = roles.flags_of(tokenizer.notes), around(tokenizer)
    if any(sides):
        known |= {
            flag: bool(side) and side == ends
            for side, ends, flag in zip(sides, _ends(tokenizer), ADDED, strict=True)
        }
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
    names = roles.stops_of(tokenizer.notes) or ends(tokenizer)
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
    stated, sides = roles.stops_of(tokenizer.notes), around(tokenizer)
    pairs = zip(sides, _ends(tokenizer), strict=True)
    is_more = any(side and side != ends for side, ends in pairs)
    templates = roles.chat_templates(tokenizer)
    by_note: dict[str, Any] = {
        **tokens(tokenizer),
        **flags(tokenizer),
        roles.TEMPLATE: templates.pop(roles.DEFAULT, None),
        roles.TEMPLATES: templates,
        roles.STOPS: [] if stated == ends(tokenizer) else stated,
        POST_PROCESSOR: sides if is_more else None,
    }
    return {note: value for note, value in by_note.items() if value}


def lost(tokenizer: _core.Tokenizer, there: _core.Model) -> list[MetadataEntry]:
    """The entries that the tokenizer read from a file would not have, or otherwise."""
    here, read = values(tokenizer), values(_core.Tokenizer(there))
    return [entry for entry in ENTRIES if here.get(entry.note) != read.get(entry.note)]


def losses(tokenizer: _core.Tokenizer, format: str) -> list[str]:
    """The entries that a format has no place for, as `bytepair.compat.export_losses` reports them.

    Formats other than those of Hugging Face and GGUF have places for BOS and EOS at most.
    """
    if format == "huggingface":
        return unspeakable_flags(tokenizer)
    entries = lost(tokenizer, _core.Model.from_parts({}, r"(?s:.)", tokenizer.special_tokens))
    if format == "qwen3":
        by_note = tokens(tokenizer)
        end = engine_tokens(tokenizer).get("eos_token", by_note.get("eot_token"))
        is_kept = by_note.get("eos_token") == end
        entries = [each for each in entries if each.note not in ADDED.values()]
        entries += [each for each in TOKENS if each.note == "eos_token" and not is_kept]
    return described(tokenizer, entries)


def lost_alone(tokenizer: _core.Tokenizer) -> list[str]:
    """The entries that a `tokenizer.json` without the other files of its folder does not have."""
    written = with_written(tokenizer)
    notes = with_implied({}, written)
    entries = lost(tokenizer, _core.with_notes(written, notes))
    return [
        f"{what} (export to a folder, whose other files have this)"
        for what in described(tokenizer, entries)
    ]


def described(tokenizer: _core.Tokenizer, entries: Iterable[MetadataEntry]) -> list[str]:
    """The loss of entries, those of one kind in one line."""
    notes: dict[str, list[str]] = {}
    for entry in entries:
        notes.setdefault(entry.kind, []).append(entry.note)
    stops = ", ".join(map(str, roles.stops_of(tokenizer.notes)))
    words = {
        "token": f"the roles of tokens: {', '.join(notes.get('token', ()))}",
        "flag": f"the flags: {', '.join(notes.get('flag', ()))}",
        "template": "the chat template",
        "templates": f"the chat templates {', '.join(roles.templates_of(tokenizer.notes))}",
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


def around(tokenizer: _core.Tokenizer) -> tuple[list[str], list[str]]:
    """The tokens that the post-processor puts before and after a text; "" if not special."""
    names = {id: name for name, id in tokenizer.special_tokens.items()}
    before, after = _core.text_rules(tokenizer).around
    return [names.get(id, "") for id in before], [names.get(id, "") for id in after]


def _ends(tokenizer: _core.Tokenizer) -> tuple[list[str], list[str]]:
    """The tokens that begin and end a text by their roles, each in a list, if there is one."""
    by_role = roles.roles(tokenizer)
    begin, end = ([by_role[role]] if role in by_role else [] for role in ("bos", "eos"))
    return begin, end


def with_implied(notes: dict[str, str], tokenizer: _core.Tokenizer) -> dict[str, str]:
    """Notes with the roles that tokens have because the post-processor adds them."""
    usual = roles.usual(tokenizer.special_tokens)
    for side, role in zip(around(tokenizer), ("bos", "eos"), strict=True):
        if len(side) == 1 and usual.get(role) != side[0]:
            notes = {roles.NOTES[role]: side[0]} | notes
    return notes


def with_written(tokenizer: _core.Tokenizer) -> _core.Tokenizer:
    """The tokenizer with the post-processor of its flags, if it has none of its own."""
    known = flags(tokenizer)
    sides = [
        ends if known.get(flag) else [] for ends, flag in zip(_ends(tokenizer), ADDED, strict=True)
    ]
    if any(around(tokenizer)) or not any(sides):
        return tokenizer
    special = tokenizer.special_tokens

    def part(letter: str, number: int) -> list[dict[str, Any]]:
        begin, end = (
            [{"SpecialToken": {"id": name, "type_id": number}} for name in side] for side in sides
        )
        return [*begin, {"Sequence": {"id": letter, "type_id": number}}, *end]

    processor: dict[str, Any] = {
        "type": "TemplateProcessing",
        "single": part("A", 0),
        "pair": [*part("A", 0), *part("B", 1)],
        "special_tokens": {
            name: {"id": name, "ids": [special[name]], "tokens": [name]}
            for side in sides
            for name in side
        },
    }
    trims = _core.text_rules(tokenizer).trim_offsets
    if trims is not None:
        bytes_first = {"type": "ByteLevel", "add_prefix_space": trims, "trim_offsets": True}
        processor = {"type": "Sequence", "processors": [bytes_first, processor]}
    notes = tokenizer.notes | {POST_PROCESSOR: json.dumps(processor)}
    return _core.Tokenizer(_core.with_notes(tokenizer, notes))


#: The notes of what belongs to a tokenizer besides its ids.
_NOTES: Final = {entry.note for entry in ENTRIES} | {roles.CONFIG}


def carried(tokenizer: _core.Tokenizer, special: Mapping[str, int]) -> dict[str, str]:
    """The notes for a tokenizer with other merges and the same special tokens, by new ids."""
    notes = {key: value for key, value in tokenizer.notes.items() if key in _NOTES}
    return renumbered(notes | roles.to_notes({}, flags(tokenizer), (), None), special)


def renumbered(
    notes: Mapping[str, str], special: Mapping[str, int], ids: Mapping[int, int] | None = None
) -> dict[str, str]:
    """The notes of a tokenizer whose tokens get other ids; of ordinary ones, None if none does."""
    moved = [
        (stop if stop in special else None) if isinstance(stop, str)
        else stop if ids is None else ids.get(stop)
        for stop in roles.stops_of(notes)
    ]  # fmt: skip
    stops = [stop for stop in moved if stop is not None]
    # The core has what the post-processor does.
    changed = {roles.STOPS: json.dumps(stops) if stops else "", POST_PROCESSOR: ""}
    new = {key: changed.get(key, value) for key, value in notes.items()}
    if ids is not None:
        new.pop(EMPTY, None)
    return new
