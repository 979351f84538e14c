"""Encodes texts or renders conversations to batches while a run reads them; no shards are written.

The batches and states of texts equal those of nanochat's loader for the same files and tokenizer,
with either of its packings. The batches of conversations equal those of nanochat's fine-tuning in
2026: every row begins with a conversation and is filled with the longest waiting ones that fit. The
rest of a row is padding; no id is cropped.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, count, groupby, islice, pairwise
from operator import itemgetter
from pathlib import PurePath
from typing import Any, Final, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_choice, check_kind
from bytepair.chat.batch import RenderedBatch, pad_id
from bytepair.chat.renderer import TemplateOrName, writer
from bytepair.chat.rows import DEFAULT, ChatOptions
from bytepair.chat.segments import Conversation
from bytepair.corpus.column import Column, Errors
from bytepair.corpus.files import Split, kind_of
from bytepair.corpus.read import DocumentSelection, ahead, read
from bytepair.corpus.rows import ConversationSource, sequence
from bytepair.corpus.source import Reading, Source, resolve_files
from bytepair.errors import ConversationError, ShardError, SkippedWarning, warn
from bytepair.files.safe import are_counts
from bytepair.shards.encode import special_id
from bytepair.shards.order import (
    BUFFER_DOCUMENTS,
    Packing,
    State,
    WaitingDocuments,
    check_numbers,
    delivered,
)
from bytepair.tokenizer import Tokenizer

#: The position of a loader: `pq_idx`, `rg_idx` and `epoch`, as in nanochat; and `data`, a checksum
#: of the names and sizes of the files up to this one.
TextState: TypeAlias = dict[str, Any]
#: The same as numbers: the file, the row group in it, and the epoch, from 1.
TextPlace: TypeAlias = "tuple[int, int, int]"
#: Text of a row group with its place, and the same as ids and offsets.
GroupPart: TypeAlias = "tuple[TextPlace, Column]"
EncodedPart: TypeAlias = "tuple[TextPlace, tuple[NDArray[Any], NDArray[np.int64]]]"

#: The number of documents that nanochat encodes at once and adds to those that wait.
GROUP_DOCUMENTS: Final = 128


@dataclass(frozen=True)
class TextOptions:
    """How `TextBatches` reads, encodes and packs documents.

    Attributes:
        split: as in `corpus.read_documents`: where no data set says it, "val" is the last file
            and "train" all others; "all" means all.
        packing: "best-fit" is nanochat's of 2026: every row begins with a document, and is filled
            with the longest waiting document that fits; if none fits, the shortest is cropped and
            its rest is not used. "stream" is nanochat's of 2025: documents, concatenated, of which
            each batch takes `batch_size * length + 1` ids.
        column: the column that holds the text.
        errors: as in `bytepair.count`; damaged files are an error.
        bos: the name of the special token before each document; True means that with the role.
        buffer: with "best-fit", more documents are read whenever fewer than this many wait.
        group: the number of documents to read at once, all from one row group.
    """

    split: Split | None = "train"
    packing: Packing = "best-fit"
    column: str = "text"
    errors: Errors = "strict"
    bos: bool | str = True
    buffer: int = BUFFER_DOCUMENTS
    group: int = GROUP_DOCUMENTS

    def __post_init__(self) -> None:
        check_numbers(0, 1, buffer=self.buffer, group=self.group)
        check_choice("packing", self.packing, get_args(Packing))


class TextBatches(Iterator[tuple[Any, Any]]):
    """The batches of one rank, packed while the files are read; they never end.

    Args:
        source: parquet files, as in `bytepair.train`; the last is for validation.
        tokenizer: encodes each document.
        options: what is read, and how rows are packed.
        world_size: the number of ranks; a rank reads every `world_size`-th row group.
        state: a value of `TextBatches.state` to resume from, after its row group.
        threads: as in `bytepair.train`.

    The other arguments, and what iteration yields, are those of `Dataset.batches`.

    Raises:
        CorpusError: if there is nothing to read, or something cannot be read, with its place.
        ShardError: if a file is not parquet, this rank has no row group, or the state is of other
            files.
        SpecialTokenError: if the tokenizer lacks the special token.

    Example:
        >>> import bytepair, tempfile, pyarrow, pyarrow.parquet
        >>> texts = [path.read_text(encoding="utf-8") for path in bytepair.sample.paths()]
        >>> tok = bytepair.train(texts, 1000)
        >>> options = bytepair.shards.TextOptions(split="val", buffer=20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file, table = f"{folder}/texts.parquet", pyarrow.table({"text": texts})
        ...     pyarrow.parquet.write_table(table, file, row_group_size=16)
        ...     batches = bytepair.shards.TextBatches(file, tok, 2, 8, options)
        ...     inputs, targets = next(batches)
        >>> inputs.shape, bool((inputs[:, 0] == tok.special_tokens["<|bos|>"]).all())
        ((2, 8), True)
        >>> batches.state
        {'pq_idx': 0, 'rg_idx': 1, 'epoch': 1, 'data': ...}
    """

    def __init__(
        self,
        source: Source,
        tokenizer: Tokenizer,
        batch_size: int,
        length: int,
        options: TextOptions = TextOptions(),
        *,
        rank: int = 0,
        world_size: int = 1,
        state: TextState | None = None,
        threads: int | None = None,
        torch: bool = False,
    ) -> None:
        check_kind("tokenizer", tokenizer, Tokenizer, "load it with bytepair.load")
        check_numbers(rank, world_size, batch_size=batch_size, length=length)
        self._shape, self._torch = (batch_size, length), torch
        reader = _RankReader(source, options, rank, world_size)
        self._packing, self._data = options.packing, lru_cache(1)(reader.data)
        self._place = None if state is None else reader.place_of(state)
        first = special_id(tokenizer, options.bos, "bos")
        encode = partial(_core.encode_utf8, tokenizer, prepend=first, threads=threads)
        texts = reader.parts(self._place)
        encoded = ahead((place, encode(text.data, text.offsets)) for place, text in texts)
        parts = _from_first_text(encoded, first is not None, is_resumed=state is not None)
        self._groups = _groups(parts, options.group)
        self._waiting = WaitingDocuments[NDArray[Any]](length + 1, options.buffer, cut=True)
        self._rest = tokenizer.encode_batch_to_numpy([""]).ids

    @property
    def state(self) -> TextState | None:
        """The row group that was read last, and of which files; None before the first batch."""
        if self._place is None:
            return None
        file, row_group, epoch = self._place
        return {"pq_idx": file, "rg_idx": row_group, "epoch": epoch, "data": self._data(file)}

    def __next__(self) -> tuple[Any, Any]:
        if self._packing == "stream":
            return delivered(*self._stream(), self._torch)
        rows = np.empty((self._shape[0], self._shape[1] + 1), self._rest.dtype)
        for row in rows:
            self._fill(row)
        return delivered(rows[:, :-1], rows[:, 1:], self._torch)

    def _fill(self, row: NDArray[Any]) -> None:
        while (pieces := self._waiting.row()) is None:
            for ids in self._next_group():
                # The copy frees the array, and ids that do not fit a row are dropped.
                self._waiting.add(len(ids), ids[: len(row)].copy())
        np.concatenate([ids[:length] for ids, length in pieces], out=row)

    def _stream(self) -> tuple[NDArray[Any], NDArray[Any]]:
        count = self._shape[0] * self._shape[1] + 1
        pieces, size = [self._rest], len(self._rest)
        while size < count:
            more = self._next_group()
            pieces += more
            size += sum(map(len, more))
        ids = np.concatenate(pieces)
        self._rest = ids[count:]
        return ids[: count - 1].reshape(self._shape), ids[1:count].reshape(self._shape)

    def _next_group(self) -> list[NDArray[Any]]:
        self._place, documents = next(self._groups)
        return documents


def _from_first_text(
    parts: Iterator[EncodedPart], has_bos: bool, *, is_resumed: bool
) -> Iterator[EncodedPart]:
    """The parts, as soon as one has tokens of text; it is an error if a whole pass has none."""
    waiting: list[EncodedPart] = []
    for part in parts:
        (_, _, epoch), (ids, offsets) = part
        waiting.append(part)
        if len(ids) > has_bos * (len(offsets) - 1):
            break
        if epoch - waiting[0][0][2] > is_resumed:
            text = "the documents of this rank have no tokens: all are empty"
            hint = "choose the column of the text with column="
            raise ShardError(text, option="source", hint=hint)
    yield from waiting
    yield from parts


def _groups(
    parts: Iterator[EncodedPart], size: int
) -> Iterator[tuple[TextPlace, list[NDArray[Any]]]]:
    """The ids of some documents of a row group, at most `size` together, with its place."""
    for place, of_one in groupby(parts, key=itemgetter(0)):
        documents = (
            ids[begin:end]
            for _, (ids, offsets) in of_one
            for begin, end in pairwise(offsets.tolist())
        )
        while some := list(islice(documents, size)):
            yield place, some


class _RankReader:
    """The text of one rank: every `world_size`-th row group of each file."""

    def __init__(self, source: Source, options: TextOptions, rank: int, world_size: int) -> None:
        files = resolve_files(source, options.split, logs=rank == 0, by_position=True)
        self._files = files.files
        self._reading = Reading(options.column, options.errors)
        self._rank, self._world_size = rank, world_size
        for file in self._files:
            if kind_of(file.path) != "parquet":
                raise ShardError(f"{file.name} is not parquet, whose row groups the ranks share")

    def data(self, file: int) -> str:
        """A checksum of the names and sizes of the files up to one; more may be added later."""
        sizes = [(PurePath(file.name).name, file.size) for file in self._files[: file + 1]]
        return f"{zlib.crc32(repr(sizes).encode()):08x}"

    def place_of(self, state: TextState) -> TextPlace:
        """The position of a state, which must be of these files; a state of 2025 has no epoch."""
        try:
            place = int(state["pq_idx"]), int(state["rg_idx"]), int(state.get("epoch", 1))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ShardError(f"the state has no {error}; it is not of a text loader") from None
        if not all(0 <= number < 1 << 63 for number in place):
            raise ShardError(f"the state {state} has a number that is no place in files")
        data = self.data(place[0])
        if place[0] >= len(self._files) or state.get("data", data) != data:
            raise ShardError(
                f"the state {state} belongs to other files than these {len(self._files)}",
                hint="pass the files of that run, or no state to begin again",
            )
        return place

    def parts(self, after: TextPlace | None) -> Iterator[GroupPart]:
        """The text after a position, or from the beginning, repeated without end."""
        start, row_group, first = (0, 0, 1) if after is None else after
        if after is not None:
            row_group = (row_group // self._world_size + 1) * self._world_size
        for epoch in count(first):
            is_empty = not row_group  # the rest of the files may have no text
            for number in range(start, len(self._files)):
                selection = DocumentSelection(0, self._rank + row_group, self._world_size)
                for column in read(self._files[number], self._reading, selection):
                    if isinstance(column, Column):  # each epoch meets a skipped document again
                        is_empty = False
                        yield (number, column.unit, epoch), column
                row_group = 0
            if is_empty:
                raise ShardError(
                    f"there is no document for rank {self._rank} of {self._world_size}; the files "
                    "have fewer row groups than there are ranks, or no rows"
                )
            start = row_group = 0


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
        check_numbers(0, 1, buffer=self.buffer, max_tokens=self.max_tokens or 1)


class ConversationBatches(Iterator[tuple[Any, Any]]):
    """The batches of one rank, packed while conversations are rendered; they never end.

    Args:
        conversations: a sequence of conversations, each as `Tokenizer.render_conversation` takes
            it; an item is read when it is rendered. Or another source, as
            `Tokenizer.render_batch` takes it: a table or files, which are read into memory.
        tokenizer: the tokenizer that renders them.
        options: how conversations are rendered and packed.
        world_size: the number of ranks; a rank takes every `world_size`-th conversation.
        state: a value of `ConversationBatches.state` of this rank to resume from.
        threads: as in `bytepair.train`.

    The other arguments are those of `Dataset.batches`.

    Raises:
        ConversationError: if a conversation breaks a rule of the template.
        ShardError: if there is no conversation for this rank, or the state is of other
            conversations or ranks.
        SpecialTokenError: if the tokenizer lacks a special token of the template.

    Iteration yields inputs and targets of int32. A target is the id that follows its input, or -1
    where the mask is 0, and in the padding.

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
        conversations: ConversationSource,
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
        rows: Sequence[Conversation] = sequence(conversations, options.chat.ignore_fields)
        if rank >= len(rows):
            raise ShardError(
                f"rank {rank} of {world_size} has none of the {len(rows)} conversations"
            )
        skips = options.chat.errors == "skip"
        chat = replace(options.chat, errors="strict") if skips else options.chat
        render = partial(
            tokenizer.render_batch, template=options.template, options=chat,
            max_tokens=max_tokens, on_untrained="keep", threads=threads,
        )  # fmt: skip
        self._count, self._step = len(rows), world_size
        self._identity = {"conversations": len(rows), "world_size": world_size}
        self._used, self._next, self._numbers = rank, rank, list[int]()
        waiting = [] if state is None else self._resume(state)
        numbers = chain(waiting, count(self._next, world_size))
        self._rendered = _rendered(rows, numbers, render, skips)
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

    def __next__(self) -> tuple[Any, Any]:
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
