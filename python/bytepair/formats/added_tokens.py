"""The added tokens of a `tokenizer.json`: special tokens here, each with its flags.

`tokenizers` looks for them before anything else, in two rounds, and gives them ids of its own. What
does the same here is read; what would not is refused by its name.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.formats.charmap import lookalikes
from bytepair.formats.files import id_of, typed
from bytepair.formats.parts import STRIPS, Asked, marks

FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")
#: A note of the flags that are not as usual.
NOTE: Final = "huggingface.added_tokens"

_NOTED: Final = ("single_word", "normalized", "special")
_USUAL: Final = {name: name == "special" for name in FLAGS}

#: The id of a token, and its flags.
Token: TypeAlias = dict[str, Any]


# ---------------------------------------------------------------------------- reading


def read(document: dict[str, Any], asked: Asked) -> dict[str, Token]:
    """The added tokens of a document by their text."""
    found: dict[str, Token] = {}
    listed = document.get("added_tokens")
    for number, entry in enumerate(typed([] if listed is None else listed, list, "added_tokens")):
        place = f"added_tokens[{number}]"
        token = typed(entry, dict, place)
        name = typed(token.get("content"), str, f"{place}.content")
        flags = {f: typed(token.get(f, _USUAL[f]), bool, f"{place}.{f}") for f in FLAGS}
        check_alone(name, flags, place, asked)
        if name in found:
            raise FormatError(f"{place}.content", f"{name!r} is given twice")
        found[name] = {"id": id_of(token.get("id"), f"{place}.id"), **flags}
    _check_overlaps(found)
    return found


def check_alone(name: str, flags: dict[str, Any], place: str, asked: Asked) -> None:
    """Refuse a token that is only found where no word goes on beside it."""
    if flags.get("single_word") and not asked.lossy:
        raise UnsupportedError(
            f"{place}.single_word",
            f"{name!r} would not be found within a word; pass lossy=True to find it there too",
        )


def strips(added: dict[str, Token]) -> dict[str, list[int]]:
    """The ids of the tokens that take the white space on either side."""
    return {side: sorted(t["id"] for t in added.values() if t[side]) for side in STRIPS}


def _check_overlaps(added: dict[str, Token]) -> None:
    """Refuse two kinds of added tokens of which one may get in the way of the other.

    Those that are not `normalized` are looked for first, then the others in what is left; we look
    for all at once, from left to right. It is the same if none of the others can begin before one
    of the first and reach into it.
    """
    first = [name for name, token in added.items() if not token["normalized"]]
    then = [name for name, token in added.items() if token["normalized"]]
    ends = {name[at:] for name in then for at in range(1, len(name))}
    starts = {name[:at] for name in first for at in range(1, len(name))}
    every = "\0".join(then)
    shared = (ends & starts) | {name for name in first if name in every}
    if first and then and any(strips(added).values()):  # the first round may take what others need
        shared |= {name for name in added if name != name.strip()}
    if shared:
        raise UnsupportedError(
            "added_tokens",
            f"tokens with and without `normalized` share {min(shared)!r} and may overlap in a text",
        )


def check_ids(added: dict[str, Token], ids: dict[str, int], size: int) -> None:
    """Check the ids of added tokens against those that `tokenizers` would give them.

    It takes the id of the vocabulary, or else the next one after all that there are.

    Args:
        added: the added tokens.
        ids: the ids of those of them that the vocabulary has.
        size: how many entries the vocabulary has.
    """
    following = size
    for number, (name, token) in enumerate(added.items()):
        id, given = token["id"], ids.get(name, following)
        if given != id:
            raise FormatError(
                f"added_tokens[{number}].id",
                f"{name!r} has the id {id} here, and would be given {given}",
            )
        following = max(following, id + 1)


def note(added: dict[str, Token]) -> dict[str, str]:
    """A note of the unusual flags, if there are any."""
    flags = {
        name: {flag: token[flag] for flag in _NOTED if token[flag] != _USUAL[flag]}
        for name, token in added.items()
    }
    flags = {name: unusual for name, unusual in flags.items() if unusual}
    return {NOTE: json.dumps(flags)} if flags else {}


# ---------------------------------------------------------------------------- writing


def unusual(tokenizer: _core.Tokenizer) -> dict[str, dict[str, bool]]:
    """The flags that are noted, by the names of the tokens."""
    noted: dict[str, dict[str, bool]] = json.loads(tokenizer.notes.get(NOTE, "{}"))
    return noted


def written(tokenizer: _core.Tokenizer) -> list[Token]:
    """The special tokens as a `tokenizer.json` lists them, in the order of their ids."""
    flags, left_out = unusual(tokenizer), set(lookalikes(tokenizer))
    strips = marks(tokenizer.pattern).strips
    return [
        {
            "id": id,
            "content": name,
            **_USUAL,
            **flags.get(name, {}),
            **{side: id in strips.get(side, []) for side in STRIPS},
        }
        for name, id in sorted(tokenizer.special_tokens.items(), key=lambda item: item[1])
        if name not in left_out
    ]
