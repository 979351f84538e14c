"""The added tokens of a `tokenizer.json`: they become special tokens, each with its flags.

Those without `special` are found in every text, as runs of spaces are; the others are control
tokens, found only where that is asked for.

`tokenizers` matches them in a text before everything else, in two passes, and assigns their ids
itself. Features that can be reproduced exactly are read; others raise an error with their name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from bytepair import _core
from bytepair.errors import FormatError, UnsupportedError
from bytepair.formats import parts
from bytepair.formats.charmap import lookalikes
from bytepair.formats.files import id_of, typed
from bytepair.formats.parts import ADDED, STRIPS, Asked, marks

FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")
#: The note that stores unusual flags.
NOTE: Final = "huggingface.added_tokens"

_NOTED: Final = ("single_word", "normalized")
_USUAL: Final = {name: name == "special" for name in FLAGS}

#: The id of a token, and its flags.
Token: TypeAlias = dict[str, Any]


# ---------------------------------------------------------------------------- reading


def read(document: dict[str, Any], asked: Asked) -> dict[str, Token]:
    """The added tokens of a document, by content."""
    found: dict[str, Token] = {}
    listed = document.get("added_tokens")
    for number, entry in enumerate(typed([] if listed is None else listed, list, "added_tokens")):
        place = f"added_tokens[{number}]"
        token = typed(entry, dict, place)
        name = typed(token.get("content"), str, f"{place}.content")
        flags = {f: typed(token.get(f, _USUAL[f]), bool, f"{place}.{f}") for f in FLAGS}
        check_alone(name, flags, place, asked)
        if name in found:
            raise FormatError(f"{place}.content", f"{name!r} is a duplicate")
        found[name] = {"id": id_of(token.get("id"), f"{place}.id"), **flags}
    return found


def check_alone(name: str, flags: dict[str, Any], place: str, asked: Asked) -> None:
    """Reject a token that matches only as a separate word."""
    if flags.get("single_word") and not asked.lossy:
        raise UnsupportedError(
            f"{place}.single_word",
            f"{name!r} does not match within a word; pass lossy=True to match it there too",
        )


def flagged(added: dict[str, Token]) -> dict[str, list[int]]:
    """The ids of the tokens that strip the white space on each side, and of those not special."""
    flags = {side: sorted(t["id"] for t in added.values() if t[side]) for side in STRIPS}
    return {**flags, ADDED: sorted(t["id"] for t in added.values() if not t["special"])}


def check_overlaps(added: dict[str, Token]) -> None:
    """Reject added tokens whose matches may depend on the order of the two passes.

    `tokenizers` first matches the tokens without `normalized`, then the others in the remaining
    text; we match all at once, from left to right. The result is the same if no token of the second
    kind can begin before one of the first kind and overlap it.
    """
    first = [name for name, token in added.items() if not token["normalized"]]
    then = [name for name, token in added.items() if token["normalized"]]
    shared = overlaps(then, first) if first and then else set()
    if (
        first and then and any(token[side] for token in added.values() for side in STRIPS)
    ):  # the first pass may strip white space that others need
        shared |= {name for name in added if name != name.strip()}
    if shared:
        raise UnsupportedError(
            "added_tokens",
            f"tokens with and without `normalized` share {min(shared)!r} and may overlap in a text",
        )


def overlaps(ends: list[str], starts: list[str]) -> set[str]:
    """Texts that end a name of one list and start one of the other, or whole names in the other.

    Time and memory are linear in the names: parts of them are compared by their hashes first.

    Example:
        >>> sorted(overlaps(["a<b"], ["<bc", "x"])), overlaps(["ab"], ["bb", "c"])
        (['<b'], {'b'})
    """
    prefixes = {code for name in starts for code in _prefix_codes(name)}
    found: set[str] = set()
    for name in ends:
        code, power = 0, 1
        for at in range(len(name) - 1, 0, -1):
            code, power = (code + ord(name[at]) * power) % _PRIME, power * _BASE % _PRIME
            if code in prefixes and any(start.startswith(name[at:]) for start in starts):
                found.add(name[at:])
                break  # one is enough to refuse the names
    every = "\0".join(ends)
    return found | {name for name in starts if name in every}


_PRIME: Final = (1 << 61) - 1
_BASE: Final = 0x1234567


def _prefix_codes(name: str) -> Iterator[int]:
    """A hash of each proper prefix of a name."""
    code = 0
    for character in name[:-1]:
        code = (code * _BASE + ord(character)) % _PRIME
        yield code


def check_ids(added: dict[str, Token], ids: dict[str, int], size: int) -> None:
    """Check the ids of added tokens against those that `tokenizers` would assign.

    It uses the id in the vocabulary, or else the next free one.

    Args:
        added: the added tokens.
        ids: the ids of the added tokens that are in the vocabulary.
        size: the number of entries of the vocabulary.
    """
    following = size
    for number, (name, token) in enumerate(added.items()):
        id, given = token["id"], ids.get(name, following)
        if given != id:
            raise FormatError(
                f"added_tokens[{number}].id",
                f"{name!r} has the id {id}, but tokenizers would assign {given}",
            )
        following = max(following, id + 1)


def without_special(
    merges: Iterable[tuple[str, list[str]]], added: dict[str, Token]
) -> Iterator[tuple[str, list[str]]]:
    """The merges without those that name or make a special token.

    `tokenizers` finds added tokens in a text before it merges, so these merges never happen there.
    Without them, a special token never comes from merging: text from strangers cannot contain one.

    Args:
        merges: the place of each merge, and its two parts.
        added: the added tokens; those without `special` change nothing.
    """
    names = {name for name, token in added.items() if token["special"]}
    return ((place, pair) for place, pair in merges if not names & {*pair, "".join(pair)})


def note(added: dict[str, Token]) -> dict[str, str]:
    """The note with the unusual flags, if there are any."""
    flags = {
        name: {flag: token[flag] for flag in _NOTED if token[flag] != _USUAL[flag]}
        for name, token in added.items()
    }
    flags = {name: unusual for name, unusual in flags.items() if unusual}
    return {NOTE: json.dumps(flags)} if flags else {}


# ---------------------------------------------------------------------------- writing


def unusual(tokenizer: _core.Tokenizer) -> dict[str, dict[str, bool]]:
    """The flags in the note, by the names of the tokens: `single_word` and `normalized`."""
    noted: dict[str, dict[str, bool]] = json.loads(tokenizer.notes.get(NOTE, "{}"))
    return noted


def written(tokenizer: _core.Tokenizer) -> list[Token]:
    """The special tokens in the form of a `tokenizer.json`, in the order of their ids."""
    flags, left_out = unusual(tokenizer), set(lookalikes(tokenizer))
    marked, in_every_text = marks(tokenizer.pattern).flags, parts.added(tokenizer)
    return [
        {
            "id": id,
            "content": name,
            **_USUAL,
            **flags.get(name, {}),
            **{side: id in marked.get(side, []) for side in STRIPS},
            "special": id not in in_every_text,
        }
        for name, id in sorted(tokenizer.special_tokens.items(), key=lambda item: item[1])
        if name not in left_out
    ]
