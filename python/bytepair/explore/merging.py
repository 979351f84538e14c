"""How tokens are merged: the merges of a pretoken one by one, and the tree of a token.

Both are for display. The steps are those of `bytepair.reference`, which take quadratic time, so
only short pretokens are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bytepair import reference
from bytepair._internal.arguments import checked
from bytepair.errors import ArgumentError
from bytepair.formats.parents import first_parts
from bytepair.tokenizer import Tokenizer

#: Longer pretokens are refused: nobody looks at so many steps.
LONGEST_PRETOKEN_BYTES: Final = 400


@dataclass(frozen=True)
class Step:
    """The parts of a pretoken at one moment.

    Attributes:
        parts: the parts, which concatenate to the pretoken.
        merged: the index of the part that the last merge produced; None at the beginning.
        rank: the rank of this merge; None at the beginning.
    """

    parts: list[bytes]
    merged: int | None = None
    rank: int | None = None


@dataclass(frozen=True)
class Tree:
    """A token and the two that merge into it; None for a byte, or if no merge produces it."""

    token: bytes
    left: Tree | None = None
    right: Tree | None = None


@checked
def merge_steps(tokenizer: Tokenizer, pretoken: bytes) -> list[Step]:
    """Merge a pretoken, and record every step.

    The shortcut for pretokens that are tokens is not used: it gives the same token without steps,
    or a token that no steps produce.

    Args:
        tokenizer: the tokenizer with the merge rule.
        pretoken: at most `LONGEST_PRETOKEN_BYTES` bytes.

    Raises:
        ValueError: if the pretoken is longer.

    Example:
        >>> import bytepair
        >>> ranks = {bytes([b]): b for b in range(256)} | {b"lo": 256, b"low": 257}
        >>> tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4")
        >>> [step.parts for step in merge_steps(tok, b"low")]
        [[b'l', b'o', b'w'], [b'lo', b'w'], [b'low']]
    """
    if len(pretoken) > LONGEST_PRETOKEN_BYTES:
        raise ArgumentError(
            f"the pretoken has {len(pretoken)} bytes; steps are shown for at most "
            f"{LONGEST_PRETOKEN_BYTES}"
        )
    ranks = tokenizer.mergeable_ranks()
    order = {pair: rank for rank, pair in reversed(list(enumerate(tokenizer.merges())))}

    def rank(left: bytes, right: bytes) -> int | None:
        by_rank = tokenizer.merge_rule == "ranks"
        return ranks.get(left + right) if by_rank else order.get((left, right))

    first = first_parts(tokenizer)(pretoken)
    return [Step(*step) for step in reference.steps(pretoken, rank, first)]


@checked
def merge_tree(token: bytes, parents: Mapping[bytes, tuple[bytes, bytes]]) -> Tree:
    """Draw the tree of a token.

    Args:
        token: the token.
        parents: for each merged token, the two that merge into it.

    Example:
        >>> merge_tree(b"ab", {b"ab": (b"a", b"b")}).right
        Tree(token=b'b', left=None, right=None)
    """
    if token not in parents:
        return Tree(token)
    left, right = parents[token]
    return Tree(token, merge_tree(left, parents), merge_tree(right, parents))
