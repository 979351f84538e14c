"""Why two tokenizers differ on a text: the one value that, taken over, moves the difference on.

In go two sides, a text, and the place of the first difference; out comes a reason. Nothing is
guessed from how values look: the first tokenizer is made anew with one value of the second, and if
the first difference then comes later or not at all, that value is the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from bytepair import _core
from bytepair._internal.drawing import readable
from bytepair.evaluate.sides import Side, SpecialOrText
from bytepair.formats.parts import Parts
from bytepair.properties.rules import flags, form
from bytepair.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    #: The ids of a text.
    SomeIds: TypeAlias = "Sequence[int] | NDArray[np.int64]"

#: Why two tokenizers may differ.
Reason: TypeAlias = Literal[
    "ids", "special token", "Unicode version", "library", "normalizer", "pattern", "vocabulary",
    "merge rule",
]  # fmt: skip

#: What is compared: ids, or the bytes of their tokens.
By: TypeAlias = Literal["ids", "tokens"]

#: The number of tokens of each side that are shown from the first difference on.
TOKENS_SHOWN: Final = 6


@dataclass(frozen=True)
class SharedToken:
    """A token as two tokenizers may share it: its bytes, and whether it is a special token."""

    token: bytes
    special: bool = False

    def __str__(self) -> str:
        """For a terminal."""
        text = readable(self.token)
        return f"<{text}>" if self.special else repr(text)


def pieces(tok: Tokenizer, ids: SomeIds) -> list[SharedToken]:
    """The tokens of ids."""
    special = set(tok.special_tokens.values())
    return [SharedToken(tok.token_bytes(int(id)), int(id) in special) for id in ids]


def first_difference(one: Sequence[object], two: Sequence[object]) -> int | None:
    """Where two sequences first differ; where the shorter ends, if it begins the other.

    Example:
        >>> first_difference([1, 2, 3], [1, 5, 3]), first_difference([1], [1, 2])
        (1, 1)
        >>> first_difference([1], [1]) is None
        True
    """
    for place, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            return place
    return None if len(one) == len(two) else min(len(one), len(two))


def place_of(
    one: Side, two: Side, ids: tuple[SomeIds, SomeIds], by: By
) -> tuple[int, tuple[list[SharedToken], list[SharedToken]]]:
    """The first token that differs, and the tokens of both.

    By tokens of other ids, a token of two ids is no difference.
    """
    rows = pieces(one.own, ids[0]), pieces(two.own, ids[1])
    places = [first_difference(*rows)]
    if by == "ids":
        places.append(first_difference(list(ids[0]), list(ids[1])))
    return min((at for at in places if at is not None), default=0), rows


def reason(
    one: Side, two: Side, text: str, ids: tuple[SomeIds, SomeIds], special: SpecialOrText, by: By
) -> tuple[Reason, str]:
    """Why two sides differ on a text, and what that means there.

    Args:
        one: the first tokenizer.
        two: the second.
        text: the text.
        ids: what each gives for it; they differ.
        special: whether special tokens in the text are their ids.
        by: what has to be equal.
    """
    place, rows = place_of(one, two, ids, by)
    if rows[0][place : place + 1] == rows[1][place : place + 1]:
        return "ids", f"{rows[0][place]} is {ids[0][place]} and {ids[1][place]}"
    return (
        _library(one, text, rows[0], special, place)
        or _library(two, text, rows[1], special, place)
        or _special(one, two, rows, place)
        or _splitting(one, two, text, rows[1], special, _bytes_before(rows[0], place))
        or _merging(one, two, rows, place)
    )


def _bytes_before(row: list[SharedToken], place: int) -> int:
    return sum(len(piece.token) for piece in row[:place])


def _library(
    side: Side, text: str, row: list[SharedToken], special: SpecialOrText, place: int
) -> tuple[Reason, str] | None:
    """A reason if a library gives other tokens than ours do with its own values."""
    if side.library is None:
        return None
    ours = pieces(side.own, side.own.encode(text, special=special))
    at = first_difference(ours, row)
    if at is None or at > place:
        return None
    near = b"".join(
        piece.token for piece in [*ours[at : at + TOKENS_SHOWN], *row[at : at + TOKENS_SHOWN]]
    )
    letters = near.decode(errors="ignore")
    rare = next((char for char in letters if not char.isascii()), None)
    if rare is None:
        return "library", f"{side.library} gives other tokens for its values than bytepair does"
    return "Unicode version", (
        f"{side.library} splits at or beside U+{ord(rare):04X} in another way than Unicode "
        f"{_core.UNICODE_VERSION} says, which bytepair has"
    )


def _special(
    one: Side, two: Side, rows: tuple[list[SharedToken], list[SharedToken]], place: int
) -> tuple[Reason, str] | None:
    """A reason if only one of the tokenizers has a special token at this position."""
    for side, row in ((one, rows[0]), (two, rows[1])):
        if place < len(row) and row[place].special:
            return "special token", f"{row[place]} is a special token of {side.name} there"
    return None


def _splitting(
    one: Side, two: Side, text: str, row: list[SharedToken], special: SpecialOrText, before: int
) -> tuple[Reason, str] | None:
    """A reason if the difference disappears with the normalizer or pattern of the second."""
    mine, theirs = one.own.rules, two.own.rules
    changes: list[tuple[Reason, _core.TextRules]] = [
        ("normalizer", mine.replace(normalizer_of=theirs)),
        ("pattern", mine.replace(normalizer_of=theirs, pre_tokenizer_of=theirs)),
    ]
    for name, rules in changes:
        if rules == mine:
            continue
        changed = _with_rules(one.own, rules)
        got = pieces(changed, changed.encode(text, special=special))
        place = first_difference(got, row)
        if place is not None and _bytes_before(got, place) <= before:
            continue
        if name == "normalizer":
            return name, f"{form(mine) or 'none'} and {form(theirs) or 'none'}"
        return name, _pretokens(one.own, two.own, text, before)
    return None


def _with_rules(tok: Tokenizer, rules: _core.TextRules) -> Tokenizer:
    """A tokenizer with other rules."""
    merges = None if tok.merge_rule == "ranks" else tok.merges()
    ranks, special = tok.mergeable_ranks(), tok.special_tokens
    twins = {id: tok.token_bytes(id) for id in _core.twin_ids(tok)}
    twins_or_none = twins if tok.merge_rule == "characters" else None
    parts = Parts(
        ranks, rules, special, merges, tok.ignore_merges, twins=twins_or_none, flags=flags(tok)
    )
    return Tokenizer(parts.model())


def _pretokens(one: _core.Tokenizer, two: _core.Tokenizer, text: str, before: int) -> str:
    """The pretokens in which the difference begins, and the ones after them."""
    texts = []
    for tok in (one, two):
        row, end = tok.pretokenize(text), 0
        for place, pretoken in enumerate(row):
            end += len(pretoken.encode())
            if end > before:
                texts.append(" ".join(repr(readable(p.encode())) for p in row[place : place + 2]))
                break
    return f"it splits into {' and '.join(texts)}"


def _merging(
    one: Side, two: Side, rows: tuple[list[SharedToken], list[SharedToken]], place: int
) -> tuple[Reason, str]:
    """The token that only one of them has; or, if both have all, how their merging differs."""
    for side, other, row in ((one, two, rows[0]), (two, one, rows[1])):
        for piece in row[place : place + TOKENS_SHOWN]:
            if not piece.special and not _has(other.own, piece.token):
                return "vocabulary", f"{piece} is a token of {side.name} only"
    rules = tuple(rule_of(side.own) for side in (one, two))
    if rules[0] != rules[1]:
        return "merge rule", f"{rules[0]} and {rules[1]}"
    return "merge rule", f"both merge by {rules[0]}, in another order"


def _has(tok: Tokenizer, token: bytes) -> bool:
    try:
        tok.token_id(token)
    except KeyError:
        return False
    return True


def rule_of(tok: Tokenizer) -> str:
    """The merge rule, in words."""
    return f"{tok.merge_rule}, whole tokens first" if tok.ignore_merges else tok.merge_rule
