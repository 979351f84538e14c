"""Remove tokens from a vocabulary without changing the encoding of texts that do not use them.

Three kinds of tokens are always kept: special tokens, single bytes (so that every text can be
encoded; with byte fallback these are the 256 byte tokens and the characters of one byte), and the
intermediate tokens needed to merge a kept token. This guarantees: **a text whose
tokens are all kept is encoded to the same tokens.** Proof: the small vocabulary has a subset of the
merges, in the same order. While the large one merges such a text, each merge produces a part of a
kept token (see `parents`), so this merge is kept too. It was first among all
candidates, so it is first among the remaining ones. Ids keep their order, and so do ranks.

With byte fallback, merging starts with characters. A character that is a part of a kept token is
an intermediate token of it, and so it is kept. User-defined tokens are found before merging, so
they have no parts; without one of them, texts that do not contain it are divided as before.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from bytepair import _core
from bytepair._internal.checks import check_kind, integers
from bytepair.errors import ArgumentError, CountsError, VocabularyError
from bytepair.tokenizer.vocabulary import renumbered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bytepair.tokenizer.tokenizer import Tokenizer

#: The pair that merges into each token, by bytes.
Parents: TypeAlias = dict[bytes, tuple[bytes, bytes]]

#: The notes about training, which do not apply to a pruned vocabulary.
_OF_TRAINING: Final = {
    "counts", "exhausted", "min_count", "parity", "pretokens", "superwords", "text_bytes", "ties",
}  # fmt: skip


class PretokenCounts(Protocol):
    """The interface of `bytepair.Counts`: how often each pretoken of a corpus occurs."""

    @property
    def pattern(self) -> Any: ...  # noqa: D102

    def items(self) -> list[tuple[bytes, int]]:
        """The pretokens with their counts."""


#: The argument that determines which tokens are kept.
Keep: TypeAlias = PretokenCounts | Mapping[int, int] | Iterable[int] | int | None


@dataclass(frozen=True, eq=False)
class Pruned:
    """The result of `prune`.

    Attributes:
        tokenizer: the smaller tokenizer.
        ids: int32, the new id of each old id, or -1 for a removed token. Given a matrix with one
            row per old id, the rows of the new ids are `matrix[numpy.flatnonzero(ids >= 0)]`.
    """

    tokenizer: Tokenizer
    ids: NDArray[np.int32]


def prune(
    tokenizer: Tokenizer,
    keep: Keep = None,
    *,
    vocab_size: int | None = None,
    drop: Iterable[int] | None = None,
) -> Pruned:
    """Remove tokens, without changing the encoding of texts that do not use them.

    Special tokens, single bytes and the intermediate tokens of kept tokens are always kept. A
    text whose tokens are all kept is encoded to the same tokens; its new ids are
    `pruned.ids[old_ids]`. Other texts are encoded with the remaining merges. The new ids are
    contiguous, in the order of the old ones.

    Args:
        tokenizer: the tokenizer.
        keep: what to keep. `bytepair.Counts` (with the split pattern of this tokenizer), or a
            mapping from ids to how often each occurs: the tokens that occur. Ids: these tokens.
            A number: the tokens with the lowest ids, up to this vocabulary size.
        vocab_size: with counts, keep at most this many ids, including special tokens: the
            least used token that no other token needs is removed first, and its uses are added
            to its parts.
        drop: instead of `keep`, the ids to remove, such as
            `bytepair.evaluate.unreachable(tok)`; tokens that others need are kept.

    Raises:
        VocabularyError: if there is no room for the special tokens and bytes.
        CountsError: if the counts have a different pattern, or the tokenizer normalizes texts,
            so that it needs a mapping of ids.
        UnknownIdError: if an id is not in the vocabulary.
        TypeError: if the combination of arguments is invalid.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hello hello help, world world"], 275)
        >>> small = bytepair.prune(tok, bytepair.count(["hello world"]))
        >>> small.tokenizer.vocab_size, small.ids[tok.encode("hello world")].tolist()
        (274, [264, 263])
        >>> small.tokenizer.encode("hello world")
        [264, 263]
    """
    import numpy as np

    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    if _core.text_rules(tokenizer).has_symbols:
        raise VocabularyError(
            "the tokens of this tokenizer are the names of characters, and only tokens that are "
            "bytes can be pruned"
        )
    remaining = _tokens_to_keep(tokenizer, keep, vocab_size, drop)
    ranks, special = tokenizer.mergeable_ranks(), tokenizer.special_tokens
    twins = _core.twin_ids(tokenizer)
    old = sorted({*(ranks[token] for token in remaining), *special.values(), *twins})
    ids = np.full(tokenizer.vocab_size, -1, np.int32)
    ids[old] = np.arange(len(old))
    if (ids >= 0).all():  # nothing goes; a new model would lack the counts of the merges
        return Pruned(tokenizer, ids)
    new = {id: place for place, id in enumerate(old)}
    left_out = _OF_TRAINING if len(remaining) < len(ranks) else ()
    model = renumbered(
        tokenizer,
        {token: new[id] for token, id in ranks.items() if id in new},
        {name: new[id] for name, id in special.items()},
        {name: value for name, value in tokenizer.notes.items() if name not in left_out},
        {new[id]: tokenizer.token_bytes(id) for id in twins},
    )
    return Pruned(type(tokenizer)(model).replace(repeats=_core.repeats(tokenizer)), ids)


def _tokens_to_keep(
    tokenizer: _core.Tokenizer, keep: Any, vocab_size: int | None, drop: Iterable[int] | None
) -> set[bytes]:
    if (keep is None) == (drop is None):
        raise ArgumentError("pass either keep (what to keep) or drop (the ids to remove)")
    if vocab_size is not None and not hasattr(keep, "items"):
        message = "vocab_size needs counts, which determine what to keep"
        raise ArgumentError(message, option="vocab_size", value=vocab_size)
    tokens, pairs = tokenizer.mergeable_ranks(), parents(tokenizer)
    occurrences: dict[bytes, int] = {}
    if isinstance(keep, int | Integral):  # tokens that do not occur go from the highest id on
        vocab_size, chosen = int(keep), set(tokens)
    elif hasattr(keep, "items"):
        occurrences = uses(tokenizer, keep)
        chosen = tokens.keys() & occurrences.keys()
    elif keep is not None:
        chosen = _ordinary(tokenizer, keep)
    else:
        chosen = tokens.keys() - _ordinary(tokenizer, drop or ())
    special = set(tokenizer.special_tokens.values())
    # Bytes, tokens that are special tokens as well, and the intermediate tokens of both.
    own = {token for token, id in tokens.items() if len(token) == 1 or id in special}
    always = with_ancestors(own, pairs)
    chosen = with_ancestors(chosen | always, pairs)
    if vocab_size is None:
        return chosen
    pairs = {token: pair for token, pair in pairs.items() if token in chosen}
    return cut(chosen, pairs, occurrences, tokens, _room(tokenizer, vocab_size, always), always)


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
    beside = len(_unmerged_ids(tokenizer))
    if vocab_size < (least := beside + len(always)):
        special = len(tokenizer.special_tokens)
        what = f"{special} special tokens and {least - special} bytes, which are always kept"
        text = f"vocab_size {vocab_size} is too small for the {what}"
        raise VocabularyError(text, option="vocab_size", hint=f"pass at least {least}")
    return vocab_size - beside


def uses(
    tokenizer: _core.Tokenizer, counts: PretokenCounts | Mapping[int, int]
) -> dict[bytes, int]:
    """How often each token occurs in a corpus, by its counts of pretokens or of ids."""
    if isinstance(counts, Mapping):
        used = integers("keep", [id for id, times in counts.items() if times])
        beside = _unmerged_ids(tokenizer)
        return {tokenizer.token_bytes(id): counts[id] for id in used if id not in beside}
    if _core.text_rules(tokenizer).normalizer:
        raise CountsError(
            "the tokenizer normalizes texts, so counts of pretokens do not say which tokens occur",
            hint="pass how often each id occurs, such as "
            "collections.Counter(tokenizer.encode(text))",
        )
    if counts.pattern != tokenizer.pattern:
        raise CountsError(
            f"the counts have the pattern {counts.pattern!r}, but the tokenizer has "
            f"{tokenizer.pattern!r}",
            hint="count the text with the tokenizer's pattern",
        )
    occurrences = Counter[int]()
    for pretoken, times in counts.items():
        for id in _core.encode_pretoken(tokenizer, pretoken):
            occurrences[id] += times
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
    parts. Among equally used tokens, the one with the highest id is removed. The tokens include the
    intermediate ones that others need, and those of `always` are kept.
    """
    tokens, occurrences = set(tokens), dict(occurrences)
    # For each token, the number of tokens that are merged from it.
    needed = Counter(itertools.chain.from_iterable(set(pair) for pair in pairs.values()))

    def candidate(token: bytes) -> tuple[int, int, bytes]:
        return occurrences.get(token, 0), -ids[token], token

    queue = [candidate(token) for token in tokens - always if not needed[token]]
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


# ------------------------------------------------------------ the pair that merges into each token
#
# The merges within a token do not depend on the text around it: no merge crosses the ends of a
# token, so merging its bytes alone makes the same merges as in any text in which it occurs. That is
# why each token has exactly one pair.


def parents(tokenizer: _core.Tokenizer) -> Parents:
    """The pair that makes each token; bytes, unreachable and user-defined tokens have none."""
    if tokenizer.merge_rule == "ranks":
        return {left + right: (left, right) for left, right in tokenizer.merges()}
    pairs_by_token: dict[bytes, list[tuple[bytes, bytes]]] = {}
    merges = tokenizer.merges()
    for left, right in merges:
        pairs_by_token.setdefault(left + right, []).append((left, right))
    for id in (*unreachable(tokenizer), *_core.text_rules(tokenizer).user_defined):
        pairs_by_token.pop(tokenizer.token_bytes(id), None)
    order = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}
    characters = tokenizer.mergeable_ranks() if tokenizer.merge_rule == "characters" else ()
    return {
        token: pairs[0]
        if len(set(pairs)) == 1
        else _last_pair(first_parts(token, characters), order)
        for token, pairs in pairs_by_token.items()
    }


def first_parts(token: bytes, characters: Container[bytes]) -> list[bytes]:
    """The parts from which merging starts: these characters, and the bytes of all others."""
    parts: list[bytes] = []
    for character in token.decode(errors="surrogateescape"):
        part = character.encode(errors="surrogateescape")
        parts += [part] if part in characters else [bytes([byte]) for byte in part]
    return parts


def _last_pair(parts: list[bytes], order: dict[tuple[bytes, bytes], int]) -> tuple[bytes, bytes]:
    """The last pair merged in the parts of a reachable token, if several pairs are listed."""
    before, after = list(range(-1, len(parts) - 1)), list(range(1, len(parts) + 1))
    # A queue, since a file may have long tokens: trying all pairs at each step takes their square.
    queue: list[tuple[int, int, bytes, bytes]] = []

    def add(at: int, then: int) -> None:
        if at >= 0 and then < len(parts) and (parts[at], parts[then]) in order:
            heapq.heappush(queue, (order[parts[at], parts[then]], at, parts[at], parts[then]))

    for at in range(len(parts) - 1):
        add(at, at + 1)
    pair = b"", b""
    while queue:
        _, at, left, right = heapq.heappop(queue)
        then = after[at]
        if parts[at] != left or then == len(parts) or parts[then] != right:
            continue  # one of them has been merged with another
        pair, parts[at], parts[then], after[at] = (left, right), left + right, b"", after[then]
        if after[at] < len(parts):
            before[after[at]] = at
        add(before[at], at)
        add(at, after[at])
    return pair


def unreachable(tokenizer: _core.Tokenizer) -> list[int]:
    """Find the tokens that merging their bytes can never produce.

    A text gives such a token at best where a pretoken that is a token wins outright. They are
    listed under either merge rule, with that shortcut left out.

    Example:
        >>> import bytepair
        >>> ranks = {bytes([b]): b for b in range(256)} | {b"abc": 256}  # neither ab nor bc
        >>> unreachable(bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4"))
        [256]
    """
    check_kind("tokenizer", tokenizer, _core.Tokenizer, "load it with bytepair.load")
    if tokenizer.merge_rule == "ranks" or _core.ignores_merges(tokenizer):
        return _core.whole_only_ids(tokenizer)
    ranks = tokenizer.mergeable_ranks().items()
    return [id for token, id in ranks if _core.encode_pretoken(tokenizer, token) != [id]]


def with_ancestors(tokens: set[bytes], parents: Parents) -> set[bytes]:
    """These tokens and all intermediate tokens of merging them."""
    closure, left = set(tokens), list(tokens)
    while left:
        new = set(parents.get(left.pop(), ())) - closure
        closure |= new
        left += new
    return closure
