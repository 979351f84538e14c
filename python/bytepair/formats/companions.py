"""The files beside a `tokenizer.json`, which `transformers` reads and writes.

`tokenizer_config.json` contains the roles of tokens and the class of the tokenizer;
`special_tokens_map.json` contains roles too; `chat_template.jinja` contains the chat template. None
of them affects ids. Their content is stored in notes and written back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.formats import added_tokens, roles
from bytepair.formats.files import parse_json, read_file, to_json, typed, write_whole
from bytepair.formats.parts import STRIPS, Asked, Parts, marks

CONFIG: Final = "tokenizer_config.json"
MAP: Final = "special_tokens_map.json"
TEMPLATE: Final = "chat_template.jinja"
#: The fields of a configuration for tokens with a role; `eot_token` ends a turn.
ROLES: Final = (*roles.NOTES.values(), "unk_token", "sep_token", "cls_token", "mask_token")
#: The note with the other fields of the configuration.
NOTE: Final = "huggingface.config"


# ---------------------------------------------------------------------------- reading


def read(folder: Path, parts: Parts, asked: Asked) -> dict[str, str]:
    """The notes from the files in a folder; missing files are ignored."""
    notes = role_notes(_object(folder, MAP), MAP)
    if (folder / CONFIG).is_file():
        config = _object(folder, CONFIG)
        _check(config, parts, asked)
        template = config.pop("chat_template", None)
        if isinstance(template, str):
            notes["chat_template"] = typed(template, str, f"{CONFIG}: chat_template")
        elif template is not None:
            config["chat_template"] = template
        notes |= role_notes(config, CONFIG)
        for name in (
            "added_tokens_decoder",
            "auto_map",
        ):  # the first is regenerated, the second refers to code
            config.pop(name, None)
        notes[NOTE] = json.dumps(config)
    if (folder / TEMPLATE).is_file():
        try:
            notes["chat_template"] = read_file(folder / TEMPLATE).decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"{TEMPLATE}, byte {error.start}", "it is not UTF-8") from None
    return notes


def _object(folder: Path, name: str) -> dict[str, Any]:
    """The object in a file; an empty one if there is no file."""
    file = folder / name
    return typed(parse_json(read_file(file), name), dict, name) if file.is_file() else {}


def role_notes(config: dict[str, Any], file: str) -> dict[str, str]:
    """The tokens that have a role, which are texts or objects with flags."""
    notes = {}
    for role in ROLES:
        name = config.get(role)
        name = name.get("content") if isinstance(name, dict) else name
        if isinstance(name, str):
            notes[role] = typed(name, str, f"{file}: {role}")
    return notes


def _check(config: dict[str, Any], parts: Parts, asked: Asked) -> None:
    """`transformers` adds the tokens that are listed here; they must be those we have."""
    decoder = f"{CONFIG}: added_tokens_decoder"
    listed = typed(config.get("added_tokens_decoder") or {}, dict, decoder)
    strips = marks(parts.pattern).flags
    for id, entry in listed.items():
        place = f"{decoder}[{id}]"
        token = typed(entry, dict, place)
        if asked.lossy:
            continue
        name = token.get("content")
        if not isinstance(name, str) or str(parts.special_tokens.get(name)) != id:
            raise UnsupportedError(place, f"{name!r} does not have this id in tokenizer.json")
        added_tokens.check_alone(name, token, place, asked)
        for side in STRIPS:
            here = token.get(side)
            if here is not None and bool(here) != (int(id) in strips.get(side, [])):
                why = f"it is {here!r}, which differs from tokenizer.json"
                raise UnsupportedError(f"{place}.{side}", why)


# ---------------------------------------------------------------------------- writing


def noted(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The fields of a configuration other than tokens, roles and templates."""
    kept: dict[str, Any] = json.loads(tokenizer.notes.get(NOTE, "{}"))
    return kept


def config(tokenizer: _core.Tokenizer) -> dict[str, Any]:
    """The content of a `tokenizer_config.json`; its class uses `tokenizer.json` unchanged."""
    return {
        **noted(tokenizer),
        **role_tokens(tokenizer),
        "added_tokens_decoder": {
            str(token["id"]): {flag: token[flag] for flag in ("content", *added_tokens.FLAGS)}
            for token in added_tokens.written(tokenizer)
        },
        "clean_up_tokenization_spaces": False,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def role_tokens(tokenizer: _core.Tokenizer) -> dict[str, str]:
    """The tokens with a role, by the field names of a configuration."""
    noted = {role: tokenizer.notes[role] for role in ROLES if tokenizer.notes.get(role)}
    return noted | {roles.NOTES[role]: name for role, name in roles.roles(tokenizer).items()}


def write(tokenizer: _core.Tokenizer, folder: Path) -> None:
    """Write the files into a folder."""
    write_whole(folder / CONFIG, to_json(config(tokenizer)))
    write_whole(folder / MAP, to_json(role_tokens(tokenizer)))
    if template := roles.chat_template(tokenizer):
        write_whole(folder / TEMPLATE, template.encode())
