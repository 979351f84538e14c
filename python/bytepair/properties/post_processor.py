"""The post-processor of a `tokenizer.json`: the tokens that it puts around a text.

`tokenizers` and `transformers` add BOS and EOS as the post-processor says, whatever `add_bos_token`
says; llama.cpp has only the flags. So the flags are derived from the post-processor, which is kept
in a note. The note is written back if it does what the flags say, or more than they can say;
otherwise a post-processor is made from the flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

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
#: How many ids a post-processor whose tokens are told may put around a text.
_MOST_IDS: Final = 256

#: The sides of a text: the role of the token there, its note, and the flag that adds it.
_SIDES: Final = (("bos", "bos_token", "add_bos_token"), ("eos", "eos_token", "add_eos_token"))


class _Side(NamedTuple):
    """One side of a text: what a post-processor puts there, the token with the role, its keys."""

    tokens: list[str]
    token: str | None
    note: str
    flag: str


def around(processor: Any, special: Mapping[str, int]) -> Surroundings | None:
    """The special tokens that a post-processor puts around one text.

    None if it is invalid, or does something else, such as to repeat the text.

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
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
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
        if len(result) > _MOST_IDS:  # each step may double them
            raise ValueError("it adds too many tokens")
    return result


def with_implied(metadata: Metadata, special: Mapping[str, int]) -> Metadata:
    """The metadata of a file with the flags that its post-processor implies, and its roles."""
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


def _sides(processor: Any, tokenizer: _core.Tokenizer) -> list[_Side]:
    by_role = roles.roles(tokenizer)
    sides = around(processor, tokenizer.special_tokens) or ([], [])
    return [
        _Side(tokens, by_role.get(role), note, flag)
        for tokens, (role, note, flag) in zip(sides, _SIDES, strict=True)
    ]


def implied(tokenizer: _core.Tokenizer) -> list[str]:
    """The flags that nothing states and that the noted post-processor sets."""
    notes = tokenizer.notes
    sides = _sides(from_notes(notes), tokenizer)
    return [one.flag for one in sides if one.tokens == [one.token] and not notes.get(one.flag)]


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What is read otherwise from the post-processor to write, since it adds its tokens."""
    notes, lost = tokenizer.notes, []
    for one in _sides(written(tokenizer), tokenizer):
        if one.tokens == [one.token] and notes.get(one.flag) == "false":
            lost.append(
                f"the flag {one.flag}, which is false, while the post-processor adds the token"
            )
        elif len(one.tokens) == 1 and not notes.get(one.note) and one.tokens != [one.token]:
            lost.append(
                f"the role {one.note} and the flag {one.flag}, which the post-processor sets "
                "otherwise"
            )
    return lost


def written(tokenizer: _core.Tokenizer) -> Any:
    """The post-processor to write: the noted one if it does what the flags say, or else theirs."""
    notes, set_flags = tokenizer.notes, implied(tokenizer)
    processor = from_notes(notes)
    sides = around(processor, tokenizer.special_tokens)
    before, after = (
        [one.token]
        if one.token and (notes.get(one.flag) == "true" or one.flag in set_flags)
        else []
        for one in _sides(None, tokenizer)
    )
    flags = any(notes.get(flag) for *_, flag in _SIDES)
    if not flags or sides == (before, after) or is_more(sides, tokenizer):
        return processor
    steps = [step for step in _steps(processor) if step["type"] == "ByteLevel"]
    if before or after:
        steps.append(_template((before, after), tokenizer.special_tokens))
    return {"type": "Sequence", "processors": steps} if len(steps) > 1 else next(iter(steps), None)


def is_more(sides: Surroundings | None, tokenizer: _core.Tokenizer) -> bool:
    """Whether a post-processor does more than to add BOS and EOS."""
    return sides is None or any(
        tokens not in ([], [one.token])
        for tokens, one in zip(sides, _sides(None, tokenizer), strict=True)
    )


def _steps(processor: Any) -> list[Any]:
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
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
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
