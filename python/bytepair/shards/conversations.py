"""Renders conversations to batches of inputs and targets, packed on the fly.

The batches equal those of nanochat's fine-tuning in 2026: every row begins with a conversation and
is filled with the longest waiting ones that fit. The rest of a row is padding; no id is cropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bytepair._internal.checks import check_kind
from bytepair.chat.batch import RenderedBatch, pad_id
from bytepair.chat.renderer import TemplateOrName, writer
from bytepair.chat.rows import DEFAULT, ChatOptions
from bytepair.chat.segments import Conversation
from bytepair.chat.sources import ConversationSource, sequence
from bytepair.errors import ConversationError, ShardError, SkippedWarning, warn
from bytepair.shards.manifest import are_counts
from bytepair.shards.order import State, WaitingDocuments, check_numbers, delivered
from bytepair.tokenizer import Tokenizer

#: The number of a conversation, its ids and its mask.
Rendered: TypeAlias = "tuple[int, NDArray[np.int32], NDArray[np.uint8]]"

#: The number of conversations that wait for a row, as in nanochat.
BUFFER_CONVERSATIONS: Final = 100
#: The number of conversations that are rendered at once.
BATCH_CONVERSATIONS: Final = 128
#: The target of ids that are not trained on; losses ignore it.
IGNORED_TARGET: Final = -1


@dataclass(frozen=True)
class ConversationOptions:
    """How `ConversationBatches` renders and packs conversations.

    Attributes:
        template: as in `Tokenizer.render_conversation`.
        max_tokens: the maximum number of ids of a conversation; the rest is cropped. None means
            the length of a row.
        pad: the special token that fills rows; None means the template's, of nanochat `<|bos|>`.
        chat: how conversations are read, and what of them is trained on.
        buffer: the number of conversations that wait for a row.
    """

    template: TemplateOrName = None
    max_tokens: int | None = None
    pad: str | None = None
    chat: ChatOptions = DEFAULT
    buffer: int = BUFFER_CONVERSATIONS

    def __post_init__(self) -> None:
        """Check the numbers before anything is read."""
        check_numbers(0, 1, buffer=self.buffer, max_tokens=self.max_tokens or 1)


class ConversationBatches:
    """The batches of one rank, packed while conversations are rendered; they never end.

    Args:
        conversations: a sequence of conversations, each as `Tokenizer.render_conversation` takes
            it; an item is read when it is rendered. Or a table, a data frame or files, as
            `Tokenizer.render_batch` takes them; files are read into memory.
        tokenizer: the tokenizer that renders them.
        batch_size: the number of rows in a batch.
        length: the number of ids in a row.
        options: how conversations are rendered and packed.
        rank: the rank of this process, from 0.
        world_size: the number of ranks; a rank takes every `world_size`-th conversation.
        state: a value of `ConversationBatches.state` of this rank to resume from.
        threads: the maximum number of threads; None means `BYTEPAIR_NUM_THREADS`, or else all
            processors.
        torch: whether to yield tensors (inputs int32, targets int64) instead of arrays of int32.

    Raises:
        ArgumentError: if an option has an invalid value.
        ConversationError: if a conversation breaks a rule of the template.
        ShardError: if there is no conversation for this rank, or the state is of other
            conversations or ranks.
        SpecialTokenError: if the tokenizer lacks a special token of the template.

    Iteration yields inputs and targets of the shape (batch_size, length). A target is the id that
    follows its input, or -1 where the mask is 0, and in the padding.

    Example:
        >>> import bytepair
        >>> tok = bytepair.train(["hi yo"], vocab_size=265)
        >>> talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
        >>> batches = bytepair.shards.ConversationBatches([talk] * 4, tok, 2, 24)
        >>> inputs, targets = next(batches)
        >>> targets[0, :10].tolist()
        [-1, -1, -1, -1, -1, 121, 111, 260, -1, -1]
        >>> batches.progress
        1.0
    """

    def __init__(
        self,
        conversations: Sequence[Conversation] | ConversationSource,
        tokenizer: Tokenizer,
        batch_size: int,
        length: int,
        options: ConversationOptions = ConversationOptions(),
        *,
        rank: int = 0,
        world_size: int = 1,
        state: State | None = None,
        threads: int | None = None,
        torch: bool = False,
    ) -> None:
        max_tokens = length if options.max_tokens is None else options.max_tokens
        check_kind("tokenizer", tokenizer, Tokenizer, "load it with bytepair.load")
        check_numbers(rank, world_size, batch_size=batch_size, length=length, max_tokens=max_tokens)
        if max_tokens > length + 1:
            raise ShardError(
                f"max_tokens is {max_tokens}; at most length + 1 is possible", option="max_tokens"
            )
        conversations = sequence(conversations, options.chat)
        if rank >= len(conversations):
            raise ShardError(
                f"rank {rank} of {world_size} has none of the {len(conversations)} conversations"
            )
        skips = options.chat.errors == "skip"
        chat = replace(options.chat, errors="strict") if skips else options.chat
        render = partial(
            tokenizer.render_batch, template=options.template, options=chat,
            max_tokens=max_tokens, on_untrained="keep", threads=threads,
        )  # fmt: skip
        self._count, self._step = len(conversations), world_size
        self._identity = {"conversations": len(conversations), "world_size": world_size}
        self._used, self._next, self._numbers = rank, rank, list[int]()
        waiting = [] if state is None else self._resume(state)
        numbers = chain(waiting, count(self._next, world_size))
        self._rendered = _rendered(conversations, numbers, render, skips)
        template = writer(tokenizer, options.template).template
        self._filler = pad_id(tokenizer, template, options.pad)
        self._shape, self._torch = (batch_size, length), torch
        self._waiting = WaitingDocuments[Rendered](length + 1, options.buffer, cut=False)

    @property
    def progress(self) -> float:
        """The share of all conversations that were used; above 1 they repeat."""
        return self._used / self._count

    @property
    def state(self) -> State:
        """The position of this rank: a small dict of plain values, from which it resumes exactly.

        It has the numbers of the conversations that wait for a row, and of the next one.
        """
        place = {"used": self._used, "next": self._next, "waiting": list(self._numbers)}
        return {**place, **self._identity}

    def _resume(self, state: State) -> list[int]:
        """Go to the position of a state, and return the conversations that waited there."""
        match state:
            case {"used": int(used), "next": int(after), "waiting": [*waiting], **rest}:
                numbers = [used, after, *waiting]
                is_right = are_counts(*numbers) and max([-1, *waiting]) < after
                if is_right and rest == self._identity:
                    self._used, self._next, self._numbers = used, after, list(waiting)
                    return waiting
        raise ShardError(
            f"the state is not of {self._identity['conversations']:,} conversations and "
            f"{self._step} ranks",
            option="state",
        )

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self

    def __next__(self) -> tuple[Any, Any]:
        """The next batch."""
        batch_size, length = self._shape
        ids = np.full((batch_size, length + 1), self._filler, np.int32)
        mask = np.zeros(ids.shape, np.uint8)
        for row in range(batch_size):
            self._fill(ids[row], mask[row])
        targets = np.where(mask[:, 1:] == 1, ids[:, 1:], np.int32(IGNORED_TARGET))
        return delivered(ids[:, :-1], targets, self._torch)

    def _fill(self, row: NDArray[np.int32], row_mask: NDArray[np.uint8]) -> None:
        """Fill a row with conversations, until it is full or none fits."""
        while (pieces := self._waiting.row()) is None:
            number, ids, mask = next(self._rendered)
            self._waiting.add(len(ids), (number, ids, mask))
            if number >= self._next:  # else it waited at the state from which this resumes
                self._numbers.append(number)
                self._next = number + self._step
        filled = 0
        for (number, ids, mask), length in pieces:
            row[filled : filled + length] = ids
            row_mask[filled : filled + length] = mask
            row_mask[filled : filled + 1] = 0  # the id before it is of another conversation
            filled += length
            self._used += self._step
            self._numbers.remove(number)


def _rendered(
    conversations: Sequence[Conversation],
    numbers: Iterator[int],
    render: Callable[..., RenderedBatch],
    skips: bool,
) -> Iterator[Rendered]:
    """Conversations, of which some are rendered in advance, on all threads.

    Numbers go on after the last conversation, with the first again. An invalid one that `skips`
    leaves out has no ids.
    """
    empty, total = 0, len(conversations)
    while True:
        some = list(islice(numbers, BATCH_CONVERSATIONS))
        try:
            batch: Any = render([conversations[number % total] for number in some])
        except ConversationError:  # the position in it counts from the first of these
            batch = [_one(conversations[n % total], n % total, render, skips) for n in some]
        for number, (ids, mask) in zip(some, batch, strict=True):
            empty = 0 if len(ids) else empty + 1
            if empty > total:  # at least one pass over those of this rank
                raise ShardError("the conversations of this rank have no tokens")
            yield number, ids, mask


def _one(
    conversation: Conversation, number: int, render: Callable[..., RenderedBatch], skips: bool
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Render one conversation; if it is invalid, raise an error with its number, or skip it."""
    try:
        return render([conversation])[0]
    except ConversationError as error:
        why = str(error).removeprefix("conversation 0: ")
        problem = ConversationError(f"conversation {number}: {why}")
        if not skips:
            raise problem from None
    warn(SkippedWarning(f"{problem}; it is skipped", option="errors", value="skip"))
    return np.empty(0, np.int32), np.empty(0, np.uint8)
