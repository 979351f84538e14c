"""Renders data sets of conversations to arrays: ragged, padded, or packed into rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import place_of
from bytepair._internal.drawing import brief_html
from bytepair.chat.prompt import render_fitted
from bytepair.chat.renderer import TemplateOrName, nothing_to_learn, writer
from bytepair.chat.rows import ChatOptions, Row, check_required, read_row
from bytepair.chat.segments import Conversation, Encoded, Segments
from bytepair.chat.sources import ConversationSource, PlacedRow, read
from bytepair.chat.template import Template
from bytepair.corpus.column import listed
from bytepair.errors import (
    ArgumentError,
    ConversationError,
    SkippedWarning,
    SpecialTokenError,
    warn,
)
from bytepair.files.outputs import write_whole
from bytepair.properties import roles

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

#: The number of skipped rows that are named, and the characters of each in a warning.
MOST_NAMED: Final = 10
MOST_CHARS: Final = 85


@dataclass
class RenderStatistics:
    """What became of a data set of conversations.

    Attributes:
        conversations: how many were read.
        skipped: how many were left out as invalid, with `errors="skip"`.
        dropped: how many were left out with `on_untrained="drop"`.
        cut: how many were longer than the limit, and are shortened.
        split: how many are continued in a further row, with `truncate="split"`.
        untrained: how many have a mask that is all 0; those that were dropped are included.
        unanswered: how many end with a message of the user.
        unasked: how many begin with a message of the assistant.
        ids: the number of ids, without padding.
        trained: the number of ids that are trained on.
        longest: the number of ids of the longest conversation before it was cut.
        rows: the number of rows; 0 for ragged arrays.
        fill: the share of the positions of rows that are not padding; 1 for ragged arrays.
        first_skipped: the place of each of the first skipped rows, and why it is invalid.
    """

    conversations: int = 0
    skipped: int = 0
    dropped: int = 0
    cut: int = 0
    split: int = 0
    untrained: int = 0
    unanswered: int = 0
    unasked: int = 0
    ids: int = 0
    trained: int = 0
    longest: int = 0
    rows: int = 0
    fill: float = 1.0
    first_skipped: list[str] = field(default_factory=list)

    _repr_html_ = brief_html

    def __str__(self) -> str:
        """One line with the numbers that matter."""
        names = "skipped", "dropped", "cut", "split", "untrained", "unanswered", "unasked"
        left_out = {name: getattr(self, name) for name in names}
        share = self.trained / self.ids if self.ids else 0
        parts = [
            f"{self.conversations:,} conversation{'s' * (self.conversations != 1)}",
            *(f"{number:,} {name}" for name, number in left_out.items() if number),
            f"{self.ids:,} ids ({share:.1%} trained on)",
            f"longest {self.longest:,}",
        ]
        if self.rows:
            parts.append(f"{self.rows:,} row{'s' * (self.rows != 1)} ({self.fill:.1%} full)")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The values by name, as JSON can hold them."""
        return asdict(self)


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

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the table of `to_arrow` to a new parquet file, or replace one; return its path."""
        return saved(self.to_arrow(), path, overwrite=overwrite)


def check_can_save() -> None:
    """Raise an `ImportError` if the package that writes parquet is not installed."""
    from bytepair._internal.extras import pyarrow  # noqa: F401


def saved(table: pa.Table, path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Write a table to a parquet file, whole or not at all; return its path."""
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_parquet as pq

    stream = pa.BufferOutputStream()
    pq.write_table(table, stream)
    write_whole(Path(path), memoryview(stream.getvalue()), overwrite=overwrite)
    return Path(path)


# ---------------------------------------------------------------------------- rendering


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
    width, how = row_width(pad_to, pack_to), options.truncate
    if how == "split" and width is None:
        raise ArgumentError(
            'truncate="split" continues conversations in the next row', hint="pass pack_to="
        )
    if how in ("messages", "turns") and max_tokens is None:
        max_tokens = width
    write = writer(tokenizer, template)
    gathered = _gather(write, conversations, options)
    encoded = gathered.segments.encode(
        tokenizer, join=write.join, max_tokens=None if how == "turns" else max_tokens,
        truncate=how, errors="replace", threads=threads,
    )  # fmt: skip
    if how == "turns" and max_tokens is not None:
        encoded = _shortened(write, gathered, encoded, options, max_tokens)
    gathered.warn(len(gathered.places))
    _report_cut(encoded, max_tokens)
    on_untrained = on_untrained if write.has_mask else "keep"
    trained = _trained(encoded)
    kept = _kept(encoded, trained, gathered.places, on_untrained, max_tokens)
    lengths = np.diff(encoded.offsets)
    ids, mask = encoded.ids.view(np.int32), encoded.mask
    if not kept.all():
        here, lengths = np.repeat(kept, lengths), lengths[kept]
        ids, mask = ids[here], mask[here]
    statistics = gathered.statistics
    statistics.ids, statistics.dropped = len(ids), int((~kept).sum())
    batch = RenderedBatch(ids, mask, offsets=_starts_of(lengths), statistics=statistics)
    if width is not None:
        filler = pad_id(tokenizer, write.template, pad)
        wide = int((lengths > width).sum())
        if wide and how != "split":
            places = list(compress(gathered.places, kept))
            raise _too_wide(lengths, places, width, "pad_to" if pack_to is None else "pack_to")
        statistics.split = wide
        batch = _in_rows(batch, lengths, width, filler, packed=pack_to is not None)
    _count(statistics, encoded, trained, batch)
    if ignore_index is None:
        return batch
    labels = np.where(batch.loss_mask == 1, batch.input_ids, np.int64(ignore_index))
    return replace(batch, labels=labels)


def row_width(pad_to: int | None, pack_to: int | None) -> int | None:
    """The number of ids in a row; None if there are no rows."""
    if pad_to is not None and pack_to is not None:
        raise ArgumentError(
            "pass either pad_to (one conversation per row) or pack_to (several)", option="pad_to"
        )
    width = pad_to if pad_to is not None else pack_to
    if width is not None and width < 1:
        raise ArgumentError(f"the row width is {width}", hint="pass at least 1")
    return width


# ---------------------------------------------------------------------------- reading


@dataclass
class Gathered:
    """The conversations of a source as segments.

    Attributes:
        segments: those of all conversations.
        rows: the conversations, if some may have to be shortened by whole turns.
        places: the place of each conversation in the source.
        statistics: what became of them so far.
    """

    segments: Segments = field(default_factory=Segments)
    rows: list[Row] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    statistics: RenderStatistics = field(default_factory=RenderStatistics)

    def skip(self, place: str, error: ConversationError) -> None:
        """Count a row that is left out."""
        self.statistics.skipped += 1
        if self.statistics.skipped <= MOST_NAMED:
            self.statistics.first_skipped.append(f"{place}: {error.message}")

    def warn(self, count: int, what: str = "conversations") -> None:
        """Warn if some are left out, besides a number of them that are not."""
        if skipped := self.statistics.skipped:
            named = listed(map(_brief, self.statistics.first_skipped), skipped)
            text = f"{skipped:,} of {skipped + count:,} {what} are skipped: {named}"
            warn(SkippedWarning(text, option="errors", value="skip"))


def _brief(skipped: str) -> str:
    """A place without folders, and the beginning of the reason, so that ten fit a warning."""
    place, _, why = skipped.partition(": ")
    text = f"{place.rpartition('/')[2]}: {why}"
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 3]}..."


def gathered(
    rows: Iterable[PlacedRow], out: Gathered, options: ChatOptions, write: Callable[[Any], T]
) -> Iterator[tuple[str, T]]:
    """Write rows to segments, and yield each with its place and what `write` returns.

    An invalid row leaves nothing; the error contains its place, unless it is skipped.
    """
    for place, row in rows:
        start = len(out.segments.items)
        try:
            if isinstance(row, ConversationError):
                raise row
            written = write(row)
            if options.errors == "skip":
                out.segments.check_texts(start)
        except ConversationError as error:
            out.segments.cut(start)
            if options.errors == "strict":  # what is wrong with an earlier one comes first
                out.segments.check_texts(places=out.places)
            if options.errors != "skip":
                raise _or_skip(error.at(place)) from None
            out.skip(place, error)
        else:
            yield place, written
    if options.errors == "strict":
        out.segments.check_texts(places=out.places)


def _or_skip(error: ConversationError) -> ConversationError:
    """The error of a row, which may be left out, unless all rows have another layout."""
    if error.option == "rows":
        return error
    hints = [error.hint, 'pass errors="skip" to leave such rows out']
    error.hint = ", or ".join(filter(None, hints))
    return error


def _gather(writer: Any, conversations: ConversationSource, options: ChatOptions) -> Gathered:
    out = Gathered()

    def write(given: Conversation) -> Row:
        row = read_row(given, writer, options)
        if options.require:
            check_required(row, options)
        writer.write(row, out.segments, options)
        return row

    for place, row in gathered(read(conversations, options), out, options, write):
        out.places.append(place)
        if options.truncate == "turns":
            out.rows.append(row)
        if row.messages[-1]["role"] == "user":
            out.statistics.unanswered += 1
        if row.messages[0]["role"] != "user" and row.first_role() == "assistant":
            out.statistics.unasked += 1
    return out


# ---------------------------------------------------------------------------- cutting


def _shortened(
    write: Any, gathered: Gathered, encoded: Encoded, options: ChatOptions, max_tokens: int
) -> Encoded:
    """Render those that are too long again, without their oldest turns.

    One whose last turn alone is too long is invalid.
    """
    lengths = np.diff(encoded.offsets)
    parts = [slice(*both) for both in pairwise(encoded.offsets.tolist())]
    ids, mask = [encoded.ids[part] for part in parts], [encoded.mask[part] for part in parts]
    fit = np.ones(len(lengths), bool)
    for number in np.flatnonzero(lengths > max_tokens):
        place = gathered.places[number]
        try:
            shorter = render_fitted(write, gathered.rows[number], options, max_tokens)
            ids[number], mask[number] = shorter.ids, shorter.mask
        except ConversationError as error:
            if options.errors != "skip":
                raise _or_skip(error.at(place)) from None
            gathered.skip(place, error)
            fit[number] = False
    gathered.places, ids, mask = (list(compress(one, fit)) for one in (gathered.places, ids, mask))
    starts = _starts_of(np.array([*map(len, ids)], np.int64))
    ids, mask = [encoded.ids[:0], *ids], [encoded.mask[:0], *mask]
    return Encoded(np.concatenate(ids), np.concatenate(mask), starts, lengths[fit])


def _starts_of(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """The start of each of consecutive parts, and the end of the last."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


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


def _trained(encoded: Encoded) -> NDArray[np.int64]:
    starts, has_ids = encoded.offsets[:-1], np.diff(encoded.offsets) > 0
    counts = np.zeros(len(starts), np.int64)
    if has_ids.any():  # `reduceat` would take an id of the next conversation for an empty one
        counts[has_ids] = np.add.reduceat(encoded.mask, starts[has_ids], dtype=np.int64)
    return counts


def _kept(
    encoded: Encoded,
    trained: NDArray[np.int64],
    places: Sequence[str],
    on_untrained: str,
    max_tokens: int | None,
) -> NDArray[np.bool_]:
    """Which conversations to keep: those whose mask is all 0 or all 1 are rejected or dropped."""
    lengths = np.diff(encoded.offsets)
    useful: NDArray[np.bool_] = (trained > 0) & (trained < lengths)
    if on_untrained == "keep" or useful.all():
        return np.ones(len(useful), bool)
    count = f"{int((~useful).sum()):,} of {len(useful):,}"
    if on_untrained == "error":
        first = int(np.argmin(useful))
        error = nothing_to_learn(int(trained[first]), int(lengths[first]), max_tokens)
        error.hint += f', or on_untrained="drop" to drop such conversations ({count})'
        raise error.at(places[first])
    text = f"{count} conversations have nothing to train on and are dropped"
    warn(SkippedWarning(text, option="on_untrained", value=on_untrained))
    return useful


def _count(
    out: RenderStatistics, encoded: Encoded, trained: NDArray[np.int64], batch: RenderedBatch
) -> None:
    """Count what is known when all is encoded, and arranged in rows or not."""
    lengths = np.diff(encoded.offsets)
    out.conversations = len(lengths) + out.skipped
    out.cut = int((lengths < encoded.lengths).sum())
    out.untrained = int((trained == 0).sum())
    out.trained = int(batch.loss_mask.sum())
    out.longest = int(encoded.lengths.max(initial=0))
    if batch.offsets is None:
        out.rows = len(batch.input_ids)
        out.fill = out.ids / batch.input_ids.size if out.rows else 1.0


# ---------------------------------------------------------------------------- rows


def pad_id(tokenizer: _core.Tokenizer, template: Any, pad: str | None) -> int:
    """The id of the special token that pads rows: `pad`, the tokenizer's own, the template's."""
    own, special = roles.roles(tokenizer).get("pad"), tokenizer.special_tokens
    chosen = None if isinstance(template, Template) else template.pad
    name = pad or chosen or own or template.padding()
    if name is None or name not in special:
        raise SpecialTokenError(
            f"rows are padded with the special token {name!r}, which this tokenizer does not have",
            option="pad",
            hint=f"pass pad= one of {' '.join(special) or 'none'}",
        )
    return special[name]


def _too_wide(
    lengths: NDArray[np.int64], places: Sequence[str], width: int, option: str
) -> ConversationError:
    wide = lengths > width
    first = int(np.argmax(wide))
    return ConversationError(
        f"{places[first]} has {lengths[first]:,} ids, and a row has room for {width:,}; "
        f"{int(wide.sum()):,} of {len(lengths):,} conversations are too long",
        option=option,
        value=width,
        hint=f'pass max_tokens={width} to cut them off, or truncate="turns" to drop their '
        'oldest turns, or truncate="split" to continue them in the next row, or a larger row',
    )


def _in_rows(
    batch: RenderedBatch, whole: NDArray[np.int64], width: int, filler: int, *, packed: bool
) -> RenderedBatch:
    """Arrange conversations in rows, one per row or packed; one that is too long has several."""
    pieces = np.maximum(-(-whole // width), 1)
    number = np.repeat(np.arange(len(pieces), dtype=np.int32), pieces)
    lengths = np.full(len(number), width, np.int64)
    lengths[np.cumsum(pieces) - 1] = whole - (pieces - 1) * width
    rows, columns = np.arange(len(lengths)), np.zeros(len(lengths), np.int64)
    if packed:
        rows, columns = _core.pack(lengths, width)
    shape = (int(rows.max()) + 1 if len(rows) else 0, width)
    ids, mask = np.full(shape, filler, np.int32), np.zeros(shape, np.uint8)
    conversations = np.full(shape, -1, np.int32)
    shift = rows * width + columns - _starts_of(lengths)[:-1]
    at = np.arange(len(batch.input_ids)) + np.repeat(shift, lengths)
    ids.ravel()[at] = batch.input_ids
    mask.ravel()[at] = batch.loss_mask
    conversations.ravel()[at] = np.repeat(number, lengths)
    if packed:  # the id before it is of another conversation
        mask[rows[lengths > 0], columns[lengths > 0]] = 0
    return replace(batch, input_ids=ids, loss_mask=mask, offsets=None, conversations=conversations)
