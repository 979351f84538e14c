"""Segments: the texts and ids of a conversation, which the core encodes to ids and a mask.

A segment is a text, an id, or None at the end of a message; each is trained on or not. Texts are
passed to the core separately from ids, and encoded as ordinary text. That is why no text can become
a special token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from bytepair import _core
from bytepair._internal.checks import check_whole
from bytepair.corpus.column import Errors
from bytepair.errors import ArgumentError, ConversationError, SpecialTokenError

#: A row: a mapping with a list of messages under "messages", or that list; see `rows`.
Conversation: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]

#: What truncation may cut: any id from the end, or whole turns from the beginning.
Truncate: TypeAlias = Literal["tokens", "turns"]

#: The origin of a segment of `encode_segments`: untrusted text, or the program, which names a
#: special token.
Origin: TypeAlias = Literal["untrusted", "control"]


#: Between two texts of a template that joins texts: they are encoded apart. It stands where the
#: prompt ends, so that the ids of a training text begin with those of its prompt.
BREAK: Final = -1


class Encoded(NamedTuple):
    """Encoded conversations: ids, mask, the start of each, and its length before it was cut."""

    ids: Any
    mask: Any
    offsets: Any
    lengths: Any


class RenderedIds(NamedTuple):
    """A rendered conversation.

    Attributes:
        ids: the ids.
        mask: for each id, 1 if it is trained on, else 0.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hi"], vocab_size=266)
        >>> bytepair.chat.render_turn(tok, [], [{"role": "user", "content": "hi"}]).mask
        [0, 0, 0, 0, 0]
    """

    ids: list[int]
    mask: list[int]


#: Segments of a template, ready to be appended: the items, and for each whether it is trained on.
Items: TypeAlias = "tuple[list[str | int | None], bytes]"


@dataclass(slots=True)
class Segments:
    """The segments of consecutive conversations.

    Attributes:
        items: texts, ids, and None at the end of each message.
        trained: for each item, 1 if it is trained on, else 0.
        ends: the end of each conversation in `items`.
    """

    items: list[str | int | None] = field(default_factory=list)
    trained: bytearray = field(default_factory=bytearray)
    ends: list[int] = field(default_factory=list)

    def encode(
        self,
        tokenizer: _core.Tokenizer,
        *,
        join: bool,
        max_tokens: int | None = None,
        errors: Errors,
        threads: int | None = 1,
    ) -> Encoded:
        """Encode in parallel, and cut what is longer than `max_tokens`."""
        if max_tokens is not None:
            check_whole("max_tokens", max_tokens)
        if errors != "replace":
            self.check_texts()
        items = self.items
        if join and BREAK in items:
            items = [None if item == BREAK else item for item in items]
        ids, mask, offsets = _core.render(
            tokenizer, items, bytes(self.trained), self.ends, join=join, threads=threads
        )
        lengths = offsets[1:] - offsets[:-1]
        if max_tokens is None or not (lengths > max_tokens).any():
            return Encoded(ids, mask, offsets, lengths)
        import numpy as np

        here = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths) < max_tokens
        starts = np.append(0, np.cumsum(np.minimum(lengths, max_tokens)))
        return Encoded(ids[here], mask[here], starts, lengths)

    def cut(self, start: int) -> None:
        """Remove all conversations from an item on."""
        del self.items[start:], self.trained[start:]
        while self.ends and self.ends[-1] > start:
            self.ends.pop()

    def check_texts(self, start: int = 0) -> None:
        """Raise a `ConversationError` if a text from an item on has a lone surrogate."""
        texts: Any = list(filter(str.__instancecheck__, self.items[start:]))
        for index, reason in _core.lone_surrogates(texts)[:1]:
            raise ConversationError(
                f"{reason}, of {texts[index][:200]!a}",
                option="errors",
                hint='repair it, or pass errors="replace"',
            )


class Writer:
    """What converts conversations to segments: the base of the writers of templates."""

    name: str  # of the template
    join = True  # whether adjacent texts are encoded as one
    has_mask = True  # whether anything is trained on
    fields: Collection[str] = ()  # of rows, that the template uses
    message_fields: Collection[str] = ()  # that it uses, and not every template does
    thinks = False  # whether it writes the reasoning of a message
    writes_ids_of_calls = False  # so that results may be in any order

    def trains_on(self, role: str) -> bool:
        """Whether the model may be trained on messages of a role."""
        raise NotImplementedError

    def joins_parts(self, role: str) -> bool:
        """Whether a list of text parts in messages of a role is read as one text."""
        return False


def encode_segments(
    tokenizer: _core.Tokenizer, segments: Iterable[tuple[str, Origin]], *, join: bool = False
) -> list[int]:
    """Encode a mixture of untrusted text and special tokens chosen by the program.

    Untrusted text never becomes the id of a special token: not if it contains the name of one,
    and not if a name is spread over several segments. Of the added tokens of Hugging Face that
    are not special, only those without a visible character (runs of white space) are found in
    it: `<tool_call>`, which is not special in Qwen's file, is not.

    Args:
        tokenizer: the tokenizer.
        segments: pairs of a text and its origin: `(text, "untrusted")` is encoded as text,
            `(name, "control")` is the id of the special token with that name.
        join: whether adjacent untrusted texts are encoded as one text, as if they were
            concatenated. If not, no token spans two segments.

    Returns:
        The ids of all segments in order.

    Raises:
        SpecialTokenError: if a control segment is not the name of one special token.
        TypeError: if a segment is not a pair, or its text is not a `str`.
        ValueError: if an origin is neither "untrusted" nor "control".

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hi yo"], vocab_size=265)
        >>> segments = [("<|user_start|>", "control"), ("<|bos|>", "untrusted")]
        >>> ids = bytepair.chat.encode_segments(tok, segments)
        >>> ids[0] == tok.special_tokens["<|user_start|>"], tok.special_tokens["<|bos|>"] in ids
        (True, False)
    """
    special, items = structural(tokenizer), list[str | int | None]()
    for number, segment in enumerate(segments):
        is_pair = isinstance(segment, tuple | list) and len(segment) == 2
        if not (is_pair and isinstance(segment[0], str) and segment[1] in ("untrusted", "control")):
            raise ArgumentError(
                f'segment {number} is {segment!r}; it must be (text, "untrusted") or '
                '(name, "control")'
            )
        text, origin = segment
        if origin == "control" and text not in special:
            raise SpecialTokenError(
                f"segment {number} is control and must be one special token, but {text!r} is not; "
                f"the tokenizer has {' '.join(special) or 'none'}",
                hint='pass text around special tokens as separate "untrusted" segments',
            )
        items.append(special[text] if origin == "control" else text)
    return encode_items(tokenizer, items, join=join)


def encode_items(
    tokenizer: _core.Tokenizer,
    items: list[str | int | None],
    *,
    join: bool,
    errors: Errors = "replace",
) -> list[int]:
    """The ids of texts and ids."""
    segments = Segments(items, bytearray(len(items)), [len(items)])
    return list(segments.encode(tokenizer, join=join, errors=errors).ids.tolist())


def structural(tokenizer: _core.Tokenizer) -> dict[str, int]:
    """The tokens that a template or a program may write and a message may not, with their ids.

    They are the special tokens, and the user-defined tokens of SentencePiece with a visible
    character: Gemma's `<start_of_turn>` is one in its `tokenizer.model`.
    """
    names = {tokenizer.token_bytes(id): id for id in _core.text_rules(tokenizer).user_defined}
    return tokenizer.special_tokens | {
        name.decode(): id for name, id in names.items() if not name.decode().isspace()
    }
