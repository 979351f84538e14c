"""The post-processor of a `tokenizer.json`: the tokens that it puts around a text.

`tokenizers` and `transformers` add BOS and EOS by it, whatever `add_bos_token` says; llama.cpp has
the flags alone. So the flags are read from it, and it is written from the flags, unless it does
what they say, or more than they can say. It is kept in a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import warn
from bytepair.properties import roles
from bytepair.properties.entries import JSON_NOTES, Metadata

#: The note with the post-processor of a file.
NOTE: Final = JSON_NOTES["post_processor"]

#: The names of the tokens before and after a text.
Surroundings: TypeAlias = tuple[list[str], list[str]]

#: The place of the text among ids.
_TEXT: Final = -1

#: The sides of a text: the role of the token there, and the flag that adds it.
_SIDES: Final = (("bos", "bos_token", "add_bos_token"), ("eos", "eos_token", "add_eos_token"))


def around(processor: Any, special: Mapping[str, int]) -> Surroundings | None:
    """The special tokens that a post-processor puts around one text.

    Args:
        processor: the JSON of it, which may be invalid.
        special: the special tokens and their ids.

    Returns:
        None if it does something else, such as to repeat the text.

    Example:
        >>> around({"type": "BertProcessing", "cls": ["<s>", 1], "sep": ["</s>", 2]}, {"<s>": 1})
        >>> around(None, {})
        ([], [])
    """
    names: dict[Any, str] = {id: name for name, id in special.items()}
    try:
        ids = _applied([_TEXT], processor)
        at = ids.index(_TEXT)
        if _TEXT in ids[at + 1 :]:
            return None
        return [names[id] for id in ids[:at]], [names[id] for id in ids[at + 1 :]]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
        return None  # it is no post-processor, or adds what is no special token


def _applied(ids: list[int], processor: Any) -> list[int]:
    """The ids of a text with those that a post-processor puts around them."""
    if processor is None or processor["type"] == "ByteLevel":
        return ids
    if processor["type"] == "Sequence":
        for step in processor["processors"]:
            ids = _applied(ids, step)
        return ids
    if processor["type"] != "TemplateProcessing":
        return [processor["cls"][1], *ids, processor["sep"][1]]
    result: list[int] = []
    for piece in processor["single"]:
        name = piece.get("SpecialToken", {}).get("id")
        result += ids if name is None else processor["special_tokens"][name]["ids"]
    return result


def with_implied(metadata: Metadata, special: Mapping[str, int]) -> Metadata:
    """The metadata of a file with the flags that its post-processor implies, and its roles.

    Args:
        metadata: what the file states, here and elsewhere.
        special: the special tokens and their ids.
    """
    tokens, flags = dict(metadata.tokens), dict(metadata.flags)
    for side, (role, note, flag) in zip(
        around(metadata.post_processor, special) or ([], []), _SIDES, strict=True
    ):
        if len(side) != 1 or tokens.get(note, "") not in ("", side[0]):
            continue  # more than a flag says, or another token has the role
        if tokens.get(note, roles.usual(special).get(role)) != side[0]:
            tokens[note] = side[0]
        if flags.get(flag) is False:
            warn(
                f"{flag} is false, but the post-processor of tokenizer.json adds {side[0]!r} to "
                "texts; it is read as true"
            )
        flags[flag] = True
    return metadata._replace(tokens=tokens, flags=flags)


def from_notes(notes: Mapping[str, str]) -> Any:
    """The post-processor in the notes, or None."""
    return Metadata.of(notes).post_processor


def implied(tokenizer: _core.Tokenizer) -> list[str]:
    """The flags that nothing states and that the noted post-processor sets."""
    flags = _flags_of(from_notes(tokenizer.notes), tokenizer)
    return [flag for flag in flags if not tokenizer.notes.get(flag)]


def contradicted(tokenizer: _core.Tokenizer) -> list[str]:
    """The flags that are stated as false, while the post-processor to write adds their token."""
    flags = _flags_of(written(tokenizer), tokenizer)
    return [flag for flag in flags if tokenizer.notes.get(flag) == "false"]


def _flags_of(processor: Any, tokenizer: _core.Tokenizer) -> list[str]:
    """The flags whose token is all that a post-processor puts on their side of a text."""
    by_role = roles.roles(tokenizer)
    sides = around(processor, tokenizer.special_tokens) or ([], [])
    return [
        flag
        for side, (role, _, flag) in zip(sides, _SIDES, strict=True)
        if side == [by_role.get(role)]
    ]


def other_roles(tokenizer: _core.Tokenizer) -> list[str]:
    """The notes of the roles that the post-processor to write gives to other tokens.

    Their flags are then set, since it adds these tokens.
    """
    by_role, processor = roles.roles(tokenizer), written(tokenizer)
    sides = around(processor, tokenizer.special_tokens) or ([], [])
    return [
        note
        for side, (role, note, _) in zip(sides, _SIDES, strict=True)
        if len(side) == 1 and not tokenizer.notes.get(note) and side[0] != by_role.get(role)
    ]


def _flagged(tokenizer: _core.Tokenizer) -> Surroundings:
    """The tokens that the flags put around a text."""
    by_role = roles.roles(tokenizer)
    set_flags = [flag for *_, flag in _SIDES if tokenizer.notes.get(flag) == "true"]
    set_flags += implied(tokenizer)
    begin, end = (
        [by_role[role]] if flag in set_flags and role in by_role else [] for role, _, flag in _SIDES
    )
    return begin, end


def written(tokenizer: _core.Tokenizer) -> Any:
    """The post-processor to write: the noted one if it does what the flags say, or else theirs."""
    processor, expected = from_notes(tokenizer.notes), _flagged(tokenizer)
    sides = around(processor, tokenizer.special_tokens)
    flags = any(tokenizer.notes.get(flag) for *_, flag in _SIDES)
    if not flags or sides == expected or is_more(sides, tokenizer):
        return processor
    steps = [step for step in _steps(processor) if step["type"] == "ByteLevel"]
    steps += [_template(expected, tokenizer.special_tokens)] if any(expected) else []
    return {"type": "Sequence", "processors": steps} if len(steps) > 1 else next(iter(steps), None)


def is_more(sides: Surroundings | None, tokenizer: _core.Tokenizer) -> bool:
    """Whether a post-processor does more than to add BOS and EOS."""
    by_role = roles.roles(tokenizer)
    return sides is None or any(
        side not in ([], [by_role.get(role)])
        for side, (role, *_) in zip(sides, _SIDES, strict=True)
    )


def _steps(processor: Any) -> list[Any]:
    """The steps of nested sequences."""
    if processor is None:
        return []
    if processor["type"] != "Sequence":
        return [processor]
    return [step for inner in processor["processors"] for step in _steps(inner)]


def _template(tokens: Surroundings, special: Mapping[str, int]) -> dict[str, Any]:
    """The post-processor that puts these tokens around each text, as `transformers` writes it."""

    def part(letter: str, number: int) -> list[dict[str, Any]]:
        begin, end = (
            [{"SpecialToken": {"id": name, "type_id": number}} for name in side] for side in tokens
        )
        return [*begin, {"Sequence": {"id": letter, "type_id": number}}, *end]

    return {
        "type": "TemplateProcessing",
        "single": part("A", 0),
        "pair": [*part("A", 0), *part("B", 1)],
        "special_tokens": {
            name: {"id": name, "ids": [special[name]], "tokens": [name]}
            for side in tokens
            for name in side
        },
    }


def renumbered(processor: Any, special: Mapping[str, int]) -> Any:
    """A post-processor with the new ids of its tokens; None if one of them is gone."""
    try:
        return _renumbered(processor, special)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _renumbered(node: Any, special: Mapping[str, int]) -> Any:
    kind = node["type"]
    if kind == "Sequence":
        return {**node, "processors": [_renumbered(step, special) for step in node["processors"]]}
    if kind == "TemplateProcessing":
        tokens = {
            name: {**token, "ids": [special[each] for each in token["tokens"]]}
            for name, token in node["special_tokens"].items()
        }
        return {**node, "special_tokens": tokens}
    pairs = {
        side: [node[side][0], special[node[side][0]]] for side in ("sep", "cls") if side in node
    }
    return {**node, **pairs}
