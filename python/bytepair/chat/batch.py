"""Render data sets of conversations to arrays: ragged, padded, or packed into rows.

Python converts the messages to segments; the core encodes, truncates and packs them in parallel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair.chat.prompt import render_fitted
from bytepair.chat.rendered import RenderedBatch, RenderStatistics, SkippedRows
from bytepair.chat.renderer import TemplateOrName, nothing_to_learn, writer
from bytepair.chat.rows import ChatOptions, Row, check_required, read_row
from bytepair.chat.segments import Encoded, Segments
from bytepair.chat.sources import ConversationSource, PlacedRow, read
from bytepair.chat.template import Template
from bytepair.errors import (
    ArgumentError,
    ConversationError,
    SkippedWarning,
    SpecialTokenError,
    warn,
)
from bytepair.properties import roles


class BatchLayout(NamedTuple):
    """What the rows of a batch are; see `Tokenizer.render_batch`."""

    pad_to: int | None
    pack_to: int | None
    pad: str | None
    ignore_index: int | None


def render(
    tokenizer: _core.Tokenizer,
    conversations: ConversationSource,
    options: ChatOptions,
    layout: BatchLayout,
    *,
    template: TemplateOrName,
    max_tokens: int | None,
    on_untrained: str,
    threads: int | None,
) -> RenderedBatch:
    """Render a data set of conversations; see `Tokenizer.render_batch`."""
    width = row_width(layout.pad_to, layout.pack_to)
    how = options.truncate
    if how == "split" and width is None:
        raise ArgumentError(
            'truncate="split" continues conversations in the next row', hint="pass pack_to="
        )
    if how in ("messages", "turns") and max_tokens is None:
        max_tokens = width
    write = writer(tokenizer, template)
    gathered = gather(write, conversations, options)
    if how == "turns" and max_tokens is not None:
        encoded = gathered.encode(tokenizer, write, options, None, threads)
        encoded = shortened(tokenizer, write, gathered, encoded, options, max_tokens)
    else:
        encoded = gathered.encode(tokenizer, write, options, max_tokens, threads)
    report_cut(encoded, max_tokens)
    found = numbers(gathered, encoded)
    kept = checked(encoded, found, on_untrained if write.has_mask else "keep", max_tokens)
    batch = RenderedBatch(encoded.ids.view(np.int32), encoded.mask, offsets=encoded.offsets)
    if not kept.all():
        batch = without(batch, kept)
        found = replace(found, dropped=int((~kept).sum()), ids=len(batch.input_ids))
    if width is not None:
        filler = pad_id(tokenizer, padding(tokenizer, write.template, layout.pad))
        batch, found = laid_out(
            batch, found, width, filler, packed=layout.pack_to is not None, splits=how == "split"
        )
    batch = replace(batch, statistics=replace(found, trained=int(batch.loss_mask.sum())))
    return batch if layout.ignore_index is None else labelled(batch, layout.ignore_index)


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
        skipped: those that were left out as invalid.
        unanswered: how many end with a message of the user.
        unasked: how many begin with a message of the assistant.
    """

    segments: Segments = field(default_factory=Segments)
    rows: list[Row] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    skipped: SkippedRows = field(default_factory=SkippedRows)
    unanswered: int = 0
    unasked: int = 0

    def encode(
        self,
        tokenizer: _core.Tokenizer,
        write: Any,
        options: ChatOptions,
        max_tokens: int | None,
        threads: int | None,
    ) -> Encoded:
        """Encode all conversations in parallel."""
        return self.segments.encode(
            tokenizer, join=write.join, max_tokens=max_tokens, truncate=options.truncate,
            errors="replace", threads=threads,
        )  # fmt: skip


def gather(writer: Any, conversations: ConversationSource, options: ChatOptions) -> Gathered:
    """Convert all conversations to segments; an error contains the place of the conversation."""
    out = Gathered()
    for place, row in read(conversations, options):
        try:
            _add(out, writer, (place, row), options)
        except ConversationError as error:
            if options.errors != "skip":
                raise error.at(place) from None
            out.skipped.add(place, error)
    out.skipped.warn(f"{out.skipped.count + len(out.places):,} conversations")
    return out


def _add(out: Gathered, writer: Any, placed: PlacedRow, options: ChatOptions) -> None:
    """Add a row; if it is invalid, nothing of it."""
    place, given = placed
    if isinstance(given, ConversationError):
        raise given
    row = read_row(given, writer, options)
    check_required(row, options)
    segments = out.segments
    start = len(segments.items)
    try:
        writer.write(row, segments, options)
        if options.errors != "replace":
            segments.check_texts(start)
    except ConversationError:
        del segments.items[start:], segments.trained[start:], segments.ends[len(out.places) :]
        raise
    out.places.append(place)
    if options.truncate == "turns":
        out.rows.append(row)
    out.unanswered += row.messages[-1]["role"] == "user"
    out.unasked += row.first_role() == "assistant"


# ---------------------------------------------------------------------------- cutting


def shortened(
    tokenizer: _core.Tokenizer,
    write: Any,
    gathered: Gathered,
    encoded: Encoded,
    options: ChatOptions,
    max_tokens: int,
) -> Encoded:
    """Render those that are too long again, without their oldest turns."""
    lengths, offsets = np.diff(encoded.offsets), encoded.offsets
    ids, mask, end = [], [], 0
    kept = lengths.copy()
    for number in np.flatnonzero(lengths > max_tokens):
        try:
            shorter = render_fitted(tokenizer, write, gathered.rows[number], options, max_tokens)
        except ConversationError as error:
            raise error.at(gathered.places[number]) from None
        before = slice(end, offsets[number])
        ids += [encoded.ids[before], shorter.ids]
        mask += [encoded.mask[before], shorter.mask]
        end, kept[number] = offsets[number + 1], len(shorter.ids)
    ids, mask = [*ids, encoded.ids[end:]], [*mask, encoded.mask[end:]]
    return Encoded(np.concatenate(ids), np.concatenate(mask), starts_of(kept), lengths)


def starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The start of each of consecutive parts, and the end of the last."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def report_cut(encoded: Encoded, max_tokens: int | None) -> None:
    """Warn if ids of conversations were cut off: how many, of how many."""
    lengths, offsets = encoded.lengths, encoded.offsets
    cut = 0 if lengths is None else int(lengths.sum() - offsets[-1])
    if cut:
        count = int((np.diff(offsets) < lengths).sum())
        warn(
            SkippedWarning(
                f"{count:,} of {len(lengths):,} conversations are longer than {max_tokens:,} ids: "
                f"{cut:,} of {int(lengths.sum()):,} ids are cut off",
                option="max_tokens",
                value=max_tokens,
            ),
        )


def numbers(gathered: Gathered, encoded: Encoded) -> RenderStatistics:
    """What is known before rows are laid out."""
    kept = np.diff(encoded.offsets)
    lengths = kept if encoded.lengths is None else encoded.lengths
    return RenderStatistics(
        conversations=len(gathered.places) + gathered.skipped.count,
        skipped=gathered.skipped.count,
        dropped=0,
        cut=int((kept < lengths).sum()),
        split=0,
        untrained=int((trained(encoded) == 0).sum()),
        unanswered=gathered.unanswered,
        unasked=gathered.unasked,
        ids=int(encoded.offsets[-1]),
        trained=0,
        longest=int(lengths.max(initial=0)),
        rows=0,
        fill=1.0,
        first_skipped=tuple(gathered.skipped.first),
    )


# ---------------------------------------------------------------------------- masks


def trained(encoded: Encoded) -> NDArray[np.int64]:
    """The number of ids of each conversation that are trained on."""
    sums: NDArray[np.int64] = np.concatenate([[0], np.cumsum(encoded.mask, dtype=np.int64)])
    counts: NDArray[np.int64] = np.diff(sums[encoded.offsets])
    return counts


def checked(
    encoded: Encoded, found: RenderStatistics, on_untrained: str, max_tokens: int | None
) -> NDArray[np.bool_]:
    """Which conversations to keep: those whose mask is all 0 or all 1 are rejected or dropped."""
    lengths, sums = np.diff(encoded.offsets), trained(encoded)
    bad = (sums == 0) | (sums == lengths)
    if on_untrained == "keep" or not bad.any():
        return np.ones(len(bad), bool)
    if on_untrained == "error":
        first = int(np.argmax(bad))
        why, hint = nothing_to_learn(int(sums[first]), int(lengths[first]), max_tokens)
        raise ConversationError(
            f"conversation {first}: {why}",
            option="on_untrained",
            value=on_untrained,
            hint=f'{hint}, or on_untrained="drop" to drop such conversations '
            f"({int(bad.sum())} of {len(bad)})",
        )
    warn(
        SkippedWarning(
            f"{int(bad.sum()):,} of {len(bad):,} conversations have nothing to train on and are "
            "dropped",
            option="on_untrained",
            value=on_untrained,
        ),
    )
    good: NDArray[np.bool_] = ~bad
    return good


def without(batch: RenderedBatch, keep: NDArray[np.bool_]) -> RenderedBatch:
    """The conversations of a ragged batch that are to be kept."""
    assert batch.offsets is not None
    lengths = np.diff(batch.offsets)
    here = np.repeat(keep, lengths)
    return RenderedBatch(
        batch.input_ids[here], batch.loss_mask[here], offsets=starts_of(lengths[keep])
    )


# ---------------------------------------------------------------------------- rows


def padding(tokenizer: _core.Tokenizer, template: Any, pad: str | None) -> str | None:
    """The name of the special token that pads rows: `pad`, the tokenizer's own, the template's."""
    own = roles.roles(tokenizer).get("pad")
    chosen = None if isinstance(template, Template) else template.pad
    return pad or chosen or own or template.padding()


def pad_id(tokenizer: _core.Tokenizer, name: str | None) -> int:
    """The id of the special token that pads rows."""
    special = tokenizer.special_tokens
    if name is None or name not in special:
        raise SpecialTokenError(
            (
                f"rows are padded with the special token {name!r}, which this tokenizer does not "
                "have"
            ),
            option="pad",
            hint=f"pass pad= one of {' '.join(special) or 'none'}",
        )
    return special[name]


def laid_out(
    batch: RenderedBatch,
    found: RenderStatistics,
    width: int,
    filler: int,
    *,
    packed: bool,
    splits: bool,
) -> tuple[RenderedBatch, RenderStatistics]:
    """Arrange conversations in rows, one per row or packed; and count the rows."""
    assert batch.offsets is not None
    lengths = np.diff(batch.offsets)
    number = np.arange(len(lengths), dtype=np.int32)
    if splits:
        found = replace(found, split=int((lengths > width).sum()))
        pieces = np.maximum(-(-lengths // width), 1)
        number = np.repeat(number, pieces)
        last = np.cumsum(pieces) - 1
        parts = np.full(len(number), width, np.int64)
        parts[last] = lengths - (pieces - 1) * width
        lengths = parts
    elif (lengths > width).any():
        raise _too_wide(lengths, width)
    if packed:
        places = _core.pack(lengths, width)
        rows, columns = places.rows, places.columns
    else:
        rows, columns = np.arange(len(lengths)), np.zeros(len(lengths), np.int64)
    shape = (int(rows.max()) + 1 if len(rows) else 0, width)
    shift = rows * width + columns - starts_of(lengths)[:-1]
    at = np.arange(len(batch.input_ids)) + np.repeat(shift, lengths)
    ids = np.full(shape, filler, np.int32)
    mask = np.zeros(shape, np.uint8)
    conversations = np.full(shape, -1, np.int32)
    ids.ravel()[at] = batch.input_ids
    mask.ravel()[at] = batch.loss_mask
    if packed:  # the id before it is of another conversation
        mask[rows[lengths > 0], columns[lengths > 0]] = 0
    conversations.ravel()[at] = np.repeat(number, lengths)
    fill = len(batch.input_ids) / ids.size if ids.size else 1.0
    found = replace(found, rows=len(ids), fill=fill)
    return RenderedBatch(ids, mask, conversations=conversations), found


def _too_wide(lengths: NDArray[np.int64], width: int) -> ConversationError:
    first = int(np.argmax(lengths > width))
    return ConversationError(
        f"conversation {first} has {lengths[first]:,} ids, and a row {width:,}; so do "
        f"{int((lengths > width).sum()):,} of {len(lengths):,} conversations",
        option="pack_to",
        value=width,
        hint=f'pass max_tokens={width} to cut them off, or truncate="turns" to drop their oldest '
        'turns, or truncate="split" to continue them in the next row, or a larger row',
    )


def labelled(batch: RenderedBatch, ignore_index: int) -> RenderedBatch:
    """The batch with labels: the id where it is trained on, else `ignore_index`."""
    labels = np.where(batch.loss_mask == 1, batch.input_ids, np.int64(ignore_index))
    return replace(batch, labels=labels)
