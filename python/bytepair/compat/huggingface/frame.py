"""The tokens that a post-processor puts around texts, as a frame that ids are put into.

`tokenizers` runs its post-processor for every text. What it adds is the same for each: `<s>` before
the text, a separator between two. So it is asked once, with texts of known ids, and the answer says
where the ids of a text belong and what stands around them. A post-processor that does anything
else, such as giving a text twice, has no frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import tokenizers


@dataclass(frozen=True)
class Added:
    """Tokens of the post-processor: their ids, type ids and texts."""

    ids: list[int]
    types: list[int]
    tokens: list[str]


@dataclass(frozen=True)
class Place:
    """Where the ids of a text belong: the first (0) or the second (1), and their type id."""

    sequence: int
    type: int


@dataclass(frozen=True)
class Frame:
    """What stands around one text, or two.

    Attributes:
        parts: tokens that are added, and the places of the texts, in order.
        added: the number of tokens that are added.
        sequences: what `Encoding.n_sequences` says.
    """

    parts: list[Added | Place]
    added: int
    sequences: int

    def around(self, texts: list[list[int]]) -> list[int]:
        """The ids of the texts with what is added."""
        if not self.added and len(texts) == 1:
            return texts[0]
        ids: list[int] = []
        for part in self.parts:
            ids += part.ids if isinstance(part, Added) else texts[part.sequence]
        return ids


#: The frames of one text and of two, without and with special tokens: `frames[pair][special]`.
Frames: TypeAlias = tuple[tuple[Frame | None, Frame | None], tuple[Frame | None, Frame | None]]


def frames_of(original: tokenizers.Tokenizer, encode: Callable[[str], list[int]]) -> Frames:
    """Ask a tokenizer that neither truncates nor pads for its frames.

    Args:
        original: the tokenizer.
        encode: the ids of a text without what the post-processor adds.
    """
    probe = next((letter for letter in "abcdefghij0123456789 \n" if encode(letter)), None)
    if probe is None:
        return (None, None), (None, None)

    def frame(pair: bool, special: bool) -> Frame | None:
        encoding = original.encode(probe, probe if pair else None, add_special_tokens=special)
        added = original.num_special_tokens_to_add(pair) if special else 0
        return _frame(encoding, encode(probe), added, pair)

    return (frame(False, False), frame(False, True)), (frame(True, False), frame(True, True))


def _frame(encoding: tokenizers.Encoding, ids: list[int], added: int, pair: bool) -> Frame | None:
    """The frame in the encoding of texts that have these ids, or None if there is none."""
    parts: list[Added | Place] = []
    at = 0
    for sequence, group in groupby(encoding.sequence_ids):
        end = at + len(list(group))
        types = encoding.type_ids[at:end]
        if sequence is None:
            parts.append(Added(encoding.ids[at:end], types, encoding.tokens[at:end]))
        elif encoding.ids[at:end] != ids or len(set(types)) != 1:
            return None
        else:
            parts.append(Place(sequence, types[0]))
        at = end
    places = [part.sequence for part in parts if isinstance(part, Place)]
    tokens = sum(len(part.ids) for part in parts if isinstance(part, Added))
    if sorted(places) != ([0, 1] if pair else [0]) or tokens != added:
        return None
    return Frame(parts, added, encoding.n_sequences)
