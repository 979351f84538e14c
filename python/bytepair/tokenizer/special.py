"""Assign ids to additional special tokens: reserved ids first, then new ids at the end.

Models pad their embedding tables, and special tokens are often added later. So a vocabulary may
reserve ids: special tokens with names such as `<|reserved_0|>`, which a later special token
replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from bytepair import _core
from bytepair._internal.arguments import is_text, refuse
from bytepair.errors import ArgumentError, SpecialTokenError, WayOut

#: The names of reserved ids: as above, and as in Llama 3.
_RESERVED: Final = re.compile(r"<\|reserved_(?:special_token_)?([0-9]+)\|>")


def in_order(option: str, names: Sequence[str]) -> list[str]:
    """The names as a list in the order of their ids; reject types without order or with ids."""
    if isinstance(names, str):
        raise ArgumentError(f"{option} is a str", WayOut("pass a list of names"))
    if isinstance(names, Mapping):
        raise ArgumentError(
            f"{option} is a dict, but training assigns the ids: special tokens get the ids after "
            "the last merge",
            WayOut("pass a list of names, in the order of their ids"),
        )
    if isinstance(names, Set):
        raise ArgumentError(
            f"{option} is a set, which has no order", WayOut("pass a list of names")
        )
    if not isinstance(names, Iterable):
        raise refuse(option, names, "a list of str")
    values = list(names)
    for name in values:
        if not is_text(name):
            raise refuse(option, values, "a list of str without lone surrogates")
    return values


def check_not_ordinary(names: Sequence[str], initial: Sequence[str]) -> None:
    """Reject special tokens that are ordinary tokens before training: bytes, initial tokens.

    Raises:
        SpecialTokenError: if there is one.
    """
    for name in names:
        if name in initial or len(name.encode()) == 1:
            what = "an initial token" if name in initial else f"the byte {ord(name)}"
            raise SpecialTokenError(
                f"{name!r} is an ordinary token ({what})",
                WayOut("choose another name for the special token"),
            )


def reserved(number: int, existing: Sequence[str] = ()) -> list[str]:
    """Names for this many reserved ids, numbered after the existing ones.

    Example:
        >>> from bytepair.tokenizer.special import reserved
        >>> reserved(2, ["<|bos|>", "<|reserved_0|>"])
        ['<|reserved_1|>', '<|reserved_2|>']
    """
    numbers = [int(match[1]) for name in existing if (match := _RESERVED.fullmatch(name))]
    first = max(numbers, default=-1) + 1
    return [f"<|reserved_{first + index}|>" for index in range(number)]


def added(tokenizer: _core.Tokenizer, names: Sequence[str]) -> dict[str, int]:
    """All special tokens after adding some; see `Tokenizer.with_special_tokens`."""
    ids, ranks = tokenizer.special_tokens, tokenizer.mergeable_ranks()
    room = [name for name in ids if _RESERVED.fullmatch(name)]
    behind = tokenizer.vocab_size
    for name in in_order("names", names):
        if not name or name in ids:
            what = f"{name!r} is a special token already" if name else "a name is empty"
            raise SpecialTokenError(what, WayOut("omit it"))
        if (ordinary := ranks.get(name.encode())) is not None:
            raise SpecialTokenError(
                f"{name!r} is an ordinary token (id {ordinary})", WayOut("choose another name")
            )
        if room:
            ids[name] = ids.pop(room.pop(0))
        else:
            ids[name], behind = behind, behind + 1
    return ids


def padding(tokenizer: _core.Tokenizer, multiple: int) -> dict[str, int]:
    """All special tokens after padding the vocabulary size to a multiple."""
    ids, first = tokenizer.special_tokens, tokenizer.vocab_size
    names = reserved(-first % multiple, list(ids))
    return ids | {name: first + index for index, name in enumerate(names)}
