"""Render data sets of conversations to arrays: ragged, padded, or packed into rows.

Python converts the messages to segments; the core encodes, truncates and packs them in parallel.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bytepair import _core
from bytepair._internal.checks import place_of
from bytepair.chat.renderer import TemplateOrName, nothing_to_learn, writer
from bytepair.chat.rows import ChatOptions, read_row
from bytepair.chat.segments import Encoded, Segments
from bytepair.chat.sources import ConversationSource, read
from bytepair.chat.template import Template
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
    """

    input_ids: NDArray[np.int32]
    loss_mask: NDArray[np.uint8]
    labels: NDArray[np.int64] | None = None
    offsets: NDArray[np.int64] | None = None
    conversations: NDArray[np.int32] | None = None

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

    def to_arrow(self) -> pa.Table:
        """Convert to a table of list columns, with one row per conversation or per row."""
        from bytepair._internal.extras import pyarrow as pa

        columns = {}
        for name in ("input_ids", "loss_mask", "labels", "conversations"):
            values = getattr(self, name)
            if values is not None and self.offsets is None:
                flat = pa.array(values.ravel())
                columns[name] = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
            elif values is not None:
                offsets = pa.array(self.offsets)
                columns[name] = pa.LargeListArray.from_arrays(offsets, pa.array(values))
        return pa.table(columns)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the table of `to_arrow` to a new parquet file, or replace one; return its path."""
        return saved(self.to_arrow(), path, overwrite=overwrite)


def saved(table: pa.Table, path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Write a table to a parquet file, whole or not at all; return its path."""
    from bytepair._internal.extras import pyarrow as pa
    from bytepair._internal.extras import pyarrow_parquet as pq

    stream = pa.BufferOutputStream()
    pq.write_table(table, stream)
    write_whole(Path(path), memoryview(stream.getvalue()), overwrite=overwrite)
    return Path(path)


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
    pad_to, pack_to, pad, ignore_index = layout
    if pad_to is not None and pack_to is not None:
        raise ArgumentError(
            "pass either pad_to (one conversation per row) or pack_to (several)", option="pad_to"
        )
    width = pad_to if pack_to is None else pack_to
    if width is not None and width < 1:
        raise ArgumentError(f"the row width is {width}", hint="pass at least 1")
    if width is not None:
        max_tokens = width if max_tokens is None else min(max_tokens, width)
    write = writer(tokenizer, template)
    encoded = _segments(write, conversations, options).encode(
        tokenizer, join=write.join, max_tokens=max_tokens, truncate=options.truncate,
        errors=options.errors, threads=threads,
    )  # fmt: skip
    _report_cut(encoded.lengths, encoded.offsets, max_tokens)
    batch = _trained(encoded, on_untrained if write.has_mask else "keep", max_tokens)
    if width is not None:
        filler = pad_id(tokenizer, padding(tokenizer, write.template, pad))
        batch = _in_rows(batch, width, filler, packed=pack_to is not None)
    if ignore_index is None:
        return batch
    labels = np.where(batch.loss_mask == 1, batch.input_ids, np.int64(ignore_index))
    return replace(batch, labels=labels)


def _segments(writer: Any, conversations: ConversationSource, options: ChatOptions) -> Segments:
    """The segments of all conversations; an error contains the index of the conversation."""
    out = Segments()
    for number, row in enumerate(read(conversations, options)):
        try:
            writer.write(read_row(row, writer, options), out, options)
        except ConversationError as error:
            raise error.at(f"conversation {number}") from None
    return out


def _report_cut(lengths: Any, offsets: NDArray[np.int64], max_tokens: int | None) -> None:
    """Warn if ids of conversations were cut off: how many, of how many."""
    cut = 0 if lengths is None else int(lengths.sum() - offsets[-1])
    if cut:
        count = int((np.diff(offsets) < lengths).sum())
        text = (
            f"{count:,} of {len(lengths):,} conversations are longer than {max_tokens:,} ids: "
            f"{cut:,} of {int(lengths.sum()):,} ids are cut off"
        )
        warn(SkippedWarning(text, option="max_tokens", value=max_tokens))


def _trained(encoded: Encoded, on_untrained: str, max_tokens: int | None) -> RenderedBatch:
    """A ragged batch; reject or drop conversations whose mask is all 0 or all 1."""
    ids, mask, offsets = encoded.ids.view(np.int32), encoded.mask, encoded.offsets
    sums = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
    trained, lengths = np.diff(sums[offsets]), np.diff(offsets)
    bad = (trained == 0) | (trained == lengths)
    if on_untrained == "keep" or not bad.any():
        return RenderedBatch(ids, mask, offsets=offsets)
    if on_untrained == "error":
        first = int(np.argmax(bad))
        why, hint = nothing_to_learn(int(trained[first]), int(lengths[first]), max_tokens)
        raise ConversationError(
            f"conversation {first}: {why}",
            option="on_untrained",
            value=on_untrained,
            hint=f'{hint}, or on_untrained="drop" to drop such conversations '
            f"({int(bad.sum())} of {len(bad)})",
        )
    text = (
        f"{int(bad.sum()):,} of {len(bad):,} conversations have nothing to train on and are dropped"
    )
    warn(SkippedWarning(text, option="on_untrained", value=on_untrained))
    keep = np.repeat(~bad, lengths)
    ends = np.concatenate([[0], np.cumsum(lengths[~bad])]).astype(np.int64)
    return RenderedBatch(ids[keep], mask[keep], offsets=ends)


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
            f"rows are padded with the special token {name!r}, which this tokenizer does not have",
            option="pad",
            hint=f"pass pad= one of {' '.join(special) or 'none'}",
        )
    return special[name]


def _in_rows(batch: RenderedBatch, width: int, filler: int, *, packed: bool) -> RenderedBatch:
    """Arrange conversations in rows, one per row or packed."""
    assert batch.offsets is not None
    lengths = np.diff(batch.offsets)
    rows, columns = np.arange(len(lengths)), np.zeros(len(lengths), np.int64)
    if packed:
        places = _core.pack(lengths, width)
        rows, columns = places.rows, places.columns
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
    return RenderedBatch(ids, mask, conversations=conversations)
