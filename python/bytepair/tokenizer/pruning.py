"""Remove tokens from a vocabulary without changing the encoding of texts that do not use them.

Three kinds of tokens are always kept: special tokens, single bytes (so that every text can be
encoded; with byte fallback these are the 256 byte tokens and the characters of one byte), and the
intermediate tokens needed to merge a kept token. This guarantees: **a text whose
tokens are all kept is encoded to the same tokens.** Proof: the small vocabulary has a subset of the
merges, in the same order. While the large one merges such a text, each merge produces a part of a
kept token (see `bytepair.tokenizer.parents`), so this merge is kept too. It was first among all
candidates, so it is first among the remaining ones. Ids keep their order, and so do ranks.

With byte fallback, merging starts with characters. A character that is a part of a kept token is
an intermediate token of it, and so it is kept. User-defined tokens are found before merging, so
they have no parts; without one of them, texts that do not contain it are divided as before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable

from bytepair import _core
from bytepair._internal.arguments import integers
from bytepair.errors import ArgumentError, CountsError, Option, VocabularyError, WayOut
from bytepair.tokenizer.parents import Parents, needed_by, parents, with_ancestors
from bytepair.tokenizer.renumber import renumbered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The notes about training, which do not apply to a pruned vocabulary.
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
    """The interface of `bytepair.Counts`: how often each pretoken of a corpus occurs."""

    @property
    def pattern(self) -> str:
        """The split pattern, as a regular expression."""

    def items(self) -> list[tuple[bytes, int]]:
        """The pretokens with their counts."""


#: The argument that determines which tokens are kept.
Keep: TypeAlias = PretokenCounts | Mapping[int, int] | Iterable[int] | int | None


def pruned(
    tokenizer: _core.Tokenizer, keep: Keep, vocab_size: int | None, drop: Iterable[int] | None
) -> tuple[_core.Model, NDArray[np.int32]]:
    """The smaller tokenizer and the new id of each old one; see `Tokenizer.prune`."""
    if tokenizer.rules.has_symbols:
        raise VocabularyError(
            "the tokens of this tokenizer are the names of characters, and only tokens that are "
            "bytes can be pruned"
        )
    remaining = _tokens_to_keep(tokenizer, keep, vocab_size, drop)
    ranks, special = tokenizer.mergeable_ranks(), tokenizer.special_tokens
    twins = _core.twin_ids(tokenizer)
    old = sorted({*(ranks[token] for token in remaining), *special.values(), *twins})
    new = {id: place for place, id in enumerate(old)}
    left_out = _OF_TRAINING if len(remaining) < len(ranks) else ()
    notes = {name: value for name, value in tokenizer.notes.items() if name not in left_out}
    model = renumbered(
        tokenizer,
        {token: new[id] for token, id in ranks.items() if id in new},
        {name: new[id] for name, id in special.items()},
        notes,
        {new[id]: tokenizer.token_bytes(id) for id in twins},
    )
    return model, _map(tokenizer.vocab_size, old)


def _map(size: int, old: list[int]) -> NDArray[np.int32]:
    import numpy as np

    ids = np.full(size, -1, np.int32)
    ids[old] = np.arange(len(old))
    return ids


def _tokens_to_keep(
    tokenizer: _core.Tokenizer, keep: Keep, vocab_size: int | None, drop: Iterable[int] | None
) -> set[bytes]:
    """The ordinary tokens to keep."""
    if (keep is None) == (drop is None):
        raise ArgumentError(
            "pass either",
            Option("keep"),
            "(what to keep) or",
            Option("drop"),
            "(the ids to remove)",
        )
    is_counts = isinstance(keep, PretokenCounts | Mapping)
    if vocab_size is not None and not is_counts:
        raise ArgumentError(Option("vocab_size"), "needs counts, which determine what to keep")
    tokens, pairs = tokenizer.mergeable_ranks(), parents(tokenizer)
    always = _always(tokenizer, pairs)
    if isinstance(keep, int | Integral):
        return _first(tokens, pairs, always, _room(tokenizer, int(keep), always))
    if isinstance(keep, PretokenCounts | Mapping):
        occurrences = uses(tokenizer, keep)
        candidates = with_ancestors({t for t in tokens if occurrences.get(t)} | always, pairs)
        if vocab_size is None:
            return candidates
        pairs = {token: pair for token, pair in pairs.items() if token in candidates}
        return cut(
            candidates, pairs, occurrences, tokens, _room(tokenizer, vocab_size, always), always
        )
    if keep is not None:
        return with_ancestors(_ordinary(tokenizer, keep) | always, pairs)
    assert drop is not None
    return with_ancestors((tokens.keys() - _ordinary(tokenizer, drop)) | always, pairs)


def _always(tokenizer: _core.Tokenizer, pairs: Parents) -> set[bytes]:
    """The ordinary tokens that are always kept.

    These are bytes, tokens that are special tokens as well, and the intermediate tokens of both.
    """
    special = set(tokenizer.special_tokens.values())
    ranks = tokenizer.mergeable_ranks().items()
    return with_ancestors({t for t, id in ranks if len(t) == 1 or id in special}, pairs)


def _ordinary(tokenizer: _core.Tokenizer, ids: Iterable[int]) -> set[bytes]:
    """The bytes of the ordinary tokens among some ids; unknown ids are errors."""
    beside = _unmerged_ids(tokenizer)
    numbers = integers("keep or drop", ids)
    return {tokenizer.token_bytes(id) for id in numbers if id not in beside}


def _unmerged_ids(tokenizer: _core.Tokenizer) -> set[int]:
    """The ids of special tokens, and with byte fallback those of the bytes of other tokens."""
    special = set(tokenizer.special_tokens.values())
    return special.difference(tokenizer.mergeable_ranks().values()).union(_core.twin_ids(tokenizer))


def _room(tokenizer: _core.Tokenizer, vocab_size: int, always: set[bytes]) -> int:
    """The number of ordinary tokens in a vocabulary of this size."""
    room = vocab_size - len(_unmerged_ids(tokenizer))
    if room < len(always):
        special, least = len(tokenizer.special_tokens), vocab_size - room + len(always)
        raise VocabularyError(
            Option("vocab_size"),
            f"{vocab_size} is too small for the {special} special tokens and {least - special} "
            "bytes, which are always kept",
            WayOut(f"pass at least {least}"),
        )
    return room


def _first(tokens: dict[bytes, int], pairs: Parents, chosen: set[bytes], room: int) -> set[bytes]:
    """The tokens with the lowest ids, as many as there is room for."""
    chosen = set(chosen)
    for token in sorted(tokens, key=tokens.__getitem__):
        needed = with_ancestors({token}, pairs) - chosen
        if len(chosen) + len(needed) > room:
            break
        chosen |= needed
    return chosen


def uses(
    tokenizer: _core.Tokenizer, counts: PretokenCounts | Mapping[int, int]
) -> dict[bytes, int]:
    """How often each token occurs in a corpus."""
    if isinstance(counts, Mapping):
        _ordinary(tokenizer, [id for id, times in counts.items() if times])
        beside = _unmerged_ids(tokenizer)
        occurrences = {id: times for id, times in counts.items() if id not in beside and times}
        return {tokenizer.token_bytes(id): times for id, times in occurrences.items()}
    if tokenizer.rules.normalizer:
        raise CountsError(
            "the tokenizer normalizes texts, so counts of pretokens do not say which tokens occur",
            WayOut(
                "pass how often each id occurs, such as collections.Counter(tokenizer.encode(text))"
            ),
        )
    if counts.pattern != tokenizer.pattern:
        raise CountsError(
            f"the counts have the pattern {counts.pattern!r}, but the tokenizer has "
            f"{tokenizer.pattern!r}",
            WayOut("count the text with the tokenizer's pattern"),
        )
    occurrences = {}
    for pretoken, times in counts.items():
        for id in _core.encode_pretoken(tokenizer, pretoken):
            occurrences[id] = occurrences.get(id, 0) + times
    return {tokenizer.token_bytes(id): times for id, times in occurrences.items()}


def cut(
    tokens: set[bytes],
    pairs: Parents,
    occurrences: dict[bytes, int],
    ids: dict[bytes, int],
    room: int,
    always: set[bytes],
) -> set[bytes]:
    """Repeatedly remove the least used token that no other token needs, until the rest fits.

    The uses of a removed token are added to its two parts; a token that no merge produces has no
    parts. Among equally used tokens, the one with the highest id is removed.

    Args:
        tokens: the tokens, including the intermediate tokens needed to merge them.
        pairs: the pair that merges into each token.
        occurrences: the number of occurrences of each token.
        ids: the id of each token.
        room: the number of tokens to keep.
        always: the tokens that are always kept, with their intermediate tokens.
    """
    tokens, occurrences, needed = set(tokens), dict(occurrences), needed_by(pairs)

    def candidate(token: bytes) -> tuple[int, int, bytes]:
        return occurrences.get(token, 0), -ids[token], token

    queue = [candidate(token) for token in tokens - always if not needed.get(token)]
    heapq.heapify(queue)
    while len(tokens) > room:
        times, _, token = heapq.heappop(queue)
        tokens.remove(token)
        pair = pairs.get(token, ())
        for part in pair:
            occurrences[part] = occurrences.get(part, 0) + times
        for part in set(pair):
            needed[part] -= 1
            if not needed[part] and part not in always:
                heapq.heappush(queue, candidate(part))
    return tokens
