"""The files beside a `tokenizer.json`, which `transformers` reads and writes.

`tokenizer_config.json` has the roles of tokens, flags and the class of the tokenizer;
`special_tokens_map.json` has roles too; `chat_template.jinja` and the folder
`additional_chat_templates` have the chat templates, which were a field of the first before;
`generation_config.json`, a file of the model, has the ids at which generation stops. None of them
affects ids. The entries of the table (`entries`) become notes of their own, the other fields one
note for each file, and all are written back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair.errors import FormatError
from bytepair.files.safe import id_of, parse_json, read_file, to_json, typed
from bytepair.formats.huggingface import added
from bytepair.properties import metadata, roles
from bytepair.properties.entries import (
    CONFIG,
    END_OF_TEXT,
    FLAGS,
    GENERATION,
    LEGACY,
    MAP,
    TEMPLATE,
    TEMPLATES,
    TOKENS,
    Metadata,
    templates_of,
)

#: Fields that are not kept: the first is regenerated, the second refers to code, the others have
#: notes of their own.
_LEFT_OUT: Final = ("added_tokens_decoder", "auto_map", "chat_template", END_OF_TEXT)
#: Fields that have a note of their own if they have a value.
_ENTRIES: Final = frozenset(entry.note for entry in (*TOKENS, *FLAGS))
#: How the names of templates are written that are the names of files on every system.
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


# ---------------------------------------------------------------------------- reading


def objects(folder: Path) -> dict[str, dict[str, Any]]:
    """The objects in the files of a folder that name tokens; empty ones for missing files."""
    return {name: _object(folder, name) for name in (CONFIG, MAP, LEGACY)}


def read(
    folder: Path, stated: Metadata, special: Mapping[str, int], files: Mapping[str, dict[str, Any]]
) -> Metadata:
    """The metadata of a folder: what its `tokenizer.json` stated, and the files that name tokens.

    Missing files are ignored.
    """
    config, fields = files[CONFIG], added.role_fields(files)
    tokens = roles.stated(fields, CONFIG, special)
    stops, generation = _generation(_object(folder, GENERATION), tokens, special)
    has_end = "eos_token" in tokens or "eos" in roles.usual(special) or END_OF_TEXT in fields
    if stops and isinstance(stops[0], str) and not has_end:
        tokens = {"eos_token": stops[0]} | tokens
    flags = {
        entry.note: typed(config[entry.note], bool, f"{CONFIG}: {entry.note}")
        for entry in FLAGS
        if config.get(entry.note) is not None
    }
    by_name = _template_files(folder)  # they replace all those of the configuration
    if not by_name and "chat_template" in config:
        by_name = _templates_of(config["chat_template"], f"{CONFIG}: chat_template")
    kept = {
        name: value
        for name, value in config.items()
        if name not in _LEFT_OUT and (name not in _ENTRIES or value is None)
    }
    return roles.with_templates(stated, by_name)._replace(
        tokens=tokens, flags=flags, stops=stops, config=kept, generation=generation
    )


def of_object(value: Any, stated: Metadata, special: Mapping[str, int]) -> Metadata:
    """The metadata of a tokenizer object, which may have the attributes of `transformers`."""
    fields = (*(entry.note for entry in TOKENS), END_OF_TEXT)
    names = {field: getattr(value, field, None) for field in fields}
    names = {field: name for field, name in names.items() if name is not None}
    tokens = roles.stated(names, type(value).__name__, special)
    template = getattr(value, "chat_template", None)
    has_one = isinstance(template, str | dict)
    by_name = _templates_of(template, "chat_template") if has_one else None
    return roles.with_templates(stated, by_name)._replace(tokens=tokens)


def _object(folder: Path, name: str) -> dict[str, Any]:
    file = folder / name
    return typed(parse_json(read_file(file), name), dict, name) if file.is_file() else {}


def _templates_of(field: Any, place: str) -> dict[str, str]:
    """The chat templates of a field by name: a text, an object, a list of pairs, or null."""
    if isinstance(field, str):
        field = {roles.DEFAULT: field}
    elif isinstance(field, list):
        field = _of_pairs(field, place)
    return {
        typed(name, str, place): typed(template, str, f"{place}[{name!r}]")
        for name, template in ({} if field is None else typed(field, dict, place)).items()
    }


def _of_pairs(entries: list[Any], place: str) -> dict[str, Any]:
    templates: dict[str, Any] = {}
    for number, entry in enumerate(entries):
        each = f"{place}[{number}]"
        pair = typed(entry, dict, each)
        name = typed(pair.get("name"), str, f"{each}.name")
        if name in templates:
            raise FormatError(f"{each}.name", f"{name!r} is a duplicate")
        templates[name] = pair.get("template")
    return templates


def _template_files(folder: Path) -> dict[str, str] | None:
    """The templates in files, by name; None if there are none."""
    by_name = {}
    for path in _paths_of_templates(folder):
        name = roles.DEFAULT if path == folder / TEMPLATE else path.stem
        try:
            by_name[name] = read_file(path).decode()
        except UnicodeDecodeError as error:
            place = path.relative_to(folder).as_posix()
            raise FormatError(f"{place}, byte {error.start}", "it is not UTF-8") from None
    return by_name or None


def _paths_of_templates(folder: Path) -> list[Path]:
    """The files of the chat templates, the default one first."""
    paths = [folder / TEMPLATE, *sorted((folder / TEMPLATES).glob("*.jinja"))]
    return [path for path in paths if path.is_file()]


def _generation(
    fields: dict[str, Any], tokens: Mapping[str, str], special: Mapping[str, int]
) -> tuple[list[str | int], dict[str, Any]]:
    """Where generation stops by `generation_config.json`, and its other fields.

    The tokens are stated if they are not those that the roles imply; special tokens are kept by
    their names.
    """
    names = {id: name for name, id in special.items()}
    stated, place = fields.get("eos_token_id"), f"{GENERATION}: eos_token_id"
    ids = stated if isinstance(stated, list) else [] if stated is None else [stated]
    stops = metadata.named(dict.fromkeys(id_of(id, place) for id in ids), special)
    by_note = {roles.NOTES[role]: name for role, name in roles.usual(special).items()} | dict(
        tokens
    )
    ends = [by_note.get(note) for note in ("eot_token", "eos_token")]
    if stops == list(dict.fromkeys(filter(None, ends))):
        stops = []
    for field, value in fields.items():
        if isinstance(value, str):  # it may be kept as the name of a token
            typed(value, str, f"{GENERATION}: {field}")
    rest = {
        field: names.get(value, value)
        if field.endswith("_token_id") and type(value) is int
        else value
        for field, value in fields.items()
        if field != "eos_token_id"
    }
    return stops, rest


# ---------------------------------------------------------------------------- writing


def config(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The content of a `tokenizer_config.json`; its class uses `tokenizer.json` unchanged.

    A token with a role that is not special is left out of `added_tokens_decoder`, since
    `transformers` would make it special.
    """
    with_role = set(_role_fields(tokenizer).values())
    template: dict[str, Any] = {}
    if not _fit_files(tokenizer):
        pairs = roles.written_templates(tokenizer).items()  # as older versions wrote them
        template = {"chat_template": [{"name": name, "template": text} for name, text in pairs]}
    elif tokenizer.notes.get(roles.TEMPLATE) == "":
        template = {"chat_template": None}
    return {
        **metadata.of(tokenizer).config,
        **_role_fields(tokenizer),
        "added_tokens_decoder": {
            str(token["id"]): {field: token[field] for field in ("content", *added.FLAGS)}
            for token in added.written(tokenizer)
            if token["special"] or token["content"] not in with_role
        },
        "clean_up_tokenization_spaces": False,
        **metadata.flags(tokenizer),
        **template,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def _role_fields(tokenizer: _core.Tokenizer) -> dict[str, str | None]:
    """The fields of roles; null takes a role from the token that has it by its name."""
    by_field = metadata.engine_tokens(tokenizer)
    return dict.fromkeys(metadata.without_roles(tokenizer)) | {
        field: name or None for field, name in by_field.items()
    }


def _fit_files(tokenizer: _core.Tokenizer) -> bool:
    """Whether the names of all chat templates can be names of files."""
    names = templates_of(tokenizer.notes)
    folded = {name.casefold() for name in names}
    return len(folded) == len(names) and all(map(_FILE_NAME.fullmatch, names))


def _templates(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The files of the chat templates, by their paths in the folder."""
    templates = roles.written_templates(tokenizer) if _fit_files(tokenizer) else {}
    return {
        TEMPLATE if name == roles.DEFAULT else f"{TEMPLATES}/{name}.jinja": template
        for name, template in templates.items()
    }


def generation(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The fields of a `generation_config.json`: where generation stops, and what a file had."""
    rest = metadata.of(tokenizer).generation
    fields = {name: _written_id(tokenizer, name, value) for name, value in rest.items()}
    if not metadata.of(tokenizer).stops:
        names = metadata.tokens(tokenizer)
        roles_of_ids = {f"{note}_id": names.get(note) for note in ("bos_token", "pad_token")}
        fields = {
            name: _written_id(tokenizer, name, value) for name, value in roles_of_ids.items()
        } | fields
    stops = metadata.stops(tokenizer)
    fields["eos_token_id"] = stops[0] if len(stops) == 1 else stops
    config = {name: value for name, value in fields.items() if value is not None and value != []}
    return config if stops or rest else {}


def _written_id(tokenizer: _core.Tokenizer, field: str, value: Any) -> Any:
    """The value of a field: the id of a token that is kept by its name, or the value itself."""
    is_name = field.endswith("_token_id") and isinstance(value, str)
    return metadata.token_id(tokenizer, value) if is_name else value


def files(tokenizer: _core.Tokenizer, folder: Path) -> dict[Path, bytes]:
    """The content of the files to write into a folder.

    A `generation_config.json` that is there keeps its other fields.
    """
    by_field = {field: name for field, name in _role_fields(tokenizer).items() if name}
    content = {CONFIG: to_json(config(tokenizer)), MAP: to_json(by_field)}
    if fields := generation(tokenizer):
        there = _object(folder, GENERATION)
        if there | fields != there:
            content[GENERATION] = to_json(there | fields)
    content |= {name: text.encode() for name, text in _templates(tokenizer).items()}
    return {folder / name: data for name, data in content.items()}


def stale(tokenizer: _core.Tokenizer, folder: Path) -> list[Path]:
    """The chat templates in a folder that would be read as those of the tokenizer, and are not."""
    current = {folder / name for name in _templates(tokenizer)}
    return [path for path in _paths_of_templates(folder) if path not in current]
