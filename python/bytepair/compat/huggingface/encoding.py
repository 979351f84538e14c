"""Encodes texts to objects like `tokenizers.Encoding`: ids, and everything else they offer.

An encoding has its ids from the beginning, and masks and types, which follow from the number of
ids. The rest (words, places in the text, what was cut off) is rarely needed. The original computes
it by encoding the text again; its ids are then compared with these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from bytepair import _core
from bytepair.compat.huggingface.engine import Added, Engine, Frame, LookedFor, Place
from bytepair.errors import BytepairError

if TYPE_CHECKING:
    import tokenizers

T = TypeVar("T")

#: The values of `encode_special_tokens`, truncation and padding.
Settings: TypeAlias = tuple[bool, dict[str, Any] | None, dict[str, Any] | None]


@dataclass(frozen=True)
class Call:
    """How texts are encoded: what does it, and the settings of the moment.

    Attributes:
        owner: the `Tokenizer` that was called.
        engine: what encodes for it.
        special: whether the post-processor adds its tokens.
        split: whether special tokens in texts are text (`encode_special_tokens`).
        truncation: how texts are truncated, if they are.
        padding: how encodings are padded, if they are.
    """

    owner: Any
    engine: Engine
    special: bool
    split: bool
    truncation: dict[str, Any] | None
    padding: dict[str, Any] | None

    @cached_property
    def looked_for(self) -> LookedFor | None:
        """Which added tokens are looked for in texts; None if that is left to the original."""
        return self.engine.unsplit if self.split else "all"

    def again(self, texts: tuple[str, ...], length: int) -> tokenizers.Encoding:
        """Have the original encode texts, to be padded to a length."""
        padding = self.padding and {**self.padding, "length": length, "pad_to_multiple_of": None}
        settings = (self.split, self.truncation, padding)
        theirs: tokenizers.Encoding = self.owner.encode_original(texts, self.special, settings)
        return theirs


class Encoding:
    """The encoding of one text or of a pair, with the names and values of `tokenizers.Encoding`."""

    __slots__ = ("_call", "_frame", "_ids", "_lengths", "_padded", "_texts", "_theirs", "_width")

    _ids: list[int] | None  # None after a change: then `_theirs` holds everything
    _theirs: tokenizers.Encoding | None

    def __init__(
        self,
        call: Call,
        frame: Frame,
        texts: tuple[str, ...],
        ids: list[int],
        lengths: tuple[int, ...],
    ) -> None:
        """Make an encoding of texts: their ids, with those of the frame around them.

        `lengths` are the numbers of ids of each text that are left after truncation.
        """
        self._call = call
        self._frame = frame
        self._texts = texts
        self._ids = ids
        self._lengths = lengths
        self._padded = self._width = 0
        self._theirs = None

    def fill(self, length: int) -> None:
        """Pad to a length, as the call says; what is longer stays as it is."""
        padding, ids = self._call.padding, self._ids
        self._width = length
        if padding is None or ids is None or len(ids) >= length:
            return
        self._padded = length - len(ids)
        filled = [padding["pad_id"]] * self._padded
        self._ids = filled + ids if padding["direction"] == "left" else ids + filled

    # ------------------------------------------------------------ derived from the ids

    @property
    def ids(self) -> list[int]:
        """The ids."""
        return self.original.ids if self._ids is None else self._ids[:]

    @property
    def attention_mask(self) -> list[int]:
        """1 for each token, 0 where the encoding is padded."""
        if self._ids is None:
            return self.original.attention_mask
        if not self._padded:
            return [1] * len(self._ids)
        return self._fill([1] * (len(self._ids) - self._padded), 0)

    @property
    def type_ids(self) -> list[int]:
        """The type id of each token."""
        if self._ids is None:
            return self.original.type_ids
        pad = self._call.padding["pad_type_id"] if self._call.padding else 0
        return self._row(lambda part: part.types, lambda place: place.type, pad)

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for what the post-processor added and for padding, 0 for the tokens of texts."""
        if self._ids is None:
            return self.original.special_tokens_mask
        return self._row(lambda part: [1] * len(part.ids), lambda place: 0, 1)

    @property
    def tokens(self) -> list[str]:
        """The tokens as they are written in the vocabulary."""
        call, ids = self._call, self._ids
        if ids is None or not call.engine.plain or self._padded or self._frame.added:
            return self.original.tokens
        name = call.owner.id_to_token
        return [name(id) or "" for id in ids]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The start and the end of each token in its text, in characters."""
        if self._ids is None or not self._call.engine.plain or self._trims_anew():
            return self.original.offsets
        row: list[tuple[int, int]] = []
        for part in self._frame.parts:
            row += [(0, 0)] * len(part.ids) if isinstance(part, Added) else self._places(part)
        return self._fill(row, (0, 0))

    def _places(self, place: Place) -> list[tuple[int, int]]:
        call, engine = self._call, self._call.engine
        text, length = self._texts[place.sequence], self._lengths[place.sequence]
        ids, _, places = engine.tokenizer.encode_offsets(text, special=call.looked_for)
        if len(ids) > length:
            left = call.truncation and call.truncation["direction"] == "left"
            own = slice(len(ids) - length, None) if left else slice(length)
            places = places[own]
        return list(zip(*places.T.tolist(), strict=True))

    def _trims_anew(self) -> bool:
        """Whether truncation has made a token first whose place leaves out spaces."""
        call = self._call
        left = call.truncation is not None and call.truncation["direction"] == "left"
        return left and _core.text_rules(call.engine.tokenizer).trim_offsets is not None

    @property
    def n_sequences(self) -> int:
        """The number of texts."""
        return self._frame.sequences if self._ids is not None else self.original.n_sequences

    @property
    def overflowing(self) -> list[tokenizers.Encoding]:
        """What was cut off, as encodings of the same length."""
        if self._ids is not None and self._call.truncation is None:
            return []
        return self.original.overflowing

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.original) if self._ids is None else len(self._ids)

    def _row(
        self, of_added: Callable[[Added], list[int]], of_text: Callable[[Place], int], pad: int
    ) -> list[int]:
        row: list[int] = []
        for part in self._frame.parts:
            if isinstance(part, Added):
                row += of_added(part)
            else:
                row += [of_text(part)] * self._lengths[part.sequence]
        return self._fill(row, pad)

    def _fill(self, row: list[T], pad: T) -> list[T]:
        if not self._padded:
            return row
        left = self._call.padding and self._call.padding["direction"] == "left"
        filled = [pad] * self._padded
        return filled + row if left else row + filled

    # ------------------------------------------------------------ computed by the original

    @property
    def original(self) -> tokenizers.Encoding:
        """The encoding of `tokenizers`.

        Raises:
            RuntimeError: if the tokenizer was changed since, so that it has other ids.
        """
        if self._theirs is None:
            ids = self._ids or []
            theirs = self._call.again(self._texts, self._width)
            if theirs.ids != ids:
                raise RuntimeError(
                    "the tokenizer was changed after it encoded this text, so the words and places "
                    "of its tokens are lost; encode the text again"
                )
            self._theirs = theirs
        return self._theirs

    def __getattr__(self, name: str) -> Any:
        """What is seldom asked for is the original's; the names stand below."""
        if name in _CHANGES:
            return lambda *args, **how: getattr(self._changed(), name)(*args, **how)
        if name in _SELDOM:
            return getattr(self.original, name)
        raise AttributeError(f"an Encoding has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_SELDOM, *_CHANGES]

    # ------------------------------------------------------------ changes and copies

    def _changed(self) -> tokenizers.Encoding:
        """The encoding of `tokenizers`, which replaces all other state from here on."""
        theirs, self._ids = self.original, None
        return theirs

    @staticmethod
    def merge(encodings: list[Any], growing_offsets: bool = True) -> tokenizers.Encoding:
        """Put encodings one behind the other."""
        from bytepair._internal.extras import tokenizers

        return tokenizers.Encoding.merge([theirs(one) for one in encodings], growing_offsets)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy and a pickle are encodings of `tokenizers`, which need no tokenizer."""
        return _same, (self.original,)

    def __repr__(self) -> str:
        """As there: the number of tokens, and what there is."""
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, "
            "attention_mask, special_tokens_mask, overflowing])"
        )


#: What the encoding of `tokenizers` knows besides, and what changes it.
_SELDOM: Final = (
    "word_ids", "words", "sequence_ids", "char_to_token", "char_to_word", "token_to_chars",
    "token_to_sequence", "token_to_word", "word_to_chars", "word_to_tokens",
)  # fmt: skip
_CHANGES: Final = ("pad", "truncate", "set_sequence_id")


def theirs(encoding: Any) -> Any:
    """An encoding as `tokenizers` takes it."""
    return encoding.original if isinstance(encoding, Encoding) else encoding


def _same(encoding: tokenizers.Encoding) -> tokenizers.Encoding:
    return encoding


# ---------------------------------------------------------------------------- many texts


def encode(call: Call, inputs: Sequence[Any]) -> list[Encoding] | None:
    """The encodings of texts and pairs of texts; None if the original must make them."""
    if len(inputs) == 1 and isinstance(inputs[0], str):
        return _encode_one(call, inputs[0])
    texts = [(one,) if isinstance(one, str) else _pair(one) for one in inputs]
    lists = _ids(call, [text for one in texts for text in one]) if all(texts) else None
    if lists is None:
        return None
    single, pair = (frames[call.special] for frames in call.engine.frames)
    encodings = []
    following = iter(lists)
    for one in texts:
        frame = single if len(one) == 1 else pair
        ids = [next(following) for _ in one]
        if frame is None or (call.truncation and not _truncate(call.truncation, frame, ids)):
            return None
        lengths = (len(ids[0]),) if len(ids) == 1 else (len(ids[0]), len(ids[1]))
        encodings.append(Encoding(call, frame, one, frame.around(ids), lengths))
    if call.padding:
        _pad(call.padding, encodings)
    return encodings


def _encode_one(call: Call, text: str) -> list[Encoding] | None:
    ids = _ids(call, [text])
    frame = call.engine.frames[0][call.special]
    if ids is None or frame is None:
        return None
    if call.truncation and not _truncate(call.truncation, frame, ids):
        return None
    encoding = Encoding(call, frame, (text,), frame.around(ids), (len(ids[0]),))
    if call.padding:
        _pad(call.padding, [encoding])
    return [encoding]


def _pair(one: Any) -> tuple[str, ...]:
    """The two texts of a pair; None if the input is no pair."""
    if isinstance(one, tuple | list) and len(one) == 2 and all(isinstance(t, str) for t in one):
        return tuple(one)
    return ()


def _ids(call: Call, texts: list[str]) -> list[list[int]] | None:
    """The ids of each text, without the tokens that the post-processor adds."""
    tokenizer, looked_for = call.engine.tokenizer, call.looked_for
    if looked_for is None:
        return None
    try:
        for text in texts:
            if not text.isascii():
                text.encode()  # raises for a lone surrogate, as the original does
        if len(texts) == 1:
            return [tokenizer.encode(texts[0], special=looked_for)]
        return tokenizer.encode_batch(texts, special=looked_for)
    except (BytepairError, UnicodeEncodeError):
        return None


def _truncate(how: dict[str, Any], frame: Frame, texts: list[list[int]]) -> bool:
    """Truncate the ids of a text; None if the original must do it."""
    room = how["max_length"] - frame.added
    if room > 0 and sum(map(len, texts)) <= room:
        return True
    if len(texts) > 1 or room <= how["stride"] or how["strategy"] == "only_second":
        return False
    ids = texts[0]
    texts[0] = ids[len(ids) - room :] if how["direction"] == "left" else ids[:room]
    return True


def _pad(how: dict[str, Any], encodings: list[Encoding]) -> None:
    """Pad encodings to the length of the longest, or to the requested length."""
    length = how["length"]
    if length is None:
        length = max(map(len, encodings))
    if multiple := how["pad_to_multiple_of"]:
        length += -length % multiple
    for encoding in encodings:
        encoding.fill(length)
