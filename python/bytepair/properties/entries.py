"""The table of roles, flags and templates: what files say of a tokenizer besides its ids.

Each entry is a note in the native file, and has its place in the files of Hugging Face and in GGUF.
Readers and writers of these formats go through the table; `Metadata` has the values. An entry that
a format has no place for is a loss (`bytepair.properties.metadata`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from bytepair.errors import FormatError
from bytepair.files.safe import id_of, json_note, typed

#: What an entry is: a token with a role; a flag; the chat template; the other chat templates, by
#: name; the tokens at which generation stops; what is put around a text.
MetadataKind: TypeAlias = Literal["token", "flag", "template", "templates", "stops", "around"]

#: The name of the native file in a folder.
NATIVE: Final = "tokenizer.bytepair"

CONFIG: Final = "tokenizer_config.json"
MAP: Final = "special_tokens_map.json"
LEGACY: Final = "added_tokens.json"
TEMPLATE: Final = "chat_template.jinja"
TEMPLATES: Final = "additional_chat_templates"
GENERATION: Final = "generation_config.json"


class MetadataEntry(NamedTuple):
    """One entry of the table.

    Attributes:
        note: the key of its note. A token or a flag has this name in the files of Hugging Face too.
        kind: what it is.
        gguf: its key in GGUF; None if the flags express it, or it is a loss.
        role: the name of a role in `Tokenizer.roles`; other roles have none.
        others: other formats that have it.
    """

    note: str
    kind: MetadataKind
    gguf: str | None
    role: str | None = None
    others: frozenset[str] = frozenset()


def _token(name: str, key: str, role: str | None = None, others: str = "") -> MetadataEntry:
    gguf = f"tokenizer.ggml.{key}_token_id"
    return MetadataEntry(f"{name}_token", "token", gguf, role, frozenset(others.split()))


ENTRIES: Final[tuple[MetadataEntry, ...]] = (
    _token("bos", "bos", "bos", "qwen3"),
    _token("eos", "eos", "eos", "qwen3"),
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
    MetadataEntry("add_sep_token", "flag", "tokenizer.ggml.add_sep_token"),
    # llama.cpp has no keys for these: the first follows from the rule that splits texts, the second
    # is an argument for classes of transformers that build their own pre-tokenizer.
    MetadataEntry("clean_up_tokenization_spaces", "flag", "bytepair.clean_up_tokenization_spaces"),
    MetadataEntry("add_prefix_space", "flag", "bytepair.add_prefix_space"),
    MetadataEntry("chat_template", "template", "tokenizer.chat_template"),
    MetadataEntry("chat_templates", "templates", "tokenizer.chat_template."),
    MetadataEntry("stop_tokens", "stops", "tokenizer.ggml.eos_token_ids"),
    MetadataEntry("huggingface.post_processor", "around", None),
)

TOKENS: Final = tuple(entry for entry in ENTRIES if entry.kind == "token")
FLAGS: Final = tuple(entry for entry in ENTRIES if entry.kind == "flag")

#: The field beside `eos_token` with the token that ends a text, where `eos_token` is the one that
#: ends a turn, since programs stop at `eos_token`. A file that has it does not state the role eos.
END_OF_TEXT: Final = "eod_token"


# ---------------------------------------------------------------------------- values

#: The notes that hold JSON, by the attributes of `Metadata`.
JSON_NOTES: Final = {
    "templates": "chat_templates",
    "stops": "stop_tokens",
    "config": "huggingface.config",
    "generation": "huggingface.generation_config",
}
#: The note of the default chat template.
TEMPLATE_NOTE: Final = "chat_template"


_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class Metadata(NamedTuple):
    """What a file states of a tokenizer besides its ids, by the keys of the table.

    Attributes:
        tokens: the tokens with a role; "" where no token has the role that one has by its name.
        flags: the flags.
        template: the default chat template; "" if there is none, whatever the names of tokens.
        templates: the other chat templates, by name.
        stops: the tokens at which generation stops: names, or ids of ordinary tokens.
        config: the other fields of `tokenizer_config.json`.
        generation: the other fields of `generation_config.json`.
    """

    tokens: Mapping[str, str] = _NONE
    flags: Mapping[str, bool] = _NONE
    template: str | None = None
    templates: Mapping[str, str] = _NONE
    stops: Sequence[str | int] = ()
    config: Mapping[str, Any] = _NONE
    generation: Mapping[str, Any] = _NONE

    @classmethod
    def of(cls, notes: Mapping[str, str]) -> Metadata:
        """The values of notes; other notes are left out."""
        return cls(
            tokens={entry.note: notes[entry.note] for entry in TOKENS if entry.note in notes},
            flags={entry.note: _flag(notes, entry) for entry in FLAGS if notes.get(entry.note)},
            template=notes.get(TEMPLATE_NOTE),
            templates=templates_of(notes),
            stops=[
                stop if isinstance(stop, str) else id_of(stop, f"the note {JSON_NOTES['stops']!r}")
                for stop in json_note(notes, JSON_NOTES["stops"], list)
            ],
            config=json_note(notes, JSON_NOTES["config"], dict),
            generation=json_note(notes, JSON_NOTES["generation"], dict),
        )

    def to_notes(self) -> dict[str, str]:
        """The notes of the values that are stated."""
        notes = dict(self.tokens)
        notes |= {flag: "true" if value else "false" for flag, value in self.flags.items()}
        if self.template is not None:
            notes[TEMPLATE_NOTE] = self.template
        values = {key: getattr(self, name) for name, key in JSON_NOTES.items()}
        return notes | {key: json.dumps(value) for key, value in values.items() if value}


def templates_of(notes: Mapping[str, str]) -> dict[str, str]:
    """The chat templates other than the default one."""
    key = JSON_NOTES["templates"]
    by_name = json_note(notes, key, dict)
    return {name: typed(text, str, f"the note {key!r}: {name!r}") for name, text in by_name.items()}


def _flag(notes: Mapping[str, str], entry: MetadataEntry) -> bool:
    text = notes[entry.note]
    if text not in {"true", "false"}:
        raise FormatError(f"the note {entry.note!r}", f"{text!r} is neither 'true' nor 'false'")
    return text == "true"
