"""GGUF: the keys of roles, flags, chat templates and stop tokens (the table in `entries`).

llama.cpp adds BOS and EOS by flags, and stops at EOS, EOT and EOM, and at tokens with certain names
(`llamacpp.STOPS`). A file cannot say that it has no such role: if it does not set BOS or EOS,
llama.cpp uses an unrelated token. So the keys of such roles are filled with other tokens, and a key
of bytepair's own lists the true ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import UnknownIdError
from bytepair.files.safe import id_of, typed
from bytepair.formats.gguf import llamacpp
from bytepair.properties import metadata, roles
from bytepair.properties.roles import END_OF_TEXT, FLAGS, TOKENS

#: The key of the roles that tokens have; the others are fallbacks that llama.cpp requires.
ROLES_KEY: Final = "bytepair.roles"
_TEMPLATE: Final = "tokenizer.chat_template"
#: The names of the other templates, as the package `gguf` lists them.
_TEMPLATES: Final = "tokenizer.chat_templates"
_STOPS: Final = "tokenizer.ggml.eos_token_ids"
#: The names of templates that keys may have.
_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,100}")
#: The id that llama.cpp uses for EOS if a file does not set it.
_DEFAULT_END: Final = 11

#: A value of a file: of type u32, bool, string, or an array of i32 or of strings.
Value: TypeAlias = int | bool | str | Sequence[int] | Sequence[str]


def read(
    values: Mapping[str, Any], names: Sequence[str], special: Mapping[str, int]
) -> dict[str, str]:
    """The notes of a file, whose ids have these names."""
    stops = typed(values.get(_STOPS) or [], list, _STOPS)
    ids = [id_of(id, _STOPS) for id in stops]
    by_name = {
        key.removeprefix(_TEMPLATE)[1:] or roles.DEFAULT: typed(value, str, key)
        for key, value in values.items()
        if key == _TEMPLATE or key.startswith(f"{_TEMPLATE}.")
    }
    # llama.cpp takes flags from the rule that splits texts.
    usual = llamacpp.usual_flags(
        values.get("tokenizer.ggml.model"), values.get("tokenizer.ggml.pre")
    )
    flags = dict.fromkeys(usual, True) | {
        entry.note: typed(values[entry.gguf], bool, entry.gguf)
        for entry in FLAGS
        if values.get(entry.gguf) is not None
    }
    stated = metadata.named(ids, special)
    return roles.to_notes(_roles(values, names), flags, stated, by_name or None)


def _roles(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    ids = {entry.note: values.get(entry.gguf) for entry in TOKENS}
    by_note = {
        note: names[id] for note, id in ids.items() if type(id) is int and 0 <= id < len(names)
    }
    stated = values.get(ROLES_KEY)
    if not isinstance(stated, str):
        return by_note
    true = stated.split(" ")
    fields = {note: by_note.get(note) if note in true else None for note in ids}
    if END_OF_TEXT in true:  # if EOS is not the end of a turn, another program has changed it
        fields |= {"eos_token": by_note.get("eos_token"), END_OF_TEXT: ""}
    return roles.stated(fields, ROLES_KEY)


def keys(tokenizer: _core.Tokenizer) -> dict[str, Value]:
    """The keys and values of a file."""
    ids, by_note = role_ids(tokenizer), metadata.engine_tokens(tokenizer)
    true = [
        END_OF_TEXT if note == "eos_token" and END_OF_TEXT in by_note else note for note in by_note
    ]
    values: dict[str, Value] = {ROLES_KEY: " ".join(dict.fromkeys(true))}
    values |= {entry.gguf: ids[entry.note] for entry in TOKENS if entry.note in ids}
    flags, by_role = metadata.flags(tokenizer), metadata.tokens(tokenizer)
    for note, role in metadata.ADDED.items():  # always, since llama.cpp has no one default
        flags[note] = flags.get(note, False) and by_role.get(role) in tokenizer.special_tokens
    values |= {e.gguf: flags[e.note] for e in FLAGS if e.note in flags}
    if roles.stops_of(tokenizer.notes):
        values[_STOPS] = metadata.stops(tokenizer)
    templates = roles.written_templates(tokenizer)
    template = templates.pop(roles.DEFAULT, "")
    if template or tokenizer.notes.get(roles.TEMPLATE) == "":
        values[_TEMPLATE] = template
    others = {name: text for name, text in templates.items() if _NAME.fullmatch(name)}
    values |= {f"{_TEMPLATE}.{name}": text for name, text in others.items()}
    return values | ({_TEMPLATES: list(others)} if others else {})


def role_ids(tokenizer: _core.Tokenizer) -> dict[str, int]:
    """The id of each role, by the keys of notes, with what llama.cpp needs in place of others.

    If no token ends a text, the token that ends a turn is used, or the one that begins a text. A
    token at which llama.cpp would not stop takes the role of ending a message, if that is free.
    """
    by_note = metadata.engine_tokens(tokenizer).items()
    found = {note: metadata.token_id(tokenizer, name) for note, name in by_note}
    ids = {note: id for note, id in found.items() if id is not None}
    ends = [ids[note] for note in ("eos_token", "eot_token", "bos_token") if note in ids]
    if ends:
        ids = {"bos_token": ends[0], "eos_token": ends[0]} | ids
    if "eom_token" not in ids and (more := _other_stops(tokenizer, ids)):
        ids["eom_token"] = more[0]
    return ids


def _other_stops(tokenizer: _core.Tokenizer, ids: Mapping[str, int]) -> list[int]:
    """The ids at which generation stops, without those at which llama.cpp does."""
    special = tokenizer.special_tokens
    known = {ids.get(note) for note in ("eos_token", "eot_token", "eom_token")}
    known |= {special.get(name) for name in llamacpp.STOPS}
    return [id for id in metadata.stops(tokenizer) if id not in known]


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """The entries of the table that a file cannot represent."""
    ids, lost = role_ids(tokenizer), []
    if "eos_token" not in ids:
        lost.append(
            "the token that ends a text, since no token has this role: llama.cpp would stop at id "
            f"{_DEFAULT_END} ({shown(tokenizer, _DEFAULT_END)})"
        )
    if more := _other_stops(tokenizer, ids):
        names = ", ".join(shown(tokenizer, id) for id in more)
        lost.append(f"the tokens at which generation stops: llama.cpp would not stop at {names}")
    lost += metadata.unspeakable_flags(tokenizer)
    if metadata.POST_PROCESSOR in metadata.values(tokenizer):
        lost.append("what the post-processor puts around texts: llama.cpp adds BOS and EOS at most")
    for name in roles.templates_of(tokenizer.notes):
        if not _NAME.fullmatch(name):
            what = "a key has letters, digits and underscores"
            lost.append(f"the chat template {name!r}: {what}")
    for note, name in metadata.tokens(tokenizer).items():
        if metadata.token_id(tokenizer, name) is None:
            lost.append(f"the role {note} of {name!r}, which is not a token")
    return lost


def shown(tokenizer: _core.Tokenizer, id: int) -> str:
    """The token of an id, for messages."""
    try:
        return repr(tokenizer.token_bytes(id).decode("utf-8", "replace"))
    except UnknownIdError:
        return "no token"
