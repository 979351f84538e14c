"""A vocabulary in, a smaller one out, whose ids for what stays are those of the large one.

Three things always stay: special tokens, single bytes (so that every text has ids), and whatever
merging a token that stays needs. From that follows what is exact: **a text whose ids all stay has,
in the small vocabulary, the same tokens.** The small one has fewer merges, in the same order. While
the large one merges a text of which all tokens stay, each merge makes a part of such a token
(`bytepair.formats.parents` says why), so it stays too, and it is first among fewer candidates as it
was first among more. Ids keep their order, so ranks do, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from numbers import Integral
from operator import index
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable

from bytepair import _core
from bytepair.errors import CountsError, VocabularyError
from bytepair.formats.parents import needed_by, parents, with_ancestors
from bytepair.formats.renumber import renumbered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Notes on the training of the whole vocabulary.
_OF_TRAINING: Final = {
    "counts",
    "exhausted",
    "min_count",
    "parity",
    "pretokens",
    "superwords",
    "text_bytes",
    "ties",
}


@runtime_checkable
class PretokenCounts(Protocol):
    """What `bytepair.Counts` has: how often each pretoken of a corpus occurs."""

    @property
    def pattern(self) -> str:
        """The split pattern, as a regular expression."""

    def items(self) -> list[tuple[bytes, int]]:
        """The pretokens with their counts."""


#: What says which tokens stay.
Keep: TypeAlias = "PretokenCounts | Iterable[int] | int | None"


def pruned(
    tokenizer: _core.Tokenizer, keep: Keep, vocab_size: int | None, drop: Iterable[int] | None
) -> tuple[_core.Model, NDArray[np.int32]]:
    """The smaller tokenizer and the new id of each old one; `Tokenizer.prune` says it all."""
    kept = _kept(tokenizer, keep, vocab_size, drop)
    ranks, special = tokenizer.mergeable_ranks(), tokenizer.special_tokens
    old = sorted([*(ranks[token] for token in kept), *special.values()])
    new = {id: place for place, id in enumerate(old)}
    left_out = _OF_TRAINING if len(kept) < len(ranks) else ()
    notes = {name: value for name, value in tokenizer.notes.items() if name not in left_out}
    model = renumbered(
        tokenizer,
        {token: new[id] for token, id in ranks.items() if id in new},
        {name: new[id] for name, id in special.items()},
        notes,
    )
    return model, _map(tokenizer.vocab_size, old)


def _map(size: int, old: list[int]) -> NDArray[np.int32]:
    import numpy as np

    ids = np.full(size, -1, np.int32)
    ids[old] = np.arange(len(old))
    return ids


def _kept(
    tokenizer: _core.Tokenizer, keep: Keep, vocab_size: int | None, drop: Iterable[int] | None
) -> set[bytes]:
    """The ordinary tokens that stay."""
    if (keep is None) == (drop is None):
        raise TypeError("pass either keep, what stays, or drop=, the ids that go")
    if vocab_size is not None and not isinstance(keep, PretokenCounts):
        raise TypeError("vocab_size is for counts, which say what to keep of it")
    tokens, made = tokenizer.mergeable_ranks(), parents(tokenizer)
    single = {token for token in tokens if len(token) == 1}
    if isinstance(keep, int | Integral):
        return _first(tokens, made, single, _room(tokenizer, int(keep), len(single)))
    if isinstance(keep, PretokenCounts):
        used = uses(tokenizer, keep)
        chosen = with_ancestors({t for t in tokens if used.get(t)} | single, made)
        if vocab_size is None:
            return chosen
        made = {token: pair for token, pair in made.items() if token in chosen}
        room = _room(tokenizer, vocab_size, len(single))
        return cut(chosen, made, used, tokens, room)
    if keep is not None:
        return with_ancestors(_ordinary(tokenizer, keep) | single, made)
    assert drop is not None
    return with_ancestors((tokens.keys() - _ordinary(tokenizer, drop)) | single, made)


def _ordinary(tokenizer: _core.Tokenizer, ids: Iterable[int]) -> set[bytes]:
    """The bytes of those of the ids that are ordinary tokens; unknown ids are errors."""
    special = set(tokenizer.special_tokens.values())
    numbers = (index(id) for id in ids)
    return {tokenizer.token_bytes(id) for id in numbers if id not in special}


def _room(tokenizer: _core.Tokenizer, vocab_size: int, single: int) -> int:
    """How many ordinary tokens a vocabulary of this size has."""
    special = len(tokenizer.special_tokens)
    if vocab_size < special + single:
        raise VocabularyError(
            f"vocab_size {vocab_size} is too small: {special} special tokens and {single} bytes "
            f"always stay; pass at least {special + single}"
        )
    return vocab_size - special


def _first(
    tokens: dict[bytes, int], made: dict[bytes, tuple[bytes, bytes]], kept: set[bytes], room: int
) -> set[bytes]:
    """As many tokens as there is room for, in the order of their ids."""
    kept = set(kept)
    for token in sorted(tokens, key=tokens.__getitem__):
        needed = with_ancestors({token}, made) - kept
        if len(kept) + len(needed) > room:
            break
        kept |= needed
    return kept


def uses(tokenizer: _core.Tokenizer, counts: PretokenCounts) -> dict[bytes, int]:
    """How often each token occurs in a corpus."""
    if counts.pattern != tokenizer.pattern:
        raise CountsError(
            f"the counts were made with the pattern {counts.pattern!r}, the tokenizer with "
            f"{tokenizer.pattern!r}"
        )
    used: dict[int, int] = {}
    for pretoken, times in counts.items():
        for id in tokenizer.encode_pretoken(pretoken):
            used[id] = used.get(id, 0) + times
    return {tokenizer.token_bytes(id): times for id, times in used.items()}


def cut(
    kept: set[bytes],
    made: dict[bytes, tuple[bytes, bytes]],
    used: dict[bytes, int],
    ids: dict[bytes, int],
    room: int,
) -> set[bytes]:
    """Take away the token of least use, of those that no other needs, until the rest has room.

    What a token was used for falls to its two parts. Of equals the one with the greatest id goes;
    a token that no merge makes has no parts.

    Args:
        kept: the tokens, with all that merging them needs.
        made: the pair that merges into each.
        used: how often each occurs.
        ids: the id of each.
        room: how many shall stay.
    """
    kept, used, needed = set(kept), dict(used), needed_by(made)

    def candidate(token: bytes) -> tuple[int, int, bytes]:
        return used.get(token, 0), -ids[token], token

    queue = [candidate(token) for token in kept if len(token) > 1 and not needed.get(token)]
    heapq.heapify(queue)
    while len(kept) > room:
        times, _, token = heapq.heappop(queue)
        kept.remove(token)
        pair = made.get(token, ())
        for part in pair:
            used[part] = used.get(part, 0) + times
        for part in set(pair):
            needed[part] -= 1
            if not needed[part] and len(part) > 1:
                heapq.heappush(queue, candidate(part))
    return kept
