"""The roles of special tokens, such as to begin or end a text, and the chat template.

Roles change no id, so they are notes: saved with the tokenizer, read from and written to the
formats that store them, and ignored when tokenizers are compared. Without a note, roles follow from
the names of the special tokens; the core has the table of names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from bytepair import _core
from bytepair._internal.checks import refuse
from bytepair.errors import ArgumentError, SpecialTokenError
from bytepair.files.safe import typed
from bytepair.properties.entries import (
    END_OF_TEXT,
    JSON_NOTES,
    TEMPLATE_NOTE,
    TOKENS,
    Metadata,
    templates_of,
)

#: The roles, and the note of each. An empty note means that no token has the role.
NOTES: Final = {entry.role: entry.note for entry in TOKENS if entry.role}

#: The fields that a message of the assistant may consist of: text for the user, the reasoning
#: before it, and calls of tools.
MessageField: TypeAlias = Literal["content", "reasoning", "tool_calls"]

#: All of them.
FIELDS: Final[tuple[MessageField, ...]] = ("content", "reasoning", "tool_calls")

#: The name of the template that is used if none is named.
DEFAULT: Final = "default"

#: The notes of the chat templates, and of the tokens at which generation stops.
TEMPLATE: Final = TEMPLATE_NOTE
TEMPLATES: Final = JSON_NOTES["templates"]
STOPS: Final = JSON_NOTES["stops"]


def roles(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The names of the special tokens that have a role; see `Tokenizer.roles`."""
    return dict(_core.roles(tokenizer))


def id_of(tokenizer: _core.Tokenizer, role: str) -> int:
    """The id of the special token with a role; an error if there is none."""
    special, name = tokenizer.special_tokens, roles(tokenizer).get(role)
    if name is None:
        raise SpecialTokenError(
            f"no special token has the role {role}",
            hint=giving(role, f", of {', '.join(special) or 'none'}"),
        )
    return special[name]


def giving(role: str, more: str = "") -> str:
    """The way out where no special token has a role."""
    return f'give a special token this role with Tokenizer.replace(roles={{"{role}": ...}}){more}'


def usual(special: Collection[str]) -> dict[str, str]:
    """The roles that special tokens have by their names alone."""
    return dict(_core.usual_roles([*special]))


def notes(tokenizer: _core.Tokenizer, names: Mapping[str, str | None]) -> dict[str, str]:
    """The notes that assign roles to tokens; see `Tokenizer.replace`."""
    new_notes = {}
    for role, name in names.items():
        if role not in NOTES:
            raise ArgumentError(f"{role!r} is not a role; the roles are {', '.join(NOTES)}")
        if name is not None and name not in tokenizer.special_tokens:
            raise SpecialTokenError(
                f"{name!r} cannot be the {role} token, since it is not a special token of the "
                f"tokenizer; it has {', '.join(tokenizer.special_tokens) or 'none'}"
            )
        new_notes[NOTES[role]] = name or ""
    if tokenizer.notes.get(STOPS) and not names.keys().isdisjoint(("eos", "end_of_turn")):
        new_notes[STOPS] = ""  # generation stops at the tokens that have these roles now
    return new_notes


def chat_template(tokenizer: _core.Tokenizer) -> str | None:
    """The chat template in Jinja; see `Tokenizer.chat_templates`."""
    note = tokenizer.notes.get(TEMPLATE)
    if note is None and "<|assistant_end|>" in tokenizer.special_tokens:
        source = nanochat()
        if tokenizer.special_tokens.keys() >= set(re.findall(r"<\|\w+\|>", source)):
            return source
    return note or None


def chat_templates(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """All chat templates by name; see `Tokenizer.chat_templates`."""
    template = chat_template(tokenizer)
    default = {} if template is None else {DEFAULT: template}
    return default | templates_of(tokenizer.notes)


def changed_notes(
    tokenizer: _core.Tokenizer,
    names: Mapping[str, str | None] | None,
    templates: str | Mapping[str, str | None] | None,
) -> dict[str, str]:
    """The notes that set or remove roles and chat templates; see `Tokenizer.replace`."""
    changed = {} if names is None else notes(tokenizer, names)
    if not isinstance(templates, str | Mapping | None):
        raise refuse("chat_template", templates, "a str, or a mapping of names to str")
    by_name = {DEFAULT: templates} if isinstance(templates, str) else dict(templates or {})
    for name, template in by_name.items():
        if not isinstance(template, str | None):
            raise refuse("chat_template", template, "a str, or names and str")
        if name == DEFAULT:
            changed[TEMPLATE] = template or ""
    others = templates_of(tokenizer.notes) | by_name
    if by_name.keys() - {DEFAULT}:
        kept = {name: text for name, text in others.items() if text and name != DEFAULT}
        changed |= {TEMPLATES: ""} | Metadata(templates=kept).to_notes()
    return changed


@cache
def nanochat() -> str:
    """The chat template of nanochat, in Jinja."""
    return Path(__file__).with_name("nanochat.jinja").read_text(encoding="utf-8")


#: The tags of what is trained on, which `transformers` reads and plain Jinja refuses, as they stand
#: in a template, and as comments of the same length.
_TAG: Final = re.compile(r"\{%([-+]?\s*(?:end)?generation\s*[-+]?)%\}")
_COMMENT: Final = re.compile(r"\{#([-+]?\s*(?:end)?generation\s*[-+]?)#\}")


def with_comments(template: str) -> str:
    """A template that any Jinja can read: its tags of what is trained on are comments."""
    return _TAG.sub(r"{#\1#}", template)


def written_templates(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """All chat templates by name, as files of other libraries have them."""
    templates = chat_templates(tokenizer)
    return {name: with_comments(template) for name, template in templates.items()}


def with_tags(template: str) -> str:
    """The template that `with_comments` was given.

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


# ---------------------------------------------------------------------------- of a file


def stated(fields: Mapping[str, Any], place: str, special: Mapping[str, int]) -> dict[str, str]:
    """The tokens that have a role, which are texts or objects with flags, by their notes.

    A role of null is taken from the token that has it by its name.
    """
    tokens = {}
    by_name = {NOTES[role] for role in usual(special)}
    for note in (entry.note for entry in TOKENS):
        name = fields.get(note)
        name = name.get("content") if isinstance(name, dict) else name
        if isinstance(name, str):
            tokens[note] = typed(name, str, f"{place}: {note}")
        elif note in fields and note in by_name:
            tokens[note] = ""
    if END_OF_TEXT in fields and tokens.get("eos_token") == tokens.get("eot_token"):
        tokens.pop("eos_token", None)  # it was written for programs, see `metadata.engine_tokens`
    return tokens


def with_templates(metadata: Metadata, by_name: Mapping[str, str] | None) -> Metadata:
    """The metadata with these chat templates; None where nothing is said of them."""
    others = {name: with_tags(text) for name, text in (by_name or {}).items()}
    default = others.pop(DEFAULT, "")
    return metadata._replace(template=None if by_name is None else default, templates=others)
