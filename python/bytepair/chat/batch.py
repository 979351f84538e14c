"""Renders data sets of conversations to arrays: ragged, padded, or packed into rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import check_whole, place_of
from bytepair.chat.prompt import render_fitted
from bytepair.chat.renderer import TemplateOrName, nothing_to_learn, writer
from bytepair.chat.rows import ChatOptions, read_row
from bytepair.chat.segments import Conversation, Encoded, Segments
from bytepair.corpus.column import listed
from bytepair.corpus.rows import ConversationSource, PlacedRow, read_rows
from bytepair.errors import (
    ArgumentError,
    ConversationError,
    SkippedWarning,
    SpecialTokenError,
    warn,
)
from bytepair.properties import roles

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class RenderStatistics:
    """What became of a data set of conversations.

    Attributes:
        conversations: how many were read.
        skipped: how many were left out as invalid, with `errors="skip"`.
        dropped: how many were left out with `on_untrained="drop"`.
        cut: how many were longer than the limit, and are shortened.
        untrained: how many have a mask that is all 0; those that were dropped are included.
        ids: the number of ids, without padding.
        trained: the number of ids that are trained on.
        longest: the number of ids of the longest conversation before it was cut.
        rows: the number of rows; 0 for ragged arrays.
        fill: the share of the positions of rows that are not padding; 1 for ragged arrays.
        first_skipped: the places of the first ten skipped rows, and why each is invalid.
    """

    conversations: int = 0
    skipped: int = 0
    dropped: int = 0
    cut: int = 0
    untrained: int = 0
    ids: int = 0
    trained: int = 0
    longest: int = 0
    rows: int = 0
    fill: float = 1.0
    first_skipped: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """One line with the numbers that matter."""
        left_out = ("skipped", "dropped", "cut", "untrained")
        share = self.trained / self.ids if self.ids else 0
        parts = [
            f"{self.conversations:,} conversation{'s' * (self.conversations != 1)}",
            *(f"{number:,} {name}" for name in left_out if (number := getattr(self, name))),
            f"{self.ids:,} ids ({share:.1%} trained on)",
            f"longest {self.longest:,}",
        ]
        if self.rows:
            parts.append(f"{self.rows:,} row{'s' * (self.rows != 1)} ({self.fill:.1%} full)")
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class RenderedBatch:
    """Rendered conversations.

    Ragged arrays have one dimension, and `offsets` contains the start of each conversation. Padded
    or packed arrays have two dimensions: rows and positions in a row.

    Attributes:
        input_ids: int32, the ids.
        loss_mask: uint8, 1 where the model is trained on the id, else 0.
        labels: int64, as losses take them: the id where it is trained on, else `ignore_index`; None
            if `ignore_index` was not passed. Labels are at the position of their id; the loss
            function, or you, must shift them by one.
        offsets: int64, the start of each conversation in ragged arrays, and the end of the last;
            None if there are rows.
        conversations: int32, the index of the conversation at each position of a row, -1 for
            padding; None if there are no rows.
        statistics: how many conversations were read, skipped, cut; and other numbers.
    """

    input_ids: NDArray[np.int32]
    loss_mask: NDArray[np.uint8]
    labels: NDArray[np.int64] | None = None
    offsets: NDArray[np.int64] | None = None
    conversations: NDArray[np.int32] | None = None
    statistics: RenderStatistics | None = None

    def __len__(self) -> int:
        return len(self.input_ids) if self.offsets is None else len(self.offsets) - 1

    def __getitem__(self, index: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """The ids and the mask of one conversation, or of one row.

        Raises:
            ArgumentError: if the index is no integer; there are no slices.
            IndexError: if there is no such conversation or row.
        """
        index = place_of("conversation or row", index, len(self))
        if self.offsets is None:
            return self.input_ids[index], self.loss_mask[index]
        here = slice(self.offsets[index], self.offsets[index + 1])
        return self.input_ids[here], self.loss_mask[here]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int32], NDArray[np.uint8]]]:
        return (self[index] for index in range(len(self)))

    @property
    def position_ids(self) -> NDArray[np.int32] | None:
        """The place of each id of a row in its conversation, and 0 for padding; None without rows.

        With them, attention stays within a conversation: the implementations in `transformers` see
        where the next one begins.
        """
        if self.conversations is None:
            return None
        columns = np.arange(self.conversations.shape[1], dtype=np.int32)
        begins = np.diff(self.conversations, axis=1, prepend=-2) != 0
        starts = np.maximum.accumulate(np.where(begins, columns, 0), axis=1)
        return np.where(self.conversations < 0, 0, columns - starts).astype(np.int32)

    @property
    def lengths(self) -> list[list[int]] | None:
        """The numbers of ids of the conversations of each row, in order; None without rows."""
        if self.conversations is None:
            return None
        rows = []
        for row in self.conversations:
            ends = np.flatnonzero(np.diff(row, append=-2)) + 1
            sizes = np.diff(ends, prepend=0)
            rows.append(sizes[row[ends - 1] >= 0].tolist())
        return rows

    def to_arrow(self) -> pa.Table:
        """Convert to a table of list columns, with one row per conversation or per row.

        Rows also have `position_ids`, and `lengths` of the conversations in them.
        """
        from bytepair._internal.extras import pyarrow as pa

        columns = {}
        for name in ("input_ids", "loss_mask", "labels", "conversations", "position_ids"):
            values = getattr(self, name)
            if values is not None and self.offsets is None:
                flat = pa.array(values.ravel())
                columns[name] = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
            elif values is not None:
                starts = pa.array(self.offsets)
                columns[name] = pa.LargeListArray.from_arrays(starts, pa.array(values))
        if (lengths := self.lengths) is not None:
            columns["lengths"] = pa.array(lengths, pa.list_(pa.int32()))
        return pa.table(columns)


def parquet() -> Any:
    """The module that writes parquet; without it, the error names the extra that has it."""
    from bytepair._internal.extras import pyarrow_parquet

    return pyarrow_parquet


def render(
    tokenizer: _core.Tokenizer,
    conversations: ConversationSource,
    options: ChatOptions,
    *,
    template: TemplateOrName,
    max_tokens: int | None,
    on_untrained: str,
    pad_to: int | None,
    pack_to: int | None,
    pad: str | None,
    ignore_index: int | None,
    threads: int | None,
) -> RenderedBatch:
    """Render a data set of conversations; see `Tokenizer.render_batch`."""
    option, width = ("pack_to", pack_to) if pad_to is None else ("pad_to", pad_to)
    if width is not None:
        check_whole(option, width, least=1)
    if pad_to is not None and pack_to is not None:
        raise ArgumentError(
            "pass either pad_to (one conversation per row) or pack_to (several)", option="pad_to"
        )
    drops_turns = options.truncate == "turns"
    if drops_turns and max_tokens is None:
        max_tokens = width
    write, segments = writer(tokenizer, template), Segments()
    fitted: list[Encoded] = []  # where turns are dropped, conversations are encoded one by one

    def append(given: Conversation) -> None:
        row = read_row(given, write, options)
        if drops_turns:
            fitted.append(render_fitted(write, row, options, max_tokens))
        else:
            write.write(row, segments, options)

    rows = read_rows(conversations, options.ignore_fields)
    places, skipped, first_skipped = gathered(rows, segments, options, append)
    encoded = segments.encode(
        tokenizer, join=write.join, max_tokens=max_tokens, errors="replace", threads=threads
    )
    if drops_turns:
        encoded = _joined(encoded, fitted)
    _report_cut(encoded, max_tokens)
    sizes, trained = np.diff(encoded.offsets), _trained(encoded)
    useful = (trained > 0) & (trained < sizes)
    if on_untrained == "keep" or not write.has_mask:
        useful[:] = True
    _report_untrained(useful, trained, places, on_untrained)
    here = slice(None) if useful.all() else np.repeat(useful, sizes)
    ids, offsets = encoded.ids[here].view(np.int32), _starts_of(sizes[useful])
    batch = RenderedBatch(ids, encoded.mask[here], offsets=offsets)
    if width is not None:
        _check_width(sizes[useful], list(compress(places, useful)), width, option)
        filler = pad_id(tokenizer, write.template, pad)
        batch = _in_rows(batch, width, filler, packed=pack_to is not None)
    statistics = RenderStatistics(
        conversations=len(places) + skipped,
        skipped=skipped,
        dropped=int((~useful).sum()),
        cut=int((sizes < encoded.lengths).sum()),
        untrained=int((trained == 0).sum()),
        ids=len(ids),
        trained=int(batch.loss_mask.sum()),
        longest=int(encoded.lengths.max(initial=0)),
        rows=0 if width is None else len(batch.input_ids),
        fill=len(ids) / batch.input_ids.size if batch.input_ids.size else 1.0,
        first_skipped=first_skipped,
    )
    labels = None
    if ignore_index is not None:
        labels = np.where(batch.loss_mask == 1, batch.input_ids, np.int64(ignore_index))
    return replace(batch, labels=labels, statistics=statistics)


def gathered(
    rows: Iterable[PlacedRow],
    segments: Segments,
    options: ChatOptions,
    write: Callable[[Any], None],
    what: str = "conversations",
) -> tuple[list[str], int, list[str]]:
    """Write rows to segments; an invalid row leaves nothing.

    Returns:
        The places of the rows, the number of those that are skipped, and the places of the first of
        them with the reasons.
    """
    places, skipped, first_skipped = list[str](), 0, list[str]()
    for place, row in rows:
        start = len(segments.items)
        try:
            if isinstance(row, ConversationError):
                raise row
            write(row)
            if options.errors != "replace":
                segments.check_texts(start)
            places.append(place)
        except ConversationError as error:
            segments.cut(start)
            if options.errors == "skip":
                skipped += 1
                if skipped <= 10:
                    first_skipped.append(f"{place}: {error.message}")
                continue
            if error.option != "rows":  # else all rows have another layout
                hints = [error.hint, 'pass errors="skip" to leave such rows out']
                error.hint = ", or ".join(filter(None, hints))
            raise error.at(place) from None
    if skipped:
        text = f"{skipped:,} of {skipped + len(places):,} {what} are skipped: "
        text += listed(map(_brief, first_skipped), skipped)
        warn(SkippedWarning(text, option="errors", value="skip"))
    return places, skipped, first_skipped


def _brief(skipped: str) -> str:
    """A place without folders, and the beginning of the reason, so that ten fit a warning."""
    place, _, why = skipped.partition(": ")
    text = f"{place.rpartition('/')[2]}: {why}"
    return text if len(text) <= 85 else f"{text[:82]}..."


def _starts_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The start of each of consecutive conversations, and the end of the last."""
    return np.append(0, np.cumsum(sizes))


def _joined(empty: Encoded, parts: Sequence[Encoded]) -> Encoded:
    """Conversations that were encoded one by one."""
    ids, mask, _, lengths = map(np.concatenate, zip(empty, *parts, strict=True))
    sizes = np.array([len(one.ids) for one in parts], np.int64)
    return Encoded(ids, mask, _starts_of(sizes), lengths)


def _trained(encoded: Encoded) -> NDArray[np.int64]:
    """The number of ids of each conversation that are trained on."""
    sums = np.add.reduceat(np.append(encoded.mask, 0), encoded.offsets[:-1], dtype=np.int64)
    return np.where(np.diff(encoded.offsets) > 0, sums, 0)  # for an empty one, it takes the next id


def _report_cut(encoded: Encoded, max_tokens: int | None) -> None:
    """Warn if ids of conversations were cut off: how many, of how many."""
    lengths, offsets = encoded.lengths, encoded.offsets
    if cut := int(lengths.sum() - offsets[-1]):
        count = int((np.diff(offsets) < lengths).sum())
        text = (
            f"{count:,} of {len(lengths):,} conversations are longer than {max_tokens:,} ids: "
            f"{cut:,} of {int(lengths.sum()):,} ids are cut off"
        )
        warn(SkippedWarning(text, option="max_tokens", value=max_tokens))


def _report_untrained(
    useful: NDArray[np.bool_], trained: NDArray[np.int64], places: list[str], on_untrained: str
) -> None:
    """Raise an error, or warn, if conversations have nothing to train on."""
    if useful.all():
        return
    count = f"{int((~useful).sum()):,} of {len(useful):,}"
    if on_untrained == "error":
        first = int(np.argmin(useful))
        error = nothing_to_learn(int(trained[first]))
        error.hint += f', or on_untrained="drop" to drop such conversations ({count})'
        raise error.at(places[first])
    text = f"{count} conversations have nothing to train on and are dropped"
    warn(SkippedWarning(text, option="on_untrained", value=on_untrained))


def pad_id(tokenizer: _core.Tokenizer, template: Any, pad: str | None) -> int:
    """The id of the special token that pads rows: `pad`, the tokenizer's own, the template's."""
    own, special = roles.roles(tokenizer).get("pad"), tokenizer.special_tokens
    name = pad or own or template.padding()
    if name is None or name not in special:
        raise SpecialTokenError(
            f"rows are padded with the special token {name!r}, which this tokenizer does not have",
            option="pad",
            hint=f"pass pad= one of {' '.join(special) or 'none'}",
        )
    return special[name]


def _check_width(
    lengths: NDArray[np.int64], places: Sequence[str], width: int, option: str
) -> None:
    """Raise a `ConversationError` if a conversation is longer than a row."""
    for first in np.flatnonzero(lengths > width)[:1]:
        raise ConversationError(
            f"{places[first]} has {lengths[first]:,} ids, and a row has room for {width:,}; "
            f"{int((lengths > width).sum()):,} of {len(lengths):,} conversations are too long",
            option=option,
            value=width,
            hint=f'pass max_tokens={width} to cut them off, or truncate="turns" to drop their '
            "oldest turns, or a larger row",
        )


def _in_rows(batch: RenderedBatch, width: int, filler: int, *, packed: bool) -> RenderedBatch:
    """Arrange conversations in rows, one per row or packed."""
    assert batch.offsets is not None
    lengths = np.diff(batch.offsets)
    rows, columns = np.arange(len(lengths)), np.zeros(len(lengths), np.int64)
    if packed:
        rows, columns = _core.pack(lengths, width)
    shape = (int(rows.max()) + 1 if len(rows) else 0, width)
    ids, mask = np.full(shape, filler, np.int32), np.zeros(shape, np.uint8)
    conversations = np.full(shape, -1, np.int32)
    shift = rows * width + columns - batch.offsets[:-1]
    at = np.arange(len(batch.input_ids)) + np.repeat(shift, lengths)
    ids.ravel()[at] = batch.input_ids
    mask.ravel()[at] = batch.loss_mask
    conversations.ravel()[at] = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    if packed:  # the id before it is of another conversation
        mask[rows[lengths > 0], columns[lengths > 0]] = 0
    return replace(batch, input_ids=ids, loss_mask=mask, offsets=None, conversations=conversations)
