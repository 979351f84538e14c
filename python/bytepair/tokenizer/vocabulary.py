"""Changes ids: adds special tokens, renumbers tokens, and finds the old ids in each new token.

Models pad their embedding tables, and special tokens are often added later. So a vocabulary may
reserve ids: special tokens with names such as `<|reserved_0|>`, which a later special token
replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from bytepair import _core
from bytepair._internal.checks import check_kind, check_whole, refuse
from bytepair.errors import SpecialTokenError
from bytepair.formats.parts import build
from bytepair.properties import metadata
from bytepair.properties import roles as roles_of
from bytepair.properties.tokens import AddedToken, flags

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T", bound=_core.Tokenizer)

#: The names of reserved ids: as above, and as in Llama 3.
_RESERVED: Final = re.compile(r"<\|reserved_(?:special_token_)?([0-9]+)\|>")


def in_order(option: str, names: Sequence[str]) -> list[str]:
    """The names as a list in the order of their ids; what has no order, or ids, is refused."""
    if isinstance(names, str | Set | Mapping) or not isinstance(names, Iterable):
        hint = "training assigns the ids, in this order" if isinstance(names, Mapping) else ""
        raise refuse(option, names, "a list of str, which has an order", hint)
    values = list(names)
    if not all(isinstance(name, str) for name in values) or _core.lone_surrogates(values):
        raise refuse(option, values, "a list of str without lone surrogates")
    return values


def check_not_ordinary(names: Sequence[str], initial: Sequence[str]) -> None:
    """Reject special tokens that are ordinary tokens before training: bytes, initial tokens."""
    for name in names:
        if name in initial or len(name.encode()) == 1:
            what = "an initial token" if name in initial else f"the byte {ord(name)}"
            hint = "choose another name for the special token"
            raise SpecialTokenError(f"{name!r} is an ordinary token ({what})", hint=hint)


def reserved(number: int, existing: Sequence[str] = ()) -> list[str]:
    """Names for this many reserved ids, numbered after the existing ones."""
    numbers = [int(match[1]) for name in existing if (match := _RESERVED.fullmatch(name))]
    first = max(numbers, default=-1) + 1
    return [f"<|reserved_{first + index}|>" for index in range(number)]


def replaced(
    tokenizer: T,
    special_tokens: Sequence[str] | Mapping[str, int | None] | None,
    vocab_size: int | None,
    roles: Mapping[str, str | None] | None,
    chat_template: str | Mapping[str, str | None] | None,
    notes: Mapping[str, str] | None,
) -> T:
    """A copy with other properties; see `Tokenizer.replace`."""
    kind, new = type(tokenizer), tokenizer
    if vocab_size is not None:
        new = with_roles_of(kind(_core.with_vocab_size(new, vocab_size)), tokenizer)
    if special_tokens is not None:
        new = kind(_core.with_special_tokens(new, added(new, special_tokens)))
    changed = roles_of.changed_notes(new, roles, chat_template) | dict(notes or {})
    return kind(_core.with_notes(new, new.notes | changed)) if changed else new


def with_roles_of(tokenizer: T, other: _core.Tokenizer) -> T:
    """A copy with the roles, flags and chat templates of another tokenizer."""
    notes = metadata.carried(other, tokenizer.special_tokens)
    return replaced(tokenizer, None, None, None, None, notes)


def added(
    tokenizer: _core.Tokenizer, names: Sequence[str] | Mapping[str, int | None]
) -> dict[str, int]:
    """All special tokens after adding some; see `Tokenizer.replace`."""
    ids, ranks = tokenizer.special_tokens, tokenizer.mergeable_ranks()
    wanted = dict(names) if isinstance(names, Mapping) else {}
    room = [name for name in ids if _RESERVED.fullmatch(name)]
    listed = names if isinstance(names, Mapping) else in_order("special_tokens", names)
    for name in listed:
        check_new(name, ids, ranks)
        id = wanted.get(name)
        if id is not None:
            id = check_whole(f"the id of {name}", id)
            held = next((one for one in room if ids[one] == id), None)
            if held is not None:
                room.remove(held)
                del ids[held]
            ids[name] = id
        elif room:
            ids[name] = ids.pop(room.pop(0))
        else:
            ids[name] = max([tokenizer.vocab_size - 1, *ids.values()]) + 1
    return ids


def check_new(name: str, special: Mapping[str, int], ranks: Mapping[bytes, int]) -> None:
    """Refuse the name of a token that exists."""
    if not name or name in special:
        what = f"{name!r} is a special token already" if name else "a name is empty"
        raise SpecialTokenError(what, option="special_tokens", value=name, hint="omit it")
    if (ordinary := ranks.get(name.encode())) is not None:
        what, hint = f"{name!r} is an ordinary token (id {ordinary})", "choose another name"
        raise SpecialTokenError(what, option="special_tokens", value=name, hint=hint)


def padding(tokenizer: _core.Tokenizer, multiple: int) -> dict[str, int]:
    """All special tokens after padding the vocabulary size to a multiple."""
    ids, first = tokenizer.special_tokens, tokenizer.vocab_size
    names = reserved(-first % multiple, list(ids))
    return ids | {name: first + index for index, name in enumerate(names)}


def renumbered(
    tokenizer: _core.Tokenizer,
    ids: dict[bytes, int],
    special: dict[str, int],
    notes: dict[str, str],
    twins: dict[int, bytes] | None = None,
) -> _core.Model:
    """The tokenizer with other ids."""
    merges = None
    if tokenizer.merge_rule != "ranks":
        merges = [pair for pair in tokenizer.merges() if {*pair, pair[0] + pair[1]} <= ids.keys()]
    twins = (twins or {}) if tokenizer.merge_rule == "characters" else None
    old, names = tokenizer.mergeable_ranks(), tokenizer.special_tokens
    moved = {old[token]: id for token, id in ids.items() if token in old}
    of_names = {names[name]: id for name, id in special.items() if name in names}
    rules = _core.text_rules(tokenizer).renumbered(moved | of_names)
    notes = metadata.renumbered(notes, special, moved)
    ignore, by_name = _core.ignores_merges(tokenizer), flags(tokenizer)
    added = [
        by_name.get(name, AddedToken(name, id))._replace(id=id) for name, id in special.items()
    ]
    return build(ids, rules, added, merges, ignore_merges=ignore, notes=notes, twins=twins)


@dataclass(frozen=True, eq=False)
class TokenParts:
    """The old ids that make up each token of a new vocabulary (see `bytepair.tokenizer.parts_in`).

    Attributes:
        offsets: int64, one more than new ids: the start of the parts of each new id in `ids`.
        ids: int64, the old ids of all parts, concatenated.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]


def parts_in(new: _core.Tokenizer, old: _core.Tokenizer) -> TokenParts:
    """Express each token of a new tokenizer by ids of an old one.

    The parts of a token are its bytes, encoded by the old tokenizer as one pretoken: the token
    itself, if it exists there. The part of a special token is the one of the same name; if
    there is none, its name is encoded. An unused id has no parts.

    A model with a new vocabulary needs an embedding row for each new token. The mean of the rows of
    its parts is a good initial value (fast vocabulary transfer: Gee et al., arXiv 2402.09977).

    `old` is the tokenizer of the existing embedding table: the one before `bytepair.extend` or
    `Tokenizer.replace`, or any other.

    Returns:
        The parts in two int64 arrays: new id `i` has `ids[offsets[i]:offsets[i + 1]]`.
        `torch.nn.functional.embedding_bag(ids, weight, offsets, include_last_offset=True)`
        computes the mean of the old rows for each new id.

    Raises:
        SplitError: if the old tokenizer has no token for a byte.

    Example:
        >>> import bytepair
        >>> old = bytepair.train(["hello hello"], 259, special_tokens=["<|bos|>"])
        >>> new = bytepair.extend(old, ["hello hello"], 3)
        >>> parts = bytepair.tokenizer.parts_in(new, old)
        >>> a, b = parts.offsets[new.token_id("hello"):][:2]
        >>> [old.token_bytes(id) for id in parts.ids[a:b].tolist()]
        [b'hel', b'l', b'o']
    """
    import numpy as np

    check_kind("new", new, _core.Tokenizer)
    check_kind("old", old, _core.Tokenizer)
    rows = list(_rows(new, old))
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return TokenParts(offsets, np.array([id for row in rows for id in row], np.int64))


def _rows(new: _core.Tokenizer, old: _core.Tokenizer) -> Iterator[list[int]]:
    special = old.special_tokens
    parts = {
        id: [special[name]] if name in special else _core.encode_pretoken(old, name.encode())
        for name, id in new.special_tokens.items()
    }
    for token, id in new.mergeable_ranks().items():
        parts[id] = _core.encode_pretoken(old, token)
    return (parts.get(id, []) for id in range(new.vocab_size))
