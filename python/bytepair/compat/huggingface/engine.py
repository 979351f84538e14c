"""Finds a bytepair tokenizer with the ids of a `tokenizers.Tokenizer`, or says why there is none.

An engine is immutable: a tokenizer that is changed gets a new one. The tokens that a post-processor
adds are usually the same for each text, so an engine stores them as a *frame*. A post-processor
whose result depends on the text in another way, such as by repeating it, has no frame.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bytepair import _core
from bytepair._core import to_bytes
from bytepair.properties.tokens import strips, uncovered
from bytepair.tokenizer import Tokenizer, load

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
    """Ask a tokenizer that neither truncates nor pads for its frames."""
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


#: Which added tokens are looked for in a text, as `Tokenizer.encode` takes it.
LookedFor: TypeAlias = Literal["all", "text"] | Collection[str]


@dataclass(frozen=True)
class Engine:
    """What encodes and decodes for one state of a tokenizer.

    Attributes:
        tokenizer: the tokenizer that gives the ids.
        frames: what the post-processor adds.
        special_ids: the ids that `skip_special_tokens` leaves out.
        unsplit: which added tokens are looked for if `encode_special_tokens` is on, so that special
            ones are text; None if that cannot be done exactly.
        decodes: whether ids decode to the same text.
        plain: whether text is encoded as it is: not normalized, and no added token takes white
            space. Then tokens have the names and places that follow from their ids.
    """

    tokenizer: Tokenizer
    frames: Frames
    special_ids: frozenset[int]
    unsplit: LookedFor | None
    decodes: bool
    plain: bool


def engine_of(original: tokenizers.Tokenizer, equal: Tokenizer | None = None) -> Engine | str:
    """The engine for a tokenizer that neither truncates nor pads, or the reason why there is none.

    Args:
        original: the tokenizer.
        equal: a tokenizer that gives its ids, if nothing but the post-processor changed since.
    """
    added = original.get_added_tokens_decoder()
    special = {id: token.content for id, token in added.items() if token.special}
    try:
        tokenizer = equal or _dropping(load(original))
        frames = frames_of(original, lambda text: tokenizer.encode(text, special="all"))
        # Whether the model encodes the name of a special token to its id; bytepair never does.
        pieces = {id: original.model.tokenize(name) for id, name in special.items()}
    except Exception as error:  # `tokenizers` has no other class for its own
        return str(error)
    rules = _core.text_rules(tokenizer)
    # Names of tokens are not their bytes: the original places them in a text, and decodes them.
    by_bytes = tokenizer.merge_rule != "characters" and not rules.has_symbols
    if frames[0][0] is None or frames[0][1] is None:
        return "post_processor: it does more than to add tokens around a text"
    others = [token.content for token in added.values() if not token.special]
    names = list(special.values())
    merged = any([piece.id for piece in some] == [id] for id, some in pieces.items())
    trims = [] if rules.trim_offsets is None else [rules.trim_offsets]
    return Engine(
        tokenizer,
        frames,
        frozenset(special),
        None if merged or _overlap(others, names) else (others or "text"),
        # The name of an added token is decoded to itself, not to the bytes that it encodes.
        by_bytes and all(to_bytes(t.content) in {None, t.content.encode()} for t in added.values()),
        by_bytes
        and not rules.normalizer
        and not uncovered(tokenizer)
        and not strips(tokenizer)
        and _trims(state_of(original, "post_processor")) == trims,
    )


def _dropping(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that leaves out what no token covers, as `tokenizers` does."""
    if uncovered(tokenizer) or _core.text_rules(tokenizer).has_symbols:
        return Tokenizer(_core.with_uncovered_dropped(tokenizer, True))
    return tokenizer


#: The components of a tokenizer that may be changed in place.
COMPONENTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model")

_OF_MODELS = (
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
)


def state_of(original: tokenizers.Tokenizer, name: str) -> Any:
    """What a component does, as a value to compare."""
    component = getattr(original, name)
    if name == "model":
        return type(component), [getattr(component, value, None) for value in _OF_MODELS]
    return component and component.__getstate__()


def _trims(post_processor: bytes | None) -> list[bool]:
    """Whether the first space of a text stays, for each step that takes spaces off places."""
    state = {} if post_processor is None else json.loads(post_processor)
    steps = state.get("processors", [state])
    return [step["add_prefix_space"] for step in steps if step.get("trim_offsets")]


def _overlap(some: list[str], others: list[str]) -> bool:
    """Whether a name of each of two sets may share characters of a text."""
    starts = [
        {name[:at] for name in names for at in range(1, len(name))} for names in (some, others)
    ]
    ends = [{name[at:] for name in names for at in range(1, len(name))} for names in (some, others)]
    if starts[0] & ends[1] or starts[1] & ends[0]:
        return True
    every = ["\0".join(names) for names in (some, others)]
    return any(name in every[1] for name in some) or any(name in every[0] for name in others)
