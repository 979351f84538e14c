"""Encodes texts to objects like `tokenizers.Encoding`: ids, and everything else they offer.

An `Engine` encodes for a tokenizer that bytepair reproduces; it is immutable, so a tokenizer that
is changed gets a new one. The tokens that a post-processor puts around a text are usually the same
for each, so they are stored as a *frame*. A post-processor whose result depends on the text in
another way, such as by repeating it, has no frame. Pairs of texts are left to the original.

An encoding has its ids from the beginning, and masks and types, which follow from the number of
ids. The rest (words, places in the text, what was cut off) is rarely needed. The original computes
it by encoding the text again; its ids are then compared with these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from bytepair import _core
from bytepair._core import to_bytes
from bytepair.errors import BytepairError
from bytepair.properties.tokens import uncovered
from bytepair.tokenizer import Tokenizer, load

if TYPE_CHECKING:
    import tokenizers

T = TypeVar("T")

#: The values of `encode_special_tokens`, truncation and padding.
Settings: TypeAlias = tuple[bool, dict[str, Any] | None, dict[str, Any] | None]


class Frame(NamedTuple):
    """What stands around a text.

    Attributes:
        before: the ids before the text.
        after: the ids after the text.
        types: the type ids of the ids before, of those of the text (one number), and after.
    """

    before: list[int]
    after: list[int]
    types: tuple[list[int], int, list[int]]


def _frame(original: tokenizers.Tokenizer, tokenizer: Tokenizer, special: bool) -> Frame | None:
    """Ask a tokenizer that neither truncates nor pads for its frame; None if it has none."""
    for probe in "abcdefghij0123456789 \n":
        if ids := tokenizer.encode(probe, special="all"):
            break
    else:
        return None
    encoding = original.encode(probe, add_special_tokens=special)
    inside = [place for place, sequence in enumerate(encoding.sequence_ids) if sequence == 0]
    if not inside:
        return None
    start, end = inside[0], inside[-1] + 1
    added = original.num_special_tokens_to_add(False) if special else 0
    types = encoding.type_ids
    if encoding.ids[start:end] != ids or len(encoding.ids) - len(inside) != added:
        return None
    if len(inside) != len(ids) or len({types[place] for place in inside}) != 1:
        return None
    around = types[:start], types[start], types[end:]
    return Frame(encoding.ids[:start], encoding.ids[end:], around)


class Engine(NamedTuple):
    """What encodes and decodes for one state of a tokenizer.

    Attributes:
        tokenizer: the tokenizer that gives the ids.
        frames: what the post-processor adds, without and with special tokens.
        special_ids: the ids that `skip_special_tokens` leaves out.
        decodes: whether ids decode to the same text.
        places: whether tokens have the places in a text that follow from their ids: it is not
            normalized, and no added token takes white space.
    """

    tokenizer: Tokenizer
    frames: tuple[Frame, Frame]
    special_ids: frozenset[int]
    decodes: bool
    places: bool


def engine_of(original: tokenizers.Tokenizer) -> Engine | str:
    """The engine for a tokenizer that does not truncate or pad, or why there is none."""
    added = original.get_added_tokens_decoder()
    try:
        tokenizer = load(original)
        rules, missing = _core.text_rules(tokenizer), uncovered(tokenizer)
        if missing or rules.has_symbols:  # as `tokenizers` leaves them out
            tokenizer = Tokenizer(_core.with_uncovered_dropped(tokenizer, True))
        frames = _frame(original, tokenizer, False), _frame(original, tokenizer, True)
    except Exception as error:  # `tokenizers` has no other class for its own
        return str(error)
    if frames[0] is None or frames[1] is None:
        return "post_processor: it does more than to add tokens around a text"
    # Names of tokens are not their bytes: the original places them in a text, and decodes them.
    by_bytes = tokenizer.merge_rule != "characters" and not rules.has_symbols
    trims = [] if rules.trim_offsets is None else [rules.trim_offsets]
    processor = json.loads(state_of(original, "post_processor") or b"{}")
    steps = processor.get("processors", [processor])
    return Engine(
        tokenizer,
        (frames[0], frames[1]),
        frozenset(id for id, token in added.items() if token.special),
        # The name of an added token is decoded to itself, not to the bytes that it encodes.
        by_bytes and all(to_bytes(t.content) in {None, t.content.encode()} for t in added.values()),
        by_bytes
        and not rules.normalizer
        and not missing
        and not any(token.lstrip or token.rstrip for token in _core.added_tokens(tokenizer))
        and [step["add_prefix_space"] for step in steps if step.get("trim_offsets")] == trims,
    )


_OF_MODELS: Final = (
    "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
    "byte_fallback", "ignore_merges",
)  # fmt: skip


def state_of(original: tokenizers.Tokenizer, name: str) -> Any:
    """What a component does, as a value to compare."""
    component = getattr(original, name)
    if name == "model":
        return type(component), [getattr(component, value, None) for value in _OF_MODELS]
    return component and component.__getstate__()


class Call(NamedTuple):
    """How texts are encoded: by which `Tokenizer` and engine, and the settings of the moment."""

    owner: Any
    engine: Engine
    special: bool  # whether the post-processor adds its tokens
    truncation: dict[str, Any] | None
    padding: dict[str, Any] | None


class Encoding:
    """The encoding of a text, with the names and values of `tokenizers.Encoding`."""

    __slots__ = ("_call", "_frame", "_ids", "_length", "_padded", "_text", "_theirs", "_width")

    _ids: list[int] | None  # None after a change: then `_theirs` holds everything
    _theirs: tokenizers.Encoding | None

    def __init__(self, call: Call, frame: Frame, text: str, ids: list[int]) -> None:
        """Take the ids of a text after truncation; those of the frame stand around them."""
        self._call = call
        self._frame = frame
        self._text = text
        around = frame.before or frame.after
        self._ids = [*frame.before, *ids, *frame.after] if around else ids
        self._length = len(ids)
        self._padded = self._width = 0
        self._theirs = None

    def fill(self, length: int, padding: dict[str, Any]) -> None:
        """Pad to a length; what is longer stays as it is."""
        ids, self._width = self._ids, length
        if ids is not None and len(ids) < length:
            self._padded = length - len(ids)
            self._ids = self._fill(ids, padding["pad_id"])

    @property
    def ids(self) -> list[int]:
        """The ids."""
        return self.original.ids if self._ids is None else self._ids[:]

    @property
    def attention_mask(self) -> list[int]:
        """1 for each token, 0 where the encoding is padded."""
        if self._ids is None:
            return self.original.attention_mask
        return self._fill([1] * (len(self._ids) - self._padded), 0)

    @property
    def type_ids(self) -> list[int]:
        """The type id of each token."""
        if self._ids is None:
            return self.original.type_ids
        before, own, after = self._frame.types
        pad = self._call.padding["pad_type_id"] if self._call.padding else 0
        return self._fill([*before, *[own] * self._length, *after], pad)

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The start and the end of each token in its text, in characters."""
        engine = self._call.engine
        if self._ids is None or not engine.places:
            return self.original.offsets
        _, _, places = engine.tokenizer.encode_offsets(self._text, special="all")
        own = list(zip(*places[: self._length].T.tolist(), strict=True))
        around = [(0, 0)]
        row = around * len(self._frame.before) + own + around * len(self._frame.after)
        return self._fill(row, (0, 0))

    @property
    def overflowing(self) -> list[tokenizers.Encoding]:
        """What was cut off, as encodings of the same length."""
        if self._ids is not None and self._call.truncation is None:
            return []
        return self.original.overflowing

    @property
    def n_sequences(self) -> int:
        """The number of texts."""
        return 1 if self._ids is not None else self.original.n_sequences

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.original) if self._ids is None else len(self._ids)

    def _fill(self, row: list[T], pad: T) -> list[T]:
        if not self._padded:
            return row
        left = self._call.padding and self._call.padding["direction"] == "left"
        filled = [pad] * self._padded
        return filled + row if left else row + filled

    @property
    def original(self) -> tokenizers.Encoding:
        """The encoding of `tokenizers`.

        Raises:
            RuntimeError: if the tokenizer was changed since, so that it has other ids.
        """
        if self._theirs is None:
            call, padding = self._call, self._call.padding
            padding = padding and {**padding, "length": self._width, "pad_to_multiple_of": None}
            settings = (False, call.truncation, padding)
            theirs = call.owner.encode_original(self._text, call.special, settings)
            if theirs.ids != self._ids:
                raise RuntimeError(
                    "the tokenizer was changed after it encoded this text, so the words and places "
                    "of its tokens are lost; encode the text again"
                )
            self._theirs = theirs
        return self._theirs

    def __getattr__(self, name: str) -> Any:
        """What is seldom asked for is the original's."""
        if name.startswith("_"):
            raise AttributeError(f"an Encoding has no attribute {name!r}")
        theirs = self.original
        if name in _CHANGES:
            self._ids = None  # it replaces all other state from here on
        return getattr(theirs, name)

    def __dir__(self) -> list[str]:
        return [*{*super().__dir__(), *dir(self.original)}]

    @staticmethod
    def merge(encodings: list[Any], growing_offsets: bool = True) -> tokenizers.Encoding:
        """Put encodings one behind the other."""
        from bytepair._internal.extras import tokenizers

        return tokenizers.Encoding.merge([theirs(one) for one in encodings], growing_offsets)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy and a pickle are encodings of `tokenizers`, which need no tokenizer."""
        return theirs, (self.original,)

    def __repr__(self) -> str:
        """As there: the number of tokens, and what there is."""
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, "
            "attention_mask, special_tokens_mask, overflowing])"
        )


#: What changes an encoding of `tokenizers`.
_CHANGES: Final = ("pad", "truncate", "set_sequence_id")


def theirs(encoding: Any) -> Any:
    """An encoding as `tokenizers` takes it."""
    return encoding.original if isinstance(encoding, Encoding) else encoding


def encode(call: Call, texts: Sequence[Any]) -> list[Encoding] | None:
    """The encodings of texts; None if the original must make them."""
    lists = _ids(call, texts)
    if lists is None:
        return None
    frame = call.engine.frames[call.special]
    encodings = []
    for text, ids in zip(texts, lists, strict=True):
        kept = ids if call.truncation is None else _truncated(call.truncation, frame, ids)
        if kept is None:
            return None
        encodings.append(Encoding(call, frame, text, kept))
    if call.padding:
        length = call.padding["length"]
        if length is None:
            length = max(map(len, encodings))
        if multiple := call.padding["pad_to_multiple_of"]:
            length += -length % multiple
        for encoding in encodings:
            encoding.fill(length, call.padding)
    return encodings


def _ids(call: Call, texts: Sequence[Any]) -> list[list[int]] | None:
    """The ids of each text, without the tokens that the post-processor adds."""
    tokenizer = call.engine.tokenizer
    try:
        for text in texts:
            if not isinstance(text, str):
                return None
            if not text.isascii():
                text.encode()  # raises for a lone surrogate, as the original does
        if len(texts) == 1:
            return [tokenizer.encode(texts[0], special="all")]
        return tokenizer.encode_batch(texts, special="all")
    except (BytepairError, UnicodeEncodeError):
        return None


def _truncated(how: dict[str, Any], frame: Frame, ids: list[int]) -> list[int] | None:
    """The ids of a text as truncation leaves them; None if the original must do it."""
    room = how["max_length"] - len(frame.before) - len(frame.after)
    if room > 0 and len(ids) <= room:
        return ids
    if room <= how["stride"] or how["strategy"] == "only_second" or how["direction"] == "left":
        return None
    return ids[:room]
