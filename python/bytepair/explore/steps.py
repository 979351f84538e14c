"""The merges of one pretoken, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from bytepair._internal.arguments import checked
from bytepair.explore.answers import Answers
from bytepair.tokenizer import Tokenizer


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


@checked
def merge_steps(tokenizer: Tokenizer, pretoken: bytes) -> list[Step]:
    """Merge a pretoken, and record every step.

    The shortcut for pretokens that are tokens is not used: it gives the same token without steps,
    or a token that no steps produce.

    Args:
        tokenizer: the tokenizer with the merge rule.
        pretoken: at most 400 bytes.

    Raises:
        ArgumentError: if the pretoken is longer.

    Example:
        >>> import bytepair
        >>> ranks = {bytes([b]): b for b in range(256)} | {b"lo": 256, b"low": 257}
        >>> tok = bytepair.Tokenizer.from_ranks(ranks, pattern="gpt4")
        >>> [step.parts for step in merge_steps(tok, b"low")]
        [[b'l', b'o', b'w'], [b'lo', b'w'], [b'low']]
    """
    found = Answers({"": tokenizer}).ask("steps", pretoken, t=0)["steps"]
    return [
        Step([bytes.fromhex(part["hex"]) for part in one["parts"]], one["merged"], one["rank"])
        for one in found
    ]
