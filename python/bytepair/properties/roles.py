"""What files say of a tokenizer besides its ids: roles of tokens, flags, chat templates, stops.

They change no id, so they are notes: saved with the tokenizer, read from and written to the formats
that store them, and ignored when tokenizers are compared. Readers and writers go through the table
of entries. Without a note, roles follow from the names of the special tokens; the core has the
table of names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from bytepair import _core
from bytepair._internal.checks import refuse
from bytepair.errors import ArgumentError, FormatError, SpecialTokenError
from bytepair.files.safe import id_of as checked_id
from bytepair.files.safe import json_note, typed


class MetadataEntry(NamedTuple):
    """One entry of the table.

    Attributes:
        note: the key of its note. A token or a flag has this name in the files of Hugging Face too.
        kind: what it is: a token with a role; a flag; the chat template; the other chat templates,
            by name; the tokens at which generation stops; what is put around a text.
        gguf: its key in GGUF; empty if the flags express it, or it is a loss.
        role: the name of a role in `Tokenizer.roles`; other roles have none.
    """

    note: str
    kind: Literal["token", "flag", "template", "templates", "stops", "around"]
    gguf: str
    role: str | None = None


def _token(name: str, key: str, role: str | None = None) -> MetadataEntry:
    return MetadataEntry(f"{name}_token", "token", f"tokenizer.ggml.{key}_token_id", role)


ENTRIES: Final[tuple[MetadataEntry, ...]] = (
    _token("bos", "bos", "bos"),
    _token("eos", "eos", "eos"),
    _token("pad", "padding", "pad"),
    _token("eot", "eot", "end_of_turn"),
    _token("eom", "eom"),
    _token("unk", "unknown"),
    _token("sep", "seperator"),  # llama.cpp's spelling  # codespell:ignore seperator
    _token("cls", "cls"),
    _token("mask", "mask"),
    *(_token(f"fim_{part}", f"fim_{part}") for part in ("pre", "suf", "mid", "pad", "rep", "sep")),
    MetadataEntry("add_bos_token", "flag", "tokenizer.ggml.add_bos_token"),
    MetadataEntry("add_eos_token", "flag", "tokenizer.ggml.add_eos_token"),
    MetadataEntry("chat_template", "template", "tokenizer.chat_template"),
    MetadataEntry("chat_templates", "templates", "tokenizer.chat_template."),
    MetadataEntry("stop_tokens", "stops", "tokenizer.ggml.eos_token_ids"),
    MetadataEntry("huggingface.post_processor", "around", ""),
)

TOKENS: Final = tuple(entry for entry in ENTRIES if entry.kind == "token")
FLAGS: Final = tuple(entry for entry in ENTRIES if entry.kind == "flag")

#: The roles, and the note of each. An empty note means that no token has the role.
NOTES: Final = {entry.role: entry.note for entry in TOKENS if entry.role}

#: The field beside `eos_token` with the token that ends a text, where `eos_token` is the one that
#: ends a turn, since programs stop at `eos_token`. A file that has it does not state the role eos.
END_OF_TEXT: Final = "eod_token"

#: The notes of the default chat template, of the others, and of the tokens at which generation
#: stops; the last two are JSON, as that of the other fields of `tokenizer_config.json`.
TEMPLATE: Final = "chat_template"
TEMPLATES: Final = "chat_templates"
STOPS: Final = "stop_tokens"
CONFIG: Final = "huggingface.config"

#: The name of the template that is used if none is named.
DEFAULT: Final = "default"


def to_notes(
    tokens: Mapping[str, str],
    flags: Mapping[str, bool],
    stops: Sequence[str | int],
    templates: Mapping[str, str] | None,
) -> dict[str, str]:
    """The notes of what a file states of a tokenizer besides its ids.

    Args:
        tokens: the tokens with a role, by note; "" where no token has it, whatever its name.
        flags: the flags.
        stops: the tokens at which generation stops: names, or ids of ordinary tokens.
        templates: the chat templates by name; None where nothing is said of them.
    """
    notes = dict(tokens) | {flag: "true" if value else "false" for flag, value in flags.items()}
    if templates is not None:
        others = {name: with_tags(text) for name, text in templates.items()}
        notes[TEMPLATE] = others.pop(DEFAULT, "")
        notes |= {TEMPLATES: json.dumps(others)} if others else {}
    return notes | ({STOPS: json.dumps(list(stops))} if stops else {})


def flags_of(notes: Mapping[str, str]) -> dict[str, bool]:
    """The flags that are stated."""
    flags = {entry.note: notes[entry.note] for entry in FLAGS if notes.get(entry.note)}
    if wrong := [note for note, text in flags.items() if text not in {"true", "false"}]:
        place = f"the note {wrong[0]!r}"
        raise FormatError(place, f"{flags[wrong[0]]!r} is neither 'true' nor 'false'")
    return {note: text == "true" for note, text in flags.items()}


def stops_of(notes: Mapping[str, str]) -> list[str | int]:
    """The tokens at which generation stops, if they are stated."""
    stops = json_note(notes, STOPS, list)
    return [
        each if isinstance(each, str) else checked_id(each, f"the note {STOPS!r}") for each in stops
    ]


def templates_of(notes: Mapping[str, str]) -> dict[str, str]:
    """The chat templates other than the default one."""
    place = f"the note {TEMPLATES!r}"
    by_name = json_note(notes, TEMPLATES, dict)
    return {name: typed(text, str, f"{place}: {name!r}") for name, text in by_name.items()}


def roles(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The names of the special tokens that have a role; see `Tokenizer.roles`."""
    return dict(_core.roles(tokenizer))


def id_of(tokenizer: _core.Tokenizer, role: str) -> int:
    """The id of the special token with a role; an error if there is none."""
    special, name = tokenizer.special_tokens, roles(tokenizer).get(role)
    if name is None:
        raise SpecialTokenError(
            f"no special token has the role {role}",
            hint=f"{giving(role)}, of {', '.join(special) or 'none'}",
        )
    return special[name]


def giving(role: str) -> str:
    """The way out where no special token has a role."""
    return f'give a special token this role with Tokenizer.replace(roles={{"{role}": ...}})'


def usual(special: Collection[str]) -> dict[str, str]:
    """The roles that special tokens have by their names alone."""
    return dict(_core.usual_roles([*special]))


def changed_notes(
    tokenizer: _core.Tokenizer,
    names: Mapping[str, str | None] | None,
    templates: str | Mapping[str, str | None] | None,
) -> dict[str, str]:
    """The notes that set or remove roles and chat templates; see `Tokenizer.replace`."""
    changed = _role_notes(tokenizer, names or {})
    if not isinstance(templates, str | Mapping | None):
        raise refuse("chat_template", templates, "a str, or a mapping of names to str")
    by_name = {DEFAULT: templates} if isinstance(templates, str) else dict(templates or {})
    for template in by_name.values():
        if not isinstance(template, str | None):
            raise refuse("chat_template", template, "a str, or names and str")
    if DEFAULT in by_name:
        changed[TEMPLATE] = by_name.pop(DEFAULT) or ""
    if by_name:
        others = templates_of(tokenizer.notes) | by_name
        kept = {name: text for name, text in others.items() if text}
        changed[TEMPLATES] = json.dumps(kept) if kept else ""
    return changed


def _role_notes(tokenizer: _core.Tokenizer, names: Mapping[str, str | None]) -> dict[str, str]:
    notes = {}
    for role, name in names.items():
        if role not in NOTES:
            raise ArgumentError(f"{role!r} is not a role; the roles are {', '.join(NOTES)}")
        if name is not None and name not in tokenizer.special_tokens:
            raise SpecialTokenError(
                f"{name!r} cannot be the {role} token, since it is not a special token of the "
                f"tokenizer; it has {', '.join(tokenizer.special_tokens) or 'none'}"
            )
        notes[NOTES[role]] = name or ""
    if tokenizer.notes.get(STOPS) and not names.keys().isdisjoint(("eos", "end_of_turn")):
        notes[STOPS] = ""  # generation stops at the tokens that have these roles now
    return notes


def stated(fields: Mapping[str, Any], place: str) -> dict[str, str]:
    """The tokens that have a role in the fields of a file, by their notes.

    Each is a text or an object with flags. Where a role is null, no token has it.
    """
    tokens = {}
    for note in (entry.note for entry in TOKENS):
        name = fields.get(note)
        name = name.get("content") if isinstance(name, dict) else name
        if isinstance(name, str):
            tokens[note] = typed(name, str, f"{place}: {note}")
        elif note in fields and note in NOTES.values():
            tokens[note] = ""
    if END_OF_TEXT in fields and tokens.get("eos_token") == tokens.get("eot_token"):
        tokens.pop("eos_token", None)  # it was written for programs, see `metadata.engine_tokens`
    return tokens


def chat_templates(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """All chat templates by name; see `Tokenizer.chat_templates`."""
    special, template = tokenizer.special_tokens, tokenizer.notes.get(TEMPLATE)
    if template is None and "<|assistant_end|>" in special:
        has_all = special.keys() >= set(re.findall(r"<\|\w+\|>", nanochat()))
        template = nanochat() if has_all else None
    return ({DEFAULT: template} if template else {}) | templates_of(tokenizer.notes)


@cache
def nanochat() -> str:
    """The chat template of nanochat, in Jinja."""
    return Path(__file__).with_name("nanochat.jinja").read_text(encoding="utf-8")


#: The tags of what is trained on, which `transformers` reads and plain Jinja refuses, as they stand
#: in a template, and as comments of the same length.
_TAG: Final = re.compile(r"\{%([-+]?\s*(?:end)?generation\s*[-+]?)%\}")
_COMMENT: Final = re.compile(r"\{#([-+]?\s*(?:end)?generation\s*[-+]?)#\}")


def written_templates(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """All chat templates by name, as any Jinja can read them: their tags are comments."""
    templates = chat_templates(tokenizer)
    return {name: _TAG.sub(r"{#\1#}", template) for name, template in templates.items()}


def with_tags(template: str) -> str:
    """The template that is written with these comments.

    A template whose comments are not in pairs has other comments, such as a heading.

    Example:
        >>> with_tags("{# generation #}a{# endgeneration #}")
        '{% generation %}a{% endgeneration %}'
        >>> with_tags("{# generation #}a")
        '{# generation #}a'
    """
    comments = _COMMENT.findall(template)
    are_paired = 2 * sum("end" in comment for comment in comments) == len(comments)
    return _COMMENT.sub(r"{%\1%}", template) if are_paired else template
