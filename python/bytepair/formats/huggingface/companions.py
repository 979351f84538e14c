"""The files beside a `tokenizer.json`, which `transformers` reads and writes.

`tokenizer_config.json` has the roles of tokens, flags and the class of the tokenizer;
`special_tokens_map.json` has roles too; `chat_template.jinja` has the chat template, and if there
are several, the folder `additional_chat_templates` or a field of the first file has the others;
`generation_config.json`, a file of the model, has the ids at which generation stops. The entries of
the table (`bytepair.properties.roles`) become notes of their own, the other fields of the first
file one note, and all are written back.

Only the added tokens concern ids: `transformers` adds every token that one of the files names.
First those of `added_tokens_decoder` by their ids, whose flags replace those of `tokenizer.json`;
then those of roles; then the extra ones. A name that is in the vocabulary keeps its id, any other
gets the next free one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.files.safe import id_of, json_note, parse_json, read_file, to_json, typed
from bytepair.formats.gpt2 import lookalikes
from bytepair.properties import metadata, roles
from bytepair.properties.roles import END_OF_TEXT, FLAGS, TOKENS

CONFIG: Final = "tokenizer_config.json"
MAP: Final = "special_tokens_map.json"
LEGACY: Final = "added_tokens.json"
TEMPLATE: Final = "chat_template.jinja"
TEMPLATES: Final = "additional_chat_templates"
GENERATION: Final = "generation_config.json"

#: Fields that are not kept: the first is regenerated, the second refers to code, the others have
#: notes of their own.
_LEFT_OUT: Final = ("added_tokens_decoder", "auto_map", "chat_template", END_OF_TEXT)
#: Fields that have a note of their own if they have a value.
_ENTRIES: Final = frozenset(entry.note for entry in (*TOKENS, *FLAGS))


def objects(folder: Path) -> dict[str, dict[str, Any]]:
    """The objects in the files of a folder that name tokens; empty ones for missing files."""
    return {name: _object(folder, name) for name in (CONFIG, MAP, LEGACY)}


def _object(folder: Path, name: str) -> dict[str, Any]:
    file = folder / name
    return typed(parse_json(read_file(file), name), dict, name) if file.is_file() else {}


def read(
    folder: Path, special: Mapping[str, int], files: Mapping[str, dict[str, Any]]
) -> dict[str, str]:
    """The notes of a folder with these files that name tokens; missing files are ignored."""
    config, fields = files[CONFIG], role_fields(files)
    tokens = roles.stated(fields, CONFIG)
    stops = _stops(_object(folder, GENERATION).get("eos_token_id"), tokens, special)
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
    notes = roles.to_notes(tokens, flags, stops, by_name)
    return notes | ({roles.CONFIG: json.dumps(kept)} if kept else {})


def of_object(value: Any) -> dict[str, str]:
    """The notes of a tokenizer object, which may have the attributes of `transformers`."""
    fields = (*(entry.note for entry in TOKENS), END_OF_TEXT)
    names = {field: getattr(value, field, None) for field in fields}
    names = {field: name for field, name in names.items() if name is not None}
    tokens = roles.stated(names, type(value).__name__)
    template = getattr(value, "chat_template", None)
    has_one = isinstance(template, str | dict)
    by_name = _templates_of(template, "chat_template") if has_one else None
    return roles.to_notes(tokens, {}, (), by_name)


def _templates_of(field: Any, place: str) -> dict[str, str]:
    if isinstance(field, str):
        field = {roles.DEFAULT: field}
    elif isinstance(field, list):
        pairs = [typed(pair, dict, f"{place}[{number}]") for number, pair in enumerate(field)]
        field = {typed(p.get("name"), str, f"{place}: name"): p.get("template") for p in pairs}
        if len(field) < len(pairs):
            raise FormatError(place, "two templates have one name")
    return {
        typed(name, str, place): typed(template, str, f"{place}[{name!r}]")
        for name, template in ({} if field is None else typed(field, dict, place)).items()
    }


def _template_files(folder: Path) -> dict[str, str] | None:
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


def _stops(stated: Any, tokens: Mapping[str, str], special: Mapping[str, int]) -> list[str | int]:
    """Where generation stops by `generation_config.json`; empty if that is what the roles imply.

    Special tokens are kept by their names.
    """
    ids = stated if isinstance(stated, list) else [] if stated is None else [stated]
    place = f"{GENERATION}: eos_token_id"
    stops = metadata.named(dict.fromkeys(id_of(id, place) for id in ids), special)
    usual = {roles.NOTES[role]: name for role, name in roles.usual(special).items()}
    ends = map((usual | dict(tokens)).get, ("eot_token", "eos_token"))
    return [] if stops == list(dict.fromkeys(filter(None, ends))) else stops


_FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")

#: An added token as a `tokenizer.json` has it: `content`, `id` and flags.
Token: TypeAlias = dict[str, Any]

#: The note with the tokens whose flag `normalized` changes nothing.
_NORMALIZED: Final = "huggingface.normalized"

#: The roles that every tokenizer of `transformers` has, in the order in which it adds their tokens.
_ROLES: Final = tuple(
    f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
)


def _as_written(tokenizer: _core.Tokenizer) -> list[Token]:
    normalized = set(json_note(tokenizer.notes, _NORMALIZED, list))
    return [
        {
            "id": token.id,
            "content": token.content,
            **{flag: getattr(token, flag) for flag in _FLAGS},
            "normalized": token.normalized or token.content in normalized,
        }
        for token in _core.added_tokens(tokenizer)
    ]


def completed(data: bytes, files: Mapping[str, Any], *, lossy: bool) -> bytes:
    """A `tokenizer.json` with the tokens that `transformers` adds because of the files beside it.

    A token that would get another id than a file states is an error, unless `lossy` is true.
    """
    document = parse_json(data, "tokenizer.json")
    vocabulary = document["model"]["vocab"]
    tokens: dict[str, Token] = {
        token["content"]: token for token in document.get("added_tokens") or []
    }
    complete = set(tokens)
    last = max((token["id"] for token in tokens.values()), default=-1)
    for place, token in _to_add(files, list(tokens.values())):
        name, stated = token["content"], token.pop("id", None)
        if stated is not None:
            complete.add(name)
        elif name in complete:  # a role changes no flags of such a token
            continue
        id = tokens[name]["id"] if name in tokens else vocabulary.get(name)
        if id is None:
            id = max(len(vocabulary), last + 1)
        if stated not in {None, id} and not lossy:
            raise UnsupportedError(place, f"{name!r} does not have this id in tokenizer.json")
        tokens[name], last = {"id": id, **token}, max(last, id)
    document["added_tokens"] = sorted(tokens.values(), key=lambda token: token["id"])
    return to_json(document, indent=None)


def is_complete(tokenizer: _core.Tokenizer, files: Mapping[str, Any]) -> bool:
    """Whether a `tokenizer.json` has all tokens that the files name, with their ids and flags."""
    tokens = {token["content"]: token for token in _as_written(tokenizer)}
    return all(
        token.items() <= tokens.get(token["content"], {}).items()
        for _, token in _to_add(files, list(tokens.values()))
        if "id" in token or token["content"] not in tokens
    )


def _to_add(files: Mapping[str, Any], known: list[Token]) -> Iterator[tuple[str, Token]]:
    """The tokens in the order in which they are added, with their places; some state their id.

    `known` are the added tokens of the `tokenizer.json`.
    """
    with_ids, fields = files[CONFIG].get("added_tokens_decoder"), role_fields(files)
    by_role, extra = list(_of_roles(fields)), list(_extra(fields))
    special = {token["content"] for _, token in by_role}
    if with_ids is not None:
        of_ids = list(of_decoder(typed(with_ids, dict, _DECODER), special))
    else:  # as early versions of `transformers` wrote folders
        names, of_ids = special | {token["content"] for _, token in extra}, []
        for name, id in files[LEGACY].items():
            place = f"{LEGACY}: {name!r}"
            token = _token({"content": name}, place, special=name in names)
            of_ids.append((place, token | {"id": id_of(id, place)}))
        for token in known:  # they are special if another file gives them a role
            is_special = token.get("special", True) or token["content"] in special
            of_ids.append(("tokenizer.json: added_tokens", {**token, "special": is_special}))
    by_id = {token["id"]: (place, token) for place, token in of_ids if token["content"]}
    yield from (by_id[id] for id in sorted(by_id))
    yield from by_role
    yield from extra


_DECODER: Final = f"{CONFIG}: added_tokens_decoder"


def role_fields(files: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `tokenizer_config.json`, changed by `special_tokens_map.json` if it is read.

    It is read where the first states no ids of added tokens, and there it wins.
    """
    config, tokens_map = files[CONFIG], files[MAP]
    if config.get("added_tokens_decoder") is not None:
        return dict(config)
    extra = "extra_special_tokens"
    fields = {**config, **tokens_map}
    if isinstance(config.get(extra), list) and isinstance(tokens_map.get(extra), list):
        fields[extra] = [*config[extra], *tokens_map[extra]]
    return fields


def of_decoder(entries: dict[str, Any], special: set[str]) -> Iterator[tuple[str, Token]]:
    """The tokens of an `added_tokens_decoder` and their places; `special` have a role."""
    for id, entry in entries.items():
        place = f"{_DECODER}[{id}]"
        stated = typed(entry, dict, place)
        name = typed(stated.get("content"), str, f"{place}.content")
        token = _token(stated, place, special=name in special)
        number = id_of(int(id) if id.isdecimal() and len(id) < 10 else id, place)
        yield place, token | {"id": number}


def _of_roles(fields: Mapping[str, Any]) -> Iterator[tuple[str, Token]]:
    """The tokens that have a role, those of roles that only some models have last."""
    others = [name for name in fields if name.endswith("_token") and name not in _ROLES]
    others.sort(key=lambda name: isinstance(fields[name], str))
    by_role = {name: fields.get(name) for name in (*_ROLES, *others)}
    extra = fields.get("extra_special_tokens")
    by_role |= extra if isinstance(extra, dict) else {}
    for name, value in by_role.items():
        if isinstance(value, str | dict):
            yield from _named(value, f"{CONFIG}: {name}", special=True)


def _extra(fields: Mapping[str, Any]) -> Iterator[tuple[str, Token]]:
    for field in ("extra_special_tokens", "additional_special_tokens"):
        if values := fields.get(field):
            for number, value in enumerate(values if isinstance(values, list) else []):
                yield from _named(value, f"{CONFIG}: {field}[{number}]", special=False)
            return


def _named(value: Any, place: str, *, special: bool) -> Iterator[tuple[str, Token]]:
    """The token of a text, or of an object with flags; none if it is empty."""
    stated = value if isinstance(value, dict) else {"content": value}
    if typed(stated.get("content", ""), str, place):
        yield place, _token(stated, place, special=special or "__type" not in stated)


def _token(stated: Mapping[str, Any], place: str, *, special: bool) -> Token:
    """A token with all flags; those that are not stated are as in `tokenizers.AddedToken`."""
    name = typed(stated.get("content"), str, f"{place}.content")
    flags = {
        flag: typed(stated[flag], bool, f"{place}.{flag}") for flag in _FLAGS if flag in stated
    }
    is_special = special or flags.get("special", False)
    flags = {"normalized": not is_special} | flags | {"special": is_special}
    return {"content": name, **dict.fromkeys(_FLAGS, False), **flags}


def config(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The content of a `tokenizer_config.json`; its class uses `tokenizer.json` unchanged.

    A token with a role that is not special is left out of `added_tokens_decoder`, since
    `transformers` would make it special.
    """
    fields, left_out = _role_fields(tokenizer), set(lookalikes(tokenizer))
    tokens = _as_written(tokenizer)
    templates = roles.written_templates(tokenizer)
    template: dict[str, Any] = {}
    if templates.keys() - {roles.DEFAULT}:
        pairs = templates.items()
        template = {"chat_template": [{"name": name, "template": text} for name, text in pairs]}
    elif tokenizer.notes.get(roles.TEMPLATE) == "":
        template = {"chat_template": None}
    return {
        "clean_up_tokenization_spaces": False,
        **json_note(tokenizer.notes, roles.CONFIG, dict),
        **fields,
        "added_tokens_decoder": {
            str(token["id"]): {field: token[field] for field in ("content", *_FLAGS)}
            for token in tokens
            if token["content"] not in left_out
            and (token["special"] or token["content"] not in fields.values())
        },
        **metadata.flags(tokenizer),
        **template,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def _role_fields(tokenizer: _core.Tokenizer) -> dict[str, str | None]:
    """The fields of roles; null where no token has one, whatever its name."""
    taken = [note for note in roles.NOTES.values() if tokenizer.notes.get(note) == ""]
    by_field = metadata.engine_tokens(tokenizer)
    return dict.fromkeys(taken) | {field: name or None for field, name in by_field.items()}


def _template_file(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The file of the chat template, if there is one only: files come before the list of others."""
    templates = roles.written_templates(tokenizer)
    default = templates.pop(roles.DEFAULT, None)
    return {} if templates or default is None else {TEMPLATE: default}


def _generation_fields(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The fields of a `generation_config.json`: where generation stops, and roles."""
    stops, names = metadata.stops(tokenizer), metadata.tokens(tokenizer)
    if not stops:
        return {}
    fields: dict[str, Any] = {"eos_token_id": stops[0] if len(stops) == 1 else stops}
    if not roles.stops_of(tokenizer.notes):
        for note in ("bos_token", "pad_token"):
            fields[f"{note}_id"] = metadata.token_id(tokenizer, names.get(note, ""))
    return {name: value for name, value in fields.items() if value is not None}


def files(tokenizer: _core.Tokenizer, folder: Path) -> dict[Path, bytes]:
    """The content of the files to write into a folder.

    A `generation_config.json` that is there keeps its other fields.
    """
    by_field = {field: name for field, name in _role_fields(tokenizer).items() if name}
    content = {CONFIG: to_json(config(tokenizer)), MAP: to_json(by_field)}
    if fields := _generation_fields(tokenizer):
        there = _object(folder, GENERATION)
        if there | fields != there:
            content[GENERATION] = to_json(there | fields)
    content |= {name: text.encode() for name, text in _template_file(tokenizer).items()}
    return {folder / name: data for name, data in content.items()}


def stale(tokenizer: _core.Tokenizer, folder: Path) -> list[Path]:
    """The chat templates in a folder that would be read as those of the tokenizer, and are not."""
    current = {folder / name for name in _template_file(tokenizer)}
    return [path for path in _paths_of_templates(folder) if path not in current]
