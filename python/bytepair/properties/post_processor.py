"""What is put around a text: BOS and EOS by flags, or what the post-processor of a file says.

`tokenizers` and `transformers` add BOS and EOS as the post-processor says, whatever `add_bos_token`
says; llama.cpp has only the flags. The core has the post-processor (`TextRules.around`), and the
flags are derived from it. It is written back if it does what the flags say, or more than they can
say; otherwise a post-processor is made from the flags.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import warn
from bytepair.properties import roles
from bytepair.properties.entries import Metadata

#: The note with the field of a file as it was, which the core writes in place of its own.
NOTE: Final = "huggingface.post_processor"

#: The names of the tokens before and after a text.
Surroundings: TypeAlias = tuple[list[str], list[str]]

#: The sides of a text: the role of the token there, its note, and the flag that adds it.
_SIDES: Final = (("bos", "bos_token", "add_bos_token"), ("eos", "eos_token", "add_eos_token"))


def around(rules: _core.TextRules, special: Mapping[str, int]) -> Surroundings:
    """The tokens that a post-processor puts around a text; "" for one that is not special."""
    names = {id: name for name, id in special.items()}
    before, after = rules.around
    return [names.get(id, "") for id in before], [names.get(id, "") for id in after]


def of(tokenizer: _core.Tokenizer) -> Surroundings:
    """The tokens that the post-processor of a tokenizer puts around a text."""
    return around(_core.text_rules(tokenizer), tokenizer.special_tokens)


def with_implied(
    metadata: Metadata, special: Mapping[str, int], surroundings: Surroundings
) -> Metadata:
    """The metadata of a file with the flags that its post-processor implies, and its roles."""
    tokens, flags = dict(metadata.tokens), dict(metadata.flags)
    for side, (role, note, flag) in zip(surroundings, _SIDES, strict=True):
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


def _sides(
    surroundings: Surroundings, tokenizer: _core.Tokenizer
) -> list[tuple[list[str], list[str], str, str]]:
    """For each side its tokens, the one with the role in a list, the note of the role, the flag."""
    by_role = roles.roles(tokenizer)
    return [
        (tokens, [by_role[role]] if role in by_role else [], note, flag)
        for tokens, (role, note, flag) in zip(surroundings, _SIDES, strict=True)
    ]


def implied(tokenizer: _core.Tokenizer) -> list[str]:
    """The flags that nothing states and that the post-processor sets."""
    notes, sides = tokenizer.notes, _sides(of(tokenizer), tokenizer)
    return [
        flag for tokens, end, _, flag in sides if tokens and tokens == end and not notes.get(flag)
    ]


def losses(tokenizer: _core.Tokenizer) -> list[str]:
    """What is read otherwise from the post-processor to write, since it adds its tokens."""
    notes, lost = tokenizer.notes, []
    for tokens, end, note, flag in _sides(written(tokenizer), tokenizer):
        if tokens and tokens == end and notes.get(flag) == "false":
            lost.append(f"the flag {flag}, which is false, while the post-processor adds the token")
        elif len(tokens) == 1 and not notes.get(note) and tokens != end:
            lost.append(
                f"the role {note} and the flag {flag}, which the post-processor sets otherwise"
            )
    return lost


def written(tokenizer: _core.Tokenizer) -> Surroundings:
    """What the post-processor to write puts around a text: the same, or else what flags say."""
    notes, set_flags, surroundings = tokenizer.notes, implied(tokenizer), of(tokenizer)
    before, after = (
        end if notes.get(flag) == "true" or flag in set_flags else []
        for _, end, _, flag in _sides(surroundings, tokenizer)
    )
    stated = any(notes.get(flag) for *_, flag in _SIDES)
    return (before, after) if stated and not is_more(tokenizer) else surroundings


def is_more(tokenizer: _core.Tokenizer) -> bool:
    """Whether a post-processor does more than to add BOS and EOS."""
    return any(tokens not in ([], end) for tokens, end, *_ in _sides(of(tokenizer), tokenizer))


def with_written(tokenizer: _core.Tokenizer) -> _core.Tokenizer:
    """The tokenizer with the post-processor to write."""
    surroundings = written(tokenizer)
    if surroundings == of(tokenizer):
        return tokenizer
    processor = _template(surroundings, tokenizer.special_tokens)
    trims = _core.text_rules(tokenizer).trim_offsets
    if trims is not None:
        bytes_first = {"type": "ByteLevel", "add_prefix_space": trims, "trim_offsets": True}
        processor = {"type": "Sequence", "processors": [bytes_first, processor]}
    notes = tokenizer.notes | {NOTE: json.dumps(processor)}
    return _core.Tokenizer(_core.with_notes(tokenizer, notes))


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
