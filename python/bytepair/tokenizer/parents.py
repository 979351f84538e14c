"""The pair that merges into each token of a vocabulary, and the tokens without one.

The merges within a token do not depend on the text around it: no merge crosses the ends of a token,
so merging its bytes alone makes the same merges as in any text in which it occurs. That is why each
token has exactly one pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final, TypeAlias

from bytepair import _core, reference
from bytepair.properties.tokens import pairs_of_ranks

#: The pair that merges into each token, by bytes.
Parents: TypeAlias = dict[bytes, tuple[bytes, bytes]]

#: A pattern that does not split.
_WHOLE: Final = r"(?s:.+)"


def parents(tokenizer: _core.Tokenizer) -> Parents:
    """The pair that merges into each token; bytes, unreachable and user-defined tokens have none.

    Example:
        >>> import bytepair
        >>> ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256, b"abc": 257, b"xyz": 258}
        >>> parents(bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4"))
        {b'ab': (b'a', b'b'), b'abc': (b'ab', b'c')}
    """
    if tokenizer.merge_rule == "ranks":
        pairs = pairs_of_ranks(tokenizer.mergeable_ranks())
        return {left + right: (left, right) for left, right in pairs}
    pairs_by_token: dict[bytes, list[tuple[bytes, bytes]]] = {}
    merges = tokenizer.merges()
    for left, right in merges:
        pairs_by_token.setdefault(left + right, []).append((left, right))
    for id in (*unreachable(tokenizer), *tokenizer.rules.user_defined):
        pairs_by_token.pop(tokenizer.token_bytes(id), None)
    order = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}
    first = first_parts(tokenizer)
    return {
        token: pairs[0] if len(set(pairs)) == 1 else _last_pair(token, order, first)
        for token, pairs in pairs_by_token.items()
    }


def first_parts(tokenizer: _core.Tokenizer) -> Callable[[bytes], list[bytes] | None]:
    """A function that returns the initial parts of merging a pretoken; None means its bytes."""
    if tokenizer.merge_rule != "characters":
        return lambda _: None
    tokens = tokenizer.mergeable_ranks()
    return lambda pretoken: reference.characters(pretoken, tokens)


def _last_pair(
    token: bytes,
    order: dict[tuple[bytes, bytes], int],
    first: Callable[[bytes], list[bytes] | None],
) -> tuple[bytes, bytes]:
    """The last pair merged in the bytes of a reachable token, if several pairs are listed."""
    steps = list(reference.steps(token, lambda left, right: order.get((left, right)), first(token)))
    left, right = steps[-2][0]
    return left, right


def unreachable(tokenizer: _core.Tokenizer) -> list[int]:
    """The ids of tokens that merging can never produce, under either merge rule."""
    ranks = tokenizer.mergeable_ranks()
    if tokenizer.merge_rule == "ranks":
        results = {left + right for left, right in pairs_of_ranks(ranks)}
        return [id for token, id in ranks.items() if len(token) > 1 and token not in results]
    if tokenizer.merge_rule == "characters":
        return [
            id for token, id in ranks.items() if _core.encode_pretoken(tokenizer, token) != [id]
        ]
    plain = _core.Tokenizer(_core.Model.from_merges(ranks, tokenizer.merges(), _WHOLE, {}))
    return [id for token, id in ranks.items() if _core.encode_pretoken(plain, token) != [id]]


def with_ancestors(tokens: set[bytes], parents: Parents) -> set[bytes]:
    """These tokens and all intermediate tokens of merging them.

    Example:
        >>> sorted(with_ancestors({b"abc"}, {b"ab": (b"a", b"b"), b"abc": (b"ab", b"c")}))
        [b'a', b'ab', b'abc', b'b', b'c']
    """
    closure, left = set(tokens), list(tokens)
    while left:
        new = set(parents.get(left.pop(), ())) - closure
        closure |= new
        left += new
    return closure


def needed_by(parents: Parents) -> dict[bytes, int]:
    """For each token, the number of tokens that are merged from it.

    Example:
        >>> needed_by({b"aa": (b"a", b"a"), b"aaa": (b"aa", b"a")})
        {b'a': 2, b'aa': 1}
    """
    needed: dict[bytes, int] = {}
    for part in itertools.chain.from_iterable(set(pair) for pair in parents.values()):
        needed[part] = needed.get(part, 0) + 1
    return needed
