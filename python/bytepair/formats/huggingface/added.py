"""Write the added tokens of `tokenizer.json`, and read those that only the files beside it name.

`transformers` adds every token that one of its files names: first those of `added_tokens_decoder`
by their ids, whose flags replace those of `tokenizer.json`; then those of roles; then the extra
ones. A name that is in the vocabulary keeps its id, any other gets the next free one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import UnsupportedError
from bytepair.files.safe import id_of, json_note, parse_json, to_json, typed
from bytepair.formats.gpt2 import lookalikes
from bytepair.formats.parts import Parts
from bytepair.properties.entries import CONFIG, LEGACY, MAP

FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")

#: An added token as a `tokenizer.json` has it: `content`, `id` and flags.
Token: TypeAlias = dict[str, Any]

#: The note with the tokens whose flag `normalized` changes nothing.
_NORMALIZED: Final = "huggingface.normalized"

#: The roles that every tokenizer of `transformers` has, in the order in which it adds their tokens.
_ROLES: Final = tuple(
    f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
)


def written(tokenizer: _core.Tokenizer) -> list[Token]:
    """The added tokens in the form of a `tokenizer.json`, in the order of their ids."""
    left_out = set(lookalikes(tokenizer))
    tokens = [token for token in _core.added_tokens(tokenizer) if token.content not in left_out]
    return _as_written(tokens, tokenizer.notes)


def _as_written(tokens: Iterable[_core.AddedToken], notes: Mapping[str, str]) -> list[Token]:
    normalized = set(json_note(notes, _NORMALIZED, list))
    return [
        {
            "id": token.id,
            "content": token.content,
            **{flag: getattr(token, flag) for flag in FLAGS},
            "normalized": token.normalized or token.content in normalized,
        }
        for token in tokens
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


def is_complete(parts: Parts, files: Mapping[str, Any]) -> bool:
    """Whether a `tokenizer.json` has all tokens that the files name, with their ids and flags."""
    tokens = {token["content"]: token for token in _as_written(parts.added(), parts.notes)}
    wanted = [token for _, token in _to_add(files, list(tokens.values()))]
    return all(
        token.items() <= tokens.get(token["content"], {}).items()
        for token in wanted
        if "id" in token or token["content"] not in tokens
    )


def _to_add(files: Mapping[str, Any], known: list[Token]) -> Iterator[tuple[str, Token]]:
    """The tokens in the order in which they are added, with their places; some state their id.

    `known` are the added tokens of the `tokenizer.json`.
    """
    with_ids, fields = files[CONFIG].get("added_tokens_decoder"), role_fields(files)
    by_role, extra = list(_of_roles(fields)), list(_extra(fields))
    special = {token["content"] for _, token in by_role}
    if with_ids is None:  # as early versions of `transformers` wrote folders
        names = special | {token["content"] for _, token in extra}
        of_ids = []
        for name, id in files[LEGACY].items():
            place = f"{LEGACY}: {name!r}"
            token = _token(name, {}, place, special=name in names)
            of_ids.append((place, token | {"id": id_of(id, place)}))
        for token in known:  # they are special if another file gives them a role
            is_special = token.get("special", True) or token["content"] in special
            of_ids.append(("tokenizer.json: added_tokens", {**token, "special": is_special}))
    else:
        of_ids = [*of_decoder(typed(with_ids, dict, _DECODER), special)]
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
        number = id_of(int(id) if id.isdecimal() and len(id) < 10 else id, place)
        yield place, _token(name, stated, place, special=name in special) | {"id": number}


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
    name = stated.get("content", "")
    if typed(name, str, place):
        is_special = special or "__type" not in stated
        yield place, _token(name, stated, place, special=is_special)


def _token(name: str, stated: Mapping[str, Any], place: str, *, special: bool) -> Token:
    """A token with all flags; those that are not stated are as in `tokenizers.AddedToken`."""
    flags = {flag: typed(stated[flag], bool, f"{place}.{flag}") for flag in FLAGS if flag in stated}
    is_special = special or flags.get("special", False)
    flags = {"normalized": not is_special} | flags | {"special": is_special}
    return {"content": name, **dict.fromkeys(FLAGS, False), **flags}
