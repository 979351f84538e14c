"""Texts in, encodings out: encoded, truncated, put into their frames and padded.

What is not done here is left to the original: None says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bytepair.compat.huggingface.encoding import Call, Encoding
from bytepair.compat.huggingface.engine import Frame
from bytepair.errors import BytepairError


def encode(call: Call, inputs: Sequence[Any]) -> list[Encoding] | None:
    """The encodings of texts and pairs of texts."""
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
    """The encoding of one text, as `encode` makes it."""
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
